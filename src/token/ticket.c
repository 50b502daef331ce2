/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binary and of fixed offsets, not JSON: it is verified on every poll, and there is nothing to parse that
 * could be parsed in two ways. The form is checked before the MAC, which is cheap and tells a forger nothing
 * they could not read in the header; the MAC is compared in constant time.
 */
#include "token/ticket.h"

#include "base/must.h"
#include "token/bytes.h"

#include <openssl/crypto.h>

#define VERSION      1
#define FLAG_TRUSTED 1
#define HEAD_SIZE    28
#define MAC_SIZE     16
#define SIZE_MIN     (HEAD_SIZE + 1 + MAC_SIZE)

enum offset {
    AT_VERSION = 0,
    AT_FLAGS = 1,
    AT_KEY_ID = 2,
    AT_EPOCH = 3,
    AT_COUNT = 7,
    AT_ISSUED = 11,
    AT_HOLDER = 15,
    AT_ROOM_LEN = 27,
    AT_ROOM = HEAD_SIZE,
};

_Static_assert(AT_HOLDER + sizeof(struct holder) == AT_ROOM_LEN, "the layout has no gaps");

static bool is_well_formed(const uint8_t *bytes, size_t size);
static bool mac_matches(struct keyring *ring, const uint8_t *bytes, size_t size);

size_t ticket_sign(struct keyring *ring, const struct ticket_claims *claims, char out[TICKET_TOKEN_MAX])
{
    uint8_t bytes[TICKET_SIZE_MAX], mac[KEYRING_MAC_SIZE];
    must(room_id_is_valid(claims->room));
    bytes[AT_VERSION] = VERSION;
    bytes[AT_FLAGS] = claims->is_trusted ? FLAG_TRUSTED : 0;
    bytes[AT_KEY_ID] = claims->key_id;
    bytes_put32(bytes + AT_EPOCH, claims->epoch);
    bytes_put32(bytes + AT_COUNT, claims->count);
    bytes_put32(bytes + AT_ISSUED, claims->issued_sec);
    memcpy(bytes + AT_HOLDER, claims->holder.id, sizeof(claims->holder.id));
    bytes[AT_ROOM_LEN] = (uint8_t)claims->room.len;
    memcpy(bytes + AT_ROOM, claims->room.data, claims->room.len);
    size_t size = HEAD_SIZE + claims->room.len;
    if (!keyring_mac(ring, KEY_TICKET, claims->key_id, bytes, size, mac))
        return 0;
    memcpy(bytes + size, mac, MAC_SIZE);
    return base64url_encode(bytes, size + MAC_SIZE, out, TICKET_TOKEN_MAX);
}

bool ticket_verify(struct keyring *ring, struct span token, struct ticket_claims *out, char room[ROOM_ID_MAX])
{
    uint8_t bytes[TICKET_SIZE_MAX];
    size_t size;
    if (!base64url_decode(token, bytes, sizeof(bytes), &size) || !is_well_formed(bytes, size) ||
        !mac_matches(ring, bytes, size))
        return false;
    out->key_id = bytes[AT_KEY_ID];
    out->is_trusted = bytes[AT_FLAGS] == FLAG_TRUSTED;
    out->epoch = bytes_get32(bytes + AT_EPOCH);
    out->count = bytes_get32(bytes + AT_COUNT);
    out->issued_sec = bytes_get32(bytes + AT_ISSUED);
    memcpy(out->holder.id, bytes + AT_HOLDER, sizeof(out->holder.id));
    memcpy(room, bytes + AT_ROOM, bytes[AT_ROOM_LEN]);
    out->room = (struct span){room, bytes[AT_ROOM_LEN]};
    return true;
}

static bool is_well_formed(const uint8_t *bytes, size_t size)
{
    return size >= SIZE_MIN && bytes[AT_VERSION] == VERSION && bytes[AT_FLAGS] <= FLAG_TRUSTED &&
           size == HEAD_SIZE + (size_t)bytes[AT_ROOM_LEN] + MAC_SIZE &&
           room_id_is_valid((struct span){(const char *)bytes + AT_ROOM, bytes[AT_ROOM_LEN]});
}

static bool mac_matches(struct keyring *ring, const uint8_t *bytes, size_t size)
{
    uint8_t mac[KEYRING_MAC_SIZE];
    return keyring_mac(ring, KEY_TICKET, bytes[AT_KEY_ID], bytes, size - MAC_SIZE, mac) &&
           CRYPTO_memcmp(mac, bytes + size - MAC_SIZE, MAC_SIZE) == 0;
}
