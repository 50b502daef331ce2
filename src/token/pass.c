/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a JWT exists to let the token choose its algorithm, which is how forged ones got accepted
 * elsewhere ("none", a public key taken for an HMAC secret). Here it is a constant but for the key id: the
 * verifier reads the id, builds the header that we would have written for that key, and takes no other. The
 * payload is looked at only after the signature.
 */
#include "token/pass.h"

#include "base/base64url.h"
#include "base/json.h"
#include "base/must.h"
#include "base/room_id.h"
#include "token/bytes.h"

#include <inttypes.h>
#include <stdio.h>

/* Between them: the algorithm; tier, a dot and the id of the key in the ring. */
#define HEADER_START "{\"alg\":\""
#define HEADER_MID   "\",\"kid\":\""
#define HEADER_END   "\",\"typ\":\"JWT\"}"
#define HEADER_MAX   48
#define ALG_LEN      5
#define ID_AT        (sizeof(HEADER_START) - 1 + ALG_LEN + sizeof(HEADER_MID) - 1 + 2) /* behind the dot */

#define PAYLOAD_MAX   1824
#define JTI_SIZE      (8 + sizeof(struct holder))
#define SIGNATURE_LEN BASE64URL_LEN(KEYRING_SIGNATURE_MAX)

_Static_assert(BASE64URL_LEN(HEADER_MAX) + 1 + BASE64URL_LEN(PAYLOAD_MAX) + 1 + SIGNATURE_LEN <=
                   PASS_TOKEN_MAX,
               "the longest pass fits");
_Static_assert(ID_AT + sizeof("255") - 1 + sizeof(HEADER_END) <= HEADER_MAX, "the longest header fits");

static const char algs[KEY_ALGORITHM_COUNT][ALG_LEN + 1] = {
#define KEY_ALGORITHM_ALG(name, word, alg) [KEY_##name] = (alg),
    KEY_ALGORITHM_LIST(KEY_ALGORITHM_ALG)
#undef KEY_ALGORITHM_ALG
};

/* The three parts of a token, and what the signature is over. */
struct parts {
    struct span header, payload, signature, signed_part;
};

/* Where it is remembered that a signature was good; cache NULL: nowhere. */
struct proof {
    struct pass_cache *cache;
    uint8_t key[PASS_CACHE_KEY_SIZE];
};

static struct proof proof_begin(const struct keyring *ring, struct pass_cache *cache, int tier,
                                uint8_t key_id, struct span token);
static bool proof_is_known(const struct proof *proof, uint64_t now_sec);
static void proof_keep(const struct proof *proof, uint64_t exp_sec, uint64_t now_sec);
static size_t header_write(enum key_algorithm algorithm, int tier, uint8_t key_id, char out[HEADER_MAX]);
static size_t payload_write(const struct pass_claims *claims, char out[PAYLOAD_MAX]);
static size_t subject_write(const struct pass_claims *claims, char out[PAYLOAD_MAX]);
static bool parts_split(struct span token, struct parts *parts);
static enum pass_fault header_read(const struct keyring *ring, struct span text, int tier, uint8_t *key_id);
static enum pass_fault header_fault(const struct keyring *ring, struct span header, int tier, uint8_t key_id);
static bool header_is(struct span header, enum key_algorithm algorithm, int tier, uint8_t key_id);
static bool signature_matches(struct keyring *ring, const struct parts *parts, int tier, uint8_t key_id);
static bool payload_read(struct span text, struct pass_claims *out, uint64_t *not_before_sec, char *scratch,
                         size_t cap);
static bool room_read(struct span room, struct pass_claims *out);
static bool jti_read(struct span text, struct pass_claims *out);
static bool is_ahead(uint64_t time_sec, uint64_t now_sec);

size_t pass_sign(struct keyring *ring, const struct pass_claims *claims, char *out, size_t cap)
{
    char header[HEADER_MAX], payload[PAYLOAD_MAX];
    uint8_t signature[KEYRING_SIGNATURE_MAX];
    enum key_algorithm algorithm = keyring_algorithm(ring, claims->tier, claims->key_id);
    size_t header_len = header_write(algorithm, claims->tier, claims->key_id, header);
    size_t payload_len = payload_write(claims, payload);
    size_t signed_len = BASE64URL_LEN(header_len) + 1 + BASE64URL_LEN(payload_len);
    if (payload_len == 0 || cap < signed_len)
        return 0;
    size_t len = base64url_encode(header, header_len, out, cap);
    out[len++] = '.';
    len += base64url_encode(payload, payload_len, out + len, cap - len);
    must(len == signed_len);
    size_t size = keyring_sign(ring, claims->tier, claims->key_id, (struct span){out, len}, signature);
    if (size == 0 || cap < signed_len + 1 + BASE64URL_LEN(size))
        return 0;
    out[len++] = '.';
    return len + base64url_encode(signature, size, out + len, cap - len);
}

