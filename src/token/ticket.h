/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_TICKET_H
#define WEIR_TOKEN_TICKET_H

/*
 * A ticket: a signed place in a line, self-contained and opaque to clients. base64url of these bytes, numbers
 * in network order:
 *
 *      0   1  version: 1
 *      1   1  flags: bit 0 = the holder is a trusted identity; the others are 0
 *      2   1  key id
 *      3   4  epoch
 *      7   4  count
 *     11   4  time of issue, seconds since 1970
 *     15  12  holder
 *     27   1  length n of the room id, 1 to 64
 *     28   n  room id
 *   28+n  16  MAC: the first 128 bits of HMAC-SHA256 over all bytes before it, key of KEY_TICKET
 *
 * Each ticket has exactly one text.
 */

#include "base/base64url.h"
#include "base/holder.h"
#include "base/room_id.h"
#include "base/span.h"
#include "token/keyring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TICKET_SIZE_MAX  (28 + ROOM_ID_MAX + 16)
#define TICKET_TOKEN_MAX BASE64URL_LEN(TICKET_SIZE_MAX)

struct ticket_claims {
    uint8_t key_id;
    bool is_trusted; /* the holder is an identity the operator vouches for: the ticket works for them alone */
    uint32_t epoch, count, issued_sec;
    struct holder holder;
    struct span room;
};

/*
 * Writes the ticket and returns its length; the same claims give the same bytes. 0 if the ring has no key
 * claims->key_id (a new ticket takes keyring_signing_id). The room must be a valid room id. No NUL is added.
 */
size_t ticket_sign(struct keyring *ring, const struct ticket_claims *claims, char out[TICKET_TOKEN_MAX]);

/*
 * True if the ring signed this ticket; out->room then is the text in `room`. Nothing is said about its being
 * alive.
 */
bool ticket_verify(struct keyring *ring, struct span token, struct ticket_claims *out,
                   char room[ROOM_ID_MAX]);

#endif
