/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_SIM_PURSE_H
#define WEIR_SIM_PURSE_H

/*
 * The pace, as the promise says it and not as the room computes it.
 *
 * For a rate or a smoothed batch: in any w seconds, calls - refunds <= burst + rate * w. Of all windows that end now, `worst` is
 * the largest calls - refunds - rate * w. A call makes every one of them worse by one, a refund better, a millisecond
 * better by what the rate adds; and the empty window, which begins now, is never below 0. So one number stands for every
 * window there is, and the promise is worst <= burst. Whole parts of a call, nothing rounded.
 *
 * For batches in one go: from the moment a batch begins until the next begins, calls - refunds <= batch; a batch begins when
 * somebody waits, not sooner than an interval after the last; and when nobody waits nothing of it is kept.
 *
 * New settings split the windows: what could still be called carries over, less what the new burst does not hold.
 */

#include "room/settings.h"

#include <stdbool.h>
#include <stdint.h>

struct purse {
    bool is_in_one_go;
    uint64_t call, per_ms, most, worst; /* parts of a call */
    uint32_t batch, left;
    uint64_t wait_ms, interval_ms;
};

struct purse purse_new(const struct settings *settings);
void purse_change(struct purse *purse, const struct settings *settings);
void purse_pass(struct purse *purse, uint64_t ms);

/* A tick finds somebody waiting; at the end of anything nobody waits. */
void purse_begin(struct purse *purse);
void purse_lapse(struct purse *purse);

/* Whether one more call keeps the promise. */
bool purse_has_call(const struct purse *purse);
void purse_spend(struct purse *purse);
void purse_refund(struct purse *purse);

#endif