bool pass_verify(struct keyring *ring, int tier, struct span token, uint64_t now_sec, struct pass_claims *out,
                 char *scratch, size_t cap)
{
    return pass_judge(ring, NULL, tier, token, now_sec, out, scratch, cap) == PASS_FAULT_NONE;
}

bool pass_verify_cached(struct keyring *ring, struct pass_cache *cache, int tier, struct span token,
                        uint64_t now_sec, struct pass_claims *out, char *scratch, size_t cap)
{
    return pass_judge(ring, cache, tier, token, now_sec, out, scratch, cap) == PASS_FAULT_NONE;
}

enum pass_fault pass_judge(struct keyring *ring, struct pass_cache *cache, int tier, struct span token,
                           uint64_t now_sec, struct pass_claims *out, char *scratch, size_t cap)
{
    struct parts parts;
    uint64_t not_before_sec;
    if (token.len > PASS_TOKEN_MAX || !parts_split(token, &parts))
        return PASS_FAULT_FORM;
    enum pass_fault fault = header_read(ring, parts.header, tier, &out->key_id);
    if (fault != PASS_FAULT_NONE)
        return fault;
    struct proof proof = proof_begin(ring, cache, tier, out->key_id, token);
    if (!proof_is_known(&proof, now_sec) && !signature_matches(ring, &parts, tier, out->key_id))
        return PASS_FAULT_SIGNATURE;
    if (!payload_read(parts.payload, out, &not_before_sec, scratch, cap) || out->tier != tier)
        return PASS_FAULT_CLAIMS;
    proof_keep(&proof, out->exp_sec, now_sec);
    if (is_ahead(out->iat_sec, now_sec) || is_ahead(not_before_sec, now_sec))
        return PASS_FAULT_EARLY;
    return now_sec < out->exp_sec ? PASS_FAULT_NONE : PASS_FAULT_EXPIRED;
}

static struct proof proof_begin(const struct keyring *ring, struct pass_cache *cache, int tier,
                                uint8_t key_id, struct span token)
{
    struct proof proof = {.cache = keyring_algorithm(ring, tier, key_id) == KEY_EDDSA ? cache : NULL};
    if (proof.cache != NULL)
        pass_cache_key(proof.cache, token, proof.key);
    return proof;
}

static bool proof_is_known(const struct proof *proof, uint64_t now_sec)
{
    return proof->cache != NULL && pass_cache_has(proof->cache, proof->key, now_sec);
}

static void proof_keep(const struct proof *proof, uint64_t exp_sec, uint64_t now_sec)
{
    if (proof->cache != NULL)
        pass_cache_add(proof->cache, proof->key, exp_sec, now_sec);
}

const char *pass_fault_text(enum pass_fault fault)
{
    static const char *const texts[PASS_FAULT_COUNT] = {
#define PASS_FAULT_TEXT(name, sentence) [PASS_FAULT_##name] = (sentence),
        PASS_FAULT_LIST(PASS_FAULT_TEXT)
#undef PASS_FAULT_TEXT
    };
    must((unsigned)fault < PASS_FAULT_COUNT);
    return texts[fault];
}

static bool is_ahead(uint64_t time_sec, uint64_t now_sec)
{
    return time_sec > now_sec && time_sec - now_sec > PASS_SKEW_SEC;
}

/* By hand: snprintf would be a tenth of the time that verifying a pass takes. */
static size_t header_write(enum key_algorithm algorithm, int tier, uint8_t key_id, char out[HEADER_MAX])
{
    char *at = out;
    memcpy(at, HEADER_START, sizeof(HEADER_START) - 1);
    at += sizeof(HEADER_START) - 1;
    memcpy(at, algs[algorithm], ALG_LEN);
    at += ALG_LEN;
    memcpy(at, HEADER_MID, sizeof(HEADER_MID) - 1);
    at += sizeof(HEADER_MID) - 1;
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
    size_t len = subject_write(claims, out);
    if (!json_escape(claims->uid, out, PAYLOAD_MAX, &len))
        return 0;
    len += (size_t)snprintf(out + len, PAYLOAD_MAX - len,
                            "\",\"tier\":%d,\"jti\":\"%.*s\",\"iat\":%" PRIu64 ",\"exp\":%" PRIu64 "}",
                            claims->tier, (int)sizeof(jti), jti, claims->iat_sec, claims->exp_sec);
    must(len < PAYLOAD_MAX);
    return len;
}

