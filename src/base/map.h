/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

/*
 * A map from 96-bit keys to small numbers that grows and shrinks one page at a time.
 *
 * The keys are keyed hashes already, uniform and out of anyone's control; the map stores only a 16-bit tag and the number, and
 * asks its owner for the whole key of a number when it must know. Six bytes an entry.
 *
 * Linear hashing: when the buckets get full on average, the next one in turn is split in two. No operation ever moves more than
 * one bucket, so there is no moment at which a map of ten million stops everybody to grow.
 */

#include "base/holder.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

#define MAP_NONE 0 /* the number 0 is never stored */

#define MAP_DIRECTORIES 128

struct map {
    uint32_t entries;
    uint32_t buckets;
    page_ref directory[MAP_DIRECTORIES]; /* pages of page_ref, one per bucket */
};

/* How the owner finds the key that a stored number stands for. */
struct map_owner {
    struct memory *memory;
    const struct holder *(*key_of)(const void *owner, uint32_t number);
    const void *owner;
};

/* The number stored under `key`, or MAP_NONE. */
uint32_t map_find(const struct map *map, const struct map_owner *owner, const struct holder *key);

/* Adds a key that is not in the map; its key_of must work already. False: no page is spare; the caller rolls back. */
bool map_add(struct map *map, const struct map_owner *owner, const struct holder *key, uint32_t number);

/* Removes a key that is in the map. May free a page. */
void map_remove(struct map *map, const struct map_owner *owner, const struct holder *key, uint32_t number);

/*
 * For a map that is being filled with `entries` keys: adds one more bucket ahead of time, while splitting is cheap. False: it has
 * as many as it needs, or no page is spare. An operation each.
 */
bool map_grow(struct map *map, const struct map_owner *owner, uint32_t entries);

/* Has the processor fetch what a map_add of this key will touch. */
void map_prefetch(const struct map *map, const struct map_owner *owner, const struct holder *key);

/* Frees one page of a map that is not used any more; false when none is left. An operation each. */
bool map_drop(struct map *map, struct memory *memory);

/* Pages in use. */
uint32_t map_pages(const struct map *map);

#endif
