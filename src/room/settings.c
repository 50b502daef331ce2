/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Everything about a setting follows from its row, and a refusal is worded here, so that nginx.conf, the operator's API and the
 * command line accept the same and say the same. Presets are written like changes: a row of theirs that the table of settings
 * would not allow fails when it is first used.
 */

#include "room/settings.h"

#include "base/decimal.h"
#include "base/must.h"
#include "room/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct setting_info setting_list[] = {
#define SETTING_ROW(name, field, kind, lowest, highest, value, help) \
    {name, SETTING_##kind, lowest, highest, value, help, offsetof(struct settings, field), 0},
    SETTING_LIST(SETTING_ROW)
#undef SETTING_ROW
#define TEXT_ROW(name, field, kind, characters, help) \
    {name,                                            \
     SETTING_##kind,                                  \
     0,                                               \
     characters,                                      \
     0,                                               \
     help,                                            \
     offsetof(struct texts, field),                   \
     TEXT_BYTES_##kind(characters)},
        TEXT_LIST(TEXT_ROW)
#undef TEXT_ROW
};

const size_t setting_numbers = sizeof(struct settings) / sizeof(uint32_t);
const size_t setting_count = sizeof(setting_list) / sizeof(setting_list[0]);

#define WORD_TEXT(name, word) [name] = word,

/* The words of a setting whose values are words; NULL for the others. */
static const char *const *words_of(enum setting_kind kind)
{
    static const char *const flags[] = {"false", "true"};
    static const char *const modes[] = {MODE_LIST(WORD_TEXT)};
    static const char *const paces[] = {PACE_LIST(WORD_TEXT)};
    static const char *const presets[] = {PRESET_LIST(WORD_TEXT)};

    switch (kind) {
    case SETTING_FLAG:
        return flags;
    case SETTING_MODE:
        return modes;
    case SETTING_PACE:
        return paces;
    case SETTING_PRESET:
        return presets;
    default:
        return NULL;
    }
}

/* What sets a preset apart from the defaults. */
static const struct {
    enum room_preset preset;
    const char *name, *value;
} preset_rows[] = {
    {PRESET_QUEUE, "max_called", "100"},      {PRESET_QUEUE, "min_wait_sec", "5"},
    {PRESET_QUEUE, "max_waiting", "100000"},  {PRESET_HALL, "rate", "100"},
    {PRESET_HALL, "session_max_sec", "600"},  {PRESET_LOBBY, "tier", "1"},
    {PRESET_LOBBY, "max_active", "0"},        {PRESET_LOBBY, "batch", "500"},
    {PRESET_LOBBY, "session_max_sec", "600"}, {PRESET_CONCERT, "max_active", "40000"},
    {PRESET_CONCERT, "batch", "1400"},
};

static bool set_one(struct settings *settings, struct texts *texts, const struct setting_change *change,
                    char *reason, size_t reason_size);
static bool set_text(struct texts *texts, const struct setting_info *info, struct span value, char *reason,
                     size_t reason_size);
static bool read_value(const struct setting_info *info, struct span value, uint64_t *out);
static void say_allowed(const struct setting_info *info, char *out, size_t size);

struct settings settings_default(void)
{
    return (struct settings){
#define SETTING_DEFAULT(name, field, kind, lowest, highest, value, help) .field = (value),
        SETTING_LIST(SETTING_DEFAULT)
#undef SETTING_DEFAULT
    };
}

static const struct setting_change *change_of(const struct setting_change *changes, size_t count,
                                              const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (span_equal(changes[i].name, span_of(name)))
            return &changes[i];
    return NULL;
}

/* Whether the changes go together at all. */
static bool are_consistent(const struct setting_change *changes, size_t count, char *reason,
                           size_t reason_size)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (span_equal(changes[i].name, changes[j].name)) {
                snprintf(reason, reason_size, "%.*s is given twice", (int)changes[i].name.len,
                         changes[i].name.data);
                return false;
            }
    if (change_of(changes, count, "rate") != NULL && change_of(changes, count, "batch") != NULL) {
        snprintf(reason, reason_size, "rate and batch exclude each other: give one of them");
        return false;
    }
    return true;
}

static void apply_preset(struct settings *settings)
{
    uint32_t preset = settings->preset;

    *settings = settings_default();
    settings->preset = preset;
    for (size_t i = 0; i < sizeof(preset_rows) / sizeof(preset_rows[0]); i++) {
        struct setting_change row = {span_of(preset_rows[i].name), span_of(preset_rows[i].value)};
        char reason[256];
        if (preset_rows[i].preset == preset)
            must(set_one(settings, NULL, &row, reason, sizeof(reason)));
    }
}

