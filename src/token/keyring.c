/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every request verifies a MAC, so what can be prepared is: HMAC is SHA-256 over (inner pad, data) and again
 * over (outer pad, that), and the state after each pad depends on the key alone. Both states are kept for
 * each key and purpose, and a MAC copies them into one working context. Measured on OpenSSL 3.0 for 100 bytes
 * with SHA instructions:
 *
 *     EVP_MD_CTX_copy_ex of the two prepared states     185 ns
 *     EVP_MAC_init with a NULL key (reuse the context)  243 ns
 *     EVP_MAC_CTX_dup of a prepared context             505 ns
 *     HMAC() from the key                              1095 ns
 *
 * Ed25519 has nothing of the kind to prepare: a signature takes tens of microseconds and a check more than a
 * hundred, which is what pass_cache.c is for.
 *
 * The ring holds these states and the Ed25519 keys, never a secret; OpenSSL cleanses them when they are freed.
 */
#include "token/keyring.h"

#include "base/must.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_SIZE   64 /* of SHA-256 */
#define ED25519_SIZE 64 /* of a signature */
#define TIERS        2

_Static_assert(ED25519_SIZE <= KEYRING_SIGNATURE_MAX && KEYRING_MAC_SIZE <= KEYRING_SIGNATURE_MAX,
               "every signature fits");

/* SHA-256 after the inner and after the outer pad of one key. */
struct mac_state {
    EVP_MD_CTX *inner, *outer;
};

/* Beside the HMAC states of its purpose. */
struct pass_key {
    enum key_algorithm algorithm;
    bool is_given;
    EVP_PKEY *ed25519;
    uint8_t public_key[KEYRING_KEY_SIZE];
};

struct keyring {
    EVP_MD *sha256;
    EVP_MD_CTX *work, *signer;
    uint8_t signing_id;
    uint8_t ids[SECRET_KEYS_MAX];
    size_t id_count;
    bool is_listed[256];
    /* By purpose and key id. Sparse, but a look-up is one step and 255 ids are what a byte can say. */
    struct mac_state states[KEY_PURPOSE_COUNT][256];
    struct pass_key passes[TIERS][256];
    /* What tells a secret of the file, when somebody gives it as a pass key. */
    uint8_t marks[SECRET_KEYS_MAX + 1][KEYRING_MAC_SIZE];
    size_t mark_count;
};

static bool keyring_prepare(struct keyring *ring, const struct secret_file *file);
static bool keyring_add(struct keyring *ring, uint8_t id, struct span secret);
static bool state_derive(struct keyring *ring, enum key_purpose purpose, uint8_t id, struct span secret);
static bool state_make(const struct keyring *ring, struct span key, struct mac_state *state);
static void state_free(struct mac_state *state);
static void state_mac(struct keyring *ring, const struct mac_state *state, const void *data, size_t len,
                      uint8_t out[KEYRING_MAC_SIZE]);
static bool ed25519_derive(struct pass_key *key, const char *info, struct span secret);
static bool key_derive(struct span secret, const char *info, uint8_t key[KEYRING_KEY_SIZE]);
static EVP_MD_CTX *pad_digest(const EVP_MD *sha256, const uint8_t block[BLOCK_SIZE], uint8_t pad);
static enum key_purpose purpose_of(int tier);
static const struct pass_key *pass_key_find(const struct keyring *ring, int tier, uint8_t id);
static struct pass_key *pass_key_of(struct keyring *ring, int tier, uint8_t id);
static const char *given_problem(struct keyring *ring, int tier, const struct mac_state *state);
static bool is_of_other_purpose(struct keyring *ring, int tier, const uint8_t mark[KEYRING_MAC_SIZE]);
static void mark_make(struct keyring *ring, const struct mac_state *state, uint8_t out[KEYRING_MAC_SIZE]);
static void ed25519_sign(struct keyring *ring, const struct pass_key *key, struct span data,
                         uint8_t out[ED25519_SIZE]);
static bool ed25519_check(struct keyring *ring, const struct pass_key *key, struct span data,
                          struct span signature);

static const char *const infos[KEY_PURPOSE_COUNT] = {
#define KEY_PURPOSE_INFO(name, info) [KEY_##name] = (info),
    KEY_PURPOSE_LIST(KEY_PURPOSE_INFO)
#undef KEY_PURPOSE_INFO
};

static const char *const ed25519_infos[TIERS] = {"weir pass 1 ed25519", "weir pass 2 ed25519"};

struct keyring *keyring_new(struct span text, char reason[KEYRING_REASON_MAX])
{
    struct secret_file file;
    if (!secret_file_read(text, &file, reason))
        return NULL;
    struct keyring *ring = calloc(1, sizeof(*ring));
    if (ring == NULL || !keyring_prepare(ring, &file)) {
        snprintf(reason, KEYRING_REASON_MAX,
                 "the keys cannot be derived: out of memory, or OpenSSL has no HKDF, SHA-256 or Ed25519");
        keyring_free(ring);
        return NULL;
    }
    return ring;
}

