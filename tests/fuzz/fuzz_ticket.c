/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any token text, offered as every kind; and, since no fuzzer finds a MAC, the input once more as the inside
 * of a ticket and of a pass that this target signs itself, and as a secret file. Whatever is accepted,
 * signing its claims must give the same token again.
 */
#include "base/must.h"
#include "token/pass.h"
#include "token/ticket.h"
#include "token/visitor.h"

#include <stdlib.h>

#define NOW 1700000100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ticket_try(struct keyring *ring, struct span token);
static void pass_try(struct keyring *ring, struct span token, bool is_canonical);
static void visitor_try(struct keyring *ring, struct span token);
static void signed_ticket_try(struct keyring *ring, struct span inside);
static void signed_pass_try(struct keyring *ring, struct span payload);
static void secret_file_try(struct span text);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct keyring *ring;
    char reason[KEYRING_REASON_MAX];
    const struct span input = {(const char *)data, size};
    if (ring == NULL)
        ring = keyring_new(
            SPAN("7 0123456789abcdef0123456789abcdef\n3 an-older-secret-of-forty-characters!!!!!"), reason);
    must(ring != NULL);
    ticket_try(ring, input);
    pass_try(ring, input, true);
    visitor_try(ring, input);
    signed_ticket_try(ring, input);
    signed_pass_try(ring, input);
    secret_file_try(input);
    return 0;
}

static void ticket_try(struct keyring *ring, struct span token)
{
    struct ticket_claims claims;
    char room[ROOM_ID_MAX], again[TICKET_TOKEN_MAX];
    if (!ticket_verify(ring, token, &claims, room))
        return;
    must(keyring_has(ring, claims.key_id) && room_id_is_valid(claims.room));
    must(span_equal((struct span){again, ticket_sign(ring, &claims, again)}, token));
}

/* Of a payload that this target signed, the same claims may have been written in another way. */
static void pass_try(struct keyring *ring, struct span token, bool is_canonical)
{
    for (int tier = 1; tier <= 2; tier++) {
        struct pass_claims claims;
        char scratch[PASS_SCRATCH_MAX], again[PASS_TOKEN_MAX], more[PASS_SCRATCH_MAX];
        if (!pass_verify(ring, tier, token, NOW, &claims, scratch, sizeof(scratch)))
            continue;
        must(claims.tier == tier && claims.exp_sec > NOW && claims.iat_sec <= NOW + PASS_SKEW_SEC);
        struct span pass = {again, pass_sign(ring, &claims, again, sizeof(again))};
        must(pass.len > 0 && pass_verify(ring, tier, pass, NOW, &claims, more, sizeof(more)));
        must(!is_canonical || span_equal(pass, token));
    }
}

static void visitor_try(struct keyring *ring, struct span token)
{
    uint8_t id[VISITOR_ID_SIZE];
    char again[VISITOR_TOKEN_LEN];
    if (!visitor_verify(ring, token, id))
        return;
    visitor_sign(ring, id, again);
    /* A cookie of the older key is signed by the newer one now. */
    struct span bytes = {again, sizeof(again)};
    must(bytes.len == token.len && visitor_verify(ring, bytes, id));
}

static void signed_ticket_try(struct keyring *ring, struct span inside)
{
    uint8_t bytes[TICKET_SIZE_MAX], mac[KEYRING_MAC_SIZE];
    char token[TICKET_TOKEN_MAX];
    if (inside.len < 3 || inside.len > sizeof(bytes) - 16)
        return;
    memcpy(bytes, inside.data, inside.len);
    if (!keyring_mac(ring, KEY_TICKET, bytes[2], bytes, inside.len, mac))
        return;
    memcpy(bytes + inside.len, mac, 16);
    ticket_try(ring, (struct span){token, base64url_encode(bytes, inside.len + 16, token, sizeof(token))});
}

static void signed_pass_try(struct keyring *ring, struct span payload)
{
    static const char header[] = "eyJhbGciOiJIUzI1NiIsImtpZCI6IjIuNyIsInR5cCI6IkpXVCJ9.";
    uint8_t mac[KEYRING_MAC_SIZE];
    char token[PASS_TOKEN_MAX];
    size_t len = sizeof(header) - 1;
    if (len + BASE64URL_LEN(payload.len) + 1 + BASE64URL_LEN(sizeof(mac)) > sizeof(token))
        return;
    memcpy(token, header, len);
    len += base64url_encode(payload.data, payload.len, token + len, sizeof(token) - len);
    must(keyring_mac(ring, KEY_PASS_2, 7, token, len, mac));
    token[len++] = '.';
    len += base64url_encode(mac, sizeof(mac), token + len, sizeof(token) - len);
    pass_try(ring, (struct span){token, len}, false);
}

static void secret_file_try(struct span text)
{
    char reason[KEYRING_REASON_MAX] = "";
    struct keyring *ring = keyring_new(text, reason);
    must((ring == NULL) == (reason[0] != '\0'));
    must(ring == NULL || keyring_has(ring, keyring_signing_id(ring)));
    keyring_free(ring);
}
