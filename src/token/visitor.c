/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A holder could be a plain hash, but then whoever holds a ticket could try out user names against it. Under
 * a key it says nothing, and nobody can aim at a bucket of the table it is the key of.
 */
#include "token/visitor.h"

#include "base/must.h"

#include <openssl/crypto.h>

#define VERSION  1
#define MAC_SIZE 16

enum offset {
    AT_VERSION = 0,
    AT_KEY_ID = 1,
    AT_ID = 2,
    AT_MAC = AT_ID + VISITOR_ID_SIZE,
};

_Static_assert(AT_MAC + MAC_SIZE == VISITOR_SIZE, "the layout has no gaps");

enum holder_kind {
    HOLDER_VISITOR = 1,
    HOLDER_IDENTITY = 2,
};

static void holder_of(struct keyring *ring, enum holder_kind kind, struct span name, struct holder *out);

void visitor_sign(struct keyring *ring, const uint8_t id[VISITOR_ID_SIZE], char out[VISITOR_TOKEN_LEN])
{
    uint8_t bytes[VISITOR_SIZE], mac[KEYRING_MAC_SIZE];
    bytes[AT_VERSION] = VERSION;
    bytes[AT_KEY_ID] = keyring_signing_id(ring);
    memcpy(bytes + AT_ID, id, VISITOR_ID_SIZE);
    must(keyring_mac(ring, KEY_VISITOR, bytes[AT_KEY_ID], bytes, AT_MAC, mac));
    memcpy(bytes + AT_MAC, mac, MAC_SIZE);
    base64url_encode(bytes, sizeof(bytes), out, VISITOR_TOKEN_LEN);
}

bool visitor_verify(struct keyring *ring, struct span token, uint8_t id[VISITOR_ID_SIZE])
{
    uint8_t bytes[VISITOR_SIZE], mac[KEYRING_MAC_SIZE];
    size_t size;
    if (!base64url_decode(token, bytes, sizeof(bytes), &size) || size != VISITOR_SIZE ||
        bytes[AT_VERSION] != VERSION)
        return false;
    if (!keyring_mac(ring, KEY_VISITOR, bytes[AT_KEY_ID], bytes, AT_MAC, mac) ||
        CRYPTO_memcmp(mac, bytes + AT_MAC, MAC_SIZE) != 0)
        return false;
    memcpy(id, bytes + AT_ID, VISITOR_ID_SIZE);
    return true;
}

void holder_of_visitor(struct keyring *ring, const uint8_t id[VISITOR_ID_SIZE], struct holder *out)
{
    holder_of(ring, HOLDER_VISITOR, (struct span){(const char *)id, VISITOR_ID_SIZE}, out);
}

bool holder_of_identity(struct keyring *ring, struct span identity, struct holder *out)
{
    if (identity.len < 1 || identity.len > IDENTITY_MAX)
        return false;
    holder_of(ring, HOLDER_IDENTITY, identity, out);
    return true;
}

static void holder_of(struct keyring *ring, enum holder_kind kind, struct span name, struct holder *out)
{
    uint8_t bytes[1 + IDENTITY_MAX], mac[KEYRING_MAC_SIZE];
    must(name.len <= IDENTITY_MAX);
    bytes[0] = (uint8_t)kind;
    memcpy(bytes + 1, name.data, name.len);
    must(keyring_mac(ring, KEY_HOLDER, KEYRING_HOLDER_ID, bytes, 1 + name.len, mac));
    memcpy(out->id, mac, sizeof(out->id));
}
