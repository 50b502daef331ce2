/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key means nothing alone: "1" of one client is not "1" of another. What the engine stores is a keyed hash of room, operation,
 * whose key it is and the key: the identity's, the cookie's, or, for a client with neither, its address's. Each part goes in
 * with its length, so that no two questions are the same bytes.
 */
#include "nginx/idempotency.h"

#include "base/must.h"
#include "nginx/reply.h"
#include "nginx/request.h"

#define KEY_MAX    128
#define BYTES_MAX  1024
#define SCOPE_KIND 3 /* the holder key also names visitors (1) and identities (2), see token/visitor.h */

struct bytes {
    uint8_t data[BYTES_MAX];
    size_t len;
};

static void key_make(ngx_http_request_t *r, const struct bytes *bytes, const struct span meaning[2],
                     struct request_key *out);
static bool key_is_valid(struct span key);
static void bytes_add(struct bytes *bytes, struct span part);
static void bytes_add_owner(struct bytes *bytes, ngx_http_request_t *r, const struct visitor *visitor);
static uint64_t meaning_hash(const struct span meaning[2]);
static uint64_t hash_add(uint64_t hash, struct span part);

enum error idempotency_key(ngx_http_request_t *r, const struct idempotency *scope, struct request_key *out)
{
    struct span key = request_of(r)->sent.idempotency_key;
    *out = (struct request_key){0};
    if (key.data == NULL)
        return conf_loc(r)->idempotency == IDEMPOTENCY_REQUIRED ? ERROR_IDEMPOTENCY_REQUIRED : ERROR_NONE;
    if (!key_is_valid(key))
        return ERROR_INVALID_IDEMPOTENCY_KEY;
    struct bytes bytes = {.data = {SCOPE_KIND}, .len = 1};
    bytes_add(&bytes, scope->operation);
    bytes_add(&bytes, scope->room);
    bytes_add_owner(&bytes, r, scope->visitor);
    bytes_add(&bytes, key);
    key_make(r, &bytes, scope->meaning, out);
    return ERROR_NONE;
}

void idempotency_of_pass(ngx_http_request_t *r, const struct pass_claims *pass, const struct holder *user,
                         struct request_key *out)
{
    char id[PASS_ID_LEN];
    struct bytes bytes = {.data = {SCOPE_KIND}, .len = 1};
    const struct span meaning[2] = {{(const char *)user->id, sizeof(user->id)}, SPAN("")};
    pass_id_write(pass, id);
    bytes_add(&bytes, SPAN("hall"));
    bytes_add(&bytes, pass->room);
    bytes_add(&bytes, SPAN("pass"));
    bytes_add(&bytes, (struct span){id, sizeof(id)});
    key_make(r, &bytes, meaning, out);
}

static void key_make(ngx_http_request_t *r, const struct bytes *bytes, const struct span meaning[2],
                     struct request_key *out)
{
    uint8_t mac[KEYRING_MAC_SIZE];
    must(keyring_mac(conf_main(r)->keys, KEY_HOLDER, KEYRING_HOLDER_ID, bytes->data, bytes->len, mac));
    out->is_set = true;
    memcpy(out->scope.id, mac, sizeof(out->scope.id));
    out->body = meaning_hash(meaning);
}

static bool key_is_valid(struct span key)
{
    if (key.len < 1 || key.len > KEY_MAX)
        return false;
    for (size_t i = 0; i < key.len; i++)
        if (key.data[i] < ' ' || key.data[i] > '~')
            return false;
    return true;
}

static void bytes_add_owner(struct bytes *bytes, ngx_http_request_t *r, const struct visitor *visitor)
{
    if (visitor->identity.data != NULL) {
        bytes_add(bytes, SPAN("identity"));
        bytes_add(bytes, visitor->identity);
    } else if (visitor->has_cookie) {
        bytes_add(bytes, SPAN("visitor"));
        bytes_add(bytes, (struct span){(const char *)visitor->id, sizeof(visitor->id)});
    } else {
        bytes_add(bytes, SPAN("address"));
        bytes_add(bytes, span_of_str(r->connection->addr_text));
    }
}

static void bytes_add(struct bytes *bytes, struct span part)
{
    must(part.len <= 0xffff && part.len + 2 <= sizeof(bytes->data) - bytes->len);
    bytes->data[bytes->len++] = (uint8_t)(part.len >> 8);
    bytes->data[bytes->len++] = (uint8_t)part.len;
    memcpy(bytes->data + bytes->len, part.data, part.len);
    bytes->len += part.len;
}

/* FNV-1a. Whoever finds two bodies with one hash has fooled nobody but themselves: the key is theirs. */
static uint64_t meaning_hash(const struct span meaning[2])
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    hash = hash_add(hash, meaning[0]);
    hash = hash_add(hash, SPAN("\n"));
    return hash_add(hash, meaning[1]);
}

static uint64_t hash_add(uint64_t hash, struct span part)
{
    for (size_t i = 0; i < part.len; i++)
        hash = (hash ^ (uint8_t)part.data[i]) * 0x100000001b3ULL;
    return hash;
}

ngx_int_t idempotency_say_cached(ngx_http_request_t *r)
{
    return reply_header(r, SPAN("X-Idempotency-Cached"), SPAN("true"));
}
