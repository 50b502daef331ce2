/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The strict reader of flat objects: its own rules by example, and jansson as the judge of everything else.
 * Bodies are generated and mutated; both readers must agree on taking or refusing each one, and on the
 * values, except where the body is over a limit that json.h states.
 */
#include "base/json.h"
#include "json_judge.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BODY_MAX 4096

static uint64_t random_state = 0x2545F4914F6CDD1D;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % bound;
}

enum { EVENT_ID, USER_ID, COUNT, WANTED };

static void want(struct json_member members[WANTED])
{
    members[EVENT_ID] =
        (struct json_member){.name = SPAN("event_id"), .kind = JSON_TEXT, .is_optional = true};
    members[USER_ID] = (struct json_member){.name = SPAN("user_id"), .kind = JSON_TEXT, .is_optional = true};
    members[COUNT] = (struct json_member){.name = SPAN("count"), .kind = JSON_NUMBER, .is_optional = true};
}

static struct json_member wanted[WANTED];
static char scratch[BODY_MAX];

static bool accepts(struct span body)
{
    want(wanted);
    return json_read(body, wanted, WANTED, scratch, sizeof(scratch)) == ERROR_NONE;
}

static void expect_text(const char *body, const char *expected)
{
    assert_true(accepts(span_of(body)));
    assert_true(wanted[EVENT_ID].is_present);
    assert_int_equal(wanted[EVENT_ID].text.len, strlen(expected));
    assert_memory_equal(wanted[EVENT_ID].text.data, expected, strlen(expected));
}

/* ---- by example ---- */

static void reads_the_members_it_wants_and_skips_the_rest(void **state)
{
    (void)state;
    expect_text("{\"event_id\":\"concert\"}", "concert");
    expect_text(" \t\r\n{ \"x\" : [ 1 , {} , [ ] , { \"event_id\" : 1 } ] , \"event_id\" : \"a\" , "
                "\"y\":-0.5e+10 } \n",
                "a");
    assert_true(accepts(SPAN("{\"count\":9223372036854775807,\"user_id\":\"\"}")));
    assert_false(wanted[EVENT_ID].is_present);
    assert_true(wanted[USER_ID].is_present);
    assert_int_equal(wanted[USER_ID].text.len, 0);
    assert_int_equal(wanted[COUNT].number, INT64_MAX);
    assert_true(accepts(SPAN("{}")));
    assert_false(wanted[USER_ID].is_present);
}

static void unescapes_names_and_values(void **state)
{
    (void)state;
    expect_text("{\"event_id\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t");
    expect_text("{\"event_id\":\"\\u0041\\u00e9\\uD55C\\ud83c\\udf9f!\"}",
                "A\xc3\xa9\xed\x95\x9c\xf0\x9f\x8e\x9f!");
    expect_text("{\"\\u0065vent_i\\u0064\":\"x\"}", "x");
}

static void null_is_absent_where_the_member_is_optional(void **state)
{
    struct json_member must_have = {.name = SPAN("a"), .kind = JSON_TEXT};
    (void)state;
    assert_true(accepts(SPAN("{\"event_id\":null,\"count\":null}")));
    assert_false(wanted[EVENT_ID].is_present);
    assert_false(wanted[COUNT].is_present);
    assert_int_equal(json_read(SPAN("{\"a\":null}"), &must_have, 1, NULL, 0), ERROR_INVALID_REQUEST);
    assert_int_equal(json_read(SPAN("{}"), &must_have, 1, NULL, 0), ERROR_INVALID_REQUEST);
    assert_int_equal(json_read(SPAN("{\"a\":\"\"}"), &must_have, 1, NULL, 0), ERROR_NONE);
}

static void a_wanted_member_of_another_kind_is_refused(void **state)
{
    static const char *const kinds[] = {"1",       "true", "false", "{}",  "[]",
                                        "[\"a\"]", "nul",  "-1",    "1.0", "1e1"};
    char body[64];
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        snprintf(body, sizeof(body), "{\"event_id\":%s}", kinds[i]);
        assert_false(accepts(span_of(body)));
        snprintf(body, sizeof(body), "{\"count\":%s}", kinds[i]);
        assert_int_equal(accepts(span_of(body)), strcmp(kinds[i], "1") == 0);
    }
    assert_false(accepts(SPAN("{\"count\":\"1\"}")));
    assert_false(accepts(SPAN("{\"count\":9223372036854775808}")));
}

