/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole numbers throughout: every input is a whole number of thousandths, so each figure is one fraction of whole numbers
 * and is rounded once, when it is made. With doubles 6 × 1.15 is a little less than 6.9, and a shop that can hold exactly
 * 100 people would be told 99 or 101. 128 bits hold the largest product (10^15 × 10^12 × 10^10).
 */
#include "cli/plan.h"

#include "base/must.h"

#include <stddef.h>

__extension__ typedef unsigned __int128 wide;

static void plan_exactly(const struct plan_input *input, struct plan *plan);
static void plan_cautiously(const struct plan_input *input, struct plan *plan);
static void plan_consequences(const struct plan_input *input, struct plan *plan);
static uint64_t ratio(wide above, wide below);
static uint64_t ratio_nearest(wide above, wide below);
static uint64_t ratio_up(wide above, wide below);
static uint64_t cut_to_digits(uint64_t number, unsigned digits);
static uint64_t round_to_digits(uint64_t number, unsigned digits);

bool plan_make(const struct plan_input *input, struct plan *plan, const char **reason)
{
    must(input->capacity_milli > 0 && input->requests_milli > 0 && input->visit_sec > 0);
    must(input->every_sec > 0 && input->target > 0 && input->target <= SHARE_WHOLE);

    plan_exactly(input, plan);
    if (input->cautious)
        plan_cautiously(input, plan);
    plan_consequences(input, plan);

    *reason = NULL;
    if (plan->target == 0)
        *reason = "such a shop cannot hold a single visit at its target";
    else if (plan->batch == 0)
        *reason = "such a shop takes less than one person in that time: give a longer --every";
    else if (plan->held_exactly > PLAN_PEOPLE_MAX || plan->batch_exactly > PLAN_PEOPLE_MAX)
        *reason = "that is more than the 100,000,000 people that a room can count";
    return *reason == NULL;
}

uint64_t plan_wait_sec(uint64_t position, uint64_t batch, uint64_t every_sec)
{
    must(batch > 0);
    return ratio(position, batch) * every_sec + (position % batch != 0 ? every_sec : 0);
}

static void plan_exactly(const struct plan_input *input, struct plan *plan)
{
    /* A visit costs requests × (1 + failures); both sides of each fraction are in the same small units. */
    wide cost = (wide)input->requests_milli * (SHARE_WHOLE + input->failures);
    wide capacity = (wide)input->capacity_milli * SHARE_WHOLE;

    plan->held_exactly = ratio(capacity * input->visit_sec, cost);
    plan->period_milli_exactly = ratio_nearest((wide)input->visit_sec * 1000 * SHARE_WHOLE, input->target);
    plan->per_period_exactly = ratio_nearest(capacity * input->visit_sec * SHARE_WHOLE, cost * input->target);
    plan->batch_exactly = ratio(capacity * input->every_sec, cost);

    plan->held = plan->held_exactly;
    plan->period_milli = plan->period_milli_exactly;
    plan->per_period = plan->per_period_exactly;
    plan->batch_unrounded = plan->batch = plan->batch_exactly;
}

static void plan_cautiously(const struct plan_input *input, struct plan *plan)
{
    const uint64_t minute_milli = 60000;
    uint64_t most = cut_to_digits(plan->batch_exactly, 2);

    plan->held = cut_to_digits(plan->held_exactly, 1);
    if (plan->period_milli >= minute_milli)
        plan->period_milli -= plan->period_milli % minute_milli;
    plan->per_period = cut_to_digits(plan->per_period_exactly, 1);
    plan->batch_unrounded = ratio_up((wide)plan->per_period * input->every_sec * 1000, plan->period_milli);
    /* A period cut from 119 s to 60 s alone would double the pace: caution never goes beyond the exact figure. */
    plan->batch = round_to_digits(plan->batch_unrounded, 2);
    if (plan->batch > most)
        plan->batch = most;
}

static void plan_consequences(const struct plan_input *input, struct plan *plan)
{
    plan->target = ratio((wide)plan->held * input->target, SHARE_WHOLE);
    plan->per_minute = ratio_up((wide)plan->per_period * 60000, plan->period_milli);
    plan->rate_milli = ratio((wide)plan->batch * 1000, input->every_sec);
    plan->inside = ratio((wide)plan->batch * input->visit_sec, input->every_sec);
    plan->keeping_batch = ratio((wide)plan->target * input->every_sec, input->visit_sec);
    plan->exceeds_target = plan->inside > plan->target;
}

static uint64_t ratio(wide above, wide below)
{
    wide quotient = above / below;

    return quotient > UINT64_MAX ? UINT64_MAX : (uint64_t)quotient;
}

static uint64_t ratio_nearest(wide above, wide below)
{
    return ratio(above + below / 2, below);
}

static uint64_t ratio_up(wide above, wide below)
{
    return ratio(above + below - 1, below);
}

/* What one step in the last of the first `digits` digits is worth: 10,000 in the 1st of 43,478. */
static uint64_t digit_worth(uint64_t number, unsigned digits)
{
    uint64_t worth = 1, limit = 1;

    while (digits-- > 0)
        limit *= 10;
    while (number / worth >= limit)
        worth *= 10;
    return worth;
}

static uint64_t cut_to_digits(uint64_t number, unsigned digits)
{
    return number - number % digit_worth(number, digits);
}

static uint64_t round_to_digits(uint64_t number, unsigned digits)
{
    return cut_to_digits(number + digit_worth(number, digits) / 2, digits);
}
