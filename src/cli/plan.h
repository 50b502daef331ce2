/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_PLAN_H
#define WEIR_CLI_PLAN_H

/*
 * From what a shop can take to the pace of the room in front of it. Pure: numbers in, numbers out, exact.
 *
 *   held at once   = capacity × visit / (requests × (1 + failures))
 *   target         = held at once × target share
 *   period         = visit / target share
 *   per period     = capacity × period / (requests × (1 + failures))
 *   batch          = per period × every / period
 *   wait           = ceil(position / batch) × every
 *
 * Period and "per period" only restate the pace: capacity / (requests × (1 + failures)) people a second, which fills the
 * shop to what it can hold, not to the target. `inside` says how many that is, `keeping_batch` which batch keeps the
 * target. Cautious: the held and the per-period figures are cut to their first digit, the period to whole minutes, and the
 * batch made of those is rounded to two digits, but never beyond the exact batch cut to two.
 */

#include "cli/number.h"

#include <stdbool.h>
#include <stdint.h>

/* The most people that a room can count; what is planned must fit. */
#define PLAN_PEOPLE_MAX 100000000u

struct plan_input {
    uint64_t capacity_milli; /* requests per second that the shop takes, in thousandths */
    uint64_t requests_milli; /* requests per visit, in thousandths */
    uint64_t failures;       /* share of the requests that fail and are sent again */
    uint64_t visit_sec;
    uint64_t target; /* share of what the shop can hold, more than 0 and at most SHARE_WHOLE */
    uint64_t every_sec;
    bool cautious;
};

struct plan {
    uint64_t held_exactly; /* people; rounded down */
    uint64_t held;         /* what the plan goes on with: the same, or its cautious form */
    uint64_t target;       /* people inside, rounded down */
    uint64_t period_milli_exactly, period_milli;
    uint64_t per_period_exactly, per_period; /* rounded to the nearest */
    uint64_t per_minute;                     /* per_period over the period, rounded up */
    uint64_t batch_exactly;                  /* people every `every_sec`, rounded down */
    uint64_t batch_unrounded; /* of per_period and period, rounded up; the seed of the cautious batch */
    uint64_t batch;
    uint64_t rate_milli; /* people per second that the batch comes to, in thousandths */
    uint64_t inside;     /* people inside once the first leave: batch × visit / every */
    uint64_t keeping_batch;
    bool exceeds_target;
};

/*
 * False where no plan exists: `reason` is then one sentence. Every number of the input but `failures` must be more than 0
 * and none over 10^12.
 */
bool plan_make(const struct plan_input *input, struct plan *plan, const char **reason);

/* Seconds until the one at `position` (from 1) is called, at `batch` people every `every_sec`. */
uint64_t plan_wait_sec(uint64_t position, uint64_t batch, uint64_t every_sec);

#endif
