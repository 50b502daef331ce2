/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passes of both algorithms: which one counts is the key's to say and never the token's, what a verified pass saves, and
 * what is said of one that is refused. What all tokens have in common is in test_token.c.
 */
#include "base/room_id.h"
#include "token/jwks.h"
#include "token/pass.h"

#include <openssl/hmac.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NEW_SECRET "0123456789abcdef0123456789abcdef"
#define OLD_SECRET "an-older-secret-of-forty-characters!!!!!"
#define NEW_ID     7
#define OLD_ID     3
#define NOW        1700000100
#define IAT        1700000000
#define EXP        1700043200

/* `ring`: key 7 is EdDSA in both tiers, key 3 HS256. `plain`: the same secrets, all HS256. */
static struct keyring *ring, *plain;
static struct pass_cache *cache;

static struct keyring *ring_of(const char *text)
{
    char reason[KEYRING_REASON_MAX] = "";
    struct keyring *made = keyring_new(span_of(text), reason);
    if (made == NULL)
        fail_msg("refused: %s", reason);
    return made;
}

static int ring_setup(void **state)
{
    (void)state;
    ring = ring_of("7 " NEW_SECRET "\n3 " OLD_SECRET "\n");
    plain = ring_of("7 " NEW_SECRET "\n3 " OLD_SECRET "\n");
    cache = pass_cache_new(256);
    return cache != NULL && keyring_set_algorithm(ring, 1, NEW_ID, KEY_EDDSA) &&
                   keyring_set_algorithm(ring, 2, NEW_ID, KEY_EDDSA)
               ? 0
               : -1;
}

static int ring_teardown(void **state)
{
    (void)state;
    keyring_free(ring);
    keyring_free(plain);
    pass_cache_free(cache);
    return 0;
}

static uint64_t random_state = 0x9E3779B97F4A7C15;

static uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

static struct pass_claims some_pass(void)
{
    return (struct pass_claims){
        .key_id = NEW_ID,
        .tier = 2,
        .epoch = 5,
        .count = 1234567,
        .holder = {{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab}},
        .iat_sec = IAT,
        .exp_sec = EXP,
        .room = SPAN("concert:42"),
        .uid = SPAN("Zo\xc3\xab \"Q\"\n"),
    };
}

static enum pass_fault judge(struct keyring *with, int tier, struct span token, uint64_t now_sec)
{
    struct pass_claims claims;
    char scratch[PASS_SCRATCH_MAX];
    return pass_judge(with, NULL, tier, token, now_sec, &claims, scratch, sizeof(scratch));
}

static bool is_pass(struct span token)
{
    return judge(ring, 1, token, NOW) == PASS_FAULT_NONE || judge(ring, 2, token, NOW) == PASS_FAULT_NONE;
}

/* Through the cache, at a time that the others do not use. */
static bool is_cached_pass(struct span token, uint64_t now_sec)
{
    struct pass_claims claims;
    char scratch[PASS_SCRATCH_MAX];
    return pass_verify_cached(ring, cache, 2, token, now_sec, &claims, scratch, sizeof(scratch));
}

static void expect_claims(const struct pass_claims *seen, const struct pass_claims *expected)
{
    assert_int_equal(seen->key_id, expected->key_id);
    assert_int_equal(seen->tier, expected->tier);
    assert_int_equal(seen->epoch, expected->epoch);
    assert_int_equal(seen->count, expected->count);
    assert_int_equal(seen->iat_sec, expected->iat_sec);
    assert_int_equal(seen->exp_sec, expected->exp_sec);
    assert_true(holder_equal(&seen->holder, &expected->holder));
    assert_true(span_equal(seen->room, expected->room));
    assert_true(span_equal(seen->uid, expected->uid));
}

/* ---- what was signed is taken ---- */

