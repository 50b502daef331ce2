/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tickets, passes and visitor cookies: what the ring signed is taken, as what it is, and nothing else is. The
 * forgeries here go further than a stranger can: some are signed with a real key, but of another purpose or
 * over a wrong text.
 */
#include "token/pass.h"
#include "token/ticket.h"
#include "token/visitor.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NEW_SECRET "0123456789abcdef0123456789abcdef"
#define OLD_SECRET "an-older-secret-of-forty-characters!!!!!"
#define NEW_ID     7
#define OLD_ID     3
#define NOW        1700000100

static struct keyring *ring; /* both keys, the new one signs */

static int ring_setup(void **state)
{
    char reason[KEYRING_REASON_MAX];
    (void)state;
    ring = keyring_new(SPAN("7 " NEW_SECRET "\n3 " OLD_SECRET "\n"), reason);
    return ring != NULL ? 0 : -1;
}

static int ring_teardown(void **state)
{
    (void)state;
    keyring_free(ring);
    return 0;
}

static uint64_t random_state = 0xD1B54A32D192ED03;

static uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

static uint32_t random_below(uint32_t bound)
{
    return random_bits() % bound;
}

static void random_fill(void *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)random_bits();
}

static void random_fill_from(const char *alphabet, char *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = alphabet[random_below((uint32_t)strlen(alphabet))];
}

static const char room_alphabet[] = "ABCXYZabcxyz0189_.:-";
static const char text_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- makers ---- */

static const struct holder some_holder = {
    {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab}};

static struct ticket_claims some_ticket(void)
{
    return (struct ticket_claims){
        .key_id = NEW_ID,
        .is_trusted = true,
        .epoch = 5,
        .count = 1234567,
        .issued_sec = 1700000000,
        .holder = some_holder,
        .room = SPAN("concert:42"),
    };
}

static struct pass_claims some_pass(void)
{
    return (struct pass_claims){
        .key_id = NEW_ID,
        .tier = 2,
        .epoch = 5,
        .count = 1234567,
        .holder = some_holder,
        .iat_sec = 1700000000,
        .exp_sec = 1700043200,
        .room = SPAN("concert:42"),
        .uid = SPAN("Zo\xc3\xab \"Q\"\n"),
    };
}

static struct ticket_claims random_ticket(char room[ROOM_ID_MAX])
{
    struct ticket_claims claims = {
        .key_id = random_below(2) == 0 ? NEW_ID : OLD_ID,
        .is_trusted = random_below(2) == 0,
        .epoch = random_bits(),
        .count = random_bits(),
        .issued_sec = random_bits(),
        .room = {room, 1 + random_below(ROOM_ID_MAX)},
    };
    random_fill(claims.holder.id, sizeof(claims.holder.id));
    random_fill_from(room_alphabet, room, claims.room.len);
    room[0] = 'r'; /* "." and ".." are no rooms */
    return claims;
}

static struct pass_claims random_pass(char room[ROOM_ID_MAX], char uid[PASS_UID_MAX])
{
    struct pass_claims claims = {
        .key_id = random_below(2) == 0 ? NEW_ID : OLD_ID,
        .tier = 1 + (int)random_below(2),
        .epoch = random_bits(),
        .count = random_bits(),
        .iat_sec = NOW - random_below(1000),
        .exp_sec = NOW + 1 + random_below(100000),
        .room = {room, 1 + random_below(ROOM_ID_MAX)},
        .uid = {uid, random_below(40)},
    };
    random_fill(claims.holder.id, sizeof(claims.holder.id));
    random_fill_from(room_alphabet, room, claims.room.len);
    room[0] = 'r'; /* "." and ".." are no rooms */
    random_fill_from("abc\"\\\n\x01 0@", uid, claims.uid.len);
    return claims;
}

static bool is_ticket(struct span token)
{
    struct ticket_claims claims;
    char room[ROOM_ID_MAX];
    return ticket_verify(ring, token, &claims, room);
}

static bool is_pass(int tier, struct span token)
{
    struct pass_claims claims;
    char scratch[PASS_SCRATCH_MAX];
    return pass_verify(ring, tier, token, NOW, &claims, scratch, sizeof(scratch));
}

static bool is_visitor(struct span token)
{
    uint8_t id[VISITOR_ID_SIZE];
    return visitor_verify(ring, token, id);
}

static bool is_anything(struct span token)
{
    return is_ticket(token) || is_pass(1, token) || is_pass(2, token) || is_visitor(token);
}

/* ---- what was signed is taken ---- */

static void expect_ticket(const struct ticket_claims *seen, const struct ticket_claims *expected)
{
    assert_int_equal(seen->key_id, expected->key_id);
    assert_int_equal(seen->is_trusted, expected->is_trusted);
    assert_int_equal(seen->epoch, expected->epoch);
    assert_int_equal(seen->count, expected->count);
    assert_int_equal(seen->issued_sec, expected->issued_sec);
    assert_true(holder_equal(&seen->holder, &expected->holder));
    assert_true(span_equal(seen->room, expected->room));
}

