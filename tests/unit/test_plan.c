/* SPDX-License-Identifier: BSD-2-Clause */
/* The planner: the figures of the paper it follows, and what must hold for every shop. */
#include "cli/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* 1,000 requests a second, 6 a visit, 15 % sent again, visits of 300 s, filled to 80 %, a batch every 10 s. */
static const struct plan_input concert = {
    .capacity_milli = 1000000,
    .requests_milli = 6000,
    .failures = 15000,
    .visit_sec = 300,
    .target = 80000,
    .every_sec = 10,
};

static struct plan plan_of(const struct plan_input *input)
{
    struct plan plan;
    const char *reason;
    if (!plan_make(input, &plan, &reason))
        fail_msg("refused: %s", reason);
    return plan;
}

static struct plan cautious_plan_of(struct plan_input input)
{
    input.cautious = true;
    return plan_of(&input);
}

static void expect_refused(struct plan_input input, const char *part_of_reason)
{
    struct plan plan;
    const char *reason = NULL;
    assert_false(plan_make(&input, &plan, &reason));
    if (strstr(reason, part_of_reason) == NULL)
        fail_msg("expected \"%s\" in: %s", part_of_reason, reason);
}

static void the_concert_gets_the_figures_of_the_paper(void **state)
{
    struct plan plan = plan_of(&concert);
    (void)state;
    assert_int_equal(plan.held, 43478);
    assert_int_equal(plan.period_milli, 375000);
    assert_int_equal(plan.per_period, 54348);
    assert_int_equal(plan.batch, 1449);
    assert_int_equal(plan.rate_milli, 144900);
    assert_int_equal(plan.target, 34782);
}

static void the_cautious_concert_gets_the_roundings_of_the_paper(void **state)
{
    struct plan plan = cautious_plan_of(concert);
    (void)state;
    assert_int_equal(plan.held_exactly, 43478);
    assert_int_equal(plan.held, 40000);
    assert_int_equal(plan.target, 32000);
    assert_int_equal(plan.period_milli, 6 * 60000);
    assert_int_equal(plan.per_period_exactly, 54348);
    assert_int_equal(plan.per_period, 50000);
    assert_int_equal(plan.per_minute, 8334);
    assert_int_equal(plan.batch_unrounded, 1389);
    assert_int_equal(plan.batch, 1400);
}

static void the_paper_overfills_its_own_target_and_is_told_what_keeps_it(void **state)
{
    struct plan plan = cautious_plan_of(concert);
    (void)state;
    assert_true(plan.exceeds_target);
    assert_int_equal(plan.inside, 42000);
    assert_int_equal(plan.keeping_batch, 1066);
    assert_true(plan.keeping_batch * 300 / 10 <= plan.target);
    assert_true((plan.keeping_batch + 1) * 300 / 10 > plan.target);
}

static void a_shop_filled_to_the_brim_is_not_warned(void **state)
{
    struct plan_input input = concert;
    struct plan plan;
    (void)state;
    input.target = SHARE_WHOLE;
    plan = plan_of(&input);
    assert_false(plan.exceeds_target);
    assert_int_equal(plan.period_milli, 300000);
}

/* 6.9 requests a second and visits of 6.9 requests: exactly one person a second, where doubles say 0.9999… */
static void a_figure_that_comes_out_even_is_not_off_by_one(void **state)
{
    struct plan_input input = {6900, 6000, 15000, 100, SHARE_WHOLE, 10, false};
    struct plan plan = plan_of(&input);
    (void)state;
    assert_int_equal(plan.held, 100);
    assert_int_equal(plan.batch, 10);
    assert_int_equal(plan.inside, 100);
    assert_false(plan.exceeds_target);
}

static void the_wait_is_whole_batches_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(plan_wait_sec(1, 1400, 10), 10);
    assert_int_equal(plan_wait_sec(1400, 1400, 10), 10);
    assert_int_equal(plan_wait_sec(1401, 1400, 10), 20);
    assert_int_equal(plan_wait_sec(10000, 1400, 10), 80);
    assert_int_equal(plan_wait_sec(1000000000, 1, 86400), 86400000000000);
}

static void what_no_room_can_do_is_refused_with_a_sentence(void **state)
{
    (void)state;
    expect_refused((struct plan_input){1, 6000, 0, 300, 80000, 10, false}, "single visit");
    expect_refused((struct plan_input){100, 1000, 0, 300, 80000, 5, false}, "longer --every");
    expect_refused((struct plan_input){1000000000000, 1, 0, 86400, SHARE_WHOLE, 1, false}, "100,000,000");
    expect_refused((struct plan_input){1000000000000, 1, 0, 86400, 1, 86400, true}, "100,000,000");
}