static void a_pass_of_either_algorithm_carries_its_claims(void **state)
{
    static const uint8_t ids[] = {NEW_ID, OLD_ID};
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct pass_claims claims = some_pass(), seen;
        char token[PASS_TOKEN_MAX], again[PASS_TOKEN_MAX], scratch[PASS_SCRATCH_MAX];
        claims.key_id = ids[i % 2];
        claims.tier = 1 + i / 2 % 2;
        claims.epoch = random_bits();
        claims.count = random_bits();
        claims.holder.id[i % 12] = (uint8_t)random_bits();
        size_t len = pass_sign(ring, &claims, token, sizeof(token));
        assert_true(len > 0);
        assert_int_equal(pass_sign(ring, &claims, again, sizeof(again)), len);
        assert_memory_equal(token, again, len);
        for (int round = 0; round < 2; round++) { /* the second time from the cache */
            assert_true(pass_verify_cached(ring, cache, claims.tier, (struct span){token, len}, NOW, &seen,
                                           scratch, sizeof(scratch)));
            expect_claims(&seen, &claims);
        }
        assert_int_equal(judge(ring, 3 - claims.tier, (struct span){token, len}, NOW), PASS_FAULT_TIER);
    }
}

/*
 * Computed in plain Python from the text of RFC 5869 and with the reference code of RFC 8032, section 6, after it gave the
 * right answer to the first test of section 7.1.
 */
static const char eddsa_pass[] =
    "eyJhbGciOiJFZERTQSIsImtpZCI6IjIuNyIsInR5cCI6IkpXVCJ9."
    "eyJpc3MiOiJ3ZWlyIiwic3ViIjoiY29uY2VydDo0MiIsInVpZCI6Ilpvw6sgXCJRXCJcbiIsInRpZ"
    "XIiOjIsImp0aSI6IkFBQUFCUUFTMW9l"
    "Z29hS2pwS1dtcDZpcHFxcyIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDQzMjAwfQ."
    "UjDTPUneLKXjurQksDbdyNOeLz4gO-RGVq3kVw_gtukv8gF2eLH2n3GTLdehVbuMBrySBDb5KXv_"
    "svibiHHZDA";
#define PUBLIC_1 "vgo_PW_uEikfHxl_RzkkmdINGwwZ2tbH2vFGzWImr_Y"
#define PUBLIC_2 "o_a3wdt0fM30u7u3XBy2oYT-yqyIEkw3YCerTrG1cDo"

static void an_eddsa_pass_is_that_of_an_independent_writer(void **state)
{
    struct pass_claims claims = some_pass();
    char token[PASS_TOKEN_MAX];
    (void)state;
    assert_int_equal(pass_sign(ring, &claims, token, sizeof(token)), sizeof(eddsa_pass) - 1);
    assert_memory_equal(token, eddsa_pass, sizeof(eddsa_pass) - 1);
}

#define JWK(kid, x)                                                                                         \
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"use\":\"sig\",\"alg\":\"EdDSA\",\"kid\":\"" kid "\",\"x\":\"" x \
    "\"}"

static void expect_jwks(const struct keyring *of, int tier, const char *expected)
{
    char set[JWKS_MAX + 1];
    set[jwks_write(of, tier, set)] = '\0';
    assert_string_equal(set, expected);
}

static void the_key_set_is_that_of_an_independent_writer(void **state)
{
    (void)state;
    expect_jwks(ring, 0, "{\"keys\":[" JWK("1.7", PUBLIC_1) "," JWK("2.7", PUBLIC_2) "]}");
    expect_jwks(ring, 1, "{\"keys\":[" JWK("1.7", PUBLIC_1) "]}");
    expect_jwks(ring, 2, "{\"keys\":[" JWK("2.7", PUBLIC_2) "]}");
}

static void a_key_set_has_no_key_of_hs256(void **state)
{
    (void)state;
    expect_jwks(plain, 0, "{\"keys\":[]}");
}

static void the_longest_key_set_fits(void **state)
{
    char text[1024] = "", set[JWKS_MAX];
    size_t len = 0;
    (void)state;
    for (int i = 0; i < SECRET_KEYS_MAX; i++)
        len += (size_t)sprintf(text + len, "%d %d-%s%s\n", 248 + i, i, NEW_SECRET, i < 7 ? " next" : "");
    struct keyring *full = ring_of(text);
    for (int id = 248; id <= 255; id++)
        for (int tier = 1; tier <= 2; tier++)
            assert_true(keyring_set_algorithm(full, tier, (uint8_t)id, KEY_EDDSA));
    len = jwks_write(full, 0, set);
    assert_true(len < JWKS_MAX);
    size_t keys = 0;
    for (size_t i = 0; i + 5 < len; i++)
        keys += memcmp(set + i, "\"kid\"", 5) == 0;
    assert_int_equal(keys, 2 * SECRET_KEYS_MAX);
    keyring_free(full);
}

