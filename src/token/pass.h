/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_PASS_H
#define WEIR_TOKEN_PASS_H

/*
 * A pass: what opens the gate. A JWT (RFC 7519) signed with HS256, so that any JWT library can verify it:
 *
 *     {"alg":"HS256","kid":"<tier>.<key id>","typ":"JWT"}
 *     {"iss":"weir","sub":"<room>","uid":"<who>","tier":<1 or 2>,"jti":"<id>","iat":<sec>,"exp":<sec>}
 *
 * `jti` is base64url of epoch (4 bytes, network order), count (4), holder (12): the ticket that the pass was
 * given for. The key is that of the tier's own purpose, so a pass of one tier is nothing but noise to the
 * other.
 */

#include "base/base64url.h"
#include "base/holder.h"
#include "base/span.h"
#include "token/keyring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PASS_ISSUER    "weir"
#define PASS_UID_MAX   256
#define PASS_SKEW_SEC  60   /* how far in the future `iat` may lie: servers' clocks differ */
#define PASS_TOKEN_MAX 2560 /* no pass is longer, however its uid is escaped */

/* Characters of `jti`: epoch, count and holder. */
#define PASS_ID_LEN BASE64URL_LEN(8 + sizeof(struct holder))

/* What pass_verify needs for a token of this length: its payload, and the payload's strings unescaped. */
#define PASS_SCRATCH(token_len) (2 * BASE64URL_DECODED(token_len))
#define PASS_SCRATCH_MAX        PASS_SCRATCH(PASS_TOKEN_MAX)

struct pass_claims {
    uint8_t key_id;
    int tier; /* 1 or 2 */
    uint32_t epoch, count;
    struct holder holder;
    uint64_t iat_sec, exp_sec; /* seconds since 1970, below 2^63 */
    struct span room, uid;
};

/*
 * Writes the pass and returns its length; the same claims give the same bytes. No NUL is added. 0 if the ring
 * has no key claims->key_id, if `cap` is too small (PASS_TOKEN_MAX never is), or if the uid is longer than
 * PASS_UID_MAX, not UTF-8 or has a NUL. The room must be a valid room id. An empty uid is fine.
 */
size_t pass_sign(struct keyring *ring, const struct pass_claims *claims, char *out, size_t cap);

/* Writes the `jti`: what names the session that the pass opens. No NUL is added. */
void pass_id_write(const struct pass_claims *claims, char out[PASS_ID_LEN]);

/*
 * True if the ring signed this pass for this tier and it is valid at `now_sec`: now < exp, iat at most
 * PASS_SKEW_SEC ahead. The algorithm is never taken from the token: its header must be ours to the byte. The
 * spans of `out` are parts of `scratch`. Whether it is for the right room and person is the caller's
 * question.
 */
bool pass_verify(struct keyring *ring, int tier, struct span token, uint64_t now_sec, struct pass_claims *out,
                 char *scratch, size_t cap);

#endif
