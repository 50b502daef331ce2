/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_FOLLOWER_H
#define WEIR_REDIS_FOLLOWER_H

/*
 * Following the shop for a room that a Redis keeps: what a tick tells in, what the room is to keep out. It is the arithmetic of
 * room/follow.h, on a state that the room keeps between two steps, so that any node can take the next.
 */

#include "room/follow.h"
#include "room/room.h"

#include "base/span.h"

#define FOLLOWER_BYTES 68

struct follower {
    uint32_t version;       /* of the state: a step counts only if it is still this one */
    uint64_t clock_ms;      /* of the room */
    uint64_t calls;         /* ever */
    uint64_t until_ms;      /* of the room's clock: a breaker leaves the shop alone until then */
    uint32_t rate_milli;    /* the rate in force */
    struct settings bounds; /* of the rate, and the target: nothing else of the settings is known */
    uint32_t len;
    unsigned char state[FOLLOWER_BYTES]; /* as the room keeps it */
    struct shop_report seen;             /* in the window under way */
};

/*
 * The next step. True: `state` and `rate_milli` are what the room is to keep now, and `seen` is what of the reports is over with
 * that. False: nothing is different but the time, which the next step counts.
 */
bool follower_step(struct follower *follower);

/* What a room tells of its shop; `state` as it is kept, readable or not; for how long nobody is to be called. */
void follower_tell(struct span state, const struct settings *settings, uint64_t left_alone_ms,
                   struct figures *figures);

#endif