static void the_longest_eddsa_pass_fits(void **state)
{
    char room[ROOM_ID_MAX], uid[PASS_UID_MAX], token[PASS_TOKEN_MAX];
    struct keyring *longest = ring_of("255 " NEW_SECRET);
    struct pass_claims claims = some_pass();
    (void)state;
    memset(room, 'r', sizeof(room));
    memset(uid, '\x01', sizeof(uid));
    claims.key_id = 255;
    claims.room = (struct span){room, sizeof(room)};
    claims.uid = (struct span){uid, sizeof(uid)};
    claims.iat_sec = NOW;
    claims.exp_sec = INT64_MAX;
    claims.epoch = claims.count = UINT32_MAX;
    assert_true(keyring_set_algorithm(longest, 2, 255, KEY_EDDSA));
    size_t len = pass_sign(longest, &claims, token, sizeof(token));
    assert_true(len > 0);
    assert_int_equal(judge(longest, 2, (struct span){token, len}, NOW), PASS_FAULT_NONE);
    for (size_t cap = 0; cap < len; cap += 97) {
        char *exact =
            malloc(cap + 1); /* on the heap and exact, so that a sanitizer sees a write past the end */
        assert_int_equal(pass_sign(longest, &claims, exact, cap), 0);
        free(exact);
    }
    keyring_free(longest);
}

/* ---- the algorithm is the key's ---- */

static void a_pass_of_the_other_algorithm_is_refused_though_its_own_key_signed_it(void **state)
{
    struct pass_claims claims = some_pass();
    char token[PASS_TOKEN_MAX];
    struct span pass = {token, pass_sign(plain, &claims, token, sizeof(token))};
    (void)state;
    assert_int_equal(judge(plain, 2, pass, NOW), PASS_FAULT_NONE);
    assert_int_equal(judge(ring, 2, pass, NOW), PASS_FAULT_ALGORITHM);
    pass.len = pass_sign(ring, &claims, token, sizeof(token));
    assert_int_equal(judge(ring, 2, pass, NOW), PASS_FAULT_NONE);
    assert_int_equal(judge(plain, 2, pass, NOW), PASS_FAULT_ALGORITHM);
}

static void a_change_of_the_algorithm_by_a_rotation_ends_no_pass_and_changes_no_byte(void **state)
{
    struct pass_claims claims = some_pass();
    char before[PASS_TOKEN_MAX], after[PASS_TOKEN_MAX];
    (void)state;
    claims.key_id = OLD_ID;
    size_t len = pass_sign(plain, &claims, before, sizeof(before));
    assert_int_equal(judge(ring, 2, (struct span){before, len}, NOW), PASS_FAULT_NONE);
    assert_int_equal(pass_sign(ring, &claims, after, sizeof(after)), len);
    assert_memory_equal(before, after, len);
}

#define PAYLOAD                                                                                        \
    "{\"iss\":\"weir\",\"sub\":\"r\",\"uid\":\"u\",\"tier\":2,\"jti\":\"AAAABQAS1oegoaKjpKWmp6ipqqs\"" \
    ",\"iat\":1700000000,\"exp\":1700043200}"

/* `signature` NULL: that of the ring's own key for `id`, whatever the header says. */
static struct span forge(const char *header, const char *payload, uint8_t id, const struct span *signature,
                         char *out)
{
    uint8_t made[KEYRING_SIGNATURE_MAX];
    size_t len = base64url_encode(header, strlen(header), out, PASS_TOKEN_MAX);
    out[len++] = '.';
    len += base64url_encode(payload, strlen(payload), out + len, PASS_TOKEN_MAX - len);
    size_t size =
        signature == NULL ? keyring_sign(ring, 2, id, (struct span){out, len}, made) : signature->len;
    const void *bytes = signature == NULL ? (const void *)made : signature->data;
    out[len++] = '.';
    return (struct span){out, len + base64url_encode(bytes, size, out + len, PASS_TOKEN_MAX - len)};
}