static void a_ticket_carries_its_claims(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char room[ROOM_ID_MAX], seen_room[ROOM_ID_MAX], token[TICKET_TOKEN_MAX], again[TICKET_TOKEN_MAX];
        struct ticket_claims claims = random_ticket(room), seen;
        size_t len = ticket_sign(ring, &claims, token);
        assert_true(len > 0);
        assert_int_equal(ticket_sign(ring, &claims, again), len);
        assert_memory_equal(token, again, len);
        assert_true(ticket_verify(ring, (struct span){token, len}, &seen, seen_room));
        expect_ticket(&seen, &claims);
    }
}

static void expect_pass(const struct pass_claims *seen, const struct pass_claims *expected)
{
    assert_int_equal(seen->key_id, expected->key_id);
    assert_int_equal(seen->tier, expected->tier);
    assert_int_equal(seen->epoch, expected->epoch);
    assert_int_equal(seen->count, expected->count);
    assert_int_equal(seen->iat_sec, expected->iat_sec);
    assert_int_equal(seen->exp_sec, expected->exp_sec);
    assert_true(holder_equal(&seen->holder, &expected->holder));
    assert_true(span_equal(seen->room, expected->room));
    assert_true(span_equal(seen->uid, expected->uid));
}

static void a_pass_carries_its_claims(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char room[ROOM_ID_MAX], uid[PASS_UID_MAX], scratch[PASS_SCRATCH_MAX];
        char token[PASS_TOKEN_MAX], again[PASS_TOKEN_MAX];
        struct pass_claims claims = random_pass(room, uid), seen;
        size_t len = pass_sign(ring, &claims, token, sizeof(token));
        assert_true(len > 0);
        assert_int_equal(pass_sign(ring, &claims, again, sizeof(again)), len);
        assert_memory_equal(token, again, len);
        assert_true(
            pass_verify(ring, claims.tier, (struct span){token, len}, NOW, &seen, scratch, sizeof(scratch)));
        expect_pass(&seen, &claims);
    }
}

static void a_visitor_cookie_carries_its_id(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint8_t id[VISITOR_ID_SIZE], seen[VISITOR_ID_SIZE];
        char token[VISITOR_TOKEN_LEN];
        random_fill(id, sizeof(id));
        visitor_sign(ring, id, token);
        assert_true(visitor_verify(ring, (struct span){token, sizeof(token)}, seen));
        assert_memory_equal(seen, id, sizeof(id));
    }
}

