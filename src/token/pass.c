/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a JWT exists to let the token choose its algorithm, which is how forged ones got accepted
 * elsewhere ("none", a public key taken for an HMAC secret). Here it is a constant but for the key id: the
 * verifier reads the id, builds the header that we would have written, and takes no other. The payload is
 * looked at only after the MAC.
 */
#include "token/pass.h"

#include "base/base64url.h"
#include "base/json.h"
#include "base/must.h"
#include "base/room_id.h"
#include "token/bytes.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>

/* Between them, the key id: tier, a dot, the id of the key in the ring. */
#define HEADER_START "{\"alg\":\"HS256\",\"kid\":\""
#define HEADER_END   "\",\"typ\":\"JWT\"}"
#define HEADER_MAX   48

#define PAYLOAD_MAX 1792
#define JTI_SIZE    (8 + sizeof(struct holder))
#define MAC_LEN     BASE64URL_LEN(KEYRING_MAC_SIZE)

_Static_assert(BASE64URL_LEN(HEADER_MAX) + 1 + BASE64URL_LEN(PAYLOAD_MAX) + 1 + MAC_LEN <= PASS_TOKEN_MAX,
               "the longest pass fits");
_Static_assert(sizeof(HEADER_START) + sizeof("T.255") + sizeof(HEADER_END) <= HEADER_MAX,
               "the longest header fits");

/* The three parts of a token, and what the signature is over. */
struct parts {
    struct span header, payload, mac, signed_part;
};

static enum key_purpose purpose_of(int tier);
static size_t header_write(int tier, uint8_t key_id, char out[HEADER_MAX]);
static size_t payload_write(const struct pass_claims *claims, char out[PAYLOAD_MAX]);
static bool parts_split(struct span token, struct parts *parts);
static bool header_read(struct span text, int tier, uint8_t *key_id);
static bool mac_matches(struct keyring *ring, const struct parts *parts, int tier, uint8_t key_id);
static bool payload_read(struct span text, struct pass_claims *out, char *scratch, size_t cap);
static bool jti_read(struct span text, struct pass_claims *out);

size_t pass_sign(struct keyring *ring, const struct pass_claims *claims, char *out, size_t cap)
{
    char header[HEADER_MAX], payload[PAYLOAD_MAX];
    uint8_t mac[KEYRING_MAC_SIZE];
    size_t header_len = header_write(claims->tier, claims->key_id, header);
    size_t payload_len = payload_write(claims, payload);
    size_t signed_len = BASE64URL_LEN(header_len) + 1 + BASE64URL_LEN(payload_len);
    if (payload_len == 0 || cap < signed_len + 1 + MAC_LEN)
        return 0;
    size_t len = base64url_encode(header, header_len, out, cap);
    out[len++] = '.';
    len += base64url_encode(payload, payload_len, out + len, cap - len);
    must(len == signed_len);
    if (!keyring_mac(ring, purpose_of(claims->tier), claims->key_id, out, len, mac))
        return 0;
    out[len++] = '.';
    return len + base64url_encode(mac, sizeof(mac), out + len, cap - len);
}

bool pass_verify(struct keyring *ring, int tier, struct span token, uint64_t now_sec, struct pass_claims *out,
                 char *scratch, size_t cap)
{
    struct parts parts;
    if (token.len > PASS_TOKEN_MAX || !parts_split(token, &parts))
        return false;
    if (!header_read(parts.header, tier, &out->key_id) || !mac_matches(ring, &parts, tier, out->key_id))
        return false;
    if (!payload_read(parts.payload, out, scratch, cap) || out->tier != tier)
        return false;
    return now_sec < out->exp_sec && (out->iat_sec <= now_sec || out->iat_sec - now_sec <= PASS_SKEW_SEC);
}

static enum key_purpose purpose_of(int tier)
{
    must(tier == 1 || tier == 2);
    return tier == 1 ? KEY_PASS_1 : KEY_PASS_2;
}

/* By hand: snprintf would be a tenth of the time that verifying a pass takes. */
static size_t header_write(int tier, uint8_t key_id, char out[HEADER_MAX])
{
    char *at = out;
    memcpy(at, HEADER_START, sizeof(HEADER_START) - 1);
    at += sizeof(HEADER_START) - 1;
    *at++ = (char)('0' + tier);
    *at++ = '.';
    if (key_id >= 100)
        *at++ = (char)('0' + key_id / 100);
    if (key_id >= 10)
        *at++ = (char)('0' + key_id / 10 % 10);
    *at++ = (char)('0' + key_id % 10);
    memcpy(at, HEADER_END, sizeof(HEADER_END) - 1);
    return (size_t)(at - out) + sizeof(HEADER_END) - 1;
}

