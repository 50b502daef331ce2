/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_KEYS_H
#define WEIR_ROOM_KEYS_H

/*
 * Idempotency keys of a room: what a request with this key did, kept for KEYS_TTL_SEC in a bounded queue. A key is written in
 * the same operation as what it stands for, so that there is no moment at which one is known without the other.
 */

#include "base/map.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

#define KEYS_TTL_SEC 300
#define KEYS_PAGES   1024
#define KEYS_ON_PAGE (PAGE_BYTES / 32)
#define KEYS_MAX     ((KEYS_PAGES - 1) * KEYS_ON_PAGE)
#define KEYS_ADD_MAX 3 /* pages that adding a key takes at most: of keys, of the map, of its directory */

struct key {
    struct holder scope;
    uint32_t count;     /* the ticket it made or entered */
    uint64_t body : 58; /* as much of the request's hash as there is room for: keys_body */
    uint64_t poll_sec : 6;
    uint32_t at; /* deciseconds of the room's clock */
    uint32_t position : 31;
    uint32_t is_ready : 1;
};

struct keys {
    uint32_t first, last; /* numbers of the oldest and newest key; by_scope says whether there are any */
    uint64_t dropped;     /* forgotten before their time because the queue was full */
    struct map by_scope;
    page_ref page[KEYS_PAGES];
};

static inline uint64_t keys_body(uint64_t hash)
{
    return hash & ((UINT64_C(1) << 58) - 1);
}

void keys_init(struct keys *keys);

/* Whether the time of a key is over at `now`: it stands for nothing any more, forgotten or not. */
static inline bool key_is_over(const struct key *key, uint32_t now)
{
    return now >= key->at + KEYS_TTL_SEC * 10;
}

/* The key of this scope, or NULL. Its time may be over, or the ticket it stands for: the caller looks. */
struct key *keys_find(const struct keys *keys, struct memory *memory, const struct holder *scope);

/* Adds a key that is not there. False: no page is spare; the caller rolls back. */
bool keys_add(struct keys *keys, struct memory *memory, const struct key *key);

/*
 * The keys in order: the one of *number, which then names the next; begins with 0. NULL at the end. Between two calls keys may
 * come and go.
 */
const struct key *keys_next(const struct keys *keys, const struct memory *memory, uint32_t *number);

/*
 * Forgets the oldest key if its time is over or the queue is full; false if there was nothing to forget.
 * Frees pages: an operation of its own.
 */
bool keys_forget(struct keys *keys, struct memory *memory, uint32_t now);

/* Pages in use. */
uint32_t keys_pages(const struct keys *keys);

/* Aborts unless the map leads to every key between the oldest and the newest and to no other. Returns keys_pages. */
uint32_t keys_check(const struct keys *keys, struct memory *memory);

#endif