/* Computed with the hmac, hashlib and base64 modules of Python, from the layouts in the headers. */
static void tokens_are_those_of_an_independent_writer(void **state)
{
    static const char ticket[] = "AQEHAAAABQAS1odlU_EAoKGio6SlpqeoqaqrCmNvbmNlcnQ6NDLhqDjDrrf0E-IHsLdy4zqT";
    static const char pass[] = "eyJhbGciOiJIUzI1NiIsImtpZCI6IjIuNyIsInR5cCI6IkpXVCJ9."
                               "eyJpc3MiOiJ3ZWlyIiwic3ViIjoiY29uY2VydDo0MiIsInVpZCI6Ilpvw6sgXCJRXCJcbiIsInRpZ"
                               "XIiOjIsImp0aSI6IkFBQUFCUUFTMW9l"
                               "Z29hS2pwS1dtcDZpcHFxcyIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDQzMjAwfQ."
                               "8aO8X9OKwO8QdyXpotYbAcc8LE34Uh04uYjEBn4h2C8";
    static const char visitor[] = "AQcAAQIDBAUGBwgJCgsMDQ4PAiTMdXwD7f7MV85e8X9Gtw";
    static const uint8_t id[VISITOR_ID_SIZE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct ticket_claims ticket_claims = some_ticket();
    struct pass_claims pass_claims = some_pass();
    char token[PASS_TOKEN_MAX];
    (void)state;
    assert_int_equal(ticket_sign(ring, &ticket_claims, token), sizeof(ticket) - 1);
    assert_memory_equal(token, ticket, sizeof(ticket) - 1);
    assert_int_equal(pass_sign(ring, &pass_claims, token, sizeof(token)), sizeof(pass) - 1);
    assert_memory_equal(token, pass, sizeof(pass) - 1);
    visitor_sign(ring, id, token);
    assert_int_equal(VISITOR_TOKEN_LEN, sizeof(visitor) - 1);
    assert_memory_equal(token, visitor, sizeof(visitor) - 1);
}

/* ---- a pass is a JWT to others ---- */

/* The key that an operator would derive for their own service: HKDF by the text of RFC 5869. */
static void derive(const char *secret, const char *info, uint8_t key[32])
{
    uint8_t prk[32], block[64];
    size_t info_len = strlen(info);
    unsigned len;
    assert_non_null(
        HMAC(EVP_sha256(), (uint8_t[32]){0}, 32, (const uint8_t *)secret, strlen(secret), prk, &len));
    memcpy(block, info, info_len);
    block[info_len] = 1;
    assert_non_null(HMAC(EVP_sha256(), prk, 32, block, info_len + 1, key, &len));
}

static json_t *part_parse(struct span part)
{
    char text[PASS_TOKEN_MAX];
    size_t len;
    assert_true(base64url_decode(part, text, sizeof(text), &len));
    json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    return json;
}

static void a_pass_is_a_jwt_that_others_can_verify(void **state)
{
    char token[PASS_TOKEN_MAX + 1];
    struct pass_claims claims = some_pass();
    uint8_t key[32], expected[32], seen[32];
    unsigned mac_len;
    size_t len = pass_sign(ring, &claims, token, sizeof(token));
    (void)state;
    token[len] = 0;
    char *first = strchr(token, '.'), *second = strchr(first + 1, '.');

    derive(NEW_SECRET, "weir pass 2", key);
    assert_non_null(
        HMAC(EVP_sha256(), key, 32, (uint8_t *)token, (size_t)(second - token), expected, &mac_len));
    assert_true(base64url_decode(span_of(second + 1), seen, sizeof(seen), &len));
    assert_memory_equal(seen, expected, sizeof(expected));

    json_t *header = part_parse((struct span){token, (size_t)(first - token)});
    assert_int_equal(json_object_size(header), 3);
    assert_string_equal(json_string_value(json_object_get(header, "alg")), "HS256");
    assert_string_equal(json_string_value(json_object_get(header, "kid")), "2.7");
    assert_string_equal(json_string_value(json_object_get(header, "typ")), "JWT");
    json_decref(header);

    json_t *payload = part_parse((struct span){first + 1, (size_t)(second - first - 1)});
    assert_int_equal(json_object_size(payload), 7);
    assert_string_equal(json_string_value(json_object_get(payload, "iss")), "weir");
    assert_string_equal(json_string_value(json_object_get(payload, "sub")), "concert:42");
    assert_string_equal(json_string_value(json_object_get(payload, "uid")), "Zo\xc3\xab \"Q\"\n");
    assert_int_equal(json_integer_value(json_object_get(payload, "tier")), 2);
    assert_int_equal(json_string_length(json_object_get(payload, "jti")), 27);
    assert_int_equal(json_integer_value(json_object_get(payload, "iat")), 1700000000);
    assert_int_equal(json_integer_value(json_object_get(payload, "exp")), 1700043200);
    json_decref(payload);
}

static void the_longest_pass_fits_and_reads_back(void **state)
{
    char room[ROOM_ID_MAX], uid[PASS_UID_MAX + 1], token[PASS_TOKEN_MAX], scratch[PASS_SCRATCH_MAX];
    struct pass_claims claims = some_pass(), seen;
    (void)state;
    memset(room, 'r', sizeof(room));
    memset(uid, '\x01', sizeof(uid));
    claims.room = (struct span){room, sizeof(room)};
    claims.uid = (struct span){uid, PASS_UID_MAX};
    claims.iat_sec = NOW;
    claims.exp_sec = INT64_MAX;
    claims.epoch = claims.count = UINT32_MAX;
    size_t len = pass_sign(ring, &claims, token, sizeof(token));
    assert_true(len > 0);
    assert_true(pass_verify(ring, 2, (struct span){token, len}, NOW, &seen, scratch, sizeof(scratch)));
    expect_pass(&seen, &claims);
    claims.uid.len = PASS_UID_MAX + 1;
    assert_int_equal(pass_sign(ring, &claims, token, sizeof(token)), 0);
}

static void the_longest_pass_of_a_lobby_fits_and_reads_back(void **state)
{
    char room[ROOM_ID_MAX] = ROOM_LOBBY_PREFIX, uid[PASS_UID_MAX], token[PASS_TOKEN_MAX],
         scratch[PASS_SCRATCH_MAX];
    struct pass_claims claims = some_pass(), seen;
    (void)state;
    memset(room + sizeof(ROOM_LOBBY_PREFIX) - 1, 'r', sizeof(room) - sizeof(ROOM_LOBBY_PREFIX) + 1);
    memset(uid, '\x01', sizeof(uid));
    claims.tier = 1;
    claims.room = (struct span){room, sizeof(room)};
    claims.uid = (struct span){uid, sizeof(uid)};
    claims.iat_sec = NOW;
    claims.exp_sec = INT64_MAX;
    claims.epoch = claims.count = UINT32_MAX;
    size_t len = pass_sign(ring, &claims, token, sizeof(token));
    assert_true(len > 0);
    assert_true(pass_verify(ring, 1, (struct span){token, len}, NOW, &seen, scratch, sizeof(scratch)));
    expect_pass(&seen, &claims);
}

static json_t *payload_of(const struct pass_claims *claims)
{
    char token[PASS_TOKEN_MAX];
    size_t len = pass_sign(ring, claims, token, sizeof(token));
    assert_true(len > 0);
    char *first = memchr(token, '.', len), *second = strchr(first + 1, '.');
    return part_parse((struct span){first + 1, (size_t)(second - first - 1)});
}

static void the_subject_of_a_lobbys_pass_is_the_event(void **state)
{
    struct pass_claims claims = some_pass();
    (void)state;
    claims.room = SPAN("lobby:42");
    claims.tier = 1;
    json_t *payload = payload_of(&claims);
    assert_int_equal(json_object_size(payload), 8);
    assert_string_equal(json_string_value(json_object_get(payload, "sub")), "42");
    assert_string_equal(json_string_value(json_object_get(payload, "room")), "lobby:42");
    json_decref(payload);
    claims.tier = 2; /* what opens a hall is no lobby's */
    payload = payload_of(&claims);
    assert_int_equal(json_object_size(payload), 7);
    assert_string_equal(json_string_value(json_object_get(payload, "sub")), "lobby:42");
    json_decref(payload);
}

static void a_pass_is_written_whole_or_not_at_all(void **state)
{
    char token[PASS_TOKEN_MAX];
    struct pass_claims claims = some_pass();
    size_t len = pass_sign(ring, &claims, token, sizeof(token));
    (void)state;
    for (size_t cap = 0; cap <= len; cap++) {
        char *exact = malloc(cap + 1);
        assert_int_equal(pass_sign(ring, &claims, exact, cap), cap == len ? len : 0);
        free(exact);
    }
}

static void a_pass_is_refused_where_its_scratch_is_too_small(void **state)
{
    char token[PASS_TOKEN_MAX];
    struct pass_claims claims = some_pass(), seen;
    size_t len = pass_sign(ring, &claims, token, sizeof(token)), enough = 0;
    (void)state;
    for (size_t cap = 0; cap <= PASS_TOKEN_MAX && enough == 0; cap++) {
        char *exact = malloc(cap + 1);
        if (pass_verify(ring, 2, (struct span){token, len}, NOW, &seen, exact, cap))
            enough = cap;
        free(exact);
    }
    assert_true(enough > 100);
}

static void a_uid_that_no_json_can_carry_gives_no_pass(void **state)
{
    static const struct span bad[] = {SPAN("\xff"), SPAN("a\xc3"), SPAN("\xed\xa0\x80"), SPAN("a\0b")};
    struct pass_claims claims = some_pass();
    char token[PASS_TOKEN_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        claims.uid = bad[i];
        assert_int_equal(pass_sign(ring, &claims, token, sizeof(token)), 0);
    }
    claims.uid = SPAN_NONE;
    assert_true(pass_sign(ring, &claims, token, sizeof(token)) > 0);
}

/* ---- nothing else is ---- */

static void expect_no_flipped_bit_accepted(struct span token, bool (*is_accepted)(struct span))
{
    char text[PASS_TOKEN_MAX];
    memcpy(text, token.data, token.len);
    assert_true(is_accepted((struct span){text, token.len}));
    for (size_t bit = 0; bit < token.len * 8; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        if (is_accepted((struct span){text, token.len}))
            fail_msg("accepted with bit %zu flipped: %.*s", bit, (int)token.len, text);
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
}

static void no_bit_of_1000_tickets_can_be_flipped(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char room[ROOM_ID_MAX], token[TICKET_TOKEN_MAX];
        struct ticket_claims claims = random_ticket(room);
        expect_no_flipped_bit_accepted((struct span){token, ticket_sign(ring, &claims, token)}, is_anything);
    }
}

static void no_bit_of_1000_passes_can_be_flipped(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char room[ROOM_ID_MAX], uid[PASS_UID_MAX], token[PASS_TOKEN_MAX];
        struct pass_claims claims = random_pass(room, uid);
        size_t len = pass_sign(ring, &claims, token, sizeof(token));
        expect_no_flipped_bit_accepted((struct span){token, len}, is_anything);
    }
}

