/* SPDX-License-Identifier: BSD-2-Clause */
/* The secret file, the keys made of it, and what a rotation keeps. */
#include "token/keyring.h"
#include "token/visitor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define A "0123456789abcdef0123456789abcdef"
#define B "an-older-secret-of-forty-characters!!!!!"
#define C "yet-another-secret-that-is-long-enough"

static struct keyring *ring_of(const char *text)
{
    char reason[KEYRING_REASON_MAX] = "";
    struct keyring *ring = keyring_new(span_of(text), reason);
    if (ring == NULL)
        fail_msg("refused: %s", reason);
    return ring;
}

static void expect_refused(struct span text, const char *part_of_reason)
{
    char reason[KEYRING_REASON_MAX] = "";
    assert_null(keyring_new(text, reason));
    if (strstr(reason, part_of_reason) == NULL)
        fail_msg("expected \"%s\" in: %s", part_of_reason, reason);
}

static void the_first_key_signs_and_all_are_known(void **state)
{
    struct keyring *ring = ring_of("# keys of the shop\n\n  7\t" A " \r\n255 " B "\n# end");
    (void)state;
    assert_int_equal(keyring_signing_id(ring), 7);
    for (int id = 0; id < 256; id++)
        assert_int_equal(keyring_has(ring, (uint8_t)id), id == 7 || id == 255);
    keyring_free(ring);
    keyring_free(NULL);
}

static void a_key_that_is_next_verifies_and_does_not_sign_yet(void **state)
{
    struct keyring *ring = ring_of("2 " A " next\n1 " B "\n");
    uint8_t mac[KEYRING_MAC_SIZE];
    (void)state;
    assert_int_equal(keyring_signing_id(ring), 1);
    assert_true(keyring_has(ring, 2) && keyring_mac(ring, KEY_TICKET, 2, "x", 1, mac));
    assert_int_equal(keyring_id_at(ring, 0), 2);
    assert_int_equal(keyring_id_at(ring, 1), 1);
    assert_int_equal(keyring_id_at(ring, 2), 0);
    keyring_free(ring);
}

static void expect_mac(struct keyring *ring, enum key_purpose purpose, uint8_t id, const char *expected)
{
    uint8_t mac[KEYRING_MAC_SIZE];
    char hex[2 * KEYRING_MAC_SIZE + 1];
    assert_true(keyring_mac(ring, purpose, id, "hello", 5, mac));
    for (size_t i = 0; i < sizeof(mac); i++)
        sprintf(hex + 2 * i, "%02x", mac[i]);
    assert_string_equal(hex, expected);
}

/*
 * Computed with the hmac and hashlib modules of Python: HKDF by the text of RFC 5869, then HMAC of "hello".
 */
static void macs_are_those_of_an_independent_hkdf_and_hmac(void **state)
{
    struct keyring *ring = ring_of("7 " A "\n3 " B "\n");
    (void)state;
    /* Twice: the second MAC must not feel the first. */
    for (int round = 0; round < 2; round++) {
        expect_mac(ring, KEY_TICKET, 7, "5d59306fd292c3c4769d50dd01640631b25d50431dbe2df40cb46a729f522a8c");
        expect_mac(ring, KEY_PASS_1, 7, "c9b8b17e18a1ae46fffe0c1db32d4a35600b28c47cb05b1a7ce2518bd1ef4308");
        expect_mac(ring, KEY_PASS_2, 7, "d032bdf2537ac180b9b926a9716aeadb41543c0e44fe8d283c26429e2f6ebd05");
        expect_mac(ring, KEY_VISITOR, 7, "b3cdfb2f76c90adf3ec602662bc442bb5ea01384bdf636d6e27ed36dadaded2a");
        expect_mac(ring, KEY_HOLDER, KEYRING_HOLDER_ID,
                   "aa0b6360c11ba713319b32d153eae8d542ba8ed58f79364ed0155d6d6dc46b0f");
    }
    keyring_free(ring);
}

static void only_listed_ids_give_a_mac(void **state)
{
    struct keyring *ring = ring_of("7 " A "\n3 " B "\nholder " C);
    uint8_t mac[KEYRING_MAC_SIZE];
    (void)state;
    for (int id = 0; id < 256; id++)
        for (int purpose = 0; purpose < KEY_PURPOSE_COUNT; purpose++) {
            bool is_known = purpose == KEY_HOLDER ? id == KEYRING_HOLDER_ID : id == 7 || id == 3;
            assert_int_equal(keyring_mac(ring, purpose, (uint8_t)id, "x", 1, mac), is_known);
        }
    keyring_free(ring);
}

