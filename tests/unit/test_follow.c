/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pace that follows the shop. A real room calls people into a simulated shop, which serves one request after the other, as many
 * a second as it can at the time, and gives up on those it has kept waiting for 5 s. What it can is halved and comes back.
 */
#include "rig.h"
#include "tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MS       10 /* of the shop; the room ticks every tenth */
#define STEPS_SEC     (1000 / STEP_MS)
#define TIMEOUT_STEPS (5 * STEPS_SEC)
#define SERVICE_MS    20
#define IN_TIME_MS    1000

struct play {
    const char *name;
    uint32_t requests; /* of a visit */
    uint32_t visit_from_ms, visit_to_ms;
    uint32_t seconds;
    uint32_t can[3]; /* visits per second that the shop can serve: at first, from `changes` on */
    uint32_t changes_sec[2];
};

/* What came of it. */
struct outcome {
    uint64_t answers, in_time, failures;
    uint64_t answers_in_drop, failures_in_drop;
    double *rate; /* second by second */
    uint32_t *calls;
};

struct shop {
    const struct play *play;
    struct dice dice;
    struct rig rig;
    uint32_t *arrivals; /* requests that come in a step … */
    uint64_t *entered;  /* … and the steps in which those who make them entered, added up */
    uint32_t now, head; /* steps; the requests before `head` are answered */
    uint32_t headed;    /* of those of `head` are answered */
    uint32_t steps;
    uint64_t credit; /* thousandths of an answer */
    struct place *place;
    uint32_t joined, inside;
    struct shop_report report;
    struct outcome outcome;
};

/* ---- the shop ---- */

static uint32_t second_of(const struct shop *shop)
{
    return shop->now / STEPS_SEC;
}

static bool is_in_drop(const struct shop *shop)
{
    return second_of(shop) >= shop->play->changes_sec[0] && second_of(shop) < shop->play->changes_sec[1];
}

static uint32_t can_now(const struct shop *shop)
{
    const struct play *play = shop->play;
    uint32_t second = second_of(shop);

    return play->can[second < play->changes_sec[0]   ? 0
                     : second < play->changes_sec[1] ? 1
                                                     : 2] *
           play->requests;
}

/* Somebody was let in. */
static void visit(struct shop *shop)
{
    const struct play *play = shop->play;
    uint32_t length =
        play->visit_from_ms + dice_below(&shop->dice, play->visit_to_ms - play->visit_from_ms + 1);

    for (uint32_t i = 0; i < play->requests; i++) {
        uint32_t step = shop->now + dice_below(&shop->dice, length + 1) / STEP_MS;
        if (step >= shop->steps)
            continue;
        shop->arrivals[step]++;
        shop->entered[step] += shop->now;
    }
}

/* The first request that is not answered; none if the shop has nothing to do. */
static bool head_find(struct shop *shop)
{
    while (shop->head < shop->now && shop->headed == shop->arrivals[shop->head]) {
        shop->head++;
        shop->headed = 0;
    }
    return shop->headed < shop->arrivals[shop->head];
}

static void answer(struct shop *shop, bool is_failure)
{
    uint64_t entered = shop->entered[shop->head] / shop->arrivals[shop->head];
    uint32_t age_sec = (uint32_t)((shop->now - entered) / STEPS_SEC);
    uint32_t ms = (shop->now - shop->head) * STEP_MS + SERVICE_MS / 2 + dice_below(&shop->dice, SERVICE_MS);

    shop->headed++;
    shop->outcome.answers++;
    shop->outcome.failures += is_failure;
    shop->outcome.in_time += !is_failure && ms <= IN_TIME_MS;
    shop->outcome.answers_in_drop += is_in_drop(shop);
    shop->outcome.failures_in_drop += is_failure && is_in_drop(shop);
    if (is_failure)
        shop_report_add_failure(&shop->report, age_sec);
    else
        shop_report_add(&shop->report, ms, age_sec);
}