static void no_bit_of_1000_visitor_cookies_can_be_flipped(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint8_t id[VISITOR_ID_SIZE];
        char token[VISITOR_TOKEN_LEN];
        random_fill(id, sizeof(id));
        visitor_sign(ring, id, token);
        expect_no_flipped_bit_accepted((struct span){token, sizeof(token)}, is_anything);
    }
}

static void expect_no_other_length_accepted(struct span token)
{
    assert_true(is_anything(token));
    for (size_t len = 0; len < token.len; len++) {
        /* On the heap and exact, so that a sanitizer sees a read past the end. */
        char *part = malloc(len + 1);
        memcpy(part, token.data, len);
        assert_false(is_anything((struct span){part, len}));
        memcpy(part, token.data + token.len - len, len);
        assert_false(is_anything((struct span){part, len}));
        free(part);
    }
    char longer[PASS_TOKEN_MAX + 4];
    for (int c = 0; c < 256; c++)
        for (size_t more = 1; more <= 4; more++) {
            memcpy(longer, token.data, token.len);
            memset(longer + token.len, c, more);
            assert_false(is_anything((struct span){longer, token.len + more}));
            memset(longer, c, more);
            memcpy(longer + more, token.data, token.len);
            assert_false(is_anything((struct span){longer, token.len + more}));
        }
}

static void a_token_cut_or_extended_anywhere_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        uint8_t id[VISITOR_ID_SIZE];
        random_fill(id, sizeof(id));
        char room[ROOM_ID_MAX], uid[PASS_UID_MAX], token[PASS_TOKEN_MAX];
        struct ticket_claims ticket = random_ticket(room);
        expect_no_other_length_accepted((struct span){token, ticket_sign(ring, &ticket, token)});
        struct pass_claims pass = random_pass(room, uid);
        expect_no_other_length_accepted((struct span){token, pass_sign(ring, &pass, token, sizeof(token))});
        visitor_sign(ring, id, token);
        expect_no_other_length_accepted((struct span){token, VISITOR_TOKEN_LEN});
    }
}

