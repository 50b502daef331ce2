/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The state is written when a window is over, about once a second, and not with each tick. That works because everything in it
 * that runs with the time counts from the clock at which it was written: whoever takes the next step lets all of that time pass at
 * once, which comes to the same.
 *
 * A state that cannot be read was written by another version. It is begun anew, at the rate in force.
 */

#include "redis/follower.h"

#include "base/little.h"

#define LAYOUT 1

/* The order is that of lua/lib/follow.lua. */
enum field {
    AT_LAYOUT,
    AT_CLOCK_MS,
    AT_CALLS_FROM,
    AT_REASON,
    AT_WINDOW_MS,
    AT_TIME_MS,
    AT_FAILED_PERMILLE,
    AT_FLOOR_US,
    AT_AGE_MS,
    AT_OLDER_MS,
    AT_ANSWERS_MILLI,
    AT_CALLS_MILLI,
    AT_HOLD_MS,
    AT_TROUBLE_MILLI,
    AT_IS_DRAINING,
    AT_BEFORE_MILLI,
    AT_CAN_MILLI,
    FIELDS,
};

_Static_assert(FIELDS * 4 == FOLLOWER_BYTES, "a number each");

static uint32_t get(const void *state, enum field field)
{
    return little_get32((const char *)state + (size_t)field * 4);
}

static void put(void *state, enum field field, uint64_t value)
{
    little_put32((char *)state + (size_t)field * 4, (uint32_t)value);
}

/* Nobody's mean age is longer than this (follow.c); what is must not be reckoned with. */
#define AGE_MOST_MS 3600000

static bool is_readable(struct span state)
{
    return state.len == FOLLOWER_BYTES && get(state.data, AT_LAYOUT) == LAYOUT &&
           get(state.data, AT_REASON) < FOLLOW_REASONS && get(state.data, AT_AGE_MS) <= AGE_MOST_MS &&
           get(state.data, AT_OLDER_MS) <= AGE_MOST_MS;
}

/* All but the rate, the calls and what was seen. */
static void follow_read(struct follow *follow, const void *state)
{
    *follow = (struct follow){
        .reason = (enum follow_reason)get(state, AT_REASON),
        .window_ms = get(state, AT_WINDOW_MS),
        .time_ms = get(state, AT_TIME_MS),
        .failed_permille = get(state, AT_FAILED_PERMILLE),
        .floor_us = get(state, AT_FLOOR_US),
        .age_ms = get(state, AT_AGE_MS),
        .older_ms = get(state, AT_OLDER_MS),
        .answers_milli = get(state, AT_ANSWERS_MILLI),
        .calls_milli = get(state, AT_CALLS_MILLI),
        .hold_ms = get(state, AT_HOLD_MS),
        .trouble_milli = get(state, AT_TROUBLE_MILLI),
        .is_draining = get(state, AT_IS_DRAINING) != 0,
        .before_milli = get(state, AT_BEFORE_MILLI),
        .can_milli = get(state, AT_CAN_MILLI),
    };
}

static void follow_write(const struct follow *follow, struct follower *to)
{
    void *state = to->state;

    to->len = FOLLOWER_BYTES;
    put(state, AT_LAYOUT, LAYOUT);
    put(state, AT_CLOCK_MS, to->clock_ms);
    put(state, AT_CALLS_FROM, to->calls - follow->calls);
    put(state, AT_REASON, follow->reason);
    put(state, AT_WINDOW_MS, follow->window_ms);
    put(state, AT_TIME_MS, follow->time_ms);
    put(state, AT_FAILED_PERMILLE, follow->failed_permille);
    put(state, AT_FLOOR_US, follow->floor_us);
    put(state, AT_AGE_MS, follow->age_ms);
    put(state, AT_OLDER_MS, follow->older_ms);
    put(state, AT_ANSWERS_MILLI, follow->answers_milli);
    put(state, AT_CALLS_MILLI, follow->calls_milli);
    put(state, AT_HOLD_MS, follow->hold_ms);
    put(state, AT_TROUBLE_MILLI, follow->trouble_milli);
    put(state, AT_IS_DRAINING, follow->is_draining);
    put(state, AT_BEFORE_MILLI, follow->before_milli);
    put(state, AT_CAN_MILLI, follow->can_milli);
}

/* What the room of plain C would have now, and how much time has passed since. */
static uint32_t follow_begin(struct follow *follow, const struct follower *from)
{
    uint32_t elapsed_ms = 0;

    if (is_readable((struct span){(const char *)from->state, from->len})) {
        follow_read(follow, from->state);
        follow->calls = (uint32_t)from->calls - get(from->state, AT_CALLS_FROM);
        elapsed_ms = (uint32_t)from->clock_ms - get(from->state, AT_CLOCK_MS);
    } else {
        follow_init(follow, &from->bounds);
        follow->reason = FOLLOW_BEGIN;
    }
    follow->rate_milli = from->rate_milli;
    follow->seen = from->seen;
    uint64_t then_ms = from->clock_ms - elapsed_ms;
    uint64_t left_alone_ms = from->until_ms > then_ms ? from->until_ms - then_ms : 0;
    follow->seen.left_alone_ms = left_alone_ms < UINT32_MAX ? (uint32_t)left_alone_ms : UINT32_MAX;
    return elapsed_ms;
}

bool follower_step(struct follower *follower)
{
    bool is_new = !is_readable((struct span){(const char *)follower->state, follower->len});
    struct follow follow;
    uint32_t elapsed_ms = follow_begin(&follow, follower);
    enum follow_reason reason = follow.reason;

    if (elapsed_ms > 0)
        follow_advance(&follow, &follower->bounds, elapsed_ms);
    bool is_over = elapsed_ms > 0 && follow.window_ms == 0;
    if (!is_over && !is_new && follow.reason == reason)
        return false;
    if (!is_over)
        follower->seen = (struct shop_report){0};
    follower->rate_milli = follow.rate_milli;
    follow_write(&follow, follower);
    return true;
}

void follower_tell(struct span state, const struct settings *settings, uint64_t left_alone_ms,
                   struct figures *figures)
{
    struct follow follow = {.reason = settings->pace == PACE_AUTO ? FOLLOW_BEGIN : FOLLOW_FIXED};

    if (is_readable(state))
        follow_read(&follow, state.data);
    figures->pace_reason = follow.reason;
    if (settings->pace == PACE_HALL) /* which takes no steps: it thaws with the room's clock */
        figures->pace_reason = left_alone_ms > 0 ? FOLLOW_FROZEN : FOLLOW_FIXED;
    if (settings->pace != PACE_AUTO)
        return;
    figures->shop_time_ms = follow.time_ms;
    figures->shop_target_ms = follow_target_ms(&follow, settings);
    figures->shop_failed_permille = follow.failed_permille;
}