/* Whether a pace that follows the shop has what it needs. */
static bool can_follow(const struct settings *settings, char *reason, size_t reason_size)
{
    const char *trouble = NULL;

    if (settings->pace != PACE_AUTO)
        return true;
    if (settings->batch != 0)
        trouble = "batch and pace=auto exclude each other";
    else if (settings->rate_max_milli == 0)
        trouble = "pace=auto needs rate_max, the most calls per second";
    else if (settings->rate_min_milli > settings->rate_max_milli)
        trouble = "rate_min is more than rate_max";
    if (trouble != NULL)
        snprintf(reason, reason_size, "%s", trouble);
    return trouble == NULL;
}

bool settings_apply(struct settings *settings, struct texts *texts, const struct setting_change *changes,
                    size_t count, char *reason, size_t reason_size)
{
    struct settings result = *settings;
    struct texts shown = texts == NULL ? (struct texts){0} : *texts;
    const struct setting_change *preset = change_of(changes, count, "preset");

    if (preset != NULL) {
        if (!set_one(&result, &shown, preset, reason, reason_size))
            return false;
        apply_preset(&result);
    }
    for (size_t i = 0; i < count; i++)
        if (!set_one(&result, &shown, &changes[i], reason, reason_size))
            return false;
    if (!are_consistent(changes, count, reason, reason_size))
        return false;
    if (change_of(changes, count, "rate") != NULL ||
        (result.pace == PACE_AUTO && change_of(changes, count, "batch") == NULL))
        result.batch = 0;
    if (!can_follow(&result, reason, reason_size))
        return false;
    *settings = result;
    if (texts != NULL)
        *texts = shown;
    return true;
}

static int shortened(struct span text)
{
    return (int)(text.len > 64 ? 64 : text.len);
}

static bool set_one(struct settings *settings, struct texts *texts, const struct setting_change *change,
                    char *reason, size_t reason_size)
{
    const struct setting_info *info = setting_find(change->name);
    char allowed[160];
    uint64_t number;

    if (info == NULL) {
        snprintf(reason, reason_size, "there is no room setting \"%.*s\"", shortened(change->name),
                 change->name.data);
        return false;
    }
    if (setting_is_text(info))
        return set_text(texts, info, change->value, reason, reason_size);
    if (!read_value(info, change->value, &number) || number < info->lowest || number > info->highest) {
        say_allowed(info, allowed, sizeof(allowed));
        snprintf(reason, reason_size, "\"%.*s\" is not a value of %s, which is %s", shortened(change->value),
                 change->value.data, info->name, allowed);
        return false;
    }
    setting_set(settings, info, (uint32_t)number);
    return true;
}

/* What was sent is not said again: it may be long, and anything. */
static bool set_text(struct texts *texts, const struct setting_info *info, struct span value, char *reason,
                     size_t reason_size)
{
    char allowed[200];

    if (value.len > 0 && !text_is_valid(info, value)) {
        text_say_allowed(info, allowed, sizeof(allowed));
        snprintf(reason, reason_size, "%s must be empty or %s", info->name, allowed);
        return false;
    }
    must(texts != NULL);
    setting_set_text(texts, info, value);
    return true;
}

void setting_set_text(struct texts *texts, const struct setting_info *info, struct span value)
{
    char *at = (char *)texts + info->offset;

    must(value.len <= info->bytes);
    memset(at, 0, info->bytes + 1);
    if (value.len > 0)
        memcpy(at, value.data, value.len);
}

void setting_format(const struct setting_info *info, uint32_t value, char *out, size_t size)
{
    switch (info->kind) {
    case SETTING_WHOLE:
    default:
        must(!setting_is_text(info));
        snprintf(out, size, "%" PRIu32, value);
        break;
    case SETTING_MILLI:
        if (value % 1000 == 0)
            snprintf(out, size, "%" PRIu32, value / 1000);
        else
            snprintf(out, size, "%" PRIu32 ".%03" PRIu32, value / 1000, value % 1000);
        break;
    case SETTING_FLAG:
    case SETTING_MODE:
    case SETTING_PACE:
    case SETTING_PRESET:
        must(value <= info->highest);
        snprintf(out, size, "%s", words_of(info->kind)[value]);
        break;
    }
}