static void a_token_of_10000_characters_is_refused(void **state)
{
    static char token[10000];
    (void)state;
    for (int i = 0; i < 256; i++) {
        memset(token, i, sizeof(token));
        assert_false(is_anything((struct span){token, sizeof(token)}));
    }
    assert_false(is_anything(SPAN_NONE));
}

static void a_token_of_one_kind_is_never_taken_for_another(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint8_t id[VISITOR_ID_SIZE];
        random_fill(id, sizeof(id));
        char room[ROOM_ID_MAX], uid[PASS_UID_MAX], token[PASS_TOKEN_MAX];
        struct ticket_claims ticket = random_ticket(room);
        struct span offered = {token, ticket_sign(ring, &ticket, token)};
        assert_true(is_ticket(offered));
        assert_false(is_pass(1, offered) || is_pass(2, offered) || is_visitor(offered));

        struct pass_claims pass = random_pass(room, uid);
        offered.len = pass_sign(ring, &pass, token, sizeof(token));
        assert_true(is_pass(pass.tier, offered));
        assert_false(is_pass(3 - pass.tier, offered) || is_ticket(offered) || is_visitor(offered));

        visitor_sign(ring, id, token);
        offered.len = VISITOR_TOKEN_LEN;
        assert_true(is_visitor(offered));
        assert_false(is_pass(1, offered) || is_pass(2, offered) || is_ticket(offered));
    }
}

/* The bytes of a real token, signed again with the key of `purpose`: right in form, made by a real key. */
static struct span resign_binary(struct span token, enum key_purpose purpose, uint8_t key_id, char *out)
{
    uint8_t bytes[TICKET_SIZE_MAX], mac[KEYRING_MAC_SIZE];
    size_t size;
    assert_true(base64url_decode(token, bytes, sizeof(bytes), &size));
    assert_true(keyring_mac(ring, purpose, key_id, bytes, size - 16, mac));
    memcpy(bytes + size - 16, mac, 16);
    return (struct span){out, base64url_encode(bytes, size, out, PASS_TOKEN_MAX)};
}

static struct span forge_pass(const char *header, const char *payload, enum key_purpose purpose,
                              uint8_t key_id, char *out)
{
    uint8_t mac[KEYRING_MAC_SIZE];
    size_t len = base64url_encode(header, strlen(header), out, PASS_TOKEN_MAX);
    out[len++] = '.';
    len += base64url_encode(payload, strlen(payload), out + len, PASS_TOKEN_MAX - len);
    assert_true(keyring_mac(ring, purpose, key_id, out, len, mac));
    out[len++] = '.';
    return (struct span){out, len + base64url_encode(mac, sizeof(mac), out + len, PASS_TOKEN_MAX - len)};
}

#define HEADER "{\"alg\":\"HS256\",\"kid\":\"2.7\",\"typ\":\"JWT\"}"
#define JTI    "AAAABQAS1oegoaKjpKWmp6ipqqs"
#define PAYLOAD                                                               \
    "{\"iss\":\"weir\",\"sub\":\"r\",\"uid\":\"u\",\"tier\":2,\"jti\":\"" JTI \
    "\",\"iat\":1700000000,\"exp\":1700043200}"

/* The payload above with the first `from` in it made `to`. */
static const char *payload_with(const char *from, const char *to)
{
    static char out[1024];
    const char *at = strstr(PAYLOAD, from);
    assert_non_null(at);
    snprintf(out, sizeof(out), "%.*s%s%s", (int)(at - PAYLOAD), PAYLOAD, to, at + strlen(from));
    return out;
}

static void the_right_form_under_the_key_of_another_purpose_or_id_is_refused(void **state)
{
    static const uint8_t ids[] = {NEW_ID, OLD_ID};
    static const uint8_t visitor_id[VISITOR_ID_SIZE] = {1};
    char ticket[TICKET_TOKEN_MAX], visitor[VISITOR_TOKEN_LEN], out[PASS_TOKEN_MAX];
    struct ticket_claims claims = some_ticket();
    size_t ticket_len = ticket_sign(ring, &claims, ticket);
    (void)state;
    visitor_sign(ring, visitor_id, visitor);
    for (int purpose = 0; purpose < KEY_HOLDER; purpose++)
        for (size_t i = 0; i < sizeof(ids); i++) {
            bool is_new = ids[i] == NEW_ID;
            struct span forged = resign_binary((struct span){ticket, ticket_len}, purpose, ids[i], out);
            assert_int_equal(is_ticket(forged), purpose == KEY_TICKET && is_new);
            forged = resign_binary((struct span){visitor, VISITOR_TOKEN_LEN}, purpose, ids[i], out);
            assert_int_equal(is_visitor(forged), purpose == KEY_VISITOR && is_new);
            forged = forge_pass(HEADER, PAYLOAD, purpose, ids[i], out);
            assert_int_equal(is_pass(2, forged), purpose == KEY_PASS_2 && is_new);
            assert_false(is_pass(1, forged));
        }
}

