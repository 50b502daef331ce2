/* SPDX-License-Identifier: BSD-2-Clause */
/* The small readers of src/base: base64url, decimal numbers, the query string, the path, the room id. */
#include "base/base64url.h"
#include "base/decimal.h"
#include "base/query.h"
#include "base/room_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static uint64_t random_state = 0x9E3779B97F4A7C15;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % bound;
}

/* ---- decimal numbers ---- */

static void a_decimal_number_is_read_to_its_last_digit(void **state)
{
    static const struct {
        const char *text;
        size_t decimals;
        uint64_t number;
    } vectors[] = {{"0", 0, 0},
                   {"007", 0, 7},
                   {"999999999999", 0, 999999999999},
                   {"50", 3, 50000},
                   {"1.15", 3, 1150},
                   {"0.001", 3, 1},
                   {"999999999999.9999999", 7, 9999999999999999999U}};
    uint64_t number;
    (void)state;

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        assert_true(decimal_read(span_of(vectors[i].text), vectors[i].decimals, &number));
        assert_true(number == vectors[i].number);
    }
}

static void what_is_not_plainly_a_number_is_refused(void **state)
{
    static const char *const texts[] = {"",   ".",   "1.",  ".5",  "-1",    "+1",     "1e3",          " 1",
                                        "1 ", "1,0", "0x1", "inf", "1.2.3", "1.0001", "1234567890123"};
    uint64_t number;
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(decimal_read(span_of(texts[i]), 3, &number));
    assert_false(decimal_read(SPAN("1.5"), 0, &number));
    assert_false(decimal_read(SPAN_NONE, 3, &number));
}

/* ---- base64url ---- */

static void base64url_gives_the_vectors_of_rfc_4648(void **state)
{
    static const struct {
        const char *bytes, *text;
    } vectors[] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbe", "-_--"}};
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        char text[16];
        uint8_t bytes[16];
        size_t len = base64url_encode(vectors[i].bytes, strlen(vectors[i].bytes), text, sizeof(text));
        assert_int_equal(len, strlen(vectors[i].text));
        assert_memory_equal(text, vectors[i].text, len);
        assert_true(base64url_decode(span_of(vectors[i].text), bytes, sizeof(bytes), &len));
        assert_int_equal(len, strlen(vectors[i].bytes));
        assert_memory_equal(bytes, vectors[i].bytes, len);
    }
}

static void base64url_decodes_what_it_encoded_at_every_length(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 200; len++) {
        uint8_t bytes[200], back[200];
        char text[BASE64URL_LEN(200)];
        size_t back_len;
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)random_below(256);
        size_t text_len = base64url_encode(bytes, len, text, sizeof(text));
        assert_int_equal(text_len, BASE64URL_LEN(len));
        assert_int_equal(BASE64URL_DECODED(text_len), len);
        assert_true(base64url_decode((struct span){text, text_len}, back, len, &back_len));
        assert_int_equal(back_len, len);
        assert_memory_equal(back, bytes, len);
        if (len > 0)
            assert_false(base64url_decode((struct span){text, text_len}, back, len - 1, &back_len));
    }
}

/*
 * All texts of up to three characters: exactly those that encode something are taken, so no bytes have two
 * texts.
 */
static void base64url_has_one_text_for_each_byte_string(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= 3; size++)
        for (uint32_t n = 0; n < 1u << (8 * size); n++) {
            char text[3] = {(char)n, (char)(n >> 8), (char)(n >> 16)}, again[3];
            uint8_t bytes[2];
            size_t len;
            if (!base64url_decode((struct span){text, size}, bytes, sizeof(bytes), &len))
                continue;
            assert_int_equal(base64url_encode(bytes, len, again, sizeof(again)), size);
            assert_memory_equal(again, text, size);
        }
}

static void base64url_refuses_padding_space_and_other_alphabets(void **state)
{
    static const char *const bad[] = {"Zg==", "Zm8=",  "Zm9v\n", " Zm9v", "Zm9v+A", "Zm9/",
                                      "Z",    "Zm9vY", "Zh",     "Zm9",   "Zm 9"};
    uint8_t bytes[16];
    size_t len;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(base64url_decode(span_of(bad[i]), bytes, sizeof(bytes), &len));
    assert_false(base64url_decode(SPAN("Zm\0v"), bytes, sizeof(bytes), &len));
}

/* ---- query ---- */

static void expect_found(const char *args, const char *name, const char *expected)
{
    char out[64];
    struct span value;
    assert_int_equal(query_find(span_of(args), span_of(name), out, sizeof(out), &value), ERROR_NONE);
    assert_non_null(value.data);
    assert_int_equal(value.len, strlen(expected));
    assert_memory_equal(value.data, expected, value.len);
}

