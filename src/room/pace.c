/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One call is a million units because a rate of r thousandths per second gives r units per millisecond: the sum is exact
 * for every rate and every length of tick.
 */

#include "room/pace.h"

#include "base/must.h"

#define CALL_UNITS    1000000ULL
#define TICK_MS       100
#define DEFAULT_TICKS 2

static uint64_t capacity(const struct settings *settings)
{
    uint64_t units = settings->burst * CALL_UNITS;

    if (settings->burst == 0)
        units = (uint64_t)settings->rate_milli * TICK_MS * DEFAULT_TICKS;
    return units < CALL_UNITS ? CALL_UNITS : units;
}

static void add(struct pace *pace, const struct settings *settings, uint64_t units)
{
    pace->credit += units;
    pace_limit(pace, settings);
}

void pace_init(struct pace *pace, const struct settings *settings)
{
    pace->credit = capacity(settings);
}

void pace_limit(struct pace *pace, const struct settings *settings)
{
    if (pace->credit > capacity(settings))
        pace->credit = capacity(settings);
}

void pace_advance(struct pace *pace, const struct settings *settings, uint32_t elapsed_ms)
{
    add(pace, settings, (uint64_t)settings->rate_milli * elapsed_ms);
}

bool pace_has_call(const struct pace *pace)
{
    return pace->credit >= CALL_UNITS;
}

void pace_spend(struct pace *pace)
{
    must(pace_has_call(pace));
    pace->credit -= CALL_UNITS;
}

void pace_refund(struct pace *pace, const struct settings *settings)
{
    add(pace, settings, CALL_UNITS);
}

bool pace_is_full(const struct pace *pace, const struct settings *settings)
{
    return pace->credit >= capacity(settings);
}

uint32_t pace_seconds(const struct settings *settings, uint64_t calls)
{
    uint64_t seconds = (calls * 1000 + settings->rate_milli - 1) / settings->rate_milli;

    return seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
}