/* 0 if the uid cannot be written. */
static size_t payload_write(const struct pass_claims *claims, char out[PAYLOAD_MAX])
{
    char jti[PASS_ID_LEN];
    must(room_id_is_valid(claims->room));
    must(claims->iat_sec <= INT64_MAX && claims->exp_sec <= INT64_MAX);
    if (claims->uid.len > PASS_UID_MAX ||
        (claims->uid.len > 0 && memchr(claims->uid.data, 0, claims->uid.len) != NULL))
        return 0;
    pass_id_write(claims, jti);
    size_t len = (size_t)snprintf(out, PAYLOAD_MAX, "{\"iss\":\"%s\",\"sub\":\"%.*s\",\"uid\":\"",
                                  PASS_ISSUER, (int)claims->room.len, claims->room.data);
    if (!json_escape(claims->uid, out, PAYLOAD_MAX, &len))
        return 0;
    len += (size_t)snprintf(out + len, PAYLOAD_MAX - len,
                            "\",\"tier\":%d,\"jti\":\"%.*s\",\"iat\":%" PRIu64 ",\"exp\":%" PRIu64 "}",
                            claims->tier, (int)sizeof(jti), jti, claims->iat_sec, claims->exp_sec);
    must(len < PAYLOAD_MAX);
    return len;
}

void pass_id_write(const struct pass_claims *claims, char out[PASS_ID_LEN])
{
    uint8_t bytes[JTI_SIZE];
    bytes_put32(bytes, claims->epoch);
    bytes_put32(bytes + 4, claims->count);
    memcpy(bytes + 8, claims->holder.id, sizeof(claims->holder.id));
    base64url_encode(bytes, sizeof(bytes), out, PASS_ID_LEN);
}

static bool parts_split(struct span token, struct parts *parts)
{
    if (token.len == 0)
        return false;
    const char *end = token.data + token.len;
    const char *first = memchr(token.data, '.', token.len);
    const char *second = first != NULL ? memchr(first + 1, '.', (size_t)(end - first - 1)) : NULL;
    if (second == NULL)
        return false;
    parts->header = (struct span){token.data, (size_t)(first - token.data)};
    parts->payload = (struct span){first + 1, (size_t)(second - first - 1)};
    parts->mac = (struct span){second + 1, (size_t)(end - second - 1)};
    parts->signed_part = (struct span){token.data, (size_t)(second - token.data)};
    return true;
}

/* The key id, if the header is the one we write for this tier and that key. */
static bool header_read(struct span text, int tier, uint8_t *key_id)
{
    char header[HEADER_MAX], ours[HEADER_MAX];
    size_t len;
    if (!base64url_decode(text, header, sizeof(header), &len))
        return false;
    const size_t id_at = sizeof(HEADER_START) - 1 + 2;
    unsigned id = 0;
    for (size_t i = id_at; i < len && i < id_at + 3 && header[i] >= '0' && header[i] <= '9'; i++)
        id = id * 10 + (unsigned)(header[i] - '0');
    *key_id = (uint8_t)id;
    return span_equal((struct span){header, len}, (struct span){ours, header_write(tier, *key_id, ours)});
}

static bool mac_matches(struct keyring *ring, const struct parts *parts, int tier, uint8_t key_id)
{
    uint8_t theirs[KEYRING_MAC_SIZE], ours[KEYRING_MAC_SIZE];
    size_t len;
    return base64url_decode(parts->mac, theirs, sizeof(theirs), &len) && len == sizeof(theirs) &&
           keyring_mac(ring, purpose_of(tier), key_id, parts->signed_part.data, parts->signed_part.len,
                       ours) &&
           CRYPTO_memcmp(theirs, ours, sizeof(ours)) == 0;
}

static bool payload_read(struct span text, struct pass_claims *out, char *scratch, size_t cap)
{
    enum { ISS, SUB, UID, TIER, JTI, IAT, EXP, CLAIMS };
    struct json_member claims[CLAIMS] = {
        [ISS] = {.name = SPAN("iss"), .kind = JSON_TEXT},
        [SUB] = {.name = SPAN("sub"), .kind = JSON_TEXT},
        [UID] = {.name = SPAN("uid"), .kind = JSON_TEXT},
        [TIER] = {.name = SPAN("tier"), .kind = JSON_NUMBER},
        [JTI] = {.name = SPAN("jti"), .kind = JSON_TEXT},
        [IAT] = {.name = SPAN("iat"), .kind = JSON_NUMBER},
        [EXP] = {.name = SPAN("exp"), .kind = JSON_NUMBER},
    };
    size_t len;
    if (!base64url_decode(text, scratch, cap, &len) ||
        json_read((struct span){scratch, len}, claims, CLAIMS, scratch + len, cap - len) != ERROR_NONE)
        return false;
    out->tier = claims[TIER].number <= 2 ? (int)claims[TIER].number : 0;
    out->iat_sec = claims[IAT].number;
    out->exp_sec = claims[EXP].number;
    out->room = claims[SUB].text;
    out->uid = claims[UID].text;
    return span_equal(claims[ISS].text, SPAN(PASS_ISSUER)) && room_id_is_valid(out->room) &&
           out->uid.len <= PASS_UID_MAX && jti_read(claims[JTI].text, out);
}

static bool jti_read(struct span text, struct pass_claims *out)
{
    uint8_t bytes[JTI_SIZE];
    size_t len;
    if (!base64url_decode(text, bytes, sizeof(bytes), &len) || len != sizeof(bytes))
        return false;
    out->epoch = bytes_get32(bytes);
    out->count = bytes_get32(bytes + 4);
    memcpy(out->holder.id, bytes + 8, sizeof(out->holder.id));
    return true;
}
