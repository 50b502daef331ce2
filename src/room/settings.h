/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_SETTINGS_H
#define WEIR_ROOM_SETTINGS_H

/*
 * Room settings: one row each. nginx parameters (weir_room), docs/reference/settings.md and, later, the operator's API and
 * the command line are made from this list.
 *
 * SETTING(name, field, kind, lowest, highest, default, help)
 * Kinds: WHOLE a whole number · MILLI a number with up to three decimals, kept in thousandths (lowest, highest and default
 * are in thousandths too) · FLAG true or false · MODE one of the words of MODE_LIST.
 */
#define SETTING_LIST(SETTING)                                                                               \
    SETTING("mode", mode, MODE, 0, MODE_COUNT - 1, MODE_QUEUE,                                              \
            "`queue`, `hold` (join, but nobody is called), `open` (everybody is called at once), `closed` " \
            "(joins are refused)")                                                                          \
    SETTING("max_active", max_active, WHOLE, 0, 100000000, 1000,                                            \
            "slots: people called, entered and active at the same time; 0 = no limit")                      \
    SETTING("rate", rate_milli, MILLI, 1, 100000000, 50000, "calls per second, fractions allowed")          \
    SETTING("burst", burst, WHOLE, 0, 100000000, 0,                                                         \
            "how many calls may come at once; 0 = two ticks' worth, at least 1")                            \
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
    SETTING("tier", tier, WHOLE, 1, 2, 2, "which pass the room gives")

#define MODE_LIST(MODE) MODE(QUEUE, "queue") MODE(HOLD, "hold") MODE(OPEN, "open") MODE(CLOSED, "closed")

#include "base/span.h"

#include <stdint.h>

enum room_mode {
#define MODE_ENUM(name, word) MODE_##name,
    MODE_LIST(MODE_ENUM)
#undef MODE_ENUM
        MODE_COUNT
};

struct settings {
#define SETTING_FIELD(name, field, kind, lowest, highest, value, help) uint32_t field;
    SETTING_LIST(SETTING_FIELD)
#undef SETTING_FIELD
};

enum setting_kind { SETTING_WHOLE, SETTING_MILLI, SETTING_FLAG, SETTING_MODE };

struct setting_info {
    const char *name;
    enum setting_kind kind;
    uint32_t lowest, highest, value;
    const char *help;
    size_t offset;
};

extern const struct setting_info setting_list[];
extern const size_t setting_count;

struct settings settings_default(void);

/*
 * Sets one setting from its written form. On refusal nothing changes and `reason` says in one sentence what is wrong
 * and what is allowed.
 */
bool settings_set(struct settings *settings, struct span name, struct span value, char *reason,
                  size_t reason_size);

/* The written form of a value of this kind, as settings_set would read it. NUL-terminated. */
void setting_format(const struct setting_info *info, uint32_t value, char *out, size_t size);

#endif