static void shop_serve(struct shop *shop)
{
    uint64_t most = (uint64_t)can_now(shop) * STEP_MS + 1000;

    shop->credit += (uint64_t)can_now(shop) * STEP_MS;
    shop->credit = shop->credit < most ? shop->credit : most;
    while (head_find(shop) && shop->now - shop->head > TIMEOUT_STEPS)
        answer(shop, true);
    for (; shop->credit >= 1000 && head_find(shop); shop->credit -= 1000)
        answer(shop, false);
}

/* ---- the room ---- */

static void line_fill(struct shop *shop)
{
    struct standing standing;

    while (shop->joined < room_figures(shop->rig.room).calls + 200) {
        assert_int_equal(rig_join(&shop->rig, shop->joined, &standing), ERROR_NONE);
        shop->place[shop->joined++] = standing.place;
    }
}

/* Those who were called enter; what they do then is the shop's, and the room has slots without end. */
static void called_enter(struct shop *shop)
{
    uint64_t calls = room_figures(shop->rig.room).calls;
    struct standing standing;

    for (; shop->inside < calls; shop->inside++) {
        assert_int_equal(rig_enter(&shop->rig, &shop->place[shop->inside], &standing), ERROR_NONE);
        assert_int_equal(room_session_end(shop->rig.room, &shop->place[shop->inside]), ERROR_NONE);
        shop->outcome.calls[second_of(shop)]++;
        visit(shop);
    }
}

static void room_step(struct shop *shop)
{
    assert_int_equal(room_shop(shop->rig.room, &shop->report), ERROR_NONE);
    shop->report = (struct shop_report){0};
    line_fill(shop);
    room_tick(shop->rig.room, ROOM_TICK_MS);
    called_enter(shop);
    shop->outcome.rate[second_of(shop)] = (double)room_figures(shop->rig.room).rate_milli / 1000;
}

static struct shop shop_new(const struct play *play, const struct settings *settings, uint64_t seed)
{
    struct shop shop = {.play = play, .dice = {seed}, .steps = play->seconds * STEPS_SEC};
    size_t most = play->seconds * 210U + 1000;

    shop.rig = rig_new(1024, settings);
    shop.arrivals = calloc(shop.steps, sizeof(*shop.arrivals));
    shop.entered = calloc(shop.steps, sizeof(*shop.entered));
    shop.place = calloc(most, sizeof(*shop.place));
    shop.outcome.rate = calloc(play->seconds, sizeof(*shop.outcome.rate));
    shop.outcome.calls = calloc(play->seconds, sizeof(*shop.outcome.calls));
    return shop;
}

static void outcome_free(struct outcome *outcome)
{
    free(outcome->rate);
    free(outcome->calls);
}

static struct outcome play(const struct play *play, const struct settings *settings, uint64_t seed)
{
    struct shop shop = shop_new(play, settings, seed);

    for (; shop.now < shop.steps; shop.now++) {
        if (shop.now % (ROOM_TICK_MS / STEP_MS) == 0)
            room_step(&shop);
        shop_serve(&shop);
    }
    rig_free(&shop.rig);
    free(shop.arrivals);
    free(shop.entered);
    free(shop.place);
    return shop.outcome;
}

static struct settings settings_of(enum room_pace pace, uint32_t rate, uint32_t rate_max)
{
    struct settings settings = settings_default();

    settings.pace = pace;
    settings.rate_milli = rate * 1000;
    settings.rate_max_milli = rate_max * 1000;
    settings.max_active = 0;
    settings.seen_ttl_sec = 86400;
    settings.claim_ttl_sec = 86400;
    return settings;
}

static double mean(const double *rate, uint32_t from, uint32_t to)
{
    double sum = 0;

    for (uint32_t i = from; i < to; i++)
        sum += rate[i];
    return sum / (to - from);
}

static double percent(uint64_t part, uint64_t of)
{
    return of == 0 ? 0 : 100.0 * (double)part / (double)of;
}

/* ---- what it must come to ---- */

