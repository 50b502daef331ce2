/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_SIM_LEDGER_H
#define WEIR_SIM_LEDGER_H

/*
 * The ledger: what happened to everybody, kept in plain arrays, and judged after every single event. It believes none of the
 * room's counters. It looks at every living ticket after every event, asks of each change who caused it and whether they
 * may, and compares what people are told with what it counts itself.
 *
 *   1  order         who is called stood before everybody who still waits, and was there            (FAILURES 6, 8)
 *   2  one pass      an enter succeeds when called, until the promised time is over; a repeated one
 *                    says the same whenever and with whatever key it is signed                      (FAILURES 20, 21)
 *   3  limits        slots, max_called, min_wait at every call; the pace over every window (purse.h) (FAILURES 14, 15, 16, 19)
 *   5  position      is the lower of the last shown and the number of people waiting up to here      (FAILURES 5)
 *   6  conservation  everybody is in exactly one state, and the room's figures say so
 *   9  liveness      after a tick nobody waits for what is there                                     (FAILURES 8, 19)
 *   10 time          nobody's time is over before it is over on the room's clock, of which a tick
 *                    counts a second at most; nor a tick later                                       (FAILURES 9, 10, 12)
 *
 * The first broken promise ends the run (violated).
 */

#include "house.h"
#include "purse.h"

/* What is known of one ticket. Times are milliseconds of the ledger's own clock. */
struct person {
    struct place place;
    enum ticket_state state;
    bool is_faithful; /* polls exactly as told and enters when told: nothing may ever go wrong for them */
    bool is_told;     /* that they may enter */
    bool is_leaving;  /* said goodbye with a beacon */
    bool is_paid;     /* the call was paid for from the pace */
    uint32_t shown;   /* lowest position ever told */
    uint32_t poll_sec;
    uint64_t joined_ms, entered_ms;
    uint64_t due_ms;      /* when the time of this state is over */
    uint64_t kept_due_ms; /* called and leaving: what it is if they come back */
    uint32_t session_max_sec;
    struct {
        uint32_t iat_sec, life_sec;
        uint8_t key_id, tier;
    } pass;
    struct {
        struct request_key request;
        uint64_t at_ms;
        uint32_t position;
        bool is_ready;
    } key; /* idempotency key of the join, and what the join answered */
};

#define LEDGER_PEOPLE 20000 /* tickets a ledger has pages for */

struct ledger {
    struct house *house;
    struct settings settings;
    uint64_t clock_ms;
    struct purse purse;
    uint64_t calls, refunds;
    uint32_t last; /* ticket issued last */
    uint32_t in_state[TICKET_STATES];
    struct person *person; /* by count, from 1 */
    uint32_t *alive;       /* counts, in order */
    uint32_t alive_count;
};

void ledger_open(struct ledger *ledger, struct house *house, const struct settings *settings);
void ledger_close(struct ledger *ledger);

/* Each submits one event to the house and judges it. */
void ledger_submit(struct ledger *ledger, struct engine_call *submitted);
void ledger_tick(struct ledger *ledger, int64_t elapsed_ms);

#endif