#define HEADER "{\"alg\":\"EdDSA\",\"kid\":\"2.7\",\"typ\":\"JWT\"}"

/* The bytes that the signature is over, of a token to come. */
static struct span signed_part(const char *header, const char *payload, char *out)
{
    static const struct span none = {"", 0};
    struct span token = forge(header, payload, NEW_ID, &none, out);
    return (struct span){token.data, token.len - 1};
}

static void the_public_key_as_an_hmac_secret_opens_nothing(void **state)
{
    static const char *const headers[] = {"{\"alg\":\"HS256\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
                                          "{\"alg\":\"HS256\",\"kid\":\"2.3\",\"typ\":\"JWT\"}", HEADER};
    static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
                              "MCowBQYDK2VwAyEAo/a3wdt0fM30u7u3XBy2oYT+yqyIEkw3YCerTrG1cDo=\n"
                              "-----END PUBLIC KEY-----\n";
    uint8_t public_key[KEYRING_KEY_SIZE], mac[32];
    char token[PASS_TOKEN_MAX], again[PASS_TOKEN_MAX];
    (void)state;
    assert_true(keyring_public(ring, 2, NEW_ID, public_key));
    struct span secrets[] = {
        {(const char *)public_key, sizeof(public_key)}, SPAN(PUBLIC_2), SPAN(pem), SPAN("")};
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        for (size_t j = 0; j < sizeof(secrets) / sizeof(secrets[0]); j++) {
            struct span part = signed_part(headers[i], PAYLOAD, token);
            assert_non_null(HMAC(EVP_sha256(), secrets[j].data, (int)secrets[j].len,
                                 (const uint8_t *)part.data, part.len, mac, NULL));
            struct span signature = {(const char *)mac, sizeof(mac)};
            assert_false(is_pass(forge(headers[i], PAYLOAD, NEW_ID, &signature, again)));
        }
}

static void a_header_that_is_not_ours_to_the_byte_is_refused_though_signed(void **state)
{
    static const char *const headers[] = {
        "",
        "{}",
        "{\"alg\":\"none\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"eddsa\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"ES256\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"Ed25519\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"1.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.3\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.8\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.07\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.263\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.0\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.7\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.7\",\"typ\":\"JWT\",\"crit\":[]}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.7\",\"typ\":\"JWT\"} ",
        "{\"kid\":\"2.7\",\"alg\":\"EdDSA\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"jwk\":{\"kty\":\"OKP\"}}",
    };
    char token[PASS_TOKEN_MAX];
    (void)state;
    assert_true(is_pass(forge(HEADER, PAYLOAD, NEW_ID, NULL, token)));
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        if (is_pass(forge(headers[i], PAYLOAD, NEW_ID, NULL, token)))
            fail_msg("accepted: %s", headers[i]);
}

static void claims_that_are_wrong_are_refused_though_signed(void **state)
{
    static const char *const payloads[] = {
        "",
        "{}",
        "null",
        "{\"iss\":\"weir\",\"sub\":\"r\",\"uid\":\"u\",\"tier\":2,\"jti\":\"AAAABQAS1oegoaKjpKWmp6ipqqs\","
        "\"iat\":1700000000}",
        "{\"iss\":\"weir\",\"sub\":\"r\",\"uid\":\"u\",\"tier\":1,\"jti\":\"AAAABQAS1oegoaKjpKWmp6ipqqs\","
        "\"iat\":1700000000"
        ",\"exp\":1700043200}",
        "{\"iss\":\"shop\",\"sub\":\"r\",\"uid\":\"u\",\"tier\":2,\"jti\":\"AAAABQAS1oegoaKjpKWmp6ipqqs\","
        "\"iat\":1700000000"
        ",\"exp\":1700043200}",
        "{\"iss\":\"weir\",\"sub\":\"r/"
        "s\",\"uid\":\"u\",\"tier\":2,\"jti\":\"AAAABQAS1oegoaKjpKWmp6ipqqs\",\"iat\":"
        "1700000000,\"exp\":1700043200}",
        "{\"iss\":\"weir\",\"sub\":\"r\",\"room\":\"lobby:r\",\"uid\":\"u\",\"tier\":2,"
        "\"jti\":\"AAAABQAS1oegoaKjpKWmp6ipqqs\",\"iat\":1700000000,\"exp\":1700043200}",
    };
    char token[PASS_TOKEN_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        struct span forged = forge(HEADER, payloads[i], NEW_ID, NULL, token);
        assert_int_equal(judge(ring, 2, forged, NOW), PASS_FAULT_CLAIMS);
        for (int round = 0; round < 2; round++)
            assert_false(is_cached_pass(forged, NOW));
    }
}