static void the_pace_settles_near_what_the_shop_can_within_half_a_minute(void **state)
{
    const struct play plays[] = {
        {"5 requests within 5 s", 5, 0, 5000, 240, {100, 50, 100}, {60, 120}},
        {"10 requests within 5 s", 10, 0, 5000, 240, {100, 50, 100}, {60, 120}},
        {"10 requests in 2 to 5 s", 10, 2000, 5000, 240, {100, 50, 100}, {60, 120}},
        {"10 requests in just 5 s", 10, 5000, 5000, 240, {100, 50, 100}, {60, 120}},
        {"30 requests within a second", 30, 0, 1000, 240, {100, 50, 100}, {60, 120}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
        for (uint32_t begin = 30; begin <= 90; begin += 30) {
            struct settings settings = settings_of(PACE_AUTO, begin, 200);
            struct outcome outcome = play(&plays[i], &settings, begin + i);
            double halved = mean(outcome.rate, 90, 120), back = mean(outcome.rate, 180, 240);
            print_message(
                "%-28s from %u/s: %.1f/s of 50, back at %.1f/s of 100; in the drop %.1f %% failures\n",
                plays[i].name, begin, halved, back,
                percent(outcome.failures_in_drop, outcome.answers_in_drop));
            assert_true(halved > 50 * 0.85 && halved < 50 * 1.15);
            assert_true(back > 100 * 0.85 && back < 100 * 1.15);
            assert_true(percent(outcome.failures_in_drop, outcome.answers_in_drop) < 5);
            outcome_free(&outcome);
        }
}

/* "In hindsight": every fixed rate is tried on the same play, and the best taken. Stated margin: a tenth. */
static void with_visits_of_minutes_no_fixed_pace_in_hindsight_is_much_better(void **state)
{
    const struct play plays[] = {
        {"visits of 30 to 60 s", 20, 30000, 60000, 1800, {100, 50, 100}, {600, 1200}},
        {"visits of 1 to 3 min", 20, 60000, 180000, 1800, {100, 50, 100}, {600, 1200}},
        {"visits of 2 to 5 min", 20, 120000, 300000, 1800, {100, 50, 100}, {600, 1200}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
        uint64_t best = 0, best_failures = 0;
        uint32_t best_rate = 0;
        for (uint32_t rate = 40; rate <= 100; rate += 10) {
            struct settings fixed = settings_of(PACE_FIXED, rate, 0);
            struct outcome outcome = play(&plays[i], &fixed, 3);
            if (outcome.in_time > best) {
                best = outcome.in_time;
                best_failures = outcome.failures;
                best_rate = rate;
            }
            outcome_free(&outcome);
        }
        struct settings settings = settings_of(PACE_AUTO, 50, 200);
        struct outcome outcome = play(&plays[i], &settings, 3);
        print_message(
            "%s: %.2f of the answers in time of the best fixed rate (%u/s); failures %lu, there %lu\n",
            plays[i].name, (double)outcome.in_time / (double)best, best_rate, outcome.failures,
            best_failures);
        assert_true((double)outcome.in_time > 0.9 * (double)best);
        assert_true(outcome.failures < best_failures || percent(outcome.failures, outcome.answers) < 2);
        outcome_free(&outcome);
    }
}

static void the_pace_never_passes_rate_max_and_stays_there_while_all_is_well(void **state)
{
    const struct play well = {"a shop that can more", 10, 0, 5000, 120, {500, 500, 500}, {60, 61}};
    struct settings settings = settings_of(PACE_AUTO, 20, 60);
    struct outcome outcome = play(&well, &settings, 1);
    (void)state;

    for (uint32_t from = 0; from < well.seconds; from++)
        for (uint32_t to = from, calls = 0; to < well.seconds; to++) {
            calls += outcome.calls[to];
            assert_true(calls <= 60 * (to - from + 1) + 60 / 5 + 6);
        }
    assert_true(mean(outcome.rate, 60, 120) == 60);
    outcome_free(&outcome);
}

static void a_shop_that_was_down_is_given_people_again_when_it_is_back(void **state)
{
    const struct play down = {"down for a minute", 10, 0, 5000, 240, {100, 0, 100}, {60, 120}};
    struct settings settings = settings_of(PACE_AUTO, 90, 200);
    struct outcome outcome = play(&down, &settings, 1);
    (void)state;

    assert_true(mean(outcome.rate, 90, 120) == 1); /* rate_min */
    assert_true(mean(outcome.rate, 180, 240) > 75);
    outcome_free(&outcome);
}

/* ---- one thing at a time ---- */

struct bench {
    struct settings settings;
    struct follow follow;
    struct memory memory;
};

static struct bench *bench_new(uint32_t rate, uint32_t rate_max)
{
    struct bench *bench = shared_new(sizeof(*bench));

    bench->settings = settings_of(PACE_AUTO, rate, rate_max);
    memory_init(&bench->memory, bench);
    follow_init(&bench->follow, &bench->settings);
    return bench;
}

/* As many as the pace allows in a second. */
static void calls_happen(struct bench *bench)
{
    for (uint32_t i = 0; i * 1000 < bench->follow.rate_milli; i++) {
        follow_count_call(&bench->follow, &bench->memory);
        memory_commit(&bench->memory);
    }
}

/* So many answers began after `ms`, to people who are inside for `age_sec`, and so many failed. */
static void answers_come(struct bench *bench, uint32_t answers, uint32_t ms, uint32_t age_sec,
                         uint32_t failures)
{
    struct shop_report report = {0};

    for (uint32_t i = 0; i < answers; i++)
        shop_report_add(&report, ms, age_sec);
    for (uint32_t i = 0; i < failures; i++)
        shop_report_add_failure(&report, age_sec);
    follow_take(&bench->follow, &report);
}

/* A second in which the pace is used. */
static void second_passes(struct bench *bench)
{
    calls_happen(bench);
    follow_advance(&bench->follow, &bench->settings, 1000);
}

static void seconds_pass(struct bench *bench, uint32_t seconds, uint32_t answers, uint32_t ms,
                         uint32_t failures)
{
    while (seconds-- > 0) {
        answers_come(bench, answers, ms, 1, failures);
        second_passes(bench);
    }
}

static void bench_free(struct bench *bench)
{
    shared_free(bench, sizeof(*bench));
}

static void the_way_up_is_gentle_and_the_way_down_is_at_once(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    seconds_pass(bench, 10, 100, 20, 0);
    assert_int_equal(bench->follow.reason, FOLLOW_WELL);
    assert_in_range(bench->follow.rate_milli, 120000, 140000);
    uint32_t before = bench->follow.rate_milli;
    seconds_pass(bench, 1, 30, 3000, 0);
    assert_int_equal(bench->follow.reason, FOLLOW_SLOW);
    assert_true(bench->follow.rate_milli < before / 5);
    bench_free(bench);
}

static void failures_slow_it_down_as_much_as_slowness(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    seconds_pass(bench, 10, 100, 20, 0);
    uint32_t before = bench->follow.rate_milli;
    seconds_pass(bench, 1, 100, 20, 10);
    assert_int_equal(bench->follow.reason, FOLLOW_FAILING);
    assert_int_equal(bench->follow.failed_permille, 90);
    assert_int_equal(bench->follow.rate_milli, before * 93ULL / 100);
    seconds_pass(bench, 1, 40, 20, 60);
    assert_true(bench->follow.rate_milli < before / 2);
    bench_free(bench);
}

static void one_failure_among_few_answers_changes_nothing(void **state)
{
    struct bench *bench = bench_new(5, 1000);
    (void)state;

    seconds_pass(bench, 20, 1, 20, 0);
    uint32_t before = bench->follow.rate_milli;
    seconds_pass(bench, 5, 0, 20, 0);
    answers_come(bench, 0, 0, 1, 1);
    follow_advance(&bench->follow, &bench->settings, 5000);
    assert_true(bench->follow.rate_milli >= before);
    bench_free(bench);
}

static void a_target_that_is_given_counts_instead_of_the_shops_own_time(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    bench->settings.shop_target_ms = 800;
    seconds_pass(bench, 5, 100, 600, 0);
    assert_int_equal(bench->follow.reason, FOLLOW_WELL);
    seconds_pass(bench, 1, 100, 750, 0);
    assert_int_equal(bench->follow.reason, FOLLOW_NEAR);
    uint32_t before = bench->follow.rate_milli;
    seconds_pass(bench, 1, 100, 1000, 0);
    assert_int_equal(bench->follow.reason, FOLLOW_SLOW);
    assert_int_equal(bench->follow.rate_milli, before * 93ULL / 100);
    bench_free(bench);
}

static void a_pace_that_is_not_used_does_not_grow(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    for (int second = 0; second < 100; second++) {
        answers_come(bench, 50, 20, 1, 0);
        follow_advance(&bench->follow, &bench->settings, 1000);
    }
    assert_int_equal(bench->follow.reason, FOLLOW_UNUSED);
    assert_int_equal(bench->follow.rate_milli, 100000);
    bench_free(bench);
}

static void it_waits_while_those_let_in_have_not_all_made_themselves_felt(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    for (uint32_t second = 0; second < 120; second++) {
        answers_come(bench, 50, 20, second / 2, 0);
        second_passes(bench);
    }
    assert_int_equal(bench->follow.reason, FOLLOW_FILLING);
    assert_true(bench->follow.rate_milli < 115000);
    bench_free(bench);
}

static void a_shop_that_became_slower_for_good_is_well_again_some_day(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    seconds_pass(bench, 10, 100, 100, 0);
    seconds_pass(bench, 60, 100, 700, 0);
    assert_true(bench->follow.rate_milli < 60000);
    seconds_pass(bench, 1000, 100, 700, 0);
    assert_true(bench->follow.rate_milli > 10000);
    bench_free(bench);
}

/* Here the rate stays, and the room calls nobody. */
static void nobody_is_called_while_a_breaker_leaves_the_shop_alone(void **state)
{
    struct settings settings = settings_of(PACE_AUTO, 10, 100);
    struct rig rig = rig_new(64, &settings);
    struct shop_report report = {0};
    (void)state;

    for (uint64_t who = 0; who < 1000; who++)
        rig_place(&rig, who);
    shop_report_left_alone(&report, 30000);
    room_shop(rig.room, &report);
    uint64_t calls = room_figures(rig.room).calls;
    rig_pass(&rig, 29900);
    assert_int_equal(room_figures(rig.room).calls, calls);
    assert_int_equal(room_figures(rig.room).pace_reason, FOLLOW_FROZEN);
    assert_int_equal(room_figures(rig.room).rate_milli, 10000);
    rig_pass(&rig, 5000);
    assert_true(room_figures(rig.room).calls >= calls + 40);
    rig_free(&rig);
}

static void an_estimate_knows_how_long_nobody_will_be_called(void **state)
{
    struct settings settings = settings_of(PACE_AUTO, 10, 100);
    struct rig rig = rig_new(64, &settings);
    struct shop_report report = {.left_alone_ms = 30000};
    struct standing standing;
    (void)state;

    room_shop(rig.room, &report);
    assert_int_equal(rig_join(&rig, 1, &standing), ERROR_NONE);
    assert_false(standing.is_ready);
    assert_in_range(standing.eta_sec, 30, 32);
    assert_true(standing.eta_low_sec >= 30);
    assert_in_range(room_figures(rig.room).newcomer_eta_sec, 30, 32);
    rig_pass(&rig, 20000);
    assert_in_range(room_figures(rig.room).newcomer_eta_sec, 10, 12);
    for (uint64_t who = 2; who < 102; who++)
        rig_place(&rig, who);
    assert_in_range(room_figures(rig.room).newcomer_eta_sec, 19, 22);
    rig_free(&rig);
}

static void a_freeze_says_nothing_about_the_time_after_it(void **state)
{
    struct settings settings = settings_of(PACE_AUTO, 10, 10);
    struct rig rig = rig_new(64, &settings);
    struct shop_report report = {.left_alone_ms = 60000};
    (void)state;

    settings.max_active = 0;
    settings.seen_ttl_sec = 3600;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    for (uint64_t who = 0; who < 2000; who++)
        rig_place(&rig, who);
    rig_pass(&rig, 60000);
    uint32_t before = room_figures(rig.room).newcomer_eta_sec;
    room_shop(rig.room, &report);
    rig_pass(&rig, 60000);
    assert_in_range(room_figures(rig.room).newcomer_eta_sec, before * 9 / 10, before * 11 / 10);
    rig_free(&rig);
}

/* An operator who takes the pace into their own hands while the breaker is open. */
static void a_frozen_pace_that_is_fixed_calls_again(void **state)
{
    struct settings settings = settings_of(PACE_AUTO, 10, 100);
    struct rig rig = rig_new(64, &settings);
    struct shop_report report = {.left_alone_ms = 30000, .times[9] = 30};
    (void)state;

    for (uint64_t who = 0; who < 1000; who++)
        rig_place(&rig, who);
    room_shop(rig.room, &report);
    rig_pass(&rig, 1000);
    assert_true(room_figures(rig.room).shop_time_ms > 0);
    settings.pace = PACE_FIXED;
    room_set_settings(rig.room, &settings, NULL, true);
    uint64_t calls = room_figures(rig.room).calls;
    rig_pass(&rig, 2000);
    assert_in_range(room_figures(rig.room).calls, calls + 15, calls + 25);
    assert_int_equal(room_figures(rig.room).shop_time_ms, 0); /* it follows nothing now */
    rig_free(&rig);
}

static void an_empty_room_is_not_at_rest_before_it_may_call_again(void **state)
{
    struct settings settings = settings_of(PACE_AUTO, 10, 100);
    struct rig rig = rig_new(64, &settings);
    struct shop_report report = {.left_alone_ms = 30000};
    (void)state;

    assert_true(room_is_at_rest(rig.room));
    room_shop(rig.room, &report);
    rig_pass(&rig, 29900);
    assert_false(room_is_at_rest(rig.room));
    rig_pass(&rig, 100);
    assert_true(room_is_at_rest(rig.room));
    assert_int_not_equal(room_figures(rig.room).pace_reason, FOLLOW_FROZEN);
    rig_free(&rig);
}

static void calls_at_a_fixed_pace_say_nothing_about_one_that_follows(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    struct settings fixed = bench->settings;
    (void)state;

    fixed.pace = PACE_FIXED;
    follow_change(&bench->follow, &bench->settings, &fixed);
    for (int i = 0; i < 100; i++)
        calls_happen(bench);
    follow_change(&bench->follow, &fixed, &bench->settings);
    answers_come(bench, 100, 20, 1, 0);
    follow_advance(&bench->follow, &bench->settings, 1000);
    assert_int_equal(bench->follow.reason, FOLLOW_UNUSED);
    assert_int_equal(bench->follow.rate_milli, 100000);
    bench_free(bench);
}

static void one_slow_answer_among_few_changes_nothing(void **state)
{
    struct bench *bench = bench_new(5, 1000);
    (void)state;

    seconds_pass(bench, 20, 2, 20, 0);
    for (uint32_t few = 1; few <= 19; few += 6) {
        uint32_t before = bench->follow.rate_milli;
        answers_come(bench, few - 1, 20, 1, 0);
        answers_come(bench, 1, 30000, 1, 0);
        follow_advance(&bench->follow, &bench->settings, 5000);
        assert_true(bench->follow.rate_milli >= before);
    }
    bench_free(bench);
}

/* A picture or two in a quiet moment. */
static void a_few_fast_answers_do_not_change_what_is_expected_of_the_shop(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    seconds_pass(bench, 10, 100, 200, 0);
    uint32_t target_ms = follow_target_ms(&bench->follow, &bench->settings);
    answers_come(bench, 2, 1, 1, 0);
    follow_advance(&bench->follow, &bench->settings, 5000);
    assert_in_range(follow_target_ms(&bench->follow, &bench->settings), target_ms * 8 / 10, target_ms);
    seconds_pass(bench, 3, 100, 20, 0);
    assert_true(follow_target_ms(&bench->follow, &bench->settings) < 130);
    bench_free(bench);
}

/* Who asks most is heard most: somebody who came in the morning and now asks all the time. */
static void nobody_who_stays_for_hours_keeps_the_pace_from_changing(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    for (uint32_t second = 0; second < 3000; second++) {
        answers_come(bench, 100, second < 60 ? 20 : 160, 10 * 3600, 0);
        second_passes(bench);
    }
    assert_true(bench->follow.rate_milli < 85000);
    bench_free(bench);
}

static void a_shop_that_stays_too_slow_after_the_worst_is_over_is_given_less(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    (void)state;

    seconds_pass(bench, 10, 100, 100, 0);
    seconds_pass(bench, 1, 100, 1000, 0);
    uint32_t drained = bench->follow.rate_milli;
    seconds_pass(bench, 60, 100, 300, 0);
    assert_true(bench->follow.rate_milli < drained / 2);
    uint32_t before = bench->follow.rate_milli;
    seconds_pass(bench, 1, 100, 100, 0);
    assert_true(bench->follow.rate_milli <= before);
    bench_free(bench);
}

/* What it had learnt is gone; what its credit was at a far higher rate must not count at the one it begins with. */
static void a_recovered_room_begins_at_its_rate_with_no_more_credit_than_that_allows(void **state)
{
    struct settings settings = settings_of(PACE_AUTO, 10, 1000);
    struct rig rig = rig_new(64, &settings);
    struct tape snapshot = {0};
    (void)state;

    rig.room->follow.rate_milli = rig.room->paced.rate_milli = 900000;
    rig_pass(&rig, 5000);
    assert_true(rig.room->pace.credit > 100 * 1000000);
    tape_snapshot(&snapshot, rig.room);
    struct copy copy = copy_recovered(64, &snapshot, &(struct tape){0}, 0);
    copy_wake(&copy);
    assert_int_equal(room_figures(copy.rig.room).rate_milli, 10000);
    assert_int_equal(room_figures(copy.rig.room).pace_reason, FOLLOW_BEGIN);
    assert_true(copy.rig.room->pace.credit <= 2 * 1000000);
    settings.rate_max_milli = 50000;
    assert_int_equal(rig_set(&copy.rig, &settings), ERROR_NONE);
    copy_free(&copy);
    tape_free(&snapshot);
    rig_free(&rig);
}

static void a_fixed_pace_cares_for_no_report(void **state)
{
    struct settings settings = settings_of(PACE_FIXED, 10, 0);
    struct rig rig = rig_new(64, &settings);
    struct shop_report report = {.failures = 1000, .left_alone_ms = 1000};
    (void)state;

    for (int i = 0; i < 20; i++) {
        assert_int_equal(room_shop(rig.room, &report), ERROR_NONE);
        rig_pass(&rig, 1000);
    }
    assert_int_equal(room_figures(rig.room).rate_milli, 10000);
    assert_int_equal(room_figures(rig.room).pace_reason, FOLLOW_FIXED);
    rig_free(&rig);
}

static void new_settings_begin_anew_or_keep_to_the_new_bounds(void **state)
{
    struct bench *bench = bench_new(100, 1000);
    struct settings after = bench->settings;
    (void)state;

    seconds_pass(bench, 30, 100, 20, 0);
    uint32_t grown = bench->follow.rate_milli;
    assert_true(grown > 150000);
    after.rate_max_milli = 2000000;
    follow_change(&bench->follow, &bench->settings, &after);
    assert_int_equal(bench->follow.rate_milli, grown);
    after.rate_max_milli = 120000;
    follow_change(&bench->follow, &bench->settings, &after);
    assert_int_equal(bench->follow.rate_milli, 120000);
    bench->settings = after;
    after.rate_milli = 30000;
    follow_change(&bench->follow, &bench->settings, &after);
    assert_int_equal(bench->follow.rate_milli, 30000);
    bench->settings = after;
    after.pace = PACE_FIXED;
    follow_change(&bench->follow, &bench->settings, &after);
    assert_int_equal(bench->follow.reason, FOLLOW_FIXED);
    bench_free(bench);
}

static int compare(const void *a, const void *b)
{
    return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b);
}

/* Held against all the times, sorted. */
static void the_time_of_95_of_100_is_right_to_a_fifth(void **state)
{
    struct dice dice = {5};
    uint32_t times[1000];
    (void)state;

    for (int round = 0; round < 500; round++) {
        struct bench *bench = bench_new(100, 1000);
        uint32_t count = 20 + dice_below(&dice, 981), scale = 1 + dice_below(&dice, 15);
        struct shop_report report = {0};
        for (uint32_t i = 0; i < count; i++) {
            times[i] = dice_below(&dice, 1U << scale);
            shop_report_add(&report, times[i], 0);
        }
        qsort(times, count, sizeof(times[0]), compare);
        follow_take(&bench->follow, &report);
        follow_advance(&bench->follow, &bench->settings, 5000);
        uint32_t exact = times[(count * 95 + 99) / 100 - 1];
        assert_in_range(bench->follow.time_ms, exact, exact + exact / 4);
        bench_free(bench);
    }
}

static void no_report_whatever_breaks_it(void **state)
{
    struct bench *bench = bench_new(100, 100000);
    struct dice dice = {6};
    (void)state;

    for (int round = 0; round < 100000; round++) {
        struct shop_report report = {
            .failures = dice_below(&dice, 3) == 0 ? (uint32_t)dice_roll(&dice) >> dice_below(&dice, 32) : 0,
            .ages_sec = dice_roll(&dice) >> (20 + dice_below(&dice, 44)),
            .left_alone_ms = dice_below(&dice, 50) == 0 ? dice_below(&dice, 100000) : 0};
        for (int i = 0; i < SHOP_TIMES; i++)
            report.times[i] =
                dice_below(&dice, 10) == 0 ? (uint32_t)dice_roll(&dice) >> dice_below(&dice, 32) : 0;
        follow_take(&bench->follow, &report);
        follow_advance(&bench->follow, &bench->settings, dice_below(&dice, 2000));
        assert_in_range(bench->follow.rate_milli, bench->settings.rate_min_milli,
                        bench->settings.rate_max_milli);
        assert_true(bench->follow.reason < FOLLOW_REASONS);
    }
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pace_settles_near_what_the_shop_can_within_half_a_minute),
        cmocka_unit_test(with_visits_of_minutes_no_fixed_pace_in_hindsight_is_much_better),
        cmocka_unit_test(the_pace_never_passes_rate_max_and_stays_there_while_all_is_well),
        cmocka_unit_test(a_shop_that_was_down_is_given_people_again_when_it_is_back),
        cmocka_unit_test(the_way_up_is_gentle_and_the_way_down_is_at_once),
        cmocka_unit_test(failures_slow_it_down_as_much_as_slowness),
        cmocka_unit_test(one_failure_among_few_answers_changes_nothing),
        cmocka_unit_test(a_target_that_is_given_counts_instead_of_the_shops_own_time),
        cmocka_unit_test(a_pace_that_is_not_used_does_not_grow),
        cmocka_unit_test(it_waits_while_those_let_in_have_not_all_made_themselves_felt),
        cmocka_unit_test(a_shop_that_became_slower_for_good_is_well_again_some_day),
        cmocka_unit_test(nobody_is_called_while_a_breaker_leaves_the_shop_alone),
        cmocka_unit_test(an_estimate_knows_how_long_nobody_will_be_called),
        cmocka_unit_test(a_freeze_says_nothing_about_the_time_after_it),
        cmocka_unit_test(a_frozen_pace_that_is_fixed_calls_again),
        cmocka_unit_test(an_empty_room_is_not_at_rest_before_it_may_call_again),
        cmocka_unit_test(calls_at_a_fixed_pace_say_nothing_about_one_that_follows),
        cmocka_unit_test(one_slow_answer_among_few_changes_nothing),
        cmocka_unit_test(a_few_fast_answers_do_not_change_what_is_expected_of_the_shop),
        cmocka_unit_test(nobody_who_stays_for_hours_keeps_the_pace_from_changing),
        cmocka_unit_test(a_shop_that_stays_too_slow_after_the_worst_is_over_is_given_less),
        cmocka_unit_test(a_recovered_room_begins_at_its_rate_with_no_more_credit_than_that_allows),
        cmocka_unit_test(a_fixed_pace_cares_for_no_report),
        cmocka_unit_test(new_settings_begin_anew_or_keep_to_the_new_bounds),
        cmocka_unit_test(the_time_of_95_of_100_is_right_to_a_fifth),
        cmocka_unit_test(no_report_whatever_breaks_it),
    };

    return cmocka_run_group_tests_name("follow", tests, NULL, NULL);
}
