/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_PASS_CACHE_H
#define WEIR_TOKEN_PASS_CACHE_H

/*
 * Passes whose Ed25519 signature was found good, so that a visitor's hundredth request does not pay for it
 * again. It answers one question: were exactly these bytes verified before? What the pass says, and whether it
 * still counts, is read from the pass each time.
 *
 * A table of fixed size, made once: no request allocates. Where it is full the pass that was not seen for
 * longest makes place, and pays once more when it comes back. One for each ring and worker process, like the
 * ring; a fork copies it. Not thread-safe.
 */

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PASS_CACHE_ENTRIES  32768 /* of a worker: 1.25 MiB */
#define PASS_CACHE_WAYS     8     /* entries of a set: what the first bits of the hash choose */
#define PASS_CACHE_KEY_SIZE 32

struct pass_cache;

/* `entries` is rounded up to a power of two. NULL without memory; pass_cache_free takes NULL too. */
struct pass_cache *pass_cache_new(size_t entries);
void pass_cache_free(struct pass_cache *cache);

/* What stands for a token here: its SHA-256, all of it, so that nobody finds a second token for it. */
void pass_cache_key(struct pass_cache *cache, struct span token, uint8_t key[PASS_CACHE_KEY_SIZE]);

/* Whether it was added and its time is not over. */
bool pass_cache_has(struct pass_cache *cache, const uint8_t key[PASS_CACHE_KEY_SIZE], uint64_t now_sec);

/* Only for a pass whose signature was checked. Nothing happens if its time is over. */
void pass_cache_add(struct pass_cache *cache, const uint8_t key[PASS_CACHE_KEY_SIZE], uint64_t exp_sec,
                    uint64_t now_sec);

#endif
