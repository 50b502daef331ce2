/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_CHORE_H
#define WEIR_REDIS_CHORE_H

/* What a node does on its own account, asked by nobody. */

#include "base/error.h"
#include "base/span.h"
#include "room/follow.h"
#include "room/settings.h"

#include <stdint.h>

/* As long as a node ticks a room, the others need not ask more often than this. */
#define CHORE_LEASE_MS 1000

/* What is to be known of a room to make it anew when its server has forgotten it: the bytes that lua/tick.lua tells. */
#define CHORE_EPOCHS_MAX (8 + 64 * 12)

struct redis_epochs {
    uint32_t len; /* 0: nothing is known */
    char bytes[CHORE_EPOCHS_MAX];
};

/* A room is registered though somebody may have unregistered it a moment ago. */
#define CHORE_ANYWAY UINT64_MAX

enum redis_chore_kind {
    CHORE_TICK, /* in: node, epochs. out: wait_ms, clock_ms, called, is_behind, is_at_rest, epochs */
    CHORE_MAKE, /* in: settings, texts, epochs (both may be NULL). Makes the room unless it is there */
    CHORE_REGISTER, /* in: rooms_max, since_ms. ERROR_QUEUE_FULL: there are so many rooms, and it is none of them */
    CHORE_UNREGISTER, /* it is no room any more */
    CHORE_SHOP,       /* in: shop. What was seen of the shop is added to what others saw */
};

struct redis_chore {
    /* asked */
    enum redis_chore_kind kind;
    struct span room;
    uint64_t node; /* who asks. While the one who ticked last goes on ticking, the others are told to wait */
    uint32_t rooms_max;
    uint64_t
        since_ms; /* a register: ERROR_ROOM_NOT_FOUND if it was unregistered at this wall clock or later */
    const struct settings *settings;
    const struct texts *texts;
    const struct shop_report *shop;
    struct redis_epochs *epochs; /* filled in by a tick; or NULL */
    void (*done)(struct redis_chore *chore);
    void *context; /* the caller's own */

    /* answered */
    enum error error;
    uint32_t wait_ms;  /* another node ticks: nothing was done, and need not be for so long */
    uint64_t clock_ms; /* the room's own time */
    uint32_t called;
    bool is_behind;  /* more was to be done than one script does: the next tick should come soon */
    bool is_empty;   /* nobody is in it: it is enough to tick it as often as CHORE_LEASE_MS says */
    bool is_at_rest; /* it need not be ticked until somebody does something */
};

#endif