static void every_key_and_purpose_gives_another_mac(void **state)
{
    struct keyring *ring = ring_of("1 " A "\n2 " B "\nholder " C);
    uint8_t macs[9][KEYRING_MAC_SIZE];
    size_t count = 0;
    (void)state;
    for (uint8_t id = 0; id <= 2; id++)
        for (int purpose = 0; purpose < KEY_PURPOSE_COUNT; purpose++)
            if (keyring_mac(ring, purpose, id, "x", 1, macs[count]))
                count++;
    assert_int_equal(count, 9);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(macs[i], macs[j], KEYRING_MAC_SIZE);
    keyring_free(ring);
}

static void a_bad_file_is_refused_with_a_sentence(void **state)
{
    (void)state;
    expect_refused(SPAN(""), "there is no key");
    expect_refused(SPAN("\n \t\r\n# 1 " A), "there is no key");
    expect_refused(SPAN("holder " A), "there is no key");
    expect_refused(SPAN("\n1 0123456789abcdef0123456789abcde"), "line 2: the secret is too short");
    expect_refused(SPAN("1"), "too short");
    expect_refused(SPAN(A), "begins with its id");
    expect_refused(SPAN("0 " A), "begins with its id");
    expect_refused(SPAN("256 " A), "begins with its id");
    expect_refused(SPAN("999 " A), "begins with its id");
    expect_refused(SPAN("01 " A), "begins with its id");
    expect_refused(SPAN("-1 " A), "begins with its id");
    expect_refused(SPAN("1a " A), "begins with its id");
    expect_refused(SPAN("4294967297 " A), "begins with its id");
    expect_refused(SPAN("Holder " A), "begins with its id");
    expect_refused(SPAN("1 " A " x"), "nothing else");
    expect_refused(SPAN("1 " A " next x"), "nothing else");
    expect_refused(SPAN("1 next"), "too short");
    expect_refused(SPAN("2 " A " next"), "there is no key that signs");
    expect_refused(SPAN("2 " A " next\nholder " B), "there is no key that signs");
    expect_refused(SPAN("2 " A "\nholder " B " next"), "line 2: the holder line cannot be next");
    expect_refused(SPAN("1 " A "\x7f"), "not printable");
    expect_refused(SPAN("1 " A "\xc3\xa9"), "not printable");
    expect_refused(SPAN("1 " A "\0"), "not printable");
    expect_refused(SPAN("1 " A "\n1 " B), "line 2: the id is taken");
    expect_refused(SPAN("1 " A "\n2 " A), "line 2: the secret is that of an earlier line");
    expect_refused(SPAN("1 " A "\nholder " A), "line 2: the secret is that of an earlier line");
    expect_refused(SPAN("holder " B "\n1 " A "\nholder " C), "line 3: there is a holder line already");
}

static void a_reason_never_quotes_the_secret(void **state)
{
    static const char *const bad[] = {
        A, "0 " A, "1 " A " x", "1 " A "\x7f", "1 " A "\n2 " A, "1 0123456789ab"};
    char reason[KEYRING_REASON_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(keyring_new(span_of(bad[i]), reason));
        assert_null(strstr(reason, "0123"));
        assert_null(strchr(reason, '\n'));
    }
}

static void secrets_have_32_to_256_characters(void **state)
{
    char text[2 + SECRET_MAX + 1] = "1 ";
    (void)state;
    memset(text + 2, 'x', SECRET_MAX + 1);
    for (size_t len = 0; len <= SECRET_MAX + 1; len++) {
        char reason[KEYRING_REASON_MAX];
        struct keyring *ring = keyring_new((struct span){text, 2 + len}, reason);
        assert_int_equal(ring != NULL, len >= SECRET_MIN && len <= SECRET_MAX);
        keyring_free(ring);
    }
}

/* `count` lines of keys, then a holder line. */
static size_t file_of(int count, char *out)
{
    size_t len = 0;
    for (int i = 1; i <= count; i++)
        len += (size_t)sprintf(out + len, "%d %d-%s\n", i, i, A);
    return len + (size_t)sprintf(out + len, "holder %s\n", A);
}

static void there_are_at_most_8_keys_and_a_holder_line(void **state)
{
    char text[1024];
    (void)state;
    file_of(SECRET_KEYS_MAX, text);
    keyring_free(ring_of(text));
    file_of(SECRET_KEYS_MAX + 1, text);
    expect_refused(span_of(text), "line 9: there are more than 8 keys");
}

