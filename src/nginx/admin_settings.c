/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON values become the written form that room/settings.h reads, and it alone judges them: names, ranges and what
 * excludes what are the same here as in nginx.conf, and so are the words of a refusal. A value of the wrong type is handed on as
 * its JSON text (a string with its quotes), which is no written form of any number; and in place of a text as a line break, which is
 * no written form of any text.
 */
#include "nginx/admin.h"
#include "nginx/text.h"

#include <stdlib.h>

#define NUMBER_BYTES 32

static bool change_read(ngx_pool_t *pool, const char *name, json_t *value, struct setting_change *change);
static struct span value_text(ngx_pool_t *pool, const struct setting_info *info, json_t *value);
static struct span text_copy(ngx_pool_t *pool, const char *text);
static struct span number_text(ngx_pool_t *pool, double number);
static void settings_reset(const struct admin_changes *changes, struct settings *settings,
                           struct texts *texts);
static struct settings settings_of_preset(uint32_t preset);
static bool is_named(const struct admin_changes *changes, const char *name);
static uint32_t preset_after(const struct admin_changes *changes, const struct settings *settings);

bool admin_changes_read(ngx_pool_t *pool, json_t *object, struct admin_changes *changes)
{
    size_t size = json_object_size(object);
    const char *name;
    json_t *value;
    *changes = (struct admin_changes){.list = ngx_palloc(pool, (size + 1) * sizeof(*changes->list)),
                                      .reset = ngx_palloc(pool, (size + 1) * sizeof(*changes->reset))};
    bool is_read = changes->list != NULL && changes->reset != NULL;
    json_object_foreach (object, name, value) {
        if (is_read && json_is_null(value) && setting_find(span_of(name)) != NULL)
            changes->reset[changes->reset_count++] = span_of(name);
        else
            is_read = is_read && change_read(pool, name, value, &changes->list[changes->count++]);
    }
    return is_read;
}

/* The name stays a part of the JSON object. */
static bool change_read(ngx_pool_t *pool, const char *name, json_t *value, struct setting_change *change)
{
    change->name = span_of(name);
    change->value = value_text(pool, setting_find(change->name), value);
    return change->value.data != NULL;
}

static struct span value_text(ngx_pool_t *pool, const struct setting_info *info, json_t *value)
{
    bool is_text = info != NULL && setting_is_text(info);
    if (json_is_string(value) && info != NULL && (setting_is_word(info) || is_text))
        return text_copy(pool, json_string_value(value));
    if (is_text)
        return SPAN("\n");
    if (json_is_real(value))
        return number_text(pool, json_real_value(value));
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    struct span copy = text != NULL ? text_copy(pool, text) : SPAN_NONE;
    free(text);
    return copy;
}

static struct span text_copy(ngx_pool_t *pool, const char *text)
{
    size_t len = strlen(text);
    char *copy = ngx_pnalloc(pool, len + 1);
    return copy != NULL ? (struct span){memcpy(copy, text, len), len} : SPAN_NONE;
}

/* 15 digits give back what was written: 0.1 is 0.1 and not 0.1000000000000000055. */
static struct span number_text(ngx_pool_t *pool, double number)
{
    char text[NUMBER_BYTES];
    snprintf(text, sizeof(text), "%.15g", number);
    return text_copy(pool, text);
}

bool admin_changes_apply(const struct admin_changes *changes, struct settings *settings, struct texts *texts,
                         char *reason, size_t reason_size)
{
    struct settings result = *settings;
    struct texts shown = *texts;
    settings_reset(changes, &result, &shown);
    /* A preset that is named gives every number its value anew, what was reset too. */
    if (!settings_apply(&result, &shown, changes->list, changes->count, reason, reason_size))
        return false;
    *settings = result;
    *texts = shown;
    return true;
}

/* `rate` and `batch` are one choice: who takes one of them back goes back to the preset's choice. */
static void settings_reset(const struct admin_changes *changes, struct settings *settings,
                           struct texts *texts)
{
    struct settings base = settings_of_preset(preset_after(changes, settings));
    for (size_t i = 0; i < changes->reset_count; i++) {
        const struct setting_info *info = setting_find(changes->reset[i]);
        if (info->kind == SETTING_PRESET)
            *settings = base;
    }
    for (size_t i = 0; i < changes->reset_count; i++) {
        const struct setting_info *info = setting_find(changes->reset[i]);
        if (setting_is_text(info))
            setting_set_text(texts, info, SPAN(""));
        else
            setting_set(settings, info, setting_value(&base, info));
        if (span_equal(changes->reset[i], SPAN("rate")) && !is_named(changes, "batch"))
            settings->batch = base.batch;
    }
}

static uint32_t preset_after(const struct admin_changes *changes, const struct settings *settings)
{
    for (size_t i = 0; i < changes->reset_count; i++)
        if (span_equal(changes->reset[i], SPAN("preset")))
            return PRESET_PLAIN;
    return settings->preset;
}

static struct settings settings_of_preset(uint32_t preset)
{
    struct settings settings = settings_default();
    const struct setting_info *info = setting_find(SPAN("preset"));
    char word[NUMBER_BYTES], reason[256];
    setting_format(info, preset, word, sizeof(word));
    struct setting_change change = {SPAN("preset"), span_of(word)};
    must(settings_apply(&settings, NULL, &change, 1, reason, sizeof(reason)));
    return settings;
}

static bool is_named(const struct admin_changes *changes, const char *name)
{
    for (size_t i = 0; i < changes->count; i++)
        if (span_equal(changes->list[i].name, span_of(name)))
            return true;
    return false;
}

void admin_settings_add(ngx_buf_t *body, const struct settings *settings, const struct texts *texts)
{
    char memory[SETTING_NUMBER_MAX];
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting_info *info = &setting_list[i];
        bool is_string = setting_is_word(info) || setting_is_text(info);
        text_add(body, i == 0 ? SPAN("{\"") : SPAN(",\""));
        text_add(body, span_of(info->name));
        text_add(body, is_string ? SPAN("\":\"") : SPAN("\":"));
        text_add_json(body, setting_written(info, settings, texts, memory));
        text_add(body, is_string ? SPAN("\"") : SPAN(""));
    }
    TEXT_ADD(body, "}");
}
