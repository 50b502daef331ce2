/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may use the operator's API. */
#include "token/operators.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define A "0123456789abcdef0123456789abcdef"
#define B "another-token-of-forty-characters!!!!!!!"

static void expect_refused(const char *text, const char *part_of_reason)
{
    struct operators operators;
    char reason[OPERATORS_REASON_MAX] = "";
    assert_false(operators_read(&operators, span_of(text), reason));
    if (strstr(reason, part_of_reason) == NULL)
        fail_msg("expected \"%s\" in: %s", part_of_reason, reason);
    assert_null(strstr(reason, "secret"));
}

static void each_token_is_its_owners_and_no_other_is_anybodys(void **state)
{
    struct operators operators;
    char reason[OPERATORS_REASON_MAX];
    (void)state;
    assert_true(operators_read(&operators, SPAN("# who\n\n  ops\t" A " \r\nnight_shift.2 " B), reason));
    assert_true(span_equal(operators_find(&operators, SPAN(A)), SPAN("ops")));
    assert_true(span_equal(operators_find(&operators, SPAN(B)), SPAN("night_shift.2")));
    assert_null(operators_find(&operators, SPAN("")).data);
    assert_null(operators_find(&operators, SPAN(A "0")).data);
    assert_null(operators_find(&operators, SPAN("0123456789abcdef0123456789abcde")).data);
    assert_null(operators_find(&operators, SPAN("ops")).data);
}

static void a_file_that_is_none_is_refused_and_not_quoted(void **state)
{
    (void)state;
    expect_refused("", "no token");
    expect_refused("# ops " A "\n", "no token");
    expect_refused("ops secret\n", "line 1: the token is too short");
    expect_refused("ops\n", "too short");
    expect_refused("a " A "\nb secret\n", "line 2");
    expect_refused("op/s " A "\n", "1 to 32 characters");
    expect_refused("a23456789012345678901234567890123 " A "\n", "1 to 32 characters");
    expect_refused("ops " A " secret\n", "nothing else");
    expect_refused("ops secret\xc3\xa9" A "\n", "printable");
    expect_refused("ops " A "\nops " B "\n", "name is taken");
    expect_refused("a " A "\nb " A "\n", "token is that of an earlier");
}

static void there_are_16_tokens_at_most_and_256_characters_in_one(void **state)
{
    struct operators operators;
    char text[2048], reason[OPERATORS_REASON_MAX], *at = text;
    (void)state;
    for (int i = 0; i < OPERATORS_MAX; i++)
        at += sprintf(at, "n%d %040d\n", i, i);
    assert_true(operators_read(&operators, span_of(text), reason));
    sprintf(at, "last " A "\n");
    expect_refused(text, "more than 16");
    sprintf(text, "a %0256d\n", 0);
    assert_true(operators_read(&operators, span_of(text), reason));
    sprintf(text, "a %0257d\n", 0);
    expect_refused(text, "too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_token_is_its_owners_and_no_other_is_anybodys),
        cmocka_unit_test(a_file_that_is_none_is_refused_and_not_quoted),
        cmocka_unit_test(there_are_16_tokens_at_most_and_256_characters_in_one),
    };
    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
