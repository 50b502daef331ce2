/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of eight entries, the one seen last in front: a look touches a few cache lines, and no list spans the table.
 * What a full set forgets is one of eight and not the oldest of all, so that some are forgotten before the table is
 * full. With ten thousand passes in it that is one look in some thousands; with sets of four it was one in a hundred,
 * and as a miss costs a hundred hits, the misses cost more than all the hits. Which set a token falls into is a
 * part of its hash, and only tokens that we signed are ever added: nobody can crowd a set without holding that many
 * passes.
 */
#include "token/pass_cache.h"

#include "base/must.h"

#include <openssl/evp.h>
#include <stdlib.h>

#define WAYS PASS_CACHE_WAYS

struct entry {
    uint8_t key[PASS_CACHE_KEY_SIZE];
    uint64_t exp_sec; /* 0: free */
};

struct pass_cache {
    EVP_MD *sha256;
    EVP_MD_CTX *work;
    size_t set_mask;
    struct entry (*sets)[WAYS];
};

static struct entry *set_of(struct pass_cache *cache, const uint8_t key[PASS_CACHE_KEY_SIZE]);
static size_t set_find(const struct entry *set, const uint8_t key[PASS_CACHE_KEY_SIZE]);
static size_t set_choose(const struct entry *set, uint64_t now_sec);
static void set_bring_forward(struct entry *set, size_t at);

struct pass_cache *pass_cache_new(size_t entries)
{
    size_t sets = 1;
    while (sets < entries / WAYS)
        sets *= 2;
    struct pass_cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL)
        return NULL;
    cache->set_mask = sets - 1;
    cache->sets = calloc(sets, sizeof(*cache->sets));
    cache->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    cache->work = EVP_MD_CTX_new();
    if (cache->sets != NULL && cache->sha256 != NULL && cache->work != NULL)
        return cache;
    pass_cache_free(cache);
    return NULL;
}

void pass_cache_free(struct pass_cache *cache)
{
    if (cache == NULL)
        return;
    EVP_MD_CTX_free(cache->work);
    EVP_MD_free(cache->sha256);
    free(cache->sets);
    free(cache);
}

/* Fails only where a hundred bytes cannot be had; and what is not the hash must never be compared. */
void pass_cache_key(struct pass_cache *cache, struct span token, uint8_t key[PASS_CACHE_KEY_SIZE])
{
    unsigned size = 0;
    must(EVP_DigestInit_ex2(cache->work, cache->sha256, NULL) == 1);
    must(EVP_DigestUpdate(cache->work, token.data, token.len) == 1);
    must(EVP_DigestFinal_ex(cache->work, key, &size) == 1 && size == PASS_CACHE_KEY_SIZE);
}

bool pass_cache_has(struct pass_cache *cache, const uint8_t key[PASS_CACHE_KEY_SIZE], uint64_t now_sec)
{
    struct entry *set = set_of(cache, key);
    size_t at = set_find(set, key);
    if (at == WAYS || set[at].exp_sec <= now_sec)
        return false;
    set_bring_forward(set, at);
    return true;
}

void pass_cache_add(struct pass_cache *cache, const uint8_t key[PASS_CACHE_KEY_SIZE], uint64_t exp_sec,
                    uint64_t now_sec)
{
    if (exp_sec <= now_sec)
        return;
    struct entry *set = set_of(cache, key);
    size_t at = set_find(set, key);
    if (at == WAYS)
        at = set_choose(set, now_sec);
    memcpy(set[at].key, key, sizeof(set[at].key));
    set[at].exp_sec = exp_sec;
    set_bring_forward(set, at);
}

static struct entry *set_of(struct pass_cache *cache, const uint8_t key[PASS_CACHE_KEY_SIZE])
{
    uint32_t bits;
    memcpy(&bits, key, sizeof(bits));
    return cache->sets[bits & cache->set_mask];
}

/* WAYS: it is not there. */
static size_t set_find(const struct entry *set, const uint8_t key[PASS_CACHE_KEY_SIZE])
{
    size_t at = 0;
    while (at < WAYS && (set[at].exp_sec == 0 || memcmp(set[at].key, key, sizeof(set[at].key)) != 0))
        at++;
    return at;
}

/* A place that is free or whose time is over, else that of the pass that was not seen for longest. */
static size_t set_choose(const struct entry *set, uint64_t now_sec)
{
    for (size_t at = 0; at < WAYS; at++)
        if (set[at].exp_sec <= now_sec)
            return at;
    return WAYS - 1;
}

static void set_bring_forward(struct entry *set, size_t at)
{
    struct entry first = set[at];
    memmove(set + 1, set, at * sizeof(*set));
    set[0] = first;
}
