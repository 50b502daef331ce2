/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_SETTINGS_H
#define WEIR_ROOM_SETTINGS_H

/*
 * Room settings: one row each. nginx parameters (weir_room), the operator's API, the command line and
 * docs/reference/settings.md are all made from this list.
 *
 * First the numbers, which the room goes by: SETTING(name, field, kind, lowest, highest, default, help)
 * Kinds: WHOLE a whole number · MILLI a number with up to three decimals, kept in thousandths (lowest, highest and default
 * are in thousandths too) · FLAG true or false · MODE, PACE, PRESET one of the words of MODE_LIST, PACE_LIST,
 * PRESET_LIST.
 *
 * Then the texts, which only a page shows: TEXT(name, field, kind, most characters, help). All are empty by default.
 * Kinds: LINE one line of UTF-8 · LOGO, COLOUR, LANG as their help says. They lie in a struct of their own, some kilobytes long,
 * so that whoever goes by the numbers neither reads nor copies them.
 */
#define SETTING_LIST(SETTING)                                                                               \
    SETTING("mode", mode, MODE, 0, MODE_COUNT - 1, MODE_QUEUE,                                              \
            "`queue`, `hold` (join, but nobody is called), `open` (everybody is called at once), `closed` " \
            "(joins are refused)")                                                                          \
    SETTING("preset", preset, PRESET, 0, PRESET_COUNT - 1, PRESET_PLAIN,                                    \
            "starting values by kind of room: `plain`, `queue`, `hall`, `lobby`, `concert`; what is set "   \
            "beside it wins. In `hall` and `lobby` how often people ask follows from their position")       \
    SETTING("max_active", max_active, WHOLE, 0, 100000000, 1000,                                            \
            "slots: people called, entered and active at the same time; 0 = no limit")                      \
    SETTING("rate", rate_milli, MILLI, 1, 100000000, 50000,                                                 \
            "calls per second, fractions allowed; ends `batch`")                                            \
    SETTING("burst", burst, WHOLE, 0, 100000000, 0,                                                         \
            "how many calls may come at once; 0 = two ticks' worth, at least a call and a tick's worth. "   \
            "Less than that slows the pace. Does not apply to `batch`")                                     \
    SETTING("batch", batch, WHOLE, 0, 100000000, 0, "calls per `interval_sec` instead of `rate`; 0 = off")  \
    SETTING("interval_sec", interval_sec, WHOLE, 1, 86400, 10, "the interval of `batch`")                   \
    SETTING("smooth", smooth, FLAG, 0, 1, 1,                                                                \
            "spreads a batch evenly over its interval instead of calling it in one go")                     \
    SETTING("pace", pace, PACE, 0, PACE_COUNT - 1, PACE_FIXED,                                              \
            "`fixed`; or `auto`: begins at `rate` and follows the shop between `rate_min` and `rate_max`, " \
            "ends `batch`; or, for a lobby, `hall`: as fixed, but nobody is called while people wait in "   \
            "the room behind it (`weir_lobby`)")                                                            \
    SETTING("rate_min", rate_min_milli, MILLI, 1, 100000000, 1000,                                          \
            "`pace=auto`: the fewest calls per second")                                                     \
    SETTING("rate_max", rate_max_milli, MILLI, 0, 100000000, 0,                                             \
            "`pace=auto`: the most calls per second; it needs one")                                         \
    SETTING("shop_target_ms", shop_target_ms, WHOLE, 0, 60000, 0,                                           \
            "`pace=auto`: 95 of 100 answers of the shop should begin within this; 0 = twice the time that " \
            "it takes "                                                                                     \
            "without load, or 100 ms more")                                                                 \
    SETTING("max_called", max_called, WHOLE, 0, 100000000, 0,                                               \
            "people called and not yet entered; 0 = as many as there are slots")                            \
    SETTING("min_wait_sec", min_wait_sec, WHOLE, 0, 86400, 0,                                               \
            "the head of the line is not called earlier than this after joining; nobody overtakes")         \
    SETTING("seen_ttl_sec", seen_ttl_sec, WHOLE, 10, 86400, 10,                                             \
            "not seen for this long (and for three of the poll intervals they were told) = away")           \
    SETTING("away_ttl_sec", away_ttl_sec, WHOLE, 1, 604800, 1800,                                           \
            "how long the place of someone away is kept")                                                   \
    SETTING("claim_ttl_sec", claim_ttl_sec, WHOLE, 1, 86400, 60, "called, must enter within this")          \
    SETTING("arrive_ttl_sec", arrive_ttl_sec, WHOLE, 1, 86400, 180,                                         \
            "entered, must be seen at the gate within this")                                                \
    SETTING("session_ttl_sec", session_ttl_sec, WHOLE, 1, 604800, 600, "time inside without a request")     \
    SETTING("session_max_sec", session_max_sec, WHOLE, 0, 31536000, 0,                                      \
            "time inside in all; 0 = no limit (the pass then expires 12 hours after enter)")                \
    SETTING("session_renew", session_renew, FLAG, 0, 1, 1,                                                  \
            "every request at the gate renews session_ttl_sec")                                             \
    SETTING("max_waiting", max_waiting, WHOLE, 0, 1000000000, 0,                                            \
            "people in line, waiting or away; 0 = what the zone holds")                                     \
    SETTING("max_eta_sec", max_eta_sec, WHOLE, 0, 31536000, 0,                                              \
            "joins that would wait longer than this are refused (`WAIT_TOO_LONG`); 0 = off")                \
    SETTING("eta_cap_sec", eta_cap_sec, WHOLE, 0, 31536000, 0,                                              \
            "no estimate is shown above this; a capped estimate is not true, so 0 = off")                   \
    SETTING("tier", tier, WHOLE, 1, 2, 2, "which pass the room gives")