static void each_tier_has_a_key_of_its_own(void **state)
{
    static const char header[] = "{\"alg\":\"HS256\",\"kid\":\"1.7\",\"typ\":\"JWT\"}";
    const char *payload = payload_with("\"tier\":2", "\"tier\":1");
    char token[PASS_TOKEN_MAX];
    (void)state;
    for (int purpose = 0; purpose < KEY_HOLDER; purpose++) {
        struct span forged = forge_pass(header, payload, purpose, NEW_ID, token);
        assert_int_equal(is_pass(1, forged), purpose == KEY_PASS_1);
        assert_false(is_pass(2, forged));
    }
}

static void a_visitor_cookie_of_another_version_is_refused_though_signed(void **state)
{
    static const uint8_t id[VISITOR_ID_SIZE] = {1};
    char token[VISITOR_TOKEN_LEN], out[PASS_TOKEN_MAX];
    uint8_t bytes[VISITOR_SIZE];
    size_t size;
    (void)state;
    visitor_sign(ring, id, token);
    assert_true(base64url_decode((struct span){token, sizeof(token)}, bytes, sizeof(bytes), &size));
    bytes[0]++;
    base64url_encode(bytes, size, token, sizeof(token));
    assert_false(is_visitor(resign_binary((struct span){token, sizeof(token)}, KEY_VISITOR, NEW_ID, out)));
}

static void a_header_that_is_not_ours_to_the_byte_is_refused(void **state)
{
    static const char *const headers[] = {
        "",
        "{}",
        "{\"alg\":\"none\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS512\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"hs256\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.7\"}",
        "{\"typ\":\"JWT\",\"alg\":\"HS256\",\"kid\":\"2.7\"}",
        "{\"alg\":\"HS256\",\"kid\":\"1.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.07\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.263\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.0\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.8\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.3\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\", \"kid\":\"2.7\",\"typ\":\"JWT\"}",
        "{\"alg\":\"HS256\",\"kid\":\"2.7\",\"typ\":\"JWT\"} ",
        "{\"alg\":\"HS256\",\"kid\":\"2.7\",\"typ\":\"JWT\",\"x\":1}",
        "{\"alg\":\"HS256\",\"kid\":\"2.7\",\"typ\":\"jwt\"}",
    };
    char token[PASS_TOKEN_MAX];
    (void)state;
    assert_true(is_pass(2, forge_pass(HEADER, PAYLOAD, KEY_PASS_2, NEW_ID, token)));
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct span forged = forge_pass(headers[i], PAYLOAD, KEY_PASS_2, NEW_ID, token);
        if (is_pass(1, forged) || is_pass(2, forged))
            fail_msg("accepted: %s", headers[i]);
    }
}

static void claims_that_are_missing_or_wrong_are_refused_though_signed(void **state)
{
    static const char *const changes[][2] = {
        {",\"exp\":1700043200", ""},
        {"1700043200", "null"},
        {"1700043200", "\"1700043200\""},
        {"1700043200", "-1"},
        {"1700043200", "1700043200.5"},
        {"1700043200", "17e8"},
        {"1700043200", "9223372036854775808"},
        {"1700043200", "0"},
        {"1700043200", "1700000100"},
        {",\"iat\":1700000000", ""},
        {"1700000000", "1700000161"},
        {"1700000000", "null"},
        {"1700000000", "\"x\""},
        {"\"iss\":\"weir\",", ""},
        {"\"weir\"", "\"Weir\""},
        {"\"weir\"", "\"\""},
        {"\"weir\"", "null"},
        {"\"weir\"", "[\"weir\"]"},
        {"\"sub\":\"r\",", ""},
        {"\"r\"", "\"\""},
        {"\"r\"", "\"a/b\""},
        {"\"r\"", "\"\\u00e9\""},
        {"\"r\"", "7"},
        {"\"uid\":\"u\",", ""},
        {"\"u\"", "null"},
        {"\"u\"", "1"},
        {"\"tier\":2,", ""},
        {"\"tier\":2", "\"tier\":1"},
        {"\"tier\":2", "\"tier\":0"},
        {"\"tier\":2", "\"tier\":258"},
        {"\"tier\":2", "\"tier\":4294967298"},
        {"\"tier\":2", "\"tier\":\"2\""},
        {"\"tier\":2", "\"tier\":2.0"},
        {"\"jti\":\"" JTI "\",", ""},
        {JTI, ""},
        {JTI, "AAAABQAS1oegoaKjpKWmp6ipqg"},
        {JTI, JTI "A"},
        {JTI, "AAAABQAS1oegoaKjpKWmp6ipqqt"},
        {"\"tier\":2", "\"tier\":2,\"tier\":2"},
        {"{", "[{"},
        {"}", "}]"},
        {"}", "}}"},
        {"{", ""},
    };
    char token[PASS_TOKEN_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const char *payload = payload_with(changes[i][0], changes[i][1]);
        struct span forged = forge_pass(HEADER, payload, KEY_PASS_2, NEW_ID, token);
        if (is_pass(1, forged) || is_pass(2, forged))
            fail_msg("accepted: %s", payload);
    }
    assert_true(
        is_pass(2, forge_pass(HEADER, payload_with("{", "{\"aud\":[1],"), KEY_PASS_2, NEW_ID, token)));
}

