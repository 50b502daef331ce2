/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_SETUP_H
#define WEIR_REDIS_SETUP_H

/*
 * Brings the rooms of the configuration to the server: each is registered and made if it is not there; else it is given the
 * settings of the file, unless it has others from the operator's API. Any number of workers may do that at once.
 */

#include "redis/redis_engine.h"
#include "redis/rooms.h"

struct setup;

/*
 * `brought` is called for each that is there as it should be; `tried` once, when that has been said of all of them or one could not be
 * brought. NULL: no memory. Rooms and options outlive it.
 */
struct setup *setup_new(struct redis_rooms *rooms, const struct redis_engine_options *options,
                        void (*brought)(void *context, struct span room), void (*tried)(void *context),
                        void *context);
void setup_free(struct setup *setup);

/* With each tick, and the first time as soon as somebody waits: goes on with what is left to do. */
void setup_tick(struct setup *setup, uint64_t now_ms);

#endif