static void a_name_twice_is_refused_however_it_is_spelled(void **state)
{
    (void)state;
    assert_false(accepts(SPAN("{\"event_id\":\"a\",\"event_id\":\"a\"}")));
    assert_false(accepts(SPAN("{\"event_id\":null,\"event_id\":\"a\"}")));
    assert_false(accepts(SPAN("{\"event_id\":\"a\",\"event\\u005fid\":\"b\"}")));
    assert_false(accepts(SPAN("{\"x\":1,\"y\":2,\"\\u0078\":3}")));
    assert_false(accepts(SPAN("{\"\\ud83c\\udf9f\":1,\"\xf0\x9f\x8e\x9f\":2}")));
    assert_false(accepts(SPAN("{\"x\":{\"a\":1,\"b\":{},\"a\":2}}")));
    assert_true(accepts(SPAN("{\"x\":{\"x\":{\"x\":1},\"y\":1},\"y\":[{\"x\":1},{\"x\":1}]}")));
}

static void what_is_not_one_json_object_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "null",
        "[]",
        "\"a\"",
        "1",
        "{",
        "}",
        "{}{}",
        "{}x",
        "{},",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":1.}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":1e+}",
        "{\"a\":0x1}",
        "{\"a\":NaN}",
        "{\"a\":Infinity}",
        "{\"a\":tru}",
        "{\"a\":True}",
        "{\"a\":[1,]}",
        "{\"a\":[,1]}",
        "{\"a\":[1 2]}",
        "{\"a\":[1}",
        "{\"a\":{]}",
        "{\"a\":\"b}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\\u123\"}",
        "{\"a\":\"\\\"}",
        "{\"a\":1}//c",
        "{\"a\":/**/1}",
        "\xef\xbb\xbf{}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\ud800\\u0041\"}",
        "{\"a\":\"\\udc00\"}",
        "{\"a\":\"\\u0000\"}",
        "{\"\\u0000\":1}",
        "{\"a\":\"\\ud800\\ud800\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\xc0\x80\"}",
        "{\"a\":\"\xed\xa0\x80\"}",
        "{\"a\":\"\xf4\x90\x80\x80\"}",
        "{\"a\":\"\xe0\x80\x80\"}",
        "{\"a\":\"\xc3\"}",
        "{\xc3\xa9:1}",
        "{\"a\":9223372036854775808}",
        "{\"a\":-9223372036854775809}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (accepts(span_of(bad[i])))
            fail_msg("accepted: %s", bad[i]);
    assert_false(accepts(SPAN_NONE));
    assert_false(accepts(SPAN("{}\0")));
    assert_false(accepts(SPAN("{\"a\":\"b\0c\"}")));
    assert_true(
        accepts(SPAN("{\"a\":-9223372036854775808,\"b\":-0,\"c\":0.0E-0,\"d\":\"\x7f\xf4\x8f\xbf\xbf\"}")));
}

static void every_truncation_of_a_good_body_is_refused(void **state)
{
    const struct span body =
        SPAN("{\"event_id\":\"a\\u00e9\xed\x95\x9c\",\"x\":[true,{\"y\":-1.5e3}],\"count\":12}");
    (void)state;
    assert_true(accepts(body));
    for (size_t len = 0; len < body.len; len++) {
        /* On the heap and exact, so that a sanitizer sees a read past the end. */
        char *part = malloc(len + 1);
        memcpy(part, body.data, len);
        assert_false(accepts((struct span){part, len}));
        free(part);
    }
}

static char *append(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len);
    return at + len;
}

/* {"m0":0,"m1":0} and so on, of `count` members. */
static struct span members_of(unsigned count, char *out)
{
    size_t len = 0;
    for (unsigned i = 0; i < count; i++)
        len += (size_t)sprintf(out + len, "%c\"m%u\":0", i == 0 ? '{' : ',', i);
    out[len++] = '}';
    return (struct span){out, len};
}

/* {"a":…}, in which `opening` and `closing` are nested so that there are `depth` containers in all. */
static struct span nested_of(unsigned depth, const char *opening, const char *closing, char *out)
{
    char *at = append(out, "{\"a\":");
    for (unsigned i = 1; i < depth; i++)
        at = append(at, opening);
    at = append(at, "0");
    for (unsigned i = 1; i < depth; i++)
        at = append(at, closing);
    return (struct span){out, (size_t)(append(at, "}") - out)};
}