/* ---- nothing else is taken ---- */

/* Each bit of the text, offered bare and to a cache that knows the pass. */
static void no_bit_of_an_eddsa_pass_can_be_flipped(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct pass_claims claims = some_pass();
        char token[PASS_TOKEN_MAX];
        claims.count = random_bits();
        struct span pass = {token, pass_sign(ring, &claims, token, sizeof(token))};
        assert_true(is_cached_pass(pass, NOW));
        for (size_t bit = 0; bit < pass.len * 8; bit++) {
            token[bit / 8] ^= (char)(1 << bit % 8);
            if (is_pass(pass) || is_cached_pass(pass, NOW))
                fail_msg("accepted with bit %zu flipped: %.*s", bit, (int)pass.len, token);
            token[bit / 8] ^= (char)(1 << bit % 8);
        }
        assert_true(is_pass(pass));
    }
}

static void an_eddsa_pass_cut_or_extended_anywhere_is_refused(void **state)
{
    struct pass_claims claims = some_pass();
    char token[PASS_TOKEN_MAX];
    size_t whole = pass_sign(ring, &claims, token, sizeof(token));
    (void)state;
    assert_true(is_cached_pass((struct span){token, whole}, NOW));
    for (size_t len = 0; len < whole; len++) {
        char *part =
            malloc(len + 1); /* on the heap and exact, so that a sanitizer sees a read past the end */
        memcpy(part, token, len);
        assert_false(is_pass((struct span){part, len}) || is_cached_pass((struct span){part, len}, NOW));
        free(part);
    }
    for (int c = 0; c < 256; c++) {
        token[whole] = (char)c;
        assert_false(is_pass((struct span){token, whole + 1}));
        assert_false(is_cached_pass((struct span){token, whole + 1}, NOW));
    }
}

/* S + L for S: the same point, and another text. A verifier that forgets to look takes both. */
static void the_other_spelling_of_a_signature_is_refused(void **state)
{
    static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                                      0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
                                      0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
    char token[PASS_TOKEN_MAX], again[PASS_TOKEN_MAX];
    uint8_t signature[KEYRING_SIGNATURE_MAX];
    struct span part = signed_part(HEADER, PAYLOAD, token);
    (void)state;
    assert_int_equal(keyring_sign(ring, 2, NEW_ID, part, signature), 64);
    assert_true(keyring_check(ring, 2, NEW_ID, part, (struct span){(char *)signature, 64}));
    unsigned carry = 0;
    for (size_t i = 0; i < 32; i++) {
        carry += (unsigned)signature[32 + i] + order[i];
        signature[32 + i] = (uint8_t)carry;
        carry >>= 8;
    }
    assert_int_equal(carry, 0);
    struct span other = {(char *)signature, 64};
    assert_false(keyring_check(ring, 2, NEW_ID, part, other));
    assert_false(is_pass(forge(HEADER, PAYLOAD, NEW_ID, &other, again)));
}

static void a_token_of_100_kilobytes_is_refused(void **state)
{
    static char token[100 * 1024];
    struct pass_claims claims = some_pass();
    size_t len = pass_sign(ring, &claims, token, PASS_TOKEN_MAX);
    (void)state;
    memset(token + len, 'A', sizeof(token) - len);
    assert_int_equal(judge(ring, 2, (struct span){token, sizeof(token)}, NOW), PASS_FAULT_FORM);
    memset(token, '.', sizeof(token));
    assert_int_equal(judge(ring, 2, (struct span){token, sizeof(token)}, NOW), PASS_FAULT_FORM);
}