static void expect_absent(const char *args, const char *name)
{
    char out[64];
    struct span value;
    assert_int_equal(query_find(span_of(args), span_of(name), out, sizeof(out), &value), ERROR_NONE);
    assert_null(value.data);
}

static void expect_refused(const char *args, const char *name)
{
    char out[64];
    struct span value;
    assert_int_equal(query_find(span_of(args), span_of(name), out, sizeof(out), &value),
                     ERROR_INVALID_REQUEST);
}

static void query_finds_a_parameter_anywhere(void **state)
{
    (void)state;
    expect_found("token=abc", "token", "abc");
    expect_found("a=1&token=abc&b=2", "token", "abc");
    expect_found("a=1&&token=abc", "token", "abc");
    expect_found("&token=abc&", "token", "abc");
    expect_found("token=a=b", "token", "a=b");
    expect_found("token=", "token", "");
    expect_found("token", "token", "");
    expect_found("token&a=1", "token", "");
    expect_absent("", "token");
    expect_absent("tokens=1&toke=2&xtoken=3&Token=4&=5", "token");
    expect_absent("a=token", "token");
    expect_absent("a=1?token=2", "token");
}

static void query_decodes_escapes_and_plus(void **state)
{
    (void)state;
    expect_found("q=a+b%20c%2Bd%2fe%C3%a9%26", "q", "a b c+d/e\xc3\xa9&");
    expect_found("%74oken=1", "token", "1");
    expect_found("%74%6F%6b%65%6E=1", "token", "1");
    expect_found("a%2Bb=1", "a+b", "1");
}

static void query_refuses_bad_escapes_nul_and_a_second_occurrence(void **state)
{
    (void)state;
    expect_refused("token=%", "token");
    expect_refused("token=%4", "token");
    expect_refused("token=ab%4g", "token");
    expect_refused("token=%g4&a=1", "token");
    expect_refused("token=%4&a=1", "token");
    expect_refused("token=a%00b", "token");
    expect_refused("token=a&token=a", "token");
    expect_refused("token=a&x=1&%74oken=b", "token");
    expect_refused("token&token", "token");
    char out[8];
    struct span value;
    assert_int_equal(query_find(SPAN("t=a\0b"), SPAN("t"), out, sizeof(out), &value), ERROR_INVALID_REQUEST);
    /* The digit that would complete the escape lies behind the end. */
    assert_int_equal(query_find((struct span){"t=%41", 4}, SPAN("t"), out, sizeof(out), &value),
                     ERROR_INVALID_REQUEST);
}

static void query_judges_only_the_parameter_asked_for(void **state)
{
    (void)state;
    expect_found("utm=50%&token=abc&%zz=%&a=1&a=2", "token", "abc");
}

static void query_refuses_a_value_over_the_callers_bound(void **state)
{
    char out[4];
    struct span value;
    (void)state;
    assert_int_equal(query_find(SPAN("t=abcd"), SPAN("t"), out, sizeof(out), &value), ERROR_NONE);
    assert_int_equal(value.len, 4);
    assert_int_equal(query_find(SPAN("t=%61bcd"), SPAN("t"), out, sizeof(out), &value), ERROR_NONE);
    assert_int_equal(value.len, 4);
    assert_int_equal(query_find(SPAN("t=abcde"), SPAN("t"), out, sizeof(out), &value), ERROR_INVALID_REQUEST);
    assert_int_equal(query_find(SPAN("t="), SPAN("t"), out, 0, &value), ERROR_NONE);
    assert_non_null(value.data);
}

static void every_occurrence_can_be_masked_in_place_even_of_a_refused_query(void **state)
{
    char args[] = "token=AAA&x=1&%74oken=B%4&tokens=3&token&token=&token=C";
    size_t at = 0, found = 0;
    struct span raw;
    (void)state;
    while (query_next(span_of(args), SPAN("token"), &at, &raw)) {
        found++;
        memset(args + (raw.data - args), '*', raw.len);
    }
    assert_int_equal(found, 5);
    assert_string_equal(args, "token=***&x=1&%74oken=***&tokens=3&token&token=&token=*");
}

static void a_found_value_survives_the_masking_of_the_query(void **state)
{
    char args[] = "token=secret", out[16];
    struct span value;
    (void)state;
    assert_int_equal(query_find(span_of(args), SPAN("token"), out, sizeof(out), &value), ERROR_NONE);
    memset(args, '*', strlen(args));
    assert_memory_equal(value.data, "secret", 6);
}

