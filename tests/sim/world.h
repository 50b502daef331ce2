/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_SIM_WORLD_H
#define WEIR_SIM_WORLD_H

/*
 * What goes on around a room: people of several tempers who arrive in several shapes, an operator who changes their mind, and a
 * clock that is not to be trusted. All of it follows from the seed.
 */

#include <stdint.h>

/* Plays the run of this seed, event by event, each judged by the ledger. */
void world_play(uint64_t seed, uint32_t events);

#endif
