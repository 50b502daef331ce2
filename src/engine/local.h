/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ENGINE_LOCAL_H
#define WEIR_ENGINE_LOCAL_H

/*
 * The local engine: rooms in a block of memory that several processes share, each room under its own robust lock.
 * The block must lie at the same address in all of them (inherited over fork).
 */

#include "engine/engine.h"

struct local_zone; /* what lies at the start of the shared block */

struct local_zone_options {
    uint32_t rooms_max;
    bool makes_rooms; /* an unknown room is made by its first join, with these settings */
    struct settings settings;
};

/* Bytes that a zone for `rooms_max` rooms needs before it can hold a single ticket in each. */
size_t local_zone_least_bytes(uint32_t rooms_max);

/*
 * What tells one layout of a zone from another, as text: two versions of the code that write the same here can use each
 * other's zone, as far as sizes can tell.
 */
void local_zone_layout(char *out, size_t size);

/* Lays out a fresh zone. The memory must be zeroed and page-aligned (4096). */
struct local_zone *local_zone_init(void *memory, size_t bytes, const struct local_zone_options *options);

/* A zone that lived through a reload: takes the new options (rooms_max stays what it was). */
void local_zone_reconfigure(struct local_zone *zone, const struct local_zone_options *options);

/*
 * A room of the configuration file: makes it, or gives it these settings unless it has others from the operator's API.
 * ERROR_QUEUE_FULL: no room for another room.
 */
enum error local_zone_put_room(struct local_zone *zone, struct span name, const struct settings *settings);

/* Stops everybody, checks every room (room_check) and that no page is lost or in two places; aborts if not. */
void local_zone_check(struct local_zone *zone);

/* One per process. Allocated with malloc; the zone outlives it. */
struct engine *local_engine_new(struct local_zone *zone);
void local_engine_free(struct engine *engine);

#endif
