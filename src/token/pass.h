/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_PASS_H
#define WEIR_TOKEN_PASS_H

/*
 * A pass: what opens the gate. A JWT (RFC 7519) signed with HS256 or EdDSA (Ed25519, RFC 8037), so that any JWT
 * library can verify it:
 *
 *     {"alg":"<HS256 or EdDSA>","kid":"<tier>.<key id>","typ":"JWT"}
 *     {"iss":"weir","sub":"<room>","uid":"<who>","tier":<1 or 2>,"jti":"<id>","iat":<sec>,"exp":<sec>}
 *
 * `sub` is the room's name; but of a lobby's pass of tier 1 (room `lobby:EVENT`) it is the event, and `"room":"lobby:EVENT"` follows
 * it: lobby and hall of one event go together.
 *
 * `jti` is base64url of epoch (4 bytes, network order), count (4), holder (12): the ticket that the pass was
 * given for; epoch 0 and count 0 for one that was given without a ticket (`weir pass mint`). The key is that of
 * the tier's own purpose, so a pass of one tier is nothing but noise to the other; and a key has one algorithm
 * (keyring_set_algorithm).
 */

#include "base/base64url.h"
#include "base/holder.h"
#include "base/span.h"
#include "token/keyring.h"
#include "token/pass_cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PASS_ISSUER    "weir"
#define PASS_UID_MAX   256
#define PASS_SKEW_SEC  60   /* how far in the future `iat` (and `nbf`) may lie: servers' clocks differ */
#define PASS_TOKEN_MAX 2624 /* no pass is longer, however its uid is escaped */

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

/* FAULT(name, what is wrong with the pass, as a sentence about it) */
#define PASS_FAULT_LIST(FAULT)                                                                        \
    FAULT(NONE, "it is valid")                                                                        \
    FAULT(FORM, "it is not a pass of Weir's: another form, or a header that Weir does not write")     \
    FAULT(ALGORITHM, "it says another algorithm than the one that its key is for")                    \
    FAULT(TIER, "it is a pass of the other tier")                                                     \
    FAULT(KEY, "its key is not among the keys")                                                       \
    FAULT(SIGNATURE, "its signature is wrong: it was changed, or signed with another key of that id") \
    FAULT(CLAIMS, "its signature is good, but its claims are not those of a pass")                    \
    FAULT(EARLY, "it is not valid yet: its iat or nbf lies more than a minute ahead")                 \
    FAULT(EXPIRED, "it has expired")

enum pass_fault {
#define PASS_FAULT_ENUM(name, sentence) PASS_FAULT_##name,
    PASS_FAULT_LIST(PASS_FAULT_ENUM)
#undef PASS_FAULT_ENUM
        PASS_FAULT_COUNT
};

/*
 * PASS_FAULT_NONE if the ring signed this pass for this tier and it is valid at `now_sec`: now < exp, and iat
 * (and nbf, which we never write but do not overlook) at most PASS_SKEW_SEC ahead. Else what is wrong, the first
 * thing that was found: for a person at a command line, never for whoever sent it. The claims are filled from
 * PASS_FAULT_EARLY on.
 *
 * The algorithm is never taken from the token: its header must be the one that we write for that key, to the
 * byte. The spans of `out` are parts of `scratch`. Whether it is for the right room and person is the caller's
 * question.
 *
 * `cache` spares the Ed25519 check of a pass that was verified before; it must be of this ring alone, and NULL
 * is fine. HS256 needs none: its check costs no more than the look-up.
 */
enum pass_fault pass_judge(struct keyring *ring, struct pass_cache *cache, int tier, struct span token,
                           uint64_t now_sec, struct pass_claims *out, char *scratch, size_t cap);

/* Whether pass_judge finds no fault; without a cache, and with one. */
bool pass_verify(struct keyring *ring, int tier, struct span token, uint64_t now_sec, struct pass_claims *out,
                 char *scratch, size_t cap);
bool pass_verify_cached(struct keyring *ring, struct pass_cache *cache, int tier, struct span token,
                        uint64_t now_sec, struct pass_claims *out, char *scratch, size_t cap);

/* The sentence of the list, without a full stop. */
const char *pass_fault_text(enum pass_fault fault);

/* Whether it was given for a ticket: without one there is no session to look for. */
static inline bool pass_has_place(const struct pass_claims *claims)
{
    return claims->epoch != 0;
}

#endif