void keyring_free(struct keyring *ring)
{
    if (ring == NULL)
        return;
    for (int id = 0; id < 256; id++) {
        for (int purpose = 0; purpose < KEY_PURPOSE_COUNT; purpose++)
            state_free(&ring->states[purpose][id]);
        for (int tier = 0; tier < TIERS; tier++)
            EVP_PKEY_free(ring->passes[tier][id].ed25519);
    }
    EVP_MD_CTX_free(ring->work);
    EVP_MD_CTX_free(ring->signer);
    EVP_MD_free(ring->sha256);
    OPENSSL_cleanse(ring, sizeof(*ring));
    free(ring);
}

uint8_t keyring_signing_id(const struct keyring *ring)
{
    return ring->signing_id;
}

bool keyring_has(const struct keyring *ring, uint8_t id)
{
    return ring->is_listed[id];
}

uint8_t keyring_id_at(const struct keyring *ring, size_t index)
{
    return index < ring->id_count ? ring->ids[index] : 0;
}

bool keyring_mac(struct keyring *ring, enum key_purpose purpose, uint8_t id, const void *data, size_t len,
                 uint8_t out[KEYRING_MAC_SIZE])
{
    must((unsigned)purpose < KEY_PURPOSE_COUNT);
    const struct mac_state *state = &ring->states[purpose][id];
    if (state->inner == NULL)
        return false;
    state_mac(ring, state, data, len, out);
    return true;
}

/* These fail only where a hundred bytes cannot be had, and what is not a MAC must never leave here. */
static void state_mac(struct keyring *ring, const struct mac_state *state, const void *data, size_t len,
                      uint8_t out[KEYRING_MAC_SIZE])
{
    unsigned size = 0;
    must(EVP_MD_CTX_copy_ex(ring->work, state->inner) == 1);
    must(EVP_DigestUpdate(ring->work, data, len) == 1);
    must(EVP_DigestFinal_ex(ring->work, out, &size) == 1 && size == KEYRING_MAC_SIZE);
    must(EVP_MD_CTX_copy_ex(ring->work, state->outer) == 1);
    must(EVP_DigestUpdate(ring->work, out, KEYRING_MAC_SIZE) == 1);
    must(EVP_DigestFinal_ex(ring->work, out, &size) == 1 && size == KEYRING_MAC_SIZE);
}

/* ---- making the ring ---- */

static bool keyring_prepare(struct keyring *ring, const struct secret_file *file)
{
    ring->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    ring->work = EVP_MD_CTX_new();
    ring->signer = EVP_MD_CTX_new();
    if (ring->sha256 == NULL || ring->work == NULL || ring->signer == NULL)
        return false;
    for (size_t i = 0; i < file->count; i++) {
        struct mac_state secret;
        bool is_made = state_make(ring, file->list[i].secret, &secret);
        if (is_made)
            mark_make(ring, &secret, ring->marks[ring->mark_count++]);
        state_free(&secret);
        if (!is_made || !keyring_add(ring, file->list[i].id, file->list[i].secret))
            return false;
    }
    ring->signing_id = secret_file_signing(file)->id;
    return state_derive(ring, KEY_HOLDER, KEYRING_HOLDER_ID, secret_file_holder(file)->secret);
}

static bool keyring_add(struct keyring *ring, uint8_t id, struct span secret)
{
    if (id == KEYRING_HOLDER_ID)
        return true;
    must(ring->id_count < SECRET_KEYS_MAX);
    ring->ids[ring->id_count++] = id;
    ring->is_listed[id] = true;
    for (int purpose = 0; purpose < KEY_PURPOSE_COUNT; purpose++)
        if (purpose != KEY_HOLDER && !state_derive(ring, purpose, id, secret))
            return false;
    for (int tier = 0; tier < TIERS; tier++)
        if (!ed25519_derive(&ring->passes[tier][id], ed25519_infos[tier], secret))
            return false;
    return true;
}

static bool state_derive(struct keyring *ring, enum key_purpose purpose, uint8_t id, struct span secret)
{
    uint8_t key[KEYRING_KEY_SIZE];
    bool is_made =
        key_derive(secret, infos[purpose], key) &&
        state_make(ring, (struct span){(const char *)key, sizeof(key)}, &ring->states[purpose][id]);
    OPENSSL_cleanse(key, sizeof(key));
    return is_made;
}

