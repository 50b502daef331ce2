/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * forge [TOKENS]: how many of ten million forgeries the verifier takes; the answer is 0, or a failure. A forger is given
 * passes of both tiers, both algorithms and two keys, and makes of them whatever can be made without a key: changed letters,
 * parts of different passes put together, other claims under an old signature, other headers, cuts and additions, and plain
 * chance. Each is shown to the verifiers of both tiers, which have a cache that knows the real ones.
 *
 * One in ten is an EdDSA pass: its check takes a hundred times as long.
 */

#include "base/must.h"
#include "token/pass.h"

#include <stdio.h>
#include <stdlib.h>

#define NOW        1700000100
#define REAL       64 /* of each algorithm */
#define FORGED_MAX 4096

static struct keyring *ring;
static struct pass_cache *cache;

struct pass {
    char text[PASS_TOKEN_MAX];
    size_t len;
};

static struct pass real[KEY_ALGORITHM_COUNT][REAL];

struct forged {
    char text[FORGED_MAX];
    size_t len;
};

static uint64_t random_state = 0x9E3779B97F4A7C15;

static uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

static size_t random_below(size_t bound)
{
    return random_bits() % bound;
}

static char random_letter(void)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=";
    return alphabet[random_below(sizeof(alphabet) - 1)];
}

/* ---- the real ones ---- */

/* Keys 1 (HS256) and 2 (EdDSA), and both once more as 3 and 4. */
static uint8_t key_of(enum key_algorithm algorithm, size_t i)
{
    return (uint8_t)((algorithm == KEY_EDDSA ? 2 : 1) + 2 * (i / 2 % 2));
}

static bool verify(int tier, struct span token)
{
    struct pass_claims claims;
    char scratch[PASS_SCRATCH_MAX];
    return pass_verify_cached(ring, cache, tier, token, NOW, &claims, scratch, sizeof(scratch));
}

static void real_make(enum key_algorithm algorithm, size_t i)
{
    char uid[24];
    struct pass *pass = &real[algorithm][i];
    struct pass_claims claims = {.key_id = key_of(algorithm, i),
                                 .tier = 1 + (int)(i % 2),
                                 .epoch = 1,
                                 .count = random_bits(),
                                 .iat_sec = NOW - 100,
                                 .exp_sec = NOW + 43200,
                                 .room = i % 3 == 0 ? SPAN("concert") : SPAN("shop"),
                                 .uid = {uid, (size_t)snprintf(uid, sizeof(uid), "user-%zu", i)}};
    pass->len = pass_sign(ring, &claims, pass->text, sizeof(pass->text));
    must(pass->len > 0 && verify(claims.tier, (struct span){pass->text, pass->len}));
}

static void start(void)
{
    char reason[KEYRING_REASON_MAX];
    ring = keyring_new(SPAN("1 0123456789abcdef0123456789abcdef\n2 another-secret-of-thirty-two-signs\n"
                            "3 0f1e2d3c4b5a69788796a5b4c3d2e1f0\n4 the-fourth-secret-is-long-enough-too"),
                       reason);
    cache = pass_cache_new(1024);
    must(ring != NULL && cache != NULL);
    for (int tier = 1; tier <= 2; tier++)
        for (uint8_t id = 2; id <= 4; id += 2)
            must(keyring_set_algorithm(ring, tier, id, KEY_EDDSA));
    for (size_t i = 0; i < REAL; i++) {
        real_make(KEY_HS256, i);
        real_make(KEY_EDDSA, i);
    }
}

/* ---- forgeries ---- */

static const struct pass *some(enum key_algorithm algorithm)
{
    return &real[algorithm][random_below(REAL)];
}

static struct span part(const struct pass *pass, int which)
{
    const char *first = memchr(pass->text, '.', pass->len);
    const char *second = memchr(first + 1, '.', pass->len - (size_t)(first + 1 - pass->text));
    const char *ends[] = {pass->text, first + 1, second + 1, pass->text + pass->len + 1};
    return (struct span){ends[which], (size_t)(ends[which + 1] - ends[which] - 1)};
}

static void put(struct forged *out, struct span text)
{
    must(text.len <= sizeof(out->text) - out->len);
    memcpy(out->text + out->len, text.data, text.len);
    out->len += text.len;
}

static void put_parts(struct forged *out, struct span header, struct span payload, struct span signature)
{
    put(out, header);
    put(out, SPAN("."));
    put(out, payload);
    put(out, SPAN("."));
    put(out, signature);
}

static void letters_changed(struct forged *out, enum key_algorithm algorithm)
{
    const struct pass *pass = some(algorithm);
    put(out, (struct span){pass->text, pass->len});
    for (size_t changes = 1 + random_below(4); changes > 0; changes--)
        out->text[random_below(out->len)] = random_letter();
}

static void bits_changed(struct forged *out, enum key_algorithm algorithm)
{
    const struct pass *pass = some(algorithm);
    put(out, (struct span){pass->text, pass->len});
    out->text[random_below(out->len)] ^= (char)(1 << random_below(8));
}