static void stated_limits_hold_exactly(void **state)
{
    char body[BODY_MAX];
    (void)state;
    assert_true(accepts(members_of(JSON_MEMBERS_MAX, body)));
    assert_false(accepts(members_of(JSON_MEMBERS_MAX + 1, body)));
    assert_true(accepts(nested_of(JSON_DEPTH_MAX, "[", "]", body)));
    assert_false(accepts(nested_of(JSON_DEPTH_MAX + 1, "[", "]", body)));
    assert_true(accepts(nested_of(JSON_DEPTH_MAX, "{\"b\":", "}", body)));
    assert_false(accepts(nested_of(JSON_DEPTH_MAX + 1, "{\"b\":", "}", body)));
    assert_true(accepts(SPAN("{\"a\":1e99}")));
    assert_false(accepts(SPAN("{\"a\":1e100}")));
    int len = snprintf(body, sizeof(body), "{\"a\":0.%0*d}", JSON_NUMBER_MAX - 2, 0);
    assert_true(accepts((struct span){body, (size_t)len}));
    len = snprintf(body, sizeof(body), "{\"a\":0.%0*d}", JSON_NUMBER_MAX - 1, 0);
    assert_false(accepts((struct span){body, (size_t)len}));
}

static void unescaped_strings_never_pass_the_scratch_buffer(void **state)
{
    const struct span body = SPAN("{\"event_id\":\"\\u0041bcd\",\"user_id\":\"\\ud55c\"}");
    (void)state;
    for (size_t cap = 0; cap <= 7; cap++) {
        char *exact = malloc(cap + 1);
        want(wanted);
        assert_int_equal(json_read(body, wanted, WANTED, exact, cap) == ERROR_NONE, cap == 7);
        free(exact);
    }
}

/* ---- jansson as the judge ---- */

#define PICK(table) (table)[random_below(sizeof(table) / sizeof((table)[0]))]

static char *generate_space(char *at)
{
    static const char *const spaces[] = {"", "", "", "", "", "", " ", "\n", "\t \r\n"};
    return append(at, PICK(spaces));
}

static char *generate_string(char *at)
{
    static const char *const pieces[] = {
        "a",
        "b",
        "event_id",
        "user_id",
        "count",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u0061",
        "\\u00e9",
        "\\uD55C",
        "\\ud83c\\udf9f",
        "\xc3\xa9",
        "\xed\x95\x9c",
        "\xf0\x9f\x8e\x9f",
        "\x7f",
        " ",
        "0",
        "\\b\\f\\r\\t",
        "_",
        "id",
    };
    static const char *const odd[] = {
        "\\u0000",  "\\ud800",      "\\udfff", "\\x",   "\xff",
        "\xc0\x80", "\xed\xa0\x80", "\x01",    "\\u12", "\xf4\x90\x80\x80",
    };
    *at++ = '"';
    for (uint32_t i = random_below(4); i > 0; i--)
        at = append(at, random_below(200) == 0 ? PICK(odd) : PICK(pieces));
    *at++ = '"';
    return at;
}

static char *generate_name(char *at)
{
    static const char *const names[] = {"\"event_id\"",       "\"user_id\"", "\"count\"",
                                        "\"event\\u005Fid\"", "\"a\"",       "\"\""};
    return random_below(3) == 0 ? append(at, PICK(names)) : generate_string(at);
}

static char *generate_value(char *at, unsigned depth);

static char *generate_object(char *at, unsigned depth)
{
    *at++ = '{';
    uint32_t count = random_below(depth == 1 ? 6 : 3);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            *at++ = ',';
        at = generate_name(generate_space(at));
        at = generate_space(at);
        *at++ = ':';
        at = generate_space(generate_value(generate_space(at), depth));
    }
    *at++ = '}';
    return at;
}

static char *generate_array(char *at, unsigned depth)
{
    *at++ = '[';
    uint32_t count = random_below(4);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            *at++ = ',';
        at = generate_space(generate_value(generate_space(at), depth));
    }
    *at++ = ']';
    return at;
}

