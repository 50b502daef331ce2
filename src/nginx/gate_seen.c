/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of fixed size, two entries to a place; of the two the one that was not used last makes room. The place follows from the
 * last characters of the signature, which nobody can choose for a pass that is good. The signature is compared in constant time,
 * as wherever one is.
 *
 * Longer passes than most (a long user name) are not kept: they are verified each time.
 */
#include "nginx/gate_seen.h"

#include "base/room_id.h"

#include <openssl/crypto.h>

#define PLACES    1024 /* a power of two */
#define WAYS      2
#define TOKEN_MAX 448
#define UID_MAX   64
#define TAIL      8 /* characters that choose the place */

struct seen {
    uint32_t len, signed_len; /* 0 = nothing here */
    struct pass_claims claims;
    char room[ROOM_ID_MAX], uid[UID_MAX];
    char token[TOKEN_MAX];
};

struct seen_place {
    uint32_t last; /* the way that was used last */
    struct seen ways[WAYS];
};

static struct seen_place table[PLACES]; /* of a worker: 1.4 MiB, as much of it as is used */

static struct seen_place *place_of(struct span token);
static bool seen_tell(ngx_pool_t *pool, const struct pass_claims *seen, struct pass_claims *claims);
static bool is_same(const struct seen *seen, struct span token);
static struct span copy_of(char *memory, struct span text);

bool seen_find(ngx_pool_t *pool, struct span token, struct pass_claims *claims)
{
    if (token.len <= TAIL || token.len > TOKEN_MAX)
        return false;
    struct seen_place *place = place_of(token);
    for (uint32_t way = 0; way < WAYS; way++) {
        if (!is_same(&place->ways[way], token))
            continue;
        place->last = way;
        return seen_tell(pool, &place->ways[way].claims, claims);
    }
    return false;
}

/* The next pass may take this one's place while its request still waits for something. */
static bool seen_tell(ngx_pool_t *pool, const struct pass_claims *seen, struct pass_claims *claims)
{
    char *memory = ngx_pnalloc(pool, seen->room.len + seen->uid.len);
    if (memory == NULL)
        return false;
    *claims = *seen;
    claims->room = copy_of(memory, seen->room);
    claims->uid = copy_of(memory + seen->room.len, seen->uid);
    return true;
}

static struct seen_place *place_of(struct span token)
{
    uint64_t tail;
    memcpy(&tail, token.data + token.len - TAIL, sizeof(tail));
    return &table[(tail * 0x9e3779b97f4a7c15ULL) >> 54];
}

static bool is_same(const struct seen *seen, struct span token)
{
    return seen->len == token.len &&
           CRYPTO_memcmp(seen->token + seen->signed_len, token.data + seen->signed_len,
                         token.len - seen->signed_len) == 0 &&
           memcmp(seen->token, token.data, seen->signed_len) == 0;
}

void seen_add(struct span token, const struct pass_claims *claims)
{
    if (token.len <= TAIL || token.len > TOKEN_MAX || claims->uid.len > UID_MAX)
        return;
    struct seen_place *place = place_of(token);
    place->last = (place->last + 1) % WAYS;
    struct seen *seen = &place->ways[place->last];
    const char *dot = memrchr(token.data, '.', token.len);
    seen->len = (uint32_t)token.len;
    seen->signed_len = (uint32_t)(dot - token.data);
    memcpy(seen->token, token.data, token.len);
    seen->claims = *claims;
    seen->claims.room = copy_of(seen->room, claims->room);
    seen->claims.uid = copy_of(seen->uid, claims->uid);
}

static struct span copy_of(char *memory, struct span text)
{
    memcpy(memory, text.data, text.len);
    return (struct span){memory, text.len};
}