/* ---- pass keys ---- */

#define GIVEN "a-key-of-the-shop-of-32-bytes!!!"

static void expect_not_given(struct keyring *ring, int tier, uint8_t id, struct span key,
                             const char *part_of_reason)
{
    char reason[KEYRING_REASON_MAX] = "";
    uint8_t before[KEYRING_MAC_SIZE], after[KEYRING_MAC_SIZE];
    enum key_purpose purpose = tier == 1 ? KEY_PASS_1 : KEY_PASS_2;
    assert_true(keyring_mac(ring, purpose, id, "x", 1, before));
    assert_false(keyring_give(ring, tier, id, key, reason));
    if (strstr(reason, part_of_reason) == NULL)
        fail_msg("expected \"%s\" in: %s", part_of_reason, reason);
    assert_true(keyring_mac(ring, purpose, id, "x", 1, after));
    assert_memory_equal(before, after, sizeof(before));
}

static void give(struct keyring *ring, int tier, uint8_t id, struct span key)
{
    char reason[KEYRING_REASON_MAX] = "";
    if (!keyring_give(ring, tier, id, key, reason))
        fail_msg("refused: %s", reason);
}

/* The MACs are those of the hmac module of Python. */
static void a_given_key_signs_as_it_is_however_long(void **state)
{
    struct keyring *ring = ring_of("7 " A "\n3 " B "\n");
    char longer[100];
    (void)state;
    for (size_t i = 0; i < sizeof(longer); i++)
        longer[i] = (char)i;
    give(ring, 2, 7, SPAN(GIVEN));
    expect_mac(ring, KEY_PASS_2, 7, "0e7f2a809d0ec8adc5033fc138bdf06a77cc47d68d141b8f26623b46fc5cbea8");
    give(ring, 2, 7, (struct span){longer, sizeof(longer)});
    expect_mac(ring, KEY_PASS_2, 7, "bd4309d7c1f80fda895d7068d21a5077d61daedbb3ccd12e55fcb7b58feb4ab8");
    expect_mac(ring, KEY_PASS_1, 7, "c9b8b17e18a1ae46fffe0c1db32d4a35600b28c47cb05b1a7ce2518bd1ef4308");
    keyring_free(ring);
}

static void a_given_key_has_32_to_1024_bytes(void **state)
{
    struct keyring *ring = ring_of("1 " A);
    char key[KEYRING_GIVEN_MAX + 1];
    (void)state;
    memset(key, 'k', sizeof(key));
    expect_not_given(ring, 2, 1, SPAN_NONE, "too short");
    expect_not_given(ring, 2, 1, (struct span){key, KEYRING_GIVEN_MIN - 1}, "too short");
    expect_not_given(ring, 2, 1, (struct span){key, KEYRING_GIVEN_MAX + 1}, "too long");
    give(ring, 2, 1, (struct span){key, KEYRING_GIVEN_MIN});
    give(ring, 2, 1, (struct span){key, KEYRING_GIVEN_MAX});
    keyring_free(ring);
}

static void one_key_serves_one_purpose(void **state)
{
    struct keyring *ring = ring_of("2 " A "\n1 " B "\nholder " C);
    uint8_t derived[KEYRING_KEY_SIZE];
    (void)state;
    give(ring, 1, 2, SPAN(GIVEN));
    give(ring, 1, 1, SPAN(GIVEN));
    expect_not_given(ring, 2, 2, SPAN(GIVEN), "another purpose");
    expect_not_given(ring, 2, 1, SPAN(GIVEN), "another purpose");
    expect_not_given(ring, 2, 1, SPAN(GIVEN "\0"), "another purpose"); /* to HMAC the very same */
    expect_not_given(ring, 2, 2, SPAN(A), "a secret of the secret file");
    expect_not_given(ring, 2, 2, SPAN(B), "a secret of the secret file");
    expect_not_given(ring, 2, 2, SPAN(C), "a secret of the secret file");
    assert_true(keyring_derive(SPAN(B), 2, derived));
    expect_not_given(ring, 1, 2, (struct span){(char *)derived, sizeof(derived)}, "another purpose");
    give(ring, 2, 2, (struct span){(char *)derived, sizeof(derived)}); /* its own, under a newer id */
    keyring_free(ring);
}