#define TEXT_LIST(TEXT)                                                                                  \
    TEXT("title", title, LINE, 120, "what the room is called; empty = its id")                           \
    TEXT("message", message, LINE, 500, "what is said to those who wait")                                \
    TEXT("logo", logo, LOGO, 512,                                                                        \
         "a picture for the page: an `https://` address, or a path on the same site (`/…`)")             \
    TEXT("colour", colour, COLOUR, 7, "the colour of the page: `#rrggbb`")                               \
    TEXT("lang", lang, LANG, 2,                                                                          \
         "the language of the page: `ko`, `en`, `ja`, `zh`, `es`, `de`, `fr`; empty = what the browser " \
         "asks for")

#define MODE_LIST(WORD) \
    WORD(MODE_QUEUE, "queue") WORD(MODE_HOLD, "hold") WORD(MODE_OPEN, "open") WORD(MODE_CLOSED, "closed")

#define PACE_LIST(WORD) WORD(PACE_FIXED, "fixed") WORD(PACE_AUTO, "auto") WORD(PACE_HALL, "hall")

#define PRESET_LIST(WORD)       \
    WORD(PRESET_PLAIN, "plain") \
    WORD(PRESET_QUEUE, "queue") \
    WORD(PRESET_HALL, "hall")   \
    WORD(PRESET_LOBBY, "lobby") \
    WORD(PRESET_CONCERT, "concert")

#define WORD_ENUM(name, word) name,

#include "base/span.h"

#include <stdint.h>

enum room_mode { MODE_LIST(WORD_ENUM) MODE_COUNT };
enum room_pace { PACE_LIST(WORD_ENUM) PACE_COUNT };
enum room_preset { PRESET_LIST(WORD_ENUM) PRESET_COUNT };

struct settings {
#define SETTING_FIELD(name, field, kind, lowest, highest, value, help) uint32_t field;
    SETTING_LIST(SETTING_FIELD)
#undef SETTING_FIELD
};

