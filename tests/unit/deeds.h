/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_DEEDS_H
#define WEIR_TESTS_DEEDS_H

/* Everything that can be done to a room, at random, and as data: so that the same can be done to two of them. */

#include "rig.h"

enum deed_kind {
    DEED_JOIN,
    DEED_STATUS,
    DEED_HEARTBEAT,
    DEED_ENTER,
    DEED_LEAVE,
    DEED_LEAVE_SOON,
    DEED_TOUCH,
    DEED_END,
    DEED_EXTEND,
    DEED_TICK,
    DEED_SETTINGS,
    DEED_ADVANCE,
    DEED_CLEAR,
};

struct deed {
    enum deed_kind kind;
    struct join join;
    struct enter enter;
    struct place place;
    uint32_t number; /* milliseconds of a tick, people of an advance, seconds of a session */
    struct settings settings;
    const struct texts *texts;
};

struct answer {
    enum error error;
    struct standing standing; /* of those that say one */
    uint32_t number;          /* called, cleared */
};

/* Who there is to do something: places are taken up as they are given. */
struct doers {
    struct dice dice;
    uint32_t holders, keys;                         /* how many different ones */
    struct settings (*settings)(struct dice *dice); /* NULL: they stay */
    bool has_clear;
    struct place *place;
    uint32_t places, places_max;
};
struct doers doers_new(uint64_t seed);
void doers_free(struct doers *doers);
struct deed doers_deed(struct doers *doers);
void doers_hear(struct doers *doers, const struct deed *deed, const struct answer *answer);

struct answer deed_do(struct room *room, const struct deed *deed);

/* Settings of a small room in which everything happens. */
struct settings settings_at_random(struct dice *dice);

#endif