/* All that stands before the uid. */
static size_t subject_write(const struct pass_claims *claims, char out[PAYLOAD_MAX])
{
    struct span room = claims->room, event = claims->tier == 1 ? room_id_event(room) : SPAN_NONE;
    struct span subject = event.data != NULL ? event : room;
    size_t len = (size_t)snprintf(out, PAYLOAD_MAX, "{\"iss\":\"%s\",\"sub\":\"%.*s\"", PASS_ISSUER,
                                  (int)subject.len, subject.data);
    if (event.data != NULL)
        len += (size_t)snprintf(out + len, PAYLOAD_MAX - len, ",\"room\":\"%.*s\"", (int)room.len, room.data);
    return len + (size_t)snprintf(out + len, PAYLOAD_MAX - len, ",\"uid\":\"");
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
    parts->signature = (struct span){second + 1, (size_t)(end - second - 1)};
    parts->signed_part = (struct span){token.data, (size_t)(second - token.data)};
    return true;
}

/* The key id, if the header is the one we write for this tier and that key. */
static enum pass_fault header_read(const struct keyring *ring, struct span text, int tier, uint8_t *key_id)
{
    char header[HEADER_MAX];
    size_t len;
    unsigned id = 0;
    if (!base64url_decode(text, header, sizeof(header), &len))
        return PASS_FAULT_FORM;
    for (size_t i = ID_AT; i < len && i < ID_AT + 3 && header[i] >= '0' && header[i] <= '9'; i++)
        id = id * 10 + (unsigned)(header[i] - '0');
    *key_id = (uint8_t)id;
    struct span seen = {header, len};
    bool is_ours =
        keyring_has(ring, *key_id) && header_is(seen, keyring_algorithm(ring, tier, *key_id), tier, *key_id);
    return is_ours ? PASS_FAULT_NONE : header_fault(ring, seen, tier, *key_id);
}

static bool header_is(struct span header, enum key_algorithm algorithm, int tier, uint8_t key_id)
{
    char ours[HEADER_MAX];
    return span_equal(header, (struct span){ours, header_write(algorithm, tier, key_id, ours)});
}

/* Which of the headers that a ring could write it is, since it is not the right one. */
static enum pass_fault header_fault(const struct keyring *ring, struct span header, int tier, uint8_t key_id)
{
    for (int algorithm = 0; algorithm < KEY_ALGORITHM_COUNT; algorithm++) {
        if (header_is(header, algorithm, tier, key_id))
            return keyring_has(ring, key_id) ? PASS_FAULT_ALGORITHM : PASS_FAULT_KEY;
        if (header_is(header, algorithm, 3 - tier, key_id))
            return PASS_FAULT_TIER;
    }
    return PASS_FAULT_FORM;
}

static bool signature_matches(struct keyring *ring, const struct parts *parts, int tier, uint8_t key_id)
{
    char signature[KEYRING_SIGNATURE_MAX];
    size_t len;
    return base64url_decode(parts->signature, signature, sizeof(signature), &len) &&
           keyring_check(ring, tier, key_id, parts->signed_part, (struct span){signature, len});
}

static bool payload_read(struct span text, struct pass_claims *out, uint64_t *not_before_sec, char *scratch,
                         size_t cap)
{
    enum { ISS, SUB, ROOM, UID, TIER, JTI, IAT, EXP, NBF, CLAIMS };
    struct json_member claims[CLAIMS] = {
        [ISS] = {.name = SPAN("iss"), .kind = JSON_TEXT},
        [SUB] = {.name = SPAN("sub"), .kind = JSON_TEXT},
        [ROOM] = {.name = SPAN("room"), .kind = JSON_TEXT, .is_optional = true},
        [UID] = {.name = SPAN("uid"), .kind = JSON_TEXT},
        [TIER] = {.name = SPAN("tier"), .kind = JSON_NUMBER},
        [JTI] = {.name = SPAN("jti"), .kind = JSON_TEXT},
        [IAT] = {.name = SPAN("iat"), .kind = JSON_NUMBER},
        [EXP] = {.name = SPAN("exp"), .kind = JSON_NUMBER},
        [NBF] = {.name = SPAN("nbf"), .kind = JSON_NUMBER, .is_optional = true},
    };
    size_t len;
    if (!base64url_decode(text, scratch, cap, &len) ||
        json_read((struct span){scratch, len}, claims, CLAIMS, scratch + len, cap - len) != ERROR_NONE)
        return false;
    out->tier = claims[TIER].number <= 2 ? (int)claims[TIER].number : 0;
    out->iat_sec = claims[IAT].number;
    out->exp_sec = claims[EXP].number;
    *not_before_sec = claims[NBF].is_present ? claims[NBF].number : 0;
    out->room = claims[SUB].text;
    out->uid = claims[UID].text;
    if (claims[ROOM].is_present && !room_read(claims[ROOM].text, out))
        return false;
    return span_equal(claims[ISS].text, SPAN(PASS_ISSUER)) && room_id_is_valid(out->room) &&
           out->uid.len <= PASS_UID_MAX && jti_read(claims[JTI].text, out);
}

/* out->room is the subject so far. */
static bool room_read(struct span room, struct pass_claims *out)
{
    struct span event = room_id_event(room);
    if (out->tier != 1 || event.data == NULL || !span_equal(event, out->room))
        return false;
    out->room = room;
    return true;
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
