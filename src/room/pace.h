/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_PACE_H
#define WEIR_ROOM_PACE_H

/*
 * The pace: how many may be called now. A bucket of credit that fills at `rate` and holds at most `burst`, counted in parts
 * of a call so small that nothing is ever rounded: in any w seconds calls - refunds <= burst + rate * w holds exactly.
 *
 * A batch every interval is the same bucket, filling at batch / interval. Called in one go (`smooth` off) the bucket is
 * filled at once instead, not sooner than an interval after the last time, and what nobody is there to use lapses.
 */

#include "room/settings.h"

#include <stdbool.h>
#include <stdint.h>

struct pace {
    uint64_t credit;  /* parts of a call */
    uint32_t wait_ms; /* batches in one go: time until the next may be called */
};

/* A full bucket. */
void pace_init(struct pace *pace, const struct settings *settings);

/*
 * Settings change: the credit stays the same number of calls, but for what is beyond the new burst. Where batches in one go
 * begin or end there is none, and the first batch comes after an interval.
 */
void pace_change(struct pace *pace, const struct settings *before, const struct settings *after);

void pace_advance(struct pace *pace, const struct settings *settings, uint32_t elapsed_ms);

/* Somebody is waiting: a batch in one go begins if it is time. */
void pace_begin(struct pace *pace, const struct settings *settings);

/* Nobody is waiting any more: later arrivals do not pass on what is left of a batch in one go. */
void pace_lapse(struct pace *pace, const struct settings *settings);

bool pace_has_call(const struct pace *pace, const struct settings *settings);
void pace_spend(struct pace *pace, const struct settings *settings);

/* A called person never came: the next may have their turn. */
void pace_refund(struct pace *pace, const struct settings *settings);

/* What a journal brought back holds no more than these settings allow. */
void pace_settle(struct pace *pace, const struct settings *settings);

/* Time passing would change nothing. */
bool pace_is_full(const struct pace *pace, const struct settings *settings);

/* Calls per second by the settings alone, in thousandths; that is, per 1000 s. Rounded down. */
uint64_t pace_milli(const struct settings *settings);

#endif
