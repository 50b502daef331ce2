/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_SIM_DICE_H
#define WEIR_SIM_DICE_H

/* All chance of a run comes from its seed: a run is repeated by naming it. */

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

static inline uint64_t dice_roll(struct dice *dice)
{
    uint64_t z = (dice->state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static inline uint32_t dice_below(struct dice *dice, uint32_t limit)
{
    return (uint32_t)((dice_roll(dice) >> 32) * limit >> 32);
}

static inline uint32_t dice_between(struct dice *dice, uint32_t lowest, uint32_t highest)
{
    return lowest + dice_below(dice, highest - lowest + 1);
}

/* Once in `n` times. */
static inline bool dice_hits(struct dice *dice, uint32_t n)
{
    return dice_below(dice, n) == 0;
}

#endif
