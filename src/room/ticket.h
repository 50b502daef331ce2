/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_TICKET_H
#define WEIR_ROOM_TICKET_H

/*
 * A ticket and its life. The table in ticket.c is the whole state machine: which states follow which, what each counts in
 * and what becomes of a ticket when the time of its state is over. Nothing else in the tree decides that.
 */

#include "base/holder.h"

#include <stdbool.h>
#include <stdint.h>

enum ticket_state {
    TICKET_NONE, /* never issued, or its page is reclaimed */
    TICKET_WAITING,
    TICKET_AWAY,
    TICKET_CALLED,
    TICKET_ENTERED,
    TICKET_ACTIVE,
    TICKET_DONE,
    TICKET_STATES
};

struct ticket_life {
    const char *name;
    bool is_in_line;  /* counted in positions, may be called */
    bool is_queueing; /* has not been called yet */
    bool holds_slot;
    bool is_alive;                    /* its page must stay */
    enum ticket_state when_time_over; /* TICKET_NONE: its time is never over */
    unsigned next;                    /* bit set of the states that may follow */
};

const struct ticket_life *ticket_life(enum ticket_state state);
bool ticket_may_become(enum ticket_state from, enum ticket_state to);

enum ticket_flag {
    TICKET_TOLD = 1,    /* an answer said "you may enter" */
    TICKET_LEAVING = 2, /* said goodbye; the next poll takes it back */
    TICKET_TRUSTED = 4, /* the holder is an identity the operator vouches for */
    TICKET_PAID = 8,    /* its call was paid for from the pace */
};

#define TICKET_POLL_MAX_SEC 60 /* the longest poll interval that anybody is told */

/*
 * How far a journal knows the interval that somebody was told: to the next power of two, so that it need not hear of each change
 * but only when it gets longer than that.
 */
static inline uint32_t poll_recorded(uint32_t poll_sec)
{
    return poll_sec < 2 ? poll_sec : 1U << (32 - __builtin_clz(poll_sec - 1));
}

/*
 * Times are deciseconds of the room's clock unless the name says otherwise. Two pairs of fields share their place because
 * the one is needed only before enter and the other only after: 32 bytes a ticket is what keeps ten million of them small.
 */
struct ticket {
    struct holder holder;
    uint32_t issued_sec; /* wall clock at join: signed into the ticket, decides nothing */
    uint32_t deadline;   /* when the time of this state is over */
    union {
        uint32_t joined;
        uint32_t iat_sec; /* after enter: wall clock signed into the pass */
    };
    union {
        uint32_t shown;   /* lowest position shown, 0 = none yet; called and leaving: its former deadline */
        uint32_t entered; /* after enter */
    };
    uint8_t state : 5;       /* enum ticket_state */
    uint8_t is_spent : 1;    /* its pass has taken somebody further, who alone may come with it again */
    uint8_t is_extended : 1; /* the shop gave its session more time, which a renewal does not shorten */
    uint8_t has_alias : 1;   /* its holder's lost or later tickets mean this one too */
    uint8_t flags : 4;
    uint8_t terms : 4; /* after enter: which of the room's session terms hold for it */
    uint8_t key_id;    /* key that signed the ticket */
    union {
        uint8_t poll_sec;    /* poll interval it was last told */
        uint8_t pass_key_id; /* after enter: key that signed the pass */
    };
};

_Static_assert(sizeof(struct ticket) == 32, "a ticket is 32 bytes");

#endif