static void none_of_many_random_or_mutated_eddsa_passes_is_accepted(void **state)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    struct pass_claims claims = some_pass();
    char token[PASS_TOKEN_MAX], changed[PASS_TOKEN_MAX];
    size_t whole = pass_sign(ring, &claims, token, sizeof(token));
    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t len = i % 2 == 0 ? whole : random_bits() % 400, changes = 1 + random_bits() % 8;
        memcpy(changed, token, whole);
        for (size_t j = 0; i % 2 == 1 && j < len; j++)
            changed[j] = alphabet[random_bits() % 65];
        for (size_t j = 0; i % 2 == 0 && j < changes; j++)
            changed[random_bits() % whole] = alphabet[random_bits() % 65];
        if (len == whole && memcmp(changed, token, whole) == 0)
            continue;
        if (is_pass((struct span){changed, len}))
            fail_msg("accepted: %.*s", (int)len, changed);
    }
}

/* ---- time ---- */

static void an_eddsa_pass_is_valid_from_a_minute_before_iat_until_exp_cached_or_not(void **state)
{
    static const struct {
        uint64_t now_sec;
        enum pass_fault fault;
    } times[] = {{EXP - 1, PASS_FAULT_NONE},
                 {IAT, PASS_FAULT_NONE},
                 {IAT - PASS_SKEW_SEC, PASS_FAULT_NONE},
                 {IAT - PASS_SKEW_SEC - 1, PASS_FAULT_EARLY},
                 {0, PASS_FAULT_EARLY},
                 {EXP, PASS_FAULT_EXPIRED},
                 {UINT64_MAX, PASS_FAULT_EXPIRED}};
    struct pass_claims claims = some_pass();
    char token[PASS_TOKEN_MAX];
    struct span pass = {token, pass_sign(ring, &claims, token, sizeof(token))};
    (void)state;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
            assert_int_equal(judge(ring, 2, pass, times[i].now_sec), times[i].fault);
            assert_int_equal(is_cached_pass(pass, times[i].now_sec), times[i].fault == PASS_FAULT_NONE);
        }
}

static void a_pass_with_nbf_is_not_valid_before_it(void **state)
{
    static const char start[] = "{\"nbf\":1700000200,", *rest = &PAYLOAD[1];
    char payload[1024], token[PASS_TOKEN_MAX];
    (void)state;
    snprintf(payload, sizeof(payload), "%s%s", start, rest);
    struct span pass = forge(HEADER, payload, NEW_ID, NULL, token);
    assert_int_equal(judge(ring, 2, pass, 1700000200 - PASS_SKEW_SEC - 1), PASS_FAULT_EARLY);
    assert_int_equal(judge(ring, 2, pass, 1700000200 - PASS_SKEW_SEC), PASS_FAULT_NONE);
}

/* ---- the cache ---- */

static void pretend(struct span token)
{
    uint8_t key[PASS_CACHE_KEY_SIZE];
    pass_cache_key(cache, token, key);
    pass_cache_add(cache, key, EXP, NOW);
}

static void a_verified_pass_is_not_checked_again(void **state)
{
    static const struct span wrong = {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64};
    char token[PASS_TOKEN_MAX];
    struct span forged = forge(HEADER, PAYLOAD, NEW_ID, &wrong, token);
    (void)state;
    assert_false(is_cached_pass(forged, NOW));
    assert_false(is_cached_pass(forged, NOW)); /* what is wrong is not remembered */
    pretend(forged); /* only so can it be seen that nobody looked at the signature */
    assert_true(is_cached_pass(forged, NOW));
    assert_int_equal(judge(ring, 2, forged, NOW), PASS_FAULT_SIGNATURE);
}

static void the_cache_has_no_say_over_hs256_or_over_claims(void **state)
{
    static const struct span wrong = {"0123456789abcdef0123456789abcdef", 32};
    char token[PASS_TOKEN_MAX];
    (void)state;
    struct span forged =
        forge("{\"alg\":\"HS256\",\"kid\":\"2.3\",\"typ\":\"JWT\"}", PAYLOAD, OLD_ID, &wrong, token);
    pretend(forged);
    assert_false(is_cached_pass(forged, NOW));
    forged = forge("{\"alg\":\"HS256\",\"kid\":\"2.7\",\"typ\":\"JWT\"}", PAYLOAD, NEW_ID, &wrong, token);
    pretend(forged);
    assert_false(is_cached_pass(forged, NOW));
    forged = forge(HEADER, "{}", NEW_ID, NULL, token);
    pretend(forged);
    assert_false(is_cached_pass(forged, NOW));
}