/* The states of any HMAC key (RFC 2104): one that is longer than a block is hashed first. */
static bool state_make(const struct keyring *ring, struct span key, struct mac_state *state)
{
    uint8_t block[BLOCK_SIZE] = {0};
    bool is_short = key.len <= BLOCK_SIZE;
    *state = (struct mac_state){NULL, NULL};
    if (is_short)
        memcpy(block, key.data, key.len);
    if (is_short || EVP_Digest(key.data, key.len, block, NULL, ring->sha256, NULL) == 1) {
        state->inner = pad_digest(ring->sha256, block, 0x36);
        state->outer = pad_digest(ring->sha256, block, 0x5C);
    }
    OPENSSL_cleanse(block, sizeof(block));
    if (state->inner != NULL && state->outer != NULL)
        return true;
    state_free(state);
    return false;
}

static void state_free(struct mac_state *state)
{
    EVP_MD_CTX_free(state->inner);
    EVP_MD_CTX_free(state->outer);
    *state = (struct mac_state){NULL, NULL};
}

/* SHA-256 having read the key's block XORed with `pad`; NULL without memory. */
static EVP_MD_CTX *pad_digest(const EVP_MD *sha256, const uint8_t block[BLOCK_SIZE], uint8_t pad)
{
    uint8_t padded[BLOCK_SIZE];
    for (size_t i = 0; i < BLOCK_SIZE; i++)
        padded[i] = block[i] ^ pad;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool is_ready = digest != NULL && EVP_DigestInit_ex2(digest, sha256, NULL) == 1 &&
                    EVP_DigestUpdate(digest, padded, sizeof(padded)) == 1;
    OPENSSL_cleanse(padded, sizeof(padded));
    if (is_ready)
        return digest;
    EVP_MD_CTX_free(digest);
    return NULL;
}

static bool ed25519_derive(struct pass_key *key, const char *info, struct span secret)
{
    uint8_t seed[KEYRING_KEY_SIZE];
    size_t size = sizeof(key->public_key);
    if (key_derive(secret, info, seed))
        key->ed25519 = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
    OPENSSL_cleanse(seed, sizeof(seed));
    return key->ed25519 != NULL && EVP_PKEY_get_raw_public_key(key->ed25519, key->public_key, &size) == 1 &&
           size == sizeof(key->public_key);
}

static bool key_derive(struct span secret, const char *info, uint8_t key[KEYRING_KEY_SIZE])
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    size_t size = KEYRING_KEY_SIZE;
    bool is_derived =
        context != NULL && EVP_PKEY_derive_init(context) == 1 &&
        EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1 &&
        EVP_PKEY_CTX_set1_hkdf_key(context, (const uint8_t *)secret.data, (int)secret.len) == 1 &&
        EVP_PKEY_CTX_add1_hkdf_info(context, (const uint8_t *)info, (int)strlen(info)) == 1 &&
        EVP_PKEY_derive(context, key, &size) == 1 && size == KEYRING_KEY_SIZE;
    EVP_PKEY_CTX_free(context);
    return is_derived;
}

bool keyring_derive(struct span secret, int tier, uint8_t out[KEYRING_KEY_SIZE])
{
    return key_derive(secret, infos[purpose_of(tier)], out);
}

/* ---- keys of passes ---- */

bool keyring_set_algorithm(struct keyring *ring, int tier, uint8_t id, enum key_algorithm algorithm)
{
    struct pass_key *key = pass_key_of(ring, tier, id);
    must((unsigned)algorithm < KEY_ALGORITHM_COUNT);
    if (key->is_given && algorithm != KEY_HS256)
        return false;
    key->algorithm = algorithm;
    return true;
}

enum key_algorithm keyring_algorithm(const struct keyring *ring, int tier, uint8_t id)
{
    return pass_key_find(ring, tier, id)->algorithm;
}

static const struct pass_key *pass_key_find(const struct keyring *ring, int tier, uint8_t id)
{
    must(tier >= 1 && tier <= TIERS);
    return &ring->passes[tier - 1][id];
}

static struct pass_key *pass_key_of(struct keyring *ring, int tier, uint8_t id)
{
    must(tier >= 1 && tier <= TIERS && keyring_has(ring, id));
    return &ring->passes[tier - 1][id];
}

static enum key_purpose purpose_of(int tier)
{
    must(tier >= 1 && tier <= TIERS);
    return tier == 1 ? KEY_PASS_1 : KEY_PASS_2;
}

bool keyring_give(struct keyring *ring, int tier, uint8_t id, struct span key,
                  char reason[KEYRING_REASON_MAX])
{
    struct pass_key *pass = pass_key_of(ring, tier, id);
    struct mac_state state = {NULL, NULL};
    const char *problem = NULL;
    if (key.len < KEYRING_GIVEN_MIN)
        problem = "the key is too short: it needs at least 32 bytes";
    else if (key.len > KEYRING_GIVEN_MAX)
        problem = "the key is too long: it may have 1024 bytes";
    else if (pass->algorithm != KEY_HS256)
        problem = "passes of this tier and id are EdDSA, and a given key is for HS256";
    else
        problem = state_make(ring, key, &state) ? given_problem(ring, tier, &state) : "out of memory";
    if (problem != NULL) {
        snprintf(reason, KEYRING_REASON_MAX, "%s", problem);
        state_free(&state);
        return false;
    }
    state_free(&ring->states[purpose_of(tier)][id]);
    ring->states[purpose_of(tier)][id] = state;
    pass->is_given = true;
    return true;
}