static void parts_mixed(struct forged *out, enum key_algorithm algorithm)
{
    put_parts(out, part(some(algorithm), 0), part(some((int)random_below(2)), 1), part(some(algorithm), 2));
}

/* A claim is another, spelled as we would spell it; the signature is the old one. */
static void claim_changed(struct forged *out, enum key_algorithm algorithm)
{
    static const char *const changes[][2] = {{"\"tier\":1", "\"tier\":2"},
                                             {"\"tier\":2", "\"tier\":1"},
                                             {"shop", "concert"},
                                             {"concert", "shop"},
                                             {"1700043300", "1800043300"},
                                             {"user-", "admin-"},
                                             {"weir", "Weir"},
                                             {"\"jti\":\"A", "\"jti\":\"B"}};
    const struct pass *pass = some(algorithm);
    char json[FORGED_MAX], changed[FORGED_MAX];
    size_t len, at = random_below(sizeof(changes) / sizeof(changes[0]));
    must(base64url_decode(part(pass, 1), json, sizeof(json) - 1, &len));
    json[len] = '\0';
    const char *from = strstr(json, changes[at][0]);
    if (from == NULL)
        len = (size_t)snprintf(changed, sizeof(changed), "%s ", json);
    else
        len = (size_t)snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(from - json), json, changes[at][1],
                               from + strlen(changes[at][0]));
    char text[BASE64URL_LEN(FORGED_MAX)];
    put_parts(out, part(pass, 0), (struct span){text, base64url_encode(changed, len, text, sizeof(text))},
              part(pass, 2));
}

static void header_changed(struct forged *out, enum key_algorithm algorithm)
{
    static const char *const algs[] = {"none", "HS256", "EdDSA", "HS512", "ES256", "RS256", "hs256", ""};
    const struct pass *pass = some(algorithm);
    char header[96], text[BASE64URL_LEN(sizeof(header))];
    int len = snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"%zu.%zu\",\"typ\":\"JWT\"}",
                       algs[random_below(8)], random_below(4), random_below(260));
    put_parts(out, (struct span){text, base64url_encode(header, (size_t)len, text, sizeof(text))},
              part(pass, 1), random_below(4) == 0 ? SPAN("") : part(pass, 2));
}

static void signature_guessed(struct forged *out, enum key_algorithm algorithm)
{
    const struct pass *pass = some(algorithm);
    char signature[96];
    struct span guessed = {signature, part(pass, 2).len};
    for (size_t i = 0; i < guessed.len; i++)
        signature[i] = random_letter();
    signature[guessed.len - 1] = 'A'; /* so that it is base64url more often than not */
    put_parts(out, part(pass, 0), part(pass, 1), guessed);
}

static void length_changed(struct forged *out, enum key_algorithm algorithm)
{
    const struct pass *pass = some(algorithm);
    bool is_cut = random_below(2) == 0;
    put(out, (struct span){pass->text, is_cut ? random_below(pass->len) : pass->len});
    for (size_t more = is_cut ? random_below(4) : 1 + random_below(FORGED_MAX - out->len); more > 0; more--)
        out->text[out->len++] = random_letter();
}

static void all_chance(struct forged *out, enum key_algorithm algorithm)
{
    size_t len = random_below(600);
    for (size_t i = 0; i < len; i++)
        out->text[out->len++] =
            random_below(2) == 0 || algorithm == KEY_EDDSA ? random_letter() : (char)random_bits();
}

static void (*const ways[])(struct forged *out, enum key_algorithm algorithm) = {
    letters_changed, bits_changed,      parts_mixed,    claim_changed,
    header_changed,  signature_guessed, length_changed, all_chance,
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static bool is_real(struct span token)
{
    for (int algorithm = 0; algorithm < KEY_ALGORITHM_COUNT; algorithm++)
        for (size_t i = 0; i < REAL; i++)
            if (span_equal(token, (struct span){real[algorithm][i].text, real[algorithm][i].len}))
                return true;
    return false;
}

int main(int argc, char *argv[])
{
    unsigned long long wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000, offered = 0, accepted = 0;
    static struct forged forged;

    start();
    for (unsigned long long i = 0; offered < wanted; i++) {
        forged.len = 0;
        ways[i % WAYS](&forged, i / WAYS % 10 == 0 ? KEY_EDDSA : KEY_HS256);
        struct span token = {forged.text, forged.len};
        bool is_accepted = verify(1, token) || verify(2, token);
        if (is_accepted && is_real(token)) /* three parts of the same pass, or a letter changed to itself */
            continue;
        offered++;
        accepted += is_accepted;
    }
    printf("forged passes offered: %llu tokens (no bar)\n", offered);
    printf("forged passes accepted: %llu tokens (bar at most 0)%s\n", accepted, accepted > 0 ? " below" : "");
    pass_cache_free(cache);
    keyring_free(ring);
    return accepted > 0;
}