static void a_pass_is_valid_from_a_minute_before_iat_until_exp(void **state)
{
    struct pass_claims claims = some_pass(), seen;
    char token[PASS_TOKEN_MAX], scratch[PASS_SCRATCH_MAX];
    struct span pass = {token, pass_sign(ring, &claims, token, sizeof(token))};
    const uint64_t iat = claims.iat_sec, exp = claims.exp_sec;
    (void)state;
    assert_false(pass_verify(ring, 2, pass, 0, &seen, scratch, sizeof(scratch)));
    assert_false(pass_verify(ring, 2, pass, iat - PASS_SKEW_SEC - 1, &seen, scratch, sizeof(scratch)));
    assert_true(pass_verify(ring, 2, pass, iat - PASS_SKEW_SEC, &seen, scratch, sizeof(scratch)));
    assert_true(pass_verify(ring, 2, pass, iat, &seen, scratch, sizeof(scratch)));
    assert_true(pass_verify(ring, 2, pass, exp - 1, &seen, scratch, sizeof(scratch)));
    assert_false(pass_verify(ring, 2, pass, exp, &seen, scratch, sizeof(scratch)));
    assert_false(pass_verify(ring, 2, pass, UINT64_MAX, &seen, scratch, sizeof(scratch)));
}

static void a_ticket_with_a_form_we_never_write_is_refused_though_signed(void **state)
{
    /* Offset in the layout, and a value that a ticket of ours does not have there. */
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {{0, 0},  {0, 2},   {0, 255}, {1, 2},    {1, 3},    {1, 128}, {27, 0},
                   {27, 9}, {27, 11}, {27, 65}, {27, 255}, {28, '/'}, {37, 0}};
    char token[TICKET_TOKEN_MAX], out[PASS_TOKEN_MAX], changed[TICKET_TOKEN_MAX];
    struct ticket_claims claims = some_ticket();
    size_t len = ticket_sign(ring, &claims, token), size;
    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        uint8_t bytes[TICKET_SIZE_MAX];
        assert_true(base64url_decode((struct span){token, len}, bytes, sizeof(bytes), &size));
        bytes[changes[i].at] = changes[i].value;
        base64url_encode(bytes, size, changed, sizeof(changed));
        assert_false(is_ticket(resign_binary((struct span){changed, len}, KEY_TICKET, NEW_ID, out)));
    }
    assert_true(is_ticket(resign_binary((struct span){token, len}, KEY_TICKET, NEW_ID, out)));
}

/* As near to a real token as one gets without a key: the right form, a known key id, a MAC by chance. */
static size_t guess_binary(char *out)
{
    uint8_t bytes[TICKET_SIZE_MAX];
    size_t room_len = 1 + random_below(ROOM_ID_MAX),
           size = random_below(2) == 0 ? VISITOR_SIZE : 28 + room_len + 16;
    random_fill(bytes, size);
    bytes[0] = 1;
    bytes[1] = size == VISITOR_SIZE ? NEW_ID : (uint8_t)random_below(2);
    if (size != VISITOR_SIZE) {
        bytes[2] = NEW_ID;
        bytes[27] = (uint8_t)room_len;
        random_fill_from(room_alphabet, (char *)bytes + 28, room_len);
    }
    return base64url_encode(bytes, size, out, PASS_TOKEN_MAX);
}

static size_t guess_pass(char *out)
{
    char room[ROOM_ID_MAX], uid[PASS_UID_MAX];
    struct pass_claims claims = random_pass(room, uid);
    size_t len = pass_sign(ring, &claims, out, PASS_TOKEN_MAX);
    random_fill_from(text_alphabet, out + len - 43, 42);
    return len;
}

static void none_of_a_million_random_tokens_is_accepted(void **state)
{
    char token[PASS_TOKEN_MAX];
    (void)state;
    for (int i = 0; i < 1000000; i++) {
        size_t len = random_below(200);
        switch (i % 4) {
        case 0:
            random_fill_from(text_alphabet, token, len);
            break;
        case 1:
            random_fill(token, len);
            break;
        case 2:
            len = guess_binary(token);
            break;
        default:
            len = guess_pass(token);
        }
        assert_false(is_anything((struct span){token, len}));
    }
}

/* ---- rotation ---- */

struct tokens {
    char ticket[TICKET_TOKEN_MAX], pass[PASS_TOKEN_MAX], visitor[VISITOR_TOKEN_LEN];
    size_t ticket_len, pass_len;
};

static void sign_all(struct keyring *with, struct tokens *out)
{
    static const uint8_t id[VISITOR_ID_SIZE] = {9};
    struct ticket_claims ticket = some_ticket();
    struct pass_claims pass = some_pass();
    ticket.key_id = pass.key_id = keyring_signing_id(with);
    out->ticket_len = ticket_sign(with, &ticket, out->ticket);
    out->pass_len = pass_sign(with, &pass, out->pass, sizeof(out->pass));
    visitor_sign(with, id, out->visitor);
    assert_true(out->ticket_len > 0 && out->pass_len > 0);
}

