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
 * The ring holds these states only, never a secret; OpenSSL cleanses them when they are freed.
 */
#include "token/keyring.h"

#include "base/ascii.h"
#include "base/must.h"
#include "base/words.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_SIZE   32
#define BLOCK_SIZE 64 /* of SHA-256 */

/* SHA-256 after the inner and after the outer pad of one key. */
struct mac_state {
    EVP_MD_CTX *inner, *outer;
};

struct keyring {
    EVP_MD *sha256;
    EVP_MD_CTX *work;
    uint8_t signing_id;
    bool is_listed[256];
    /* By purpose and key id. Sparse, but a look-up is one step and 255 ids are what a byte can say. */
    struct mac_state states[KEY_PURPOSE_COUNT][256];
};

/* One line of the file that holds a key. */
struct entry {
    uint8_t id;
    struct span secret;
};

struct entries {
    struct entry list[KEYRING_KEYS_MAX + 1]; /* one more for the holder line */
    size_t count;
    size_t key_count;   /* without the holder line */
    struct span holder; /* the secret of the holder key */
    bool has_holder_line;
};

static bool entries_parse(struct span text, struct entries *entries, char *reason);
static const char *entry_parse(struct span line, struct entry *entry);
static const char *entries_add(struct entries *entries, struct entry entry);
static bool keyring_prepare(struct keyring *ring, const struct entries *entries);
static bool state_prepare(struct keyring *ring, enum key_purpose purpose, uint8_t id, struct span secret);
static bool key_derive(struct span secret, const char *info, uint8_t key[KEY_SIZE]);
static EVP_MD_CTX *pad_digest(const EVP_MD *sha256, const uint8_t key[KEY_SIZE], uint8_t pad);
static bool id_parse(struct span text, uint8_t *id);

static const char *const infos[KEY_PURPOSE_COUNT] = {
#define KEY_PURPOSE_INFO(name, info) [KEY_##name] = (info),
    KEY_PURPOSE_LIST(KEY_PURPOSE_INFO)
#undef KEY_PURPOSE_INFO
};

struct keyring *keyring_new(struct span text, char reason[KEYRING_REASON_MAX])
{
    struct entries entries = {0};
    if (!entries_parse(text, &entries, reason))
        return NULL;
    struct keyring *ring = calloc(1, sizeof(*ring));
    if (ring == NULL || !keyring_prepare(ring, &entries)) {
        snprintf(reason, KEYRING_REASON_MAX,
                 "the keys cannot be derived: out of memory, or OpenSSL has no HKDF or SHA-256");
        keyring_free(ring);
        return NULL;
    }
    return ring;
}

void keyring_free(struct keyring *ring)
{
    if (ring == NULL)
        return;
    for (int purpose = 0; purpose < KEY_PURPOSE_COUNT; purpose++)
        for (int id = 0; id < 256; id++) {
            EVP_MD_CTX_free(ring->states[purpose][id].inner);
            EVP_MD_CTX_free(ring->states[purpose][id].outer);
        }
    EVP_MD_CTX_free(ring->work);
    EVP_MD_free(ring->sha256);
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

bool keyring_mac(struct keyring *ring, enum key_purpose purpose, uint8_t id, const void *data, size_t len,
                 uint8_t out[KEYRING_MAC_SIZE])
{
    must((unsigned)purpose < KEY_PURPOSE_COUNT);
    const struct mac_state *state = &ring->states[purpose][id];
    if (state->inner == NULL)
        return false;
    /* These fail only where a hundred bytes cannot be had, and what is not a MAC must never leave here. */
    unsigned size = 0;
    must(EVP_MD_CTX_copy_ex(ring->work, state->inner) == 1);
    must(EVP_DigestUpdate(ring->work, data, len) == 1);
    must(EVP_DigestFinal_ex(ring->work, out, &size) == 1 && size == KEYRING_MAC_SIZE);
    must(EVP_MD_CTX_copy_ex(ring->work, state->outer) == 1);
    must(EVP_DigestUpdate(ring->work, out, KEYRING_MAC_SIZE) == 1);
    must(EVP_DigestFinal_ex(ring->work, out, &size) == 1 && size == KEYRING_MAC_SIZE);
    return true;
}

static bool entries_parse(struct span text, struct entries *entries, char *reason)
{
    struct span line;
    unsigned number = 0;
    while (words_next_line(&text, &number, &line)) {
        struct entry entry;
        const char *problem = entry_parse(line, &entry);
        if (problem == NULL)
            problem = entries_add(entries, entry);
        if (problem != NULL) {
            snprintf(reason, KEYRING_REASON_MAX, "line %u: %s", number, problem);
            return false;
        }
    }
    if (entries->key_count == 0) {
        snprintf(reason, KEYRING_REASON_MAX,
                 "there is no key: write a line with a number from 1 to 255, a space and a secret");
        return false;
    }
    return true;
}

/* NULL, or what is wrong with the line. */
static const char *entry_parse(struct span line, struct entry *entry)
{
    struct span id = words_take(&line);
    entry->secret = words_take(&line);
    entry->id = KEYRING_HOLDER_ID;
    if (!span_equal(id, SPAN("holder")) && !id_parse(id, &entry->id))
        return "a key begins with its id, a number from 1 to 255, or with the word holder";
    if (words_take(&line).len != 0)
        return "a key is an id and a secret, and nothing else";
    if (entry->secret.len < KEYRING_SECRET_MIN)
        return "the secret is too short: it needs at least 32 characters";
    if (entry->secret.len > KEYRING_SECRET_MAX)
        return "the secret is too long: it may have 256 characters";
    return ascii_all_visible(entry->secret) ? NULL : "the secret has a character that is not printable ASCII";
}

/* NULL, or why the entry cannot stand beside the others. */
static const char *entries_add(struct entries *entries, struct entry entry)
{
    bool is_holder = entry.id == KEYRING_HOLDER_ID;
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->list[i].id == entry.id)
            return is_holder ? "there is a holder line already" : "the id is taken by an earlier line";
        if (span_equal(entries->list[i].secret, entry.secret))
            return "the secret is that of an earlier line";
    }
    if (!is_holder && entries->key_count == KEYRING_KEYS_MAX)
        return "there are more than 8 keys";
    must(entries->count <= KEYRING_KEYS_MAX);
    entries->list[entries->count++] = entry;
    entries->key_count += is_holder ? 0 : 1;
    if (is_holder || !entries->has_holder_line)
        entries->holder = entry.secret;
    entries->has_holder_line = entries->has_holder_line || is_holder;
    return NULL;
}