static void a_given_key_is_for_hs256_alone(void **state)
{
    struct keyring *ring = ring_of("2 " A "\n1 " B);
    (void)state;
    give(ring, 2, 2, SPAN(GIVEN));
    assert_false(keyring_set_algorithm(ring, 2, 2, KEY_EDDSA));
    assert_true(keyring_set_algorithm(ring, 2, 2, KEY_HS256));
    assert_int_equal(keyring_algorithm(ring, 2, 2), KEY_HS256);
    assert_true(keyring_set_algorithm(ring, 2, 1, KEY_EDDSA));
    expect_not_given(ring, 2, 1, SPAN(GIVEN), "EdDSA");
    keyring_free(ring);
}

static void the_derived_key_is_the_one_that_signs(void **state)
{
    struct keyring *ring = ring_of("7 " A), *other = ring_of("7 " B);
    uint8_t derived[KEYRING_KEY_SIZE], first[KEYRING_SIGNATURE_MAX], second[KEYRING_SIGNATURE_MAX];
    (void)state;
    for (int tier = 1; tier <= 2; tier++) {
        assert_true(keyring_derive(SPAN(A), tier, derived));
        give(other, tier, 7, (struct span){(char *)derived, sizeof(derived)});
        assert_int_equal(keyring_sign(ring, tier, 7, SPAN("x"), first), KEYRING_MAC_SIZE);
        assert_int_equal(keyring_sign(other, tier, 7, SPAN("x"), second), KEYRING_MAC_SIZE);
        assert_memory_equal(first, second, KEYRING_MAC_SIZE);
    }
    keyring_free(ring);
    keyring_free(other);
}

static void every_ed25519_key_is_another_and_shown_only_where_it_signs(void **state)
{
    struct keyring *ring = ring_of("2 " A "\n1 " B);
    uint8_t keys[4][KEYRING_KEY_SIZE];
    size_t count = 0;
    (void)state;
    for (uint8_t id = 1; id <= 2; id++)
        for (int tier = 1; tier <= 2; tier++) {
            assert_false(keyring_public(ring, tier, id, keys[count]));
            assert_true(keyring_set_algorithm(ring, tier, id, KEY_EDDSA));
            assert_true(keyring_public(ring, tier, id, keys[count++]));
        }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(keys[i], keys[j], KEYRING_KEY_SIZE);
    assert_false(keyring_public(ring, 2, 9, keys[0]));
    keyring_free(ring);
}

static void a_signature_of_another_key_tier_or_length_does_not_match(void **state)
{
    struct keyring *ring = ring_of("2 " A "\n1 " B);
    uint8_t signature[KEYRING_SIGNATURE_MAX];
    (void)state;
    for (int round = 0; round < 2; round++) {
        size_t size = keyring_sign(ring, 2, 2, SPAN("data"), signature);
        struct span whole = {(char *)signature, size};
        assert_int_equal(size, round == 0 ? 32 : 64);
        assert_true(keyring_check(ring, 2, 2, SPAN("data"), whole));
        assert_false(keyring_check(ring, 2, 2, SPAN("date"), whole));
        assert_false(keyring_check(ring, 2, 1, SPAN("data"), whole));
        assert_false(keyring_check(ring, 1, 2, SPAN("data"), whole));
        assert_false(keyring_check(ring, 2, 9, SPAN("data"), whole));
        for (size_t len = 0; len < size; len++)
            assert_false(keyring_check(ring, 2, 2, SPAN("data"), (struct span){(char *)signature, len}));
        for (uint8_t id = 1; id <= 2; id++)
            for (int tier = 1; tier <= 2; tier++)
                assert_true(keyring_set_algorithm(ring, tier, id, KEY_EDDSA));
    }
    assert_int_equal(keyring_sign(ring, 2, 9, SPAN("data"), signature), 0);
    keyring_free(ring);
}

/* ---- holders ---- */

