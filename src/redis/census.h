/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_CENSUS_H
#define WEIR_REDIS_CENSUS_H

/*
 * Which rooms there are. Others make rooms too, and when the server has forgotten them, whoever is asked first should know them:
 * so a worker looks every now and then for those that it was not asked about.
 */

#include "redis/rooms.h"

#define CENSUS_MS 5000

struct census;

/*
 * `found` is called for each room, and says whether its settings are wanted; then `described` is, with the texts too. At most `most` are looked at.
 * NULL: no memory. Rooms outlive it.
 */
struct census *census_new(struct redis_rooms *rooms, uint32_t most,
                          bool (*found)(void *context, struct span room),
                          void (*described)(void *context, const struct engine_call *answer), void *context);
void census_free(struct census *census);

/* With each tick. */
void census_tick(struct census *census, uint64_t now_ms);

#endif