/*
 * Keys are compared by what they make of one text. That is the very thing that matters, for HMAC takes several
 * keys for the same one (zeros at the end of a short key say nothing); and the ring has no key to compare.
 */
static void mark_make(struct keyring *ring, const struct mac_state *state, uint8_t out[KEYRING_MAC_SIZE])
{
    static const char text[] = "weir key mark";
    state_mac(ring, state, text, sizeof(text) - 1, out);
}

static const char *given_problem(struct keyring *ring, int tier, const struct mac_state *state)
{
    uint8_t mark[KEYRING_MAC_SIZE];
    mark_make(ring, state, mark);
    for (size_t i = 0; i < ring->mark_count; i++)
        if (CRYPTO_memcmp(ring->marks[i], mark, sizeof(mark)) == 0)
            return "the key is a secret of the secret file, which is for deriving keys alone";
    return is_of_other_purpose(ring, tier, mark)
               ? "the key serves another purpose already: each needs its own"
               : NULL;
}

static bool is_of_other_purpose(struct keyring *ring, int tier, const uint8_t mark[KEYRING_MAC_SIZE])
{
    uint8_t other[KEYRING_MAC_SIZE];
    for (int purpose = 0; purpose < KEY_PURPOSE_COUNT; purpose++)
        for (int id = 0; id < 256; id++) {
            const struct mac_state *state = &ring->states[purpose][id];
            if (state->inner == NULL || purpose == (int)purpose_of(tier))
                continue;
            mark_make(ring, state, other);
            if (CRYPTO_memcmp(other, mark, sizeof(other)) == 0)
                return true;
        }
    return false;
}

size_t keyring_sign(struct keyring *ring, int tier, uint8_t id, struct span data,
                    uint8_t out[KEYRING_SIGNATURE_MAX])
{
    const struct pass_key *key = pass_key_find(ring, tier, id);
    if (key->algorithm == KEY_HS256)
        return keyring_mac(ring, purpose_of(tier), id, data.data, data.len, out) ? KEYRING_MAC_SIZE : 0;
    ed25519_sign(ring, key, data, out);
    return ED25519_SIZE;
}

bool keyring_check(struct keyring *ring, int tier, uint8_t id, struct span data, struct span signature)
{
    const struct pass_key *key = pass_key_find(ring, tier, id);
    uint8_t mac[KEYRING_MAC_SIZE];
    if (key->algorithm == KEY_EDDSA)
        return ed25519_check(ring, key, data, signature);
    return signature.len == sizeof(mac) &&
           keyring_mac(ring, purpose_of(tier), id, data.data, data.len, mac) &&
           CRYPTO_memcmp(signature.data, mac, sizeof(mac)) == 0;
}

static void ed25519_sign(struct keyring *ring, const struct pass_key *key, struct span data,
                         uint8_t out[ED25519_SIZE])
{
    size_t size = ED25519_SIZE;
    EVP_MD_CTX_reset(ring->signer);
    must(EVP_DigestSignInit(ring->signer, NULL, NULL, NULL, key->ed25519) == 1);
    must(EVP_DigestSign(ring->signer, out, &size, (const uint8_t *)data.data, data.len) == 1);
    must(size == ED25519_SIZE);
}

/* What OpenSSL says of a forgery is nobody's error: nginx would find it in the queue and log it for its own. */
static bool ed25519_check(struct keyring *ring, const struct pass_key *key, struct span data,
                          struct span signature)
{
    if (signature.len != ED25519_SIZE)
        return false;
    EVP_MD_CTX_reset(ring->signer);
    must(EVP_DigestVerifyInit(ring->signer, NULL, NULL, NULL, key->ed25519) == 1);
    ERR_set_mark();
    int rc = EVP_DigestVerify(ring->signer, (const uint8_t *)signature.data, signature.len,
                              (const uint8_t *)data.data, data.len);
    ERR_pop_to_mark();
    return rc == 1;
}

bool keyring_public(const struct keyring *ring, int tier, uint8_t id, uint8_t out[KEYRING_KEY_SIZE])
{
    const struct pass_key *key = pass_key_find(ring, tier, id);
    if (key->algorithm != KEY_EDDSA)
        return false;
    memcpy(out, key->public_key, sizeof(key->public_key));
    return true;
}