static void expect_all(struct keyring *with, const struct tokens *tokens, bool is_expected)
{
    struct ticket_claims ticket;
    struct pass_claims pass;
    char room[ROOM_ID_MAX], scratch[PASS_SCRATCH_MAX];
    uint8_t id[VISITOR_ID_SIZE];
    assert_int_equal(ticket_verify(with, (struct span){tokens->ticket, tokens->ticket_len}, &ticket, room),
                     is_expected);
    assert_int_equal(pass_verify(with, 2, (struct span){tokens->pass, tokens->pass_len}, NOW, &pass, scratch,
                                 sizeof(scratch)),
                     is_expected);
    assert_int_equal(visitor_verify(with, (struct span){tokens->visitor, VISITOR_TOKEN_LEN}, id),
                     is_expected);
}

static void tokens_of_both_keys_live_through_a_rotation(void **state)
{
    char reason[KEYRING_REASON_MAX];
    struct keyring *before = keyring_new(SPAN("3 " OLD_SECRET), reason), *during = ring;
    struct keyring *after = keyring_new(SPAN("7 " NEW_SECRET "\nholder " OLD_SECRET), reason);
    struct tokens old_tokens, new_tokens;
    (void)state;
    assert_true(before != NULL && after != NULL);
    sign_all(before, &old_tokens);
    sign_all(during, &new_tokens);
    expect_all(before, &old_tokens, true);
    expect_all(before, &new_tokens, false);
    expect_all(during, &old_tokens, true);
    expect_all(during, &new_tokens, true);
    expect_all(after, &old_tokens, false);
    expect_all(after, &new_tokens, true);
    keyring_free(before);
    keyring_free(after);
}

static void the_same_id_with_another_secret_verifies_nothing(void **state)
{
    char reason[KEYRING_REASON_MAX];
    struct keyring *other = keyring_new(SPAN("7 " OLD_SECRET "\n3 " NEW_SECRET), reason);
    struct tokens tokens;
    (void)state;
    sign_all(ring, &tokens);
    expect_all(other, &tokens, false);
    keyring_free(other);
}

static void a_repeat_under_the_old_key_gives_the_same_bytes_until_it_is_gone(void **state)
{
    char reason[KEYRING_REASON_MAX], first[PASS_TOKEN_MAX], again[PASS_TOKEN_MAX];
    struct keyring *before = keyring_new(SPAN("3 " OLD_SECRET), reason);
    struct ticket_claims ticket = some_ticket();
    struct pass_claims pass = some_pass();
    (void)state;
    ticket.key_id = pass.key_id = OLD_ID;
    size_t len = pass_sign(before, &pass, first, sizeof(first));
    assert_int_equal(pass_sign(ring, &pass, again, sizeof(again)), len);
    assert_memory_equal(first, again, len);
    ticket.key_id = pass.key_id = NEW_ID;
    assert_int_equal(pass_sign(before, &pass, again, sizeof(again)), 0);
    assert_int_equal(ticket_sign(before, &ticket, again), 0);
    keyring_free(before);
}

int main(void)
{
    const struct CMUnitTest token[] = {
        cmocka_unit_test(a_ticket_carries_its_claims),
        cmocka_unit_test(a_pass_carries_its_claims),
        cmocka_unit_test(a_visitor_cookie_carries_its_id),
        cmocka_unit_test(tokens_are_those_of_an_independent_writer),
        cmocka_unit_test(a_pass_is_a_jwt_that_others_can_verify),
        cmocka_unit_test(the_longest_pass_fits_and_reads_back),
        cmocka_unit_test(the_longest_pass_of_a_lobby_fits_and_reads_back),
        cmocka_unit_test(the_subject_of_a_lobbys_pass_is_the_event),
        cmocka_unit_test(a_pass_is_written_whole_or_not_at_all),
        cmocka_unit_test(a_pass_is_refused_where_its_scratch_is_too_small),
        cmocka_unit_test(a_uid_that_no_json_can_carry_gives_no_pass),
        cmocka_unit_test(no_bit_of_1000_tickets_can_be_flipped),
        cmocka_unit_test(no_bit_of_1000_passes_can_be_flipped),
        cmocka_unit_test(no_bit_of_1000_visitor_cookies_can_be_flipped),
        cmocka_unit_test(a_token_cut_or_extended_anywhere_is_refused),
        cmocka_unit_test(a_token_of_10000_characters_is_refused),
        cmocka_unit_test(a_token_of_one_kind_is_never_taken_for_another),
        cmocka_unit_test(the_right_form_under_the_key_of_another_purpose_or_id_is_refused),
        cmocka_unit_test(each_tier_has_a_key_of_its_own),
        cmocka_unit_test(a_visitor_cookie_of_another_version_is_refused_though_signed),
        cmocka_unit_test(a_header_that_is_not_ours_to_the_byte_is_refused),
        cmocka_unit_test(claims_that_are_missing_or_wrong_are_refused_though_signed),
        cmocka_unit_test(a_pass_is_valid_from_a_minute_before_iat_until_exp),
        cmocka_unit_test(a_ticket_with_a_form_we_never_write_is_refused_though_signed),
        cmocka_unit_test(none_of_a_million_random_tokens_is_accepted),
        cmocka_unit_test(tokens_of_both_keys_live_through_a_rotation),
        cmocka_unit_test(the_same_id_with_another_secret_verifies_nothing),
        cmocka_unit_test(a_repeat_under_the_old_key_gives_the_same_bytes_until_it_is_gone),
    };
    return cmocka_run_group_tests_name("token", token, ring_setup, ring_teardown);
}
