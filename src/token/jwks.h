/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_JWKS_H
#define WEIR_TOKEN_JWKS_H

/*
 * The public keys of a ring as a JWK Set (RFC 7517, RFC 8037), for whoever verifies passes: each Ed25519 key of
 * passes that verifies, the `next` ones too, under the `kid` that its passes carry. Never a symmetric key, and
 * nothing of one.
 */

#include "token/keyring.h"

#define JWKS_MAX 3072 /* bytes of the longest set: 8 keys of two tiers */

/* Writes the set and returns its length. No NUL is added. Tier 0: of both tiers. */
size_t jwks_write(const struct keyring *ring, int tier, char out[JWKS_MAX]);

#endif
