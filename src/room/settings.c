/* SPDX-License-Identifier: BSD-2-Clause */
#include "room/settings.h"

#include "base/must.h"

#include <inttypes.h>
#include <stdio.h>

const struct setting_info setting_list[] = {
#define SETTING_ROW(name, field, kind, lowest, highest, value, help) \
    {name, SETTING_##kind, lowest, highest, value, help, offsetof(struct settings, field)},
    SETTING_LIST(SETTING_ROW)
#undef SETTING_ROW
};

const size_t setting_count = sizeof(setting_list) / sizeof(setting_list[0]);

static const char *const mode_words[] = {
#define MODE_WORD(name, word) [MODE_##name] = word,
    MODE_LIST(MODE_WORD)
#undef MODE_WORD
};

static const struct setting_info *setting_find(struct span name);
static bool setting_read(const struct setting_info *info, struct span value, uint64_t *out);
static void setting_allowed(const struct setting_info *info, char *out, size_t size);

struct settings settings_default(void)
{
    return (struct settings){
#define SETTING_DEFAULT(name, field, kind, lowest, highest, value, help) .field = (value),
        SETTING_LIST(SETTING_DEFAULT)
#undef SETTING_DEFAULT
    };
}

bool settings_set(struct settings *settings, struct span name, struct span value, char *reason,
                  size_t reason_size)
{
    const struct setting_info *info = setting_find(name);
    char allowed[160];
    uint64_t number;

    if (info == NULL) {
        snprintf(reason, reason_size, "there is no room setting \"%.*s\"",
                 (int)(name.len > 64 ? 64 : name.len), name.data);
        return false;
    }
    if (!setting_read(info, value, &number) || number < info->lowest || number > info->highest) {
        setting_allowed(info, allowed, sizeof(allowed));
        snprintf(reason, reason_size, "\"%.*s\" is not a value of %s, which is %s",
                 (int)(value.len > 64 ? 64 : value.len), value.data, info->name, allowed);
        return false;
    }
    *(uint32_t *)((char *)settings + info->offset) = (uint32_t)number;
    return true;
}

void setting_format(const struct setting_info *info, uint32_t value, char *out, size_t size)
{
    switch (info->kind) {
    case SETTING_WHOLE:
        snprintf(out, size, "%" PRIu32, value);
        break;
    case SETTING_MILLI:
        if (value % 1000 == 0)
            snprintf(out, size, "%" PRIu32, value / 1000);
        else
            snprintf(out, size, "%" PRIu32 ".%03" PRIu32, value / 1000, value % 1000);
        break;
    case SETTING_FLAG:
        snprintf(out, size, "%s", value != 0 ? "true" : "false");
        break;
    case SETTING_MODE:
        must(value < MODE_COUNT);
        snprintf(out, size, "%s", mode_words[value]);
        break;
    }
}

static const struct setting_info *setting_find(struct span name)
{
    for (size_t i = 0; i < setting_count; i++)
        if (span_equal(name, span_of(setting_list[i].name)))
            return &setting_list[i];
    return NULL;
}

/* Digits only, and few enough that nothing overflows before the range is checked. */
static bool read_whole(struct span text, uint64_t *out)
{
    uint64_t number = 0;

    if (text.len == 0 || text.len > 12)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *out = number;
    return true;
}

static bool read_milli(struct span text, uint64_t *out)
{
    const char *dot = text.len == 0 ? NULL : memchr(text.data, '.', text.len);
    struct span whole = {text.data, dot == NULL ? text.len : (size_t)(dot - text.data)};
    struct span rest = dot == NULL ? SPAN("0") : (struct span){dot + 1, text.len - whole.len - 1};
    uint64_t units, decimals;

    if (rest.len > 3 || !read_whole(whole, &units) || !read_whole(rest, &decimals))
        return false;
    for (size_t i = rest.len; i < 3; i++)
        decimals *= 10;
    *out = units * 1000 + decimals;
    return true;
}

static bool read_word(const char *const *words, size_t count, struct span text, uint64_t *out)
{
    for (size_t i = 0; i < count; i++)
        if (span_equal(text, span_of(words[i]))) {
            *out = i;
            return true;
        }
    return false;
}

static bool setting_read(const struct setting_info *info, struct span value, uint64_t *out)
{
    static const char *const flag_words[] = {"false", "true"};

    switch (info->kind) {
    case SETTING_WHOLE:
        return read_whole(value, out);
    case SETTING_MILLI:
        return read_milli(value, out);
    case SETTING_FLAG:
        return read_word(flag_words, 2, value, out);
    case SETTING_MODE:
        return read_word(mode_words, MODE_COUNT, value, out);
    }
    return false;
}

static void setting_allowed(const struct setting_info *info, char *out, size_t size)
{
    char lowest[32], highest[32];

    setting_format(info, info->lowest, lowest, sizeof(lowest));
    setting_format(info, info->highest, highest, sizeof(highest));
    switch (info->kind) {
    case SETTING_WHOLE:
        snprintf(out, size, "a whole number from %s to %s", lowest, highest);
        break;
    case SETTING_MILLI:
        snprintf(out, size, "a number from %s to %s with up to three decimals", lowest, highest);
        break;
    case SETTING_FLAG:
        snprintf(out, size, "true or false");
        break;
    case SETTING_MODE:
        snprintf(out, size, "queue, hold, open or closed");
        break;
    }
}