/* ---- path ---- */

static void path_tail_is_exactly_one_segment(void **state)
{
    struct span tail;
    (void)state;
    assert_true(path_tail(SPAN("/queue/concert"), SPAN("/queue/"), &tail));
    assert_true(span_equal(tail, SPAN("concert")));
    assert_true(path_tail(SPAN("/queue/."), SPAN("/queue/"), &tail));
    assert_true(path_tail(SPAN("/x"), SPAN("/"), &tail));
    static const char *const bad[] = {"",          "/",          "/queue",    "/queue/",  "/queue//",
                                      "/queue/a/", "/queue/a/b", "/queue//a", "/Queue/a", "x/queue/a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(path_tail(span_of(bad[i]), SPAN("/queue/"), &tail));
}

/* ---- room id ---- */

static void room_ids_are_1_to_64_of_the_alphabet(void **state)
{
    char long_id[ROOM_ID_MAX + 1];
    (void)state;
    memset(long_id, 'a', sizeof(long_id));
    assert_true(room_id_is_valid((struct span){long_id, ROOM_ID_MAX}));
    assert_false(room_id_is_valid((struct span){long_id, ROOM_ID_MAX + 1}));
    assert_false(room_id_is_valid(SPAN("")));
    assert_true(room_id_is_valid(SPAN("lobby:AZaz09_.:-")));
    assert_false(room_id_is_valid(SPAN(".")) || room_id_is_valid(SPAN("..")));
    assert_true(room_id_is_valid(SPAN("...")) && room_id_is_valid(SPAN(".a")) &&
                room_id_is_valid(SPAN("a.")));
    assert_true(room_id_is_valid(SPAN("123e4567-e89b-12d3-a456-426614174000")));
}

static void room_ids_refuse_every_other_byte_at_every_place(void **state)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
    (void)state;
    for (int c = 0; c < 256; c++)
        for (size_t place = 0; place < 3; place++) {
            char id[3] = {'a', 'b', 'c'};
            id[place] = (char)c;
            assert_int_equal(room_id_is_valid((struct span){id, 3}), c != 0 && strchr(allowed, c) != NULL);
        }
}

static void an_event_and_its_lobby_name_each_other(void **state)
{
    char memory[ROOM_ID_MAX], event[ROOM_ID_MAX];
    (void)state;
    memset(event, 'e', sizeof(event));
    size_t most = ROOM_ID_MAX - strlen(ROOM_LOBBY_PREFIX);
    struct span lobby = room_id_lobby((struct span){event, most}, memory);
    assert_true(lobby.len == ROOM_ID_MAX && room_id_is_valid(lobby));
    assert_true(span_equal(room_id_event(lobby), (struct span){event, most}));
    assert_null(room_id_lobby((struct span){event, most + 1}, memory).data);
    assert_true(span_equal(room_id_lobby(SPAN("42"), memory), SPAN("lobby:42")));
    assert_null(room_id_event(SPAN("lobby:")).data);
    assert_null(room_id_event(SPAN("42")).data);
}

int main(void)
{
    const struct CMUnitTest readers[] = {
        cmocka_unit_test(base64url_gives_the_vectors_of_rfc_4648),
        cmocka_unit_test(base64url_decodes_what_it_encoded_at_every_length),
        cmocka_unit_test(base64url_has_one_text_for_each_byte_string),
        cmocka_unit_test(base64url_refuses_padding_space_and_other_alphabets),
        cmocka_unit_test(query_finds_a_parameter_anywhere),
        cmocka_unit_test(query_decodes_escapes_and_plus),
        cmocka_unit_test(query_refuses_bad_escapes_nul_and_a_second_occurrence),
        cmocka_unit_test(query_judges_only_the_parameter_asked_for),
        cmocka_unit_test(query_refuses_a_value_over_the_callers_bound),
        cmocka_unit_test(every_occurrence_can_be_masked_in_place_even_of_a_refused_query),
        cmocka_unit_test(a_found_value_survives_the_masking_of_the_query),
        cmocka_unit_test(a_decimal_number_is_read_to_its_last_digit),
        cmocka_unit_test(what_is_not_plainly_a_number_is_refused),
        cmocka_unit_test(path_tail_is_exactly_one_segment),
        cmocka_unit_test(room_ids_are_1_to_64_of_the_alphabet),
        cmocka_unit_test(room_ids_refuse_every_other_byte_at_every_place),
        cmocka_unit_test(an_event_and_its_lobby_name_each_other),
    };
    return cmocka_run_group_tests_name("readers", readers, NULL, NULL);
}
