/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_PACE_H
#define WEIR_ROOM_PACE_H

/*
 * The pace: how many may be called now. A bucket of credit that fills at `rate` and holds at most `burst`, in whole
 * millionths of a call, so that in any w seconds calls - refunds <= burst + rate * w holds exactly, without rounding.
 */

#include "room/settings.h"

#include <stdbool.h>
#include <stdint.h>

struct pace {
    uint64_t credit; /* millionths of a call */
};

/* A full bucket. */
void pace_init(struct pace *pace, const struct settings *settings);

/* Settings changed: credit beyond the new burst is lost. */
void pace_limit(struct pace *pace, const struct settings *settings);

void pace_advance(struct pace *pace, const struct settings *settings, uint32_t elapsed_ms);
bool pace_has_call(const struct pace *pace);
void pace_spend(struct pace *pace);

/* A called person never came: the next may have their turn. */
void pace_refund(struct pace *pace, const struct settings *settings);

bool pace_is_full(const struct pace *pace, const struct settings *settings);

/* Seconds until `calls` more calls at the configured rate, rounded up. */
uint32_t pace_seconds(const struct settings *settings, uint64_t calls);

#endif
