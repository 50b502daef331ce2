/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_CHORE_H
#define WEIR_REDIS_CHORE_H

/* What a node does to a room on its own account, asked by nobody. */

#include "base/error.h"
#include "base/span.h"

#include <stdint.h>

enum redis_chore_kind {
    CHORE_TICK,  /* out: clock_ms, called, is_behind, is_at_rest */
    CHORE_RENEW, /* in: primary. out: epoch. A loss is possible: see lua/renew.lua */
};

struct redis_chore {
    /* asked */
    enum redis_chore_kind kind;
    struct span room;
    struct span primary; /* id of the server that is the primary now */
    void (*done)(struct redis_chore *chore);
    void *context; /* the caller's own */

    /* answered */
    enum error error;
    uint64_t clock_ms; /* the room's own time */
    uint32_t called;
    uint32_t epoch;
    bool is_behind;  /* more was to be done than one script does: the next tick should come soon */
    bool is_at_rest; /* it need not be ticked until somebody does something */
};

#endif
