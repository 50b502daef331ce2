/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as a pass of both algorithms; and, since no fuzzer finds a signature, the input once more as the payload, as the
 * header and as the signature of a pass that this target makes itself, as the text of a secret file and as a given key. A
 * cache that is kept over all inputs must never change an answer. Whatever is accepted in the form we write must be what
 * signing its claims gives.
 */
#include "base/must.h"
#include "token/jwks.h"
#include "token/pass.h"

#include <jansson.h>
#include <stdlib.h>

#define NOW  1700000100
#define KEYS "7 0123456789abcdef0123456789abcdef\n3 an-older-secret-of-forty-characters!!!!!"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct keyring *ring; /* 7: EdDSA, 3: HS256 */
static struct pass_cache *cache;

static void start(void);
static void pass_try(struct span token, bool is_canonical);
static void parts_try(struct span header, struct span payload, uint8_t key_id, const struct span *signature);
static void given_key_try(struct span key);
static void secret_file_try(struct span text);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct span eddsa = SPAN("{\"alg\":\"EdDSA\",\"kid\":\"2.7\",\"typ\":\"JWT\"}");
    static const struct span hs256 = SPAN("{\"alg\":\"HS256\",\"kid\":\"2.3\",\"typ\":\"JWT\"}");
    static const struct span payload =
        SPAN("{\"iss\":\"weir\",\"sub\":\"r\",\"uid\":\"u\",\"tier\":2,\"jti\":"
             "\"AAAABQAS1oegoaKjpKWmp6ipqqs\",\"iat\":1700000000,\"exp\":"
             "1700043200}");
    const struct span input = {(const char *)data, size};
    start();
    pass_try(input, true);
    parts_try(eddsa, input, 7, NULL);
    parts_try(hs256, input, 3, NULL);
    parts_try(input, payload, 7, NULL);
    parts_try(eddsa, payload, 7, &input);
    given_key_try(input);
    secret_file_try(input);
    return 0;
}

static void start(void)
{
    char reason[KEYRING_REASON_MAX];
    if (ring != NULL)
        return;
    ring = keyring_new(SPAN(KEYS), reason);
    cache = pass_cache_new(64);
    must(ring != NULL && cache != NULL);
    must(keyring_set_algorithm(ring, 1, 7, KEY_EDDSA) && keyring_set_algorithm(ring, 2, 7, KEY_EDDSA));
}

static void pass_try(struct span token, bool is_canonical)
{
    for (int tier = 1; tier <= 2; tier++) {
        struct pass_claims claims;
        char scratch[PASS_SCRATCH_MAX], again[PASS_TOKEN_MAX];
        bool is_cached = pass_verify_cached(ring, cache, tier, token, NOW, &claims, scratch, sizeof(scratch));
        must(pass_verify(ring, tier, token, NOW, &claims, scratch, sizeof(scratch)) == is_cached);
        if (!is_cached)
            continue;
        must(claims.tier == tier && claims.exp_sec > NOW && claims.iat_sec <= NOW + PASS_SKEW_SEC);
        struct span pass = {again, pass_sign(ring, &claims, again, sizeof(again))};
        must(pass.len > 0 && (!is_canonical || span_equal(pass, token)));
    }
}

/* `signature` NULL: a good one. */
static void parts_try(struct span header, struct span payload, uint8_t key_id, const struct span *signature)
{
    uint8_t made[KEYRING_SIGNATURE_MAX];
    char token[PASS_TOKEN_MAX];
    size_t longest = signature != NULL ? signature->len : sizeof(made), len = 0;
    if (BASE64URL_LEN(header.len) + BASE64URL_LEN(payload.len) + BASE64URL_LEN(longest) + 2 > sizeof(token))
        return;
    len += base64url_encode(header.data, header.len, token, sizeof(token));
    token[len++] = '.';
    len += base64url_encode(payload.data, payload.len, token + len, sizeof(token) - len);
    size_t size =
        signature != NULL ? signature->len : keyring_sign(ring, 2, key_id, (struct span){token, len}, made);
    token[len++] = '.';
    len += base64url_encode(signature != NULL ? signature->data : (const char *)made, size, token + len,
                            sizeof(token) - len);
    /* Of a payload that this target signed, the same claims may have been written in another way. */
    pass_try((struct span){token, len}, signature != NULL);
}

static void given_key_try(struct span key)
{
    char reason[KEYRING_REASON_MAX] = "";
    struct keyring *other = keyring_new(SPAN(KEYS), reason);
    must(other != NULL);
    bool is_given = keyring_give(other, 2, 7, key, reason);
    must(is_given == (reason[0] == '\0'));
    must(!is_given || (key.len >= KEYRING_GIVEN_MIN && key.len <= KEYRING_GIVEN_MAX));
    must(!is_given || !keyring_give(other, 1, 7, key, reason));
    keyring_free(other);
}

/* Whatever ring comes of it has a key set that a real JSON reader takes. */
static void secret_file_try(struct span text)
{
    char reason[KEYRING_REASON_MAX] = "", set[JWKS_MAX];
    struct keyring *other = keyring_new(text, reason);
    must((other == NULL) == (reason[0] != '\0'));
    if (other == NULL)
        return;
    must(keyring_has(other, keyring_signing_id(other)));
    for (size_t i = 0; keyring_id_at(other, i) != 0; i++)
        must(keyring_set_algorithm(other, 1 + (int)(i % 2), keyring_id_at(other, i), KEY_EDDSA));
    json_t *read = json_loadb(set, jwks_write(other, 0, set), JSON_REJECT_DUPLICATES, NULL);
    must(read != NULL && json_array_size(json_object_get(read, "keys")) > 0);
    json_decref(read);
    keyring_free(other);
}