static char *generate_value(char *at, unsigned depth)
{
    static const char *const scalars[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "17",
        "-5",
        "1.5",
        "0.0",
        "1e5",
        "-2E-3",
        "1e+9",
        "123456789012",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "0.1e9",
        "1e400",
        "123456789012345678901",
    };
    uint32_t kind = random_below(10);
    if (kind == 0 && depth < 5)
        return generate_object(at, depth + 1);
    if (kind == 1 && depth < 5)
        return generate_array(at, depth + 1);
    return kind < 6 ? generate_string(at) : append(at, PICK(scalars));
}

/*
 * Changes a few bytes: flips, removes, doubles, swaps in a character that means something, copies a piece
 * elsewhere.
 */
static size_t mutate(char *body, size_t len)
{
    static const char marks[] = "{}[]:,\"\\/ue0123456789-+. \t\n\0\x7f\x80\xc3\xed\xf0\xff\x1f";
    for (uint32_t n = 1 + random_below(3); n > 0 && len > 0; n--) {
        size_t at = random_below((uint32_t)len);
        switch (random_below(6)) {
        case 0:
            body[at] ^= (char)(1 << random_below(8));
            break;
        case 1:
            body[at] = marks[random_below(sizeof(marks) - 1)];
            break;
        case 2:
            memmove(body + at, body + at + 1, --len - at);
            break;
        case 3:
            memmove(body + at + 1, body + at, len++ - at);
            body[at] = marks[random_below(sizeof(marks) - 1)];
            break;
        case 4:
            len = at;
            break;
        default: {
            size_t from = random_below((uint32_t)len), size = random_below(24);
            if (from + size > len)
                size = len - from;
            memmove(body + at + size, body + at, len - at);
            memmove(body + at, body + (from >= at ? from + size : from), size);
            len += size;
        }
        }
    }
    return len;
}

static unsigned compared, taken;

static void compare(struct span body)
{
    bool is_taken = accepts(body);
    const char *difference = json_judge(body, wanted, WANTED, is_taken);
    compared++;
    taken += is_taken;
    if (difference != NULL)
        fail_msg("%s: %.*s", difference, (int)body.len, body.data);
}

static void agrees_with_jansson_on_generated_and_mutated_bodies(void **state)
{
    static char body[1 << 16];
    (void)state;
    for (int i = 0; i < 200000; i++) {
        size_t len = (size_t)(generate_space(generate_object(generate_space(body), 1)) - body);
        if (len > BODY_MAX)
            continue;
        compare((struct span){body, len});
        len = mutate(body, len);
        compare((struct span){body, len});
    }
    /* A generator that makes only garbage, or only good bodies, would prove nothing. */
    assert_true(compared > 300000 && taken > compared / 5 && taken < compared * 4 / 5);
}

static void agrees_with_jansson_on_every_pair_of_bytes_in_a_string(void **state)
{
    char body[] = "{\"a\":\"..\"}";
    (void)state;
    for (int i = 0; i < 65536; i++) {
        body[6] = (char)(i >> 8);
        body[7] = (char)i;
        compare(span_of(body));
    }
}

