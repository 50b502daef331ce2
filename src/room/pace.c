/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a part of a call is depends on the settings, chosen so that a millisecond adds a whole number of parts: a rate of r
 * thousandths per second adds r millionths, a batch of b in t milliseconds adds b t-ths.
 */

#include "room/pace.h"

#include "base/must.h"
#include "room/room.h"

struct measure {
    uint64_t call;   /* parts of one call */
    uint64_t per_ms; /* parts that a millisecond adds */
    uint64_t most;   /* that the bucket holds */
};

static bool is_in_one_go(const struct settings *settings)
{
    return settings->batch != 0 && !settings->smooth;
}

/*
 * Two ticks' worth: one late tick loses nothing. But at least a call and a tick's worth, for between two ticks a slow room comes
 * to a little more than a whole call, and cut off at one it would call fewer than its rate.
 */
static uint64_t default_burst(const struct measure *measure)
{
    uint64_t tick = measure->per_ms * ROOM_TICK_MS;

    return tick > measure->call ? 2 * tick : measure->call + tick;
}

static struct measure measure_of(const struct settings *settings)
{
    struct measure measure = {1000000, settings->rate_milli, 0};

    if (is_in_one_go(settings))
        return (struct measure){1, 0, settings->batch};
    if (settings->batch != 0)
        measure = (struct measure){settings->interval_sec * 1000ULL, settings->batch, 0};
    if (settings->batch == 0 && settings->burst != 0)
        measure.most = settings->burst * measure.call;
    else
        measure.most = default_burst(&measure);
    return measure;
}

static void add(struct pace *pace, const struct measure *measure, uint64_t parts)
{
    pace->credit += parts;
    if (pace->credit > measure->most)
        pace->credit = measure->most;
}

void pace_init(struct pace *pace, const struct settings *settings)
{
    *pace = (struct pace){.credit = is_in_one_go(settings) ? 0 : measure_of(settings).most};
}

void pace_change(struct pace *pace, const struct settings *before, const struct settings *after)
{
    struct measure old = measure_of(before), new = measure_of(after);

    must(pace->credit <= old.most);
    if (is_in_one_go(before) != is_in_one_go(after))
        /* Neither brings the other any credit: nothing is gained by switching to and fro. */
        *pace = (struct pace){.wait_ms = is_in_one_go(after) ? after->interval_sec * 1000 : 0};
    else
        pace->credit = (uint64_t)((unsigned __int128)pace->credit * new.call / old.call);
    add(pace, &new, 0);
    if (pace->wait_ms > after->interval_sec * 1000)
        pace->wait_ms = after->interval_sec * 1000;
}

void pace_advance(struct pace *pace, const struct settings *settings, uint32_t elapsed_ms)
{
    struct measure measure = measure_of(settings);

    add(pace, &measure, measure.per_ms * elapsed_ms);
    pace->wait_ms = pace->wait_ms > elapsed_ms ? pace->wait_ms - elapsed_ms : 0;
}

void pace_begin(struct pace *pace, const struct settings *settings)
{
    if (!is_in_one_go(settings) || pace->wait_ms > 0)
        return;
    pace->credit = settings->batch;
    pace->wait_ms = settings->interval_sec * 1000;
}

void pace_lapse(struct pace *pace, const struct settings *settings)
{
    if (is_in_one_go(settings))
        pace->credit = 0;
}

bool pace_has_call(const struct pace *pace, const struct settings *settings)
{
    return pace->credit >= measure_of(settings).call;
}

void pace_spend(struct pace *pace, const struct settings *settings)
{
    must(pace_has_call(pace, settings));
    pace->credit -= measure_of(settings).call;
}

void pace_refund(struct pace *pace, const struct settings *settings)
{
    struct measure measure = measure_of(settings);

    add(pace, &measure, measure.call);
}

void pace_settle(struct pace *pace, const struct settings *settings)
{
    uint64_t most = measure_of(settings).most;
    uint32_t interval_ms = settings->interval_sec * 1000;

    if (pace->credit > most)
        pace->credit = most;
    if (pace->wait_ms > interval_ms)
        pace->wait_ms = interval_ms;
}

bool pace_is_full(const struct pace *pace, const struct settings *settings)
{
    return is_in_one_go(settings) ? pace->wait_ms == 0 : pace->credit == measure_of(settings).most;
}

uint64_t pace_milli(const struct settings *settings)
{
    return settings->batch == 0 ? settings->rate_milli : settings->batch * 1000ULL / settings->interval_sec;
}