static struct holder visitor_under(const char *file)
{
    static const uint8_t id[VISITOR_ID_SIZE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct keyring *ring = ring_of(file);
    struct holder holder;
    holder_of_visitor(ring, id, &holder);
    keyring_free(ring);
    return holder;
}

static struct holder identity_under(const char *file, struct span identity)
{
    struct keyring *ring = ring_of(file);
    struct holder holder;
    assert_true(holder_of_identity(ring, identity, &holder));
    keyring_free(ring);
    return holder;
}

static void holders_are_those_of_an_independent_hkdf_and_hmac(void **state)
{
    static const struct holder visitor = {
        {0x2c, 0x6e, 0xe4, 0xd9, 0x0e, 0xec, 0xf3, 0x14, 0xc2, 0x29, 0xb3, 0x07}};
    static const struct holder user = {
        {0x78, 0xb4, 0x7d, 0xbd, 0x1a, 0x73, 0x79, 0xcd, 0xf7, 0x6e, 0x5e, 0x07}};
    (void)state;
    struct holder seen = visitor_under("7 " A "\n3 " B);
    assert_true(holder_equal(&seen, &visitor));
    seen = identity_under("7 " A "\n3 " B, SPAN("user-17"));
    assert_true(holder_equal(&seen, &user));
}

static void a_holder_stays_the_same_over_a_whole_rotation(void **state)
{
    static const char *const rotation[] = {
        "1 " A,
        "2 " B " next\n1 " A,
        "1 " A "\n2 " B " next",
        "2 " B "\n1 " A,
        "2 " B "\nholder " A,
        "3 " C "\n2 " B "\nholder " A,
        "holder " A "\n3 " C,
    };
    (void)state;
    struct holder before = visitor_under(rotation[0]), user_before = identity_under(rotation[0], SPAN("ann"));
    for (size_t i = 1; i < sizeof(rotation) / sizeof(rotation[0]); i++) {
        struct holder now = visitor_under(rotation[i]), user_now = identity_under(rotation[i], SPAN("ann"));
        assert_true(holder_equal(&before, &now));
        assert_true(holder_equal(&user_before, &user_now));
    }
    struct holder after = visitor_under("3 " C);
    assert_false(holder_equal(&before, &after));
}

static void a_visitor_is_never_the_holder_of_an_identity(void **state)
{
    static const uint8_t id[VISITOR_ID_SIZE] = "sixteen letters!";
    struct keyring *ring = ring_of("1 " A);
    struct holder visitor, identity;
    (void)state;
    holder_of_visitor(ring, id, &visitor);
    assert_true(holder_of_identity(ring, (struct span){(const char *)id, sizeof(id)}, &identity));
    assert_false(holder_equal(&visitor, &identity));
    keyring_free(ring);
}

static void an_identity_has_1_to_256_bytes(void **state)
{
    struct keyring *ring = ring_of("1 " A);
    char identity[IDENTITY_MAX + 1];
    struct holder longest, shorter;
    (void)state;
    memset(identity, 'u', sizeof(identity));
    assert_false(holder_of_identity(ring, SPAN(""), &longest));
    assert_false(holder_of_identity(ring, (struct span){identity, IDENTITY_MAX + 1}, &longest));
    assert_true(holder_of_identity(ring, (struct span){identity, IDENTITY_MAX}, &longest));
    assert_true(holder_of_identity(ring, (struct span){identity, IDENTITY_MAX - 1}, &shorter));
    assert_false(holder_equal(&longest, &shorter));
    keyring_free(ring);
}

int main(void)
{
    const struct CMUnitTest keyring[] = {
        cmocka_unit_test(the_first_key_signs_and_all_are_known),
        cmocka_unit_test(a_key_that_is_next_verifies_and_does_not_sign_yet),
        cmocka_unit_test(macs_are_those_of_an_independent_hkdf_and_hmac),
        cmocka_unit_test(only_listed_ids_give_a_mac),
        cmocka_unit_test(every_key_and_purpose_gives_another_mac),
        cmocka_unit_test(a_bad_file_is_refused_with_a_sentence),
        cmocka_unit_test(a_reason_never_quotes_the_secret),
        cmocka_unit_test(secrets_have_32_to_256_characters),
        cmocka_unit_test(there_are_at_most_8_keys_and_a_holder_line),
        cmocka_unit_test(a_given_key_signs_as_it_is_however_long),
        cmocka_unit_test(a_given_key_has_32_to_1024_bytes),
        cmocka_unit_test(one_key_serves_one_purpose),
        cmocka_unit_test(a_given_key_is_for_hs256_alone),
        cmocka_unit_test(the_derived_key_is_the_one_that_signs),
        cmocka_unit_test(every_ed25519_key_is_another_and_shown_only_where_it_signs),
        cmocka_unit_test(a_signature_of_another_key_tier_or_length_does_not_match),
        cmocka_unit_test(holders_are_those_of_an_independent_hkdf_and_hmac),
        cmocka_unit_test(a_holder_stays_the_same_over_a_whole_rotation),
        cmocka_unit_test(a_visitor_is_never_the_holder_of_an_identity),
        cmocka_unit_test(an_identity_has_1_to_256_bytes),
    };
    return cmocka_run_group_tests_name("keyring", keyring, NULL, NULL);
}