static uint64_t any(uint64_t from, uint64_t to)
{
    return from + (uint64_t)random() % (to - from + 1);
}

static void caution_never_calls_more_or_holds_more(void **state)
{
    unsigned planned = 0;
    (void)state;
    srandom(1);
    for (int i = 0; i < 200000; i++) {
        struct plan_input input = {
            any(1, 5000000), any(1, 50000), any(0, SHARE_WHOLE), any(1, 4000), any(1, SHARE_WHOLE),
            any(1, 600),     false};
        struct plan exact, cautious;
        const char *reason;
        if (!plan_make(&input, &exact, &reason))
            continue;
        input.cautious = true;
        if (!plan_make(&input, &cautious, &reason))
            continue;
        planned++;
        assert_true(exact.inside <= exact.held);
        assert_true(cautious.batch > 0 && cautious.batch <= exact.batch);
        assert_true(cautious.held <= exact.held && cautious.target <= exact.target);
        assert_int_equal(exact.exceeds_target,
                         exact.batch > exact.keeping_batch && exact.inside > exact.target);
    }
    assert_true(planned > 100000);
}

static void shares_are_read_as_percent_or_fraction_and_never_guessed(void **state)
{
    uint64_t share;
    (void)state;
    assert_true(number_read_share("15%", &share) && share == 15000);
    assert_true(number_read_share("0.15", &share) && share == 15000);
    assert_true(number_read_share("12.345%", &share) && share == 12345);
    assert_true(number_read_share("1", &share) && share == SHARE_WHOLE);
    assert_true(number_read_share("0", &share) && share == 0);
    const char *const refused[] = {"15",        "1.5",  "",     "%",  "-1%", "1e1%",
                                   "0.1234567", "15%%", " 15%", ".5", "5."};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (number_read_share(refused[i], &share))
            fail_msg("\"%s\" was read", refused[i]);
}

static void numbers_are_read_whole_or_not_at_all(void **state)
{
    const char *const refused[] = {"",       "-1",   "+1", "1x", "0x10", "1,000", "1234567890123",
                                   "1.2345", "1..2", "inf"};
    uint64_t number;
    (void)state;
    assert_true(number_read_milli("999999999999.999", &number) && number == 999999999999999);
    assert_true(number_read_milli("0.05", &number) && number == 50);
    assert_true(number_read_whole("999999999999", &number) && number == 999999999999);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (number_read_milli(refused[i], &number) || number_read_whole(refused[i], &number))
            fail_msg("\"%s\" was read", refused[i]);
}

static void numbers_are_written_as_people_read_them(void **state)
{
    char text[NUMBER_TEXT_MAX];
    (void)state;
    assert_string_equal(number_group(0, text), "0");
    assert_string_equal(number_group(999, text), "999");
    assert_string_equal(number_group(1000, text), "1,000");
    assert_string_equal(number_group(UINT64_MAX, text), "18,446,744,073,709,551,615");
    assert_string_equal(number_milli(6900, text), "6.9");
    assert_string_equal(number_milli(1234000, text), "1,234");
    assert_string_equal(number_milli(1, text), "0.001");
    assert_string_equal(number_share(12500, text), "12.5%");
    assert_string_equal(number_fraction(115000, text), "1.15");
    assert_string_equal(number_duration(59, text), "59 s");
    assert_string_equal(number_duration(60, text), "1 min");
    assert_string_equal(number_duration(375, text), "6 min 15 s");
    assert_string_equal(number_duration(3900, text), "1 h 05 min");
    assert_string_equal(number_duration(90000, text), "1 d 1 h");
}

int main(void)
{
    const struct CMUnitTest plan[] = {
        cmocka_unit_test(the_concert_gets_the_figures_of_the_paper),
        cmocka_unit_test(the_cautious_concert_gets_the_roundings_of_the_paper),
        cmocka_unit_test(the_paper_overfills_its_own_target_and_is_told_what_keeps_it),
        cmocka_unit_test(a_shop_filled_to_the_brim_is_not_warned),
        cmocka_unit_test(a_figure_that_comes_out_even_is_not_off_by_one),
        cmocka_unit_test(the_wait_is_whole_batches_rounded_up),
        cmocka_unit_test(what_no_room_can_do_is_refused_with_a_sentence),
        cmocka_unit_test(caution_never_calls_more_or_holds_more),
        cmocka_unit_test(shares_are_read_as_percent_or_fraction_and_never_guessed),
        cmocka_unit_test(numbers_are_read_whole_or_not_at_all),
        cmocka_unit_test(numbers_are_written_as_people_read_them),
    };
    return cmocka_run_group_tests_name("plan", plan, NULL, NULL);
}