struct span setting_written(const struct setting_info *info, const struct settings *settings,
                            const struct texts *texts, char memory[SETTING_NUMBER_MAX])
{
    if (setting_is_text(info))
        return setting_text(texts, info);
    must(settings != NULL);
    setting_format(info, setting_value(settings, info), memory, SETTING_NUMBER_MAX);
    return span_of(memory);
}

/* The rows from `first` on, up to `end`. */
static size_t write_lines(size_t first, size_t end, const struct settings *settings,
                          const struct texts *texts, char *out)
{
    size_t used = 0;

    for (size_t i = first; i < end; i++) {
        char memory[SETTING_NUMBER_MAX];
        struct span value = setting_written(&setting_list[i], settings, texts, memory);
        used += (size_t)snprintf(out + used, SETTINGS_TEXT_MAX - used, "%s=%.*s\n", setting_list[i].name,
                                 (int)value.len, value.data);
        must(used < SETTINGS_TEXT_MAX);
    }
    return used;
}

size_t settings_to_text(const struct settings *settings, const struct texts *texts,
                        char out[SETTINGS_TEXT_MAX])
{
    return write_lines(0, setting_count, settings, texts, out);
}

size_t texts_to_text(const struct texts *texts, char out[SETTINGS_TEXT_MAX])
{
    return write_lines(setting_numbers, setting_count, NULL, texts, out);
}

/* Takes the text before the next `end` off; false if there is none. */
static bool take_until(struct span *text, char end, struct span *out)
{
    const char *at = text->len == 0 ? NULL : memchr(text->data, end, text->len);

    if (at == NULL)
        return false;
    *out = (struct span){text->data, (size_t)(at - text->data)};
    text->data += out->len + 1;
    text->len -= out->len + 1;
    return true;
}

static bool take_line(struct span *lines, struct setting_change *change)
{
    return take_until(lines, '=', &change->name) && take_until(lines, '\n', &change->value);
}

bool settings_from_text(struct settings *settings, struct texts *texts, struct span lines)
{
    struct setting_change change;
    char reason[256];

    *settings = settings_default();
    if (texts != NULL)
        *texts = (struct texts){0};
    while (lines.len > 0)
        if (!take_line(&lines, &change) || !set_one(settings, texts, &change, reason, sizeof(reason)))
            return false;
    return true;
}

bool texts_from_text(struct texts *texts, struct span lines)
{
    struct setting_change change;
    char reason[256];

    *texts = (struct texts){0};
    while (lines.len > 0) {
        if (!take_line(&lines, &change))
            return false;
        const struct setting_info *info = setting_find(change.name);
        if (info != NULL &&
            (!setting_is_text(info) || !set_text(texts, info, change.value, reason, sizeof(reason))))
            return false;
    }
    return true;
}

const struct setting_info *setting_find(struct span name)
{
    for (size_t i = 0; i < setting_count; i++)
        if (span_equal(name, span_of(setting_list[i].name)))
            return &setting_list[i];
    return NULL;
}

static bool read_word(const struct setting_info *info, struct span text, uint64_t *out)
{
    for (uint32_t i = 0; i <= info->highest; i++)
        if (span_equal(text, span_of(words_of(info->kind)[i]))) {
            *out = i;
            return true;
        }
    return false;
}

static bool read_value(const struct setting_info *info, struct span value, uint64_t *out)
{
    if (words_of(info->kind) != NULL)
        return read_word(info, value, out);
    return decimal_read(value, info->kind == SETTING_MILLI ? 3 : 0, out);
}

static void say_allowed(const struct setting_info *info, char *out, size_t size)
{
    char lowest[32], highest[32];
    size_t used = 0;

    if (words_of(info->kind) != NULL) {
        for (uint32_t i = 0; i <= info->highest && used < size; i++) {
            const char *before = i == 0 ? "" : i == info->highest ? " or " : ", ";
            used += (size_t)snprintf(out + used, size - used, "%s%s", before, words_of(info->kind)[i]);
        }
        return;
    }
    setting_format(info, info->lowest, lowest, sizeof(lowest));
    setting_format(info, info->highest, highest, sizeof(highest));
    snprintf(out, size, "a %snumber from %s to %s%s", info->kind == SETTING_WHOLE ? "whole " : "", lowest,
             highest, info->kind == SETTING_WHOLE ? "" : " with up to three decimals");
}
