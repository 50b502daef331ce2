/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_SLOTS_H
#define WEIR_REDIS_SLOTS_H

/*
 * A cluster keeps each key in one of 16384 slots, and each slot on one primary. All keys of a room hold its name between braces,
 * and so lie in one slot: `slot_of_tag("evt_2025_1001")` is 3998, and so is slot_of_key("queue:event:{evt_2025_1001}").
 */

#include "base/span.h"

#include <stdint.h>

#define SLOTS 16384

/* Of a whole key: what stands between the first '{' and the first '}' behind it decides, unless it is empty; else all of it. */
uint16_t slot_of_key(struct span key);

/* Of what stands between the braces: the name of a room. */
uint16_t slot_of_tag(struct span tag);

#endif