/* NUL-terminated, and zero behind that: equal ones have equal bytes. {0} is the default. */
struct texts {
#define TEXT_BYTES_LINE(characters)                     (4 * (characters))
#define TEXT_BYTES_LOGO(characters)                     (characters)
#define TEXT_BYTES_COLOUR(characters)                   (characters)
#define TEXT_BYTES_LANG(characters)                     (characters)
#define TEXT_FIELD(name, field, kind, characters, help) char field[TEXT_BYTES_##kind(characters) + 1];
    TEXT_LIST(TEXT_FIELD)
#undef TEXT_FIELD
};

enum setting_kind {
    SETTING_WHOLE,
    SETTING_MILLI,
    SETTING_FLAG,
    SETTING_MODE,
    SETTING_PACE,
    SETTING_PRESET,
    SETTING_LINE,
    SETTING_LOGO,
    SETTING_COLOUR,
    SETTING_LANG,
};

struct setting_info {
    const char *name;
    enum setting_kind kind;
    uint32_t lowest, highest, value; /* of a text: 0, its most characters, 0 */
    const char *help;
    size_t offset; /* in struct settings or struct texts */
    size_t bytes;  /* of a text at most; 0: it is a number */
};

/* The numbers, and behind them the texts. */
extern const struct setting_info setting_list[];
extern const size_t setting_numbers, setting_count;

struct settings settings_default(void);

/* One setting in its written form. */
struct setting_change {
    struct span name, value;
};

/*
 * Applies all changes, or none: on refusal `reason` says in one sentence what is wrong and what is allowed. A preset gives
 * every number its starting value first, wherever it stands among the changes; texts have nothing to do with it. `rate` and
 * `batch` exclude each other: naming one switches the other off, naming both is refused, and so is naming anything twice.
 * `pace=auto` excludes `batch` in the same way, and needs a `rate_max`. `texts` may be NULL where no text is named.
 */
bool settings_apply(struct settings *settings, struct texts *texts, const struct setting_change *changes,
                    size_t count, char *reason, size_t reason_size);

/*
 * All settings as lines `name=value`, and back: for a journal, which outlives versions of this list. What the lines do not
 * name has its default; a name or value that cannot be is refused. No value has a line break. `texts` may be NULL where no
 * text is named.
 */
#define SETTINGS_TEXT_MAX 4096
size_t settings_to_text(const struct settings *settings, const struct texts *texts,
                        char out[SETTINGS_TEXT_MAX]);
bool settings_from_text(struct settings *settings, struct texts *texts, struct span lines);

/* The lines of the texts alone, never none; and back, but for names that this version does not know. */
size_t texts_to_text(const struct texts *texts, char out[SETTINGS_TEXT_MAX]);
bool texts_from_text(struct texts *texts, struct span lines);

/* The row of a setting, or NULL. */
const struct setting_info *setting_find(struct span name);

/* Numbers only. */
static inline uint32_t setting_value(const struct settings *settings, const struct setting_info *info)
{
    return *(const uint32_t *)(const void *)((const char *)settings + info->offset);
}

/* The value must be within the range of its row. */
static inline void setting_set(struct settings *settings, const struct setting_info *info, uint32_t value)
{
    *(uint32_t *)(void *)((char *)settings + info->offset) = value;
}

static inline bool setting_is_text(const struct setting_info *info)
{
    return info->bytes > 0;
}

static inline struct span setting_text(const struct texts *texts, const struct setting_info *info)
{
    return span_of((const char *)texts + info->offset);
}

/* The value must be one that text_is_valid, or empty. */
void setting_set_text(struct texts *texts, const struct setting_info *info, struct span value);

/* Whether its values are words, which JSON writes as strings. */
static inline bool setting_is_word(const struct setting_info *info)
{
    return info->kind == SETTING_MODE || info->kind == SETTING_PACE || info->kind == SETTING_PRESET;
}

/* The written form of a number of this kind, as settings_apply would read it. NUL-terminated. */
#define SETTING_NUMBER_MAX 32
void setting_format(const struct setting_info *info, uint32_t value, char *out, size_t size);

/* The written form of any setting: in `memory`, or a part of `texts`. */
struct span setting_written(const struct setting_info *info, const struct settings *settings,
                            const struct texts *texts, char memory[SETTING_NUMBER_MAX]);

#endif
