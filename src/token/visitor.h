/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_VISITOR_H
#define WEIR_TOKEN_VISITOR_H

/*
 * Who somebody is, to a room: the signed visitor cookie for people nobody vouches for, and the holder that a
 * visitor or a trusted identity becomes. The cookie is base64url of:
 *
 *      0   1  version: 1
 *      1   1  key id
 *      2  16  visitor id, random
 *     18  16  MAC: the first 128 bits of HMAC-SHA256 over all bytes before it, key of KEY_VISITOR
 *
 * A holder is the first 96 bits of HMAC-SHA256 under the holder key (see keyring.h for how it outlives a
 * rotation) over one byte, 1 for a visitor or 2 for an identity, and the visitor id or the identity: a
 * visitor can never be the holder of a trusted identity.
 */

#include "base/base64url.h"
#include "base/holder.h"
#include "base/span.h"
#include "token/keyring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VISITOR_ID_SIZE   16
#define VISITOR_SIZE      (2 + VISITOR_ID_SIZE + 16)
#define VISITOR_TOKEN_LEN BASE64URL_LEN(VISITOR_SIZE)
#define IDENTITY_MAX      256

/*
 * Writes VISITOR_TOKEN_LEN characters, signed by the signing key. `id` is 16 random bytes. No NUL is added.
 */
void visitor_sign(struct keyring *ring, const uint8_t id[VISITOR_ID_SIZE], char out[VISITOR_TOKEN_LEN]);

/* True, with the visitor's id, if the ring signed this cookie. */
bool visitor_verify(struct keyring *ring, struct span token, uint8_t id[VISITOR_ID_SIZE]);

void holder_of_visitor(struct keyring *ring, const uint8_t id[VISITOR_ID_SIZE], struct holder *out);

/* False if the identity is empty or over IDENTITY_MAX bytes: such a one is nobody. */
bool holder_of_identity(struct keyring *ring, struct span identity, struct holder *out);

#endif
