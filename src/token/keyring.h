/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_KEYRING_H
#define WEIR_TOKEN_KEYRING_H

/*
 * The keys of a server: from each secret one key per purpose, so that a token of one kind can never pass for
 * another.
 *
 * The secret file, one key a line; blank lines and lines that begin with '#' do not count:
 *
 *     2 SECRET          the first key signs; every key listed verifies
 *     1 SECRET
 *     holder SECRET     optional, see below
 *
 * An id is a number from 1 to 255. A secret is 32 to 256 printable ASCII characters without a space; use at
 * least 128 random bits. At most 8 keys; no id and no secret twice.
 *
 * Rotation. Put the new key first and keep the old line while its tokens live: both verify.
 *
 * The holder key names people: a holder is a keyed hash of an identity, and one identity must stay one holder
 * while its tickets live, or a visitor who joins again after a rotation would get a second place. So the
 * holder key does not follow the signing key: it comes from the `holder` line if there is one, else from the
 * *last* key of the file. Adding a new key in front therefore changes no holder. When the old key goes, write
 * the word `holder` over its id instead of deleting the line: it then neither signs nor verifies, and the
 * holders stay as they are. Delete the line for good when nobody waits: every identity gets a new holder.
 *
 * The key of a purpose is HKDF-SHA256 (RFC 5869) of the secret's characters, without salt, 32 bytes, with the
 * info of the table. The MAC is HMAC-SHA256.
 */

#include "base/span.h"

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

#define KEYRING_KEYS_MAX   8
#define KEYRING_SECRET_MIN 32
#define KEYRING_SECRET_MAX 256
#define KEYRING_MAC_SIZE   32
#define KEYRING_REASON_MAX 160
#define KEYRING_HOLDER_ID  0 /* the id of the one holder key; no key of the file has it */

struct keyring;

/*
 * From the text of a secret file, which stays the caller's to cleanse. NULL if it is refused, with one
 * sentence why in `reason`, which never quotes the text. keyring_free() it, which also cleanses it; NULL is
 * fine there.
 */
struct keyring *keyring_new(struct span text, char reason[KEYRING_REASON_MAX]);
void keyring_free(struct keyring *ring);

/* The id of the key that signs new tokens. */
uint8_t keyring_signing_id(const struct keyring *ring);

/* Whether tokens of the key `id` verify. */
bool keyring_has(const struct keyring *ring, uint8_t id);

/*
 * The MAC of `data` under the key `id` of `purpose`; KEY_HOLDER has the one id KEYRING_HOLDER_ID, and no
 * other purpose has that one. False for an unknown id.
 *
 * Not thread-safe, since the ring has one working context: one ring for each worker process (a fork copies
 * it), and none in a thread pool.
 */
bool keyring_mac(struct keyring *ring, enum key_purpose purpose, uint8_t id, const void *data, size_t len,
                 uint8_t out[KEYRING_MAC_SIZE]);

#endif