/* ---- what is said ---- */

static void each_fault_is_told_by_its_own_sentence(void **state)
{
    struct pass_claims claims = some_pass();
    char token[PASS_TOKEN_MAX];
    struct keyring *stranger = ring_of("9 " NEW_SECRET), *namesake = ring_of("7 " OLD_SECRET);
    (void)state;
    assert_true(keyring_set_algorithm(namesake, 2, NEW_ID, KEY_EDDSA));
    struct span pass = {token, pass_sign(ring, &claims, token, sizeof(token))};
    assert_int_equal(judge(ring, 2, SPAN("hello"), NOW), PASS_FAULT_FORM);
    assert_int_equal(judge(ring, 2, SPAN("a.b.c"), NOW), PASS_FAULT_FORM);
    assert_int_equal(judge(ring, 2, SPAN_NONE, NOW), PASS_FAULT_FORM);
    assert_int_equal(judge(stranger, 2, pass, NOW), PASS_FAULT_KEY);
    assert_int_equal(judge(namesake, 2, pass, NOW), PASS_FAULT_SIGNATURE);
    for (int fault = 0; fault < PASS_FAULT_COUNT; fault++)
        for (int other = 0; other < fault; other++)
            assert_string_not_equal(pass_fault_text(fault), pass_fault_text(other));
    keyring_free(stranger);
    keyring_free(namesake);
}

static void a_pass_of_a_ticket_has_a_place_and_a_minted_one_has_none(void **state)
{
    struct pass_claims claims = some_pass();
    (void)state;
    assert_true(pass_has_place(&claims));
    claims.epoch = claims.count = 0;
    assert_false(pass_has_place(&claims));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_of_either_algorithm_carries_its_claims),
        cmocka_unit_test(an_eddsa_pass_is_that_of_an_independent_writer),
        cmocka_unit_test(the_key_set_is_that_of_an_independent_writer),
        cmocka_unit_test(a_key_set_has_no_key_of_hs256),
        cmocka_unit_test(the_longest_key_set_fits),
        cmocka_unit_test(the_longest_eddsa_pass_fits),
        cmocka_unit_test(a_pass_of_the_other_algorithm_is_refused_though_its_own_key_signed_it),
        cmocka_unit_test(a_change_of_the_algorithm_by_a_rotation_ends_no_pass_and_changes_no_byte),
        cmocka_unit_test(the_public_key_as_an_hmac_secret_opens_nothing),
        cmocka_unit_test(a_header_that_is_not_ours_to_the_byte_is_refused_though_signed),
        cmocka_unit_test(claims_that_are_wrong_are_refused_though_signed),
        cmocka_unit_test(no_bit_of_an_eddsa_pass_can_be_flipped),
        cmocka_unit_test(an_eddsa_pass_cut_or_extended_anywhere_is_refused),
        cmocka_unit_test(the_other_spelling_of_a_signature_is_refused),
        cmocka_unit_test(a_token_of_100_kilobytes_is_refused),
        cmocka_unit_test(none_of_many_random_or_mutated_eddsa_passes_is_accepted),
        cmocka_unit_test(an_eddsa_pass_is_valid_from_a_minute_before_iat_until_exp_cached_or_not),
        cmocka_unit_test(a_pass_with_nbf_is_not_valid_before_it),
        cmocka_unit_test(a_verified_pass_is_not_checked_again),
        cmocka_unit_test(the_cache_has_no_say_over_hs256_or_over_claims),
        cmocka_unit_test(each_fault_is_told_by_its_own_sentence),
        cmocka_unit_test(a_pass_of_a_ticket_has_a_place_and_a_minted_one_has_none),
    };
    return cmocka_run_group_tests_name("pass", tests, ring_setup, ring_teardown);
}