static void agrees_with_jansson_on_utf8_of_three_and_four_bytes(void **state)
{
    static const uint8_t edges[] = {0x00, 0x22, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
    const size_t count = sizeof(edges);
    char body[] = "{\"a\":\"....\"}";
    (void)state;
    for (int lead = 0xC0; lead < 256; lead++)
        for (size_t i = 0; i < count * count * count; i++) {
            body[6] = (char)lead;
            body[7] = (char)edges[i % count];
            body[8] = (char)edges[i / count % count];
            body[9] = (char)edges[i / count / count];
            compare((struct span){body, sizeof(body) - 1});
        }
}

static void agrees_with_jansson_on_every_escaped_code(void **state)
{
    static const char *const second[] = {"", "\\udc00", "\\udfff", "\\ud800", "\\u0041", "x"};
    char body[64];
    (void)state;
    for (unsigned code = 0; code < 65536; code++)
        for (size_t i = 0; i < (code >> 11 == 0x1B ? 6 : 1); i++) {
            int len = snprintf(body, sizeof(body), "{\"event_id\":\"\\u%04x%s\"}", code, second[i]);
            compare((struct span){body, (size_t)len});
        }
}

/* ---- the writer ---- */

static void an_escaped_string_is_read_back_by_jansson_as_it_was(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 0x110000; i += i < 0x900 ? 1 : 37) {
        uint32_t code = i >= 0xD800 && i < 0xE000 ? 0xE000 : i;
        json_t *root;
        char text[4] = {0}, out[32] = "[\"";
        size_t text_len = 0, len = 2;
        if (code < 0x80) {
            text[text_len++] = (char)code;
        } else if (code < 0x800) {
            text[text_len++] = (char)(0xC0 | code >> 6);
        } else if (code < 0x10000) {
            text[text_len++] = (char)(0xE0 | code >> 12);
            text[text_len++] = (char)(0x80 | (code >> 6 & 63));
        } else {
            text[text_len++] = (char)(0xF0 | code >> 18);
            text[text_len++] = (char)(0x80 | (code >> 12 & 63));
            text[text_len++] = (char)(0x80 | (code >> 6 & 63));
        }
        if (code >= 0x80)
            text[text_len++] = (char)(0x80 | (code & 63));
        assert_true(json_escape((struct span){text, text_len}, out, sizeof(out), &len));
        memcpy(out + len, "\"]", 2);
        root = json_loadb(out, len + 2, 0, NULL);
        assert_non_null(root);
        assert_int_equal(json_string_length(json_array_get(root, 0)), text_len);
        assert_memory_equal(json_string_value(json_array_get(root, 0)), text, text_len);
        json_decref(root);
    }
}

static void the_escape_appends_within_its_bound_or_leaves_all_as_it_was(void **state)
{
    const struct span text = SPAN("a\"\x01\xc3\xa9");
    const struct span expected = SPAN("ka\\\"\\u0001\xc3\xa9");
    (void)state;
    for (size_t cap = 1; cap <= expected.len; cap++) {
        char *out = malloc(cap);
        size_t len = 1;
        out[0] = 'k';
        assert_int_equal(json_escape(text, out, cap, &len), cap == expected.len);
        assert_int_equal(len, cap == expected.len ? expected.len : 1);
        assert_memory_equal(out, expected.data, len);
        free(out);
    }
}

static void the_escape_refuses_what_is_not_utf8(void **state)
{
    char out[64];
    size_t len = 0;
    (void)state;
    assert_true(json_escape(SPAN_NONE, out, sizeof(out), &len));
    assert_int_equal(len, 0);
    assert_false(json_escape(SPAN("\xff"), out, sizeof(out), &len));
    assert_false(json_escape(SPAN("a\xc3"), out, sizeof(out), &len));
    assert_false(json_escape(SPAN("\xed\xa0\x80"), out, sizeof(out), &len));
    assert_true(json_escape(SPAN("a\0b"), out, sizeof(out), &len));
    assert_int_equal(len, 8);
    assert_memory_equal(out, "a\\u0000b", 8);
}

int main(void)
{
    const struct CMUnitTest json[] = {
        cmocka_unit_test(reads_the_members_it_wants_and_skips_the_rest),
        cmocka_unit_test(unescapes_names_and_values),
        cmocka_unit_test(null_is_absent_where_the_member_is_optional),
        cmocka_unit_test(a_wanted_member_of_another_kind_is_refused),
        cmocka_unit_test(a_name_twice_is_refused_however_it_is_spelled),
        cmocka_unit_test(what_is_not_one_json_object_is_refused),
        cmocka_unit_test(every_truncation_of_a_good_body_is_refused),
        cmocka_unit_test(stated_limits_hold_exactly),
        cmocka_unit_test(unescaped_strings_never_pass_the_scratch_buffer),
        cmocka_unit_test(agrees_with_jansson_on_generated_and_mutated_bodies),
        cmocka_unit_test(agrees_with_jansson_on_every_pair_of_bytes_in_a_string),
        cmocka_unit_test(agrees_with_jansson_on_utf8_of_three_and_four_bytes),
        cmocka_unit_test(agrees_with_jansson_on_every_escaped_code),
        cmocka_unit_test(an_escaped_string_is_read_back_by_jansson_as_it_was),
        cmocka_unit_test(the_escape_appends_within_its_bound_or_leaves_all_as_it_was),
        cmocka_unit_test(the_escape_refuses_what_is_not_utf8),
    };
    return cmocka_run_group_tests_name("json", json, NULL, NULL);
}
