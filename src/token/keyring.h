/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_KEYRING_H
#define WEIR_TOKEN_KEYRING_H

/*
 * The keys of a server: from each secret of the secret file (see secret_file.h) one key per purpose, so that a
 * token of one kind can never pass for another.
 *
 * The key of a purpose is HKDF-SHA256 (RFC 5869) of the secret's characters, without salt, 32 bytes, with the
 * info of the table. The MAC is HMAC-SHA256.
 *
 * Passes may be signed with Ed25519 (RFC 8032) instead. Its seed is derived in the same way, with the info
 * "weir pass 1 ed25519" or "weir pass 2 ed25519": never from the key that a service may have been given to
 * verify HS256. So it has the id of its secret and is rotated with it.
 *
 * Each key of passes has one algorithm (RFC 8725, 3.1). It is set here, and no token has a say in it.
 */

#include "base/span.h"
#include "token/secret_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PURPOSE(name, HKDF info) */
#define KEY_PURPOSE_LIST(PURPOSE)    \
    PURPOSE(TICKET, "weir ticket")   \
    PURPOSE(PASS_1, "weir pass 1")   \
    PURPOSE(PASS_2, "weir pass 2")   \
    PURPOSE(VISITOR, "weir visitor") \
    PURPOSE(HOLDER, "weir holder")

enum key_purpose {
#define KEY_PURPOSE_ENUM(name, info) KEY_##name,
    KEY_PURPOSE_LIST(KEY_PURPOSE_ENUM)
#undef KEY_PURPOSE_ENUM
        KEY_PURPOSE_COUNT
};

/* ALGORITHM(name, as directives and the command line write it, `alg` of a JWT) */
#define KEY_ALGORITHM_LIST(ALGORITHM)  \
    ALGORITHM(HS256, "hs256", "HS256") \
    ALGORITHM(EDDSA, "eddsa", "EdDSA")

enum key_algorithm {
#define KEY_ALGORITHM_ENUM(name, word, alg) KEY_##name,
    KEY_ALGORITHM_LIST(KEY_ALGORITHM_ENUM)
#undef KEY_ALGORITHM_ENUM
        KEY_ALGORITHM_COUNT
};

#define KEYRING_MAC_SIZE      32
#define KEYRING_KEY_SIZE      32 /* of a derived key, and of an Ed25519 public key */
#define KEYRING_SIGNATURE_MAX 64 /* bytes: 32 of HS256, 64 of EdDSA */
#define KEYRING_GIVEN_MIN     32 /* bytes of a pass key that the operator gives */
#define KEYRING_GIVEN_MAX     1024
#define KEYRING_REASON_MAX    SECRET_REASON_MAX
#define KEYRING_HOLDER_ID     SECRET_HOLDER_ID /* the id of the one holder key; no key of the file has it */

struct keyring;

/*
 * From the text of a secret file, which stays the caller's to cleanse. All passes are HS256. NULL if it is
 * refused, with one sentence why in `reason`, which never quotes the text. keyring_free() it, which also
 * cleanses it; NULL is fine there.
 */
struct keyring *keyring_new(struct span text, char reason[KEYRING_REASON_MAX]);
void keyring_free(struct keyring *ring);

/* The id of the key that signs new tokens. */
uint8_t keyring_signing_id(const struct keyring *ring);

/* Whether tokens of the key `id` verify. */
bool keyring_has(const struct keyring *ring, uint8_t id);

/* The ids in the order of the file: 0 at `index` past the last. */
uint8_t keyring_id_at(const struct keyring *ring, size_t index);

/*
 * The MAC of `data` under the key `id` of `purpose`; KEY_HOLDER has the one id KEYRING_HOLDER_ID, and no
 * other purpose has that one. False for an unknown id.
 *
 * Not thread-safe, since the ring has one working context: one ring for each worker process (a fork copies
 * it), and none in a thread pool.
 */
bool keyring_mac(struct keyring *ring, enum key_purpose purpose, uint8_t id, const void *data, size_t len,
                 uint8_t out[KEYRING_MAC_SIZE]);

/* ---- keys of passes: by tier (1 or 2) and id ---- */

/*
 * What the passes of this key are signed with, from now on. The ring must have the id. False if the key was
 * given (keyring_give) and is thus for HS256 alone.
 */
bool keyring_set_algorithm(struct keyring *ring, int tier, uint8_t id, enum key_algorithm algorithm);
enum key_algorithm keyring_algorithm(const struct keyring *ring, int tier, uint8_t id);

/*
 * Takes an HS256 key that the operator's services verify with already, instead of the derived one. The bytes
 * stay the caller's to cleanse. False, with one sentence in `reason`, for a key that is too short or too long,
 * that serves another purpose in this ring or is a secret of its file, or for an id whose passes are EdDSA.
 * The ring must have the id.
 */
bool keyring_give(struct keyring *ring, int tier, uint8_t id, struct span key,
                  char reason[KEYRING_REASON_MAX]);

/* Signs with the algorithm of the key: the same data always gives the same bytes. Their number; 0: unknown id. */
size_t keyring_sign(struct keyring *ring, int tier, uint8_t id, struct span data,
                    uint8_t out[KEYRING_SIGNATURE_MAX]);

/* Whether keyring_sign would give, or for EdDSA could have given, this signature. */
bool keyring_check(struct keyring *ring, int tier, uint8_t id, struct span data, struct span signature);

/* The public key, if the passes of this key are EdDSA; false: they are not, or the id is unknown. */
bool keyring_public(const struct keyring *ring, int tier, uint8_t id, uint8_t out[KEYRING_KEY_SIZE]);

/*
 * The HS256 pass key that keyring_new derives from a secret, for a service that is to verify passes itself: it
 * can then make passes too. The caller cleanses it. False: OpenSSL has no HKDF, or there is no memory.
 */
bool keyring_derive(struct span secret, int tier, uint8_t out[KEYRING_KEY_SIZE]);

#endif