static bool keyring_prepare(struct keyring *ring, const struct entries *entries)
{
    ring->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    ring->work = EVP_MD_CTX_new();
    if (ring->sha256 == NULL || ring->work == NULL)
        return false;
    for (size_t i = 0; i < entries->count; i++) {
        const struct entry *entry = &entries->list[i];
        if (entry->id == KEYRING_HOLDER_ID)
            continue;
        if (ring->signing_id == 0)
            ring->signing_id = entry->id;
        ring->is_listed[entry->id] = true;
        for (int purpose = 0; purpose < KEY_PURPOSE_COUNT; purpose++)
            if (purpose != KEY_HOLDER && !state_prepare(ring, purpose, entry->id, entry->secret))
                return false;
    }
    return state_prepare(ring, KEY_HOLDER, KEYRING_HOLDER_ID, entries->holder);
}

static bool state_prepare(struct keyring *ring, enum key_purpose purpose, uint8_t id, struct span secret)
{
    struct mac_state *state = &ring->states[purpose][id];
    uint8_t key[KEY_SIZE];
    bool is_derived = key_derive(secret, infos[purpose], key);
    if (is_derived) {
        state->inner = pad_digest(ring->sha256, key, 0x36);
        state->outer = pad_digest(ring->sha256, key, 0x5C);
    }
    OPENSSL_cleanse(key, sizeof(key));
    return is_derived && state->inner != NULL && state->outer != NULL;
}

static bool key_derive(struct span secret, const char *info, uint8_t key[KEY_SIZE])
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    size_t size = KEY_SIZE;
    bool is_derived =
        context != NULL && EVP_PKEY_derive_init(context) == 1 &&
        EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1 &&
        EVP_PKEY_CTX_set1_hkdf_key(context, (const uint8_t *)secret.data, (int)secret.len) == 1 &&
        EVP_PKEY_CTX_add1_hkdf_info(context, (const uint8_t *)info, (int)strlen(info)) == 1 &&
        EVP_PKEY_derive(context, key, &size) == 1 && size == KEY_SIZE;
    EVP_PKEY_CTX_free(context);
    return is_derived;
}

/* SHA-256 having read the key, padded with zeros and XORed with `pad` (RFC 2104); NULL without memory. */
static EVP_MD_CTX *pad_digest(const EVP_MD *sha256, const uint8_t key[KEY_SIZE], uint8_t pad)
{
    uint8_t block[BLOCK_SIZE];
    for (size_t i = 0; i < BLOCK_SIZE; i++)
        block[i] = (i < KEY_SIZE ? key[i] : 0) ^ pad;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool is_ready = digest != NULL && EVP_DigestInit_ex2(digest, sha256, NULL) == 1 &&
                    EVP_DigestUpdate(digest, block, sizeof(block)) == 1;
    OPENSSL_cleanse(block, sizeof(block));
    if (is_ready)
        return digest;
    EVP_MD_CTX_free(digest);
    return NULL;
}

/* A number from 1 to 255 in its one spelling, without leading zeros. */
static bool id_parse(struct span text, uint8_t *id)
{
    unsigned number = 0;
    if (text.len < 1 || text.len > 3 || text.data[0] == '0')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (unsigned)(text.data[i] - '0');
    }
    *id = (uint8_t)number;
    return number <= 255;
}
