/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The breaker, on a clock of the test's own: what opens it and what does not, how it closes, what a retry costs, and that it
 * agrees with a model that remembers everything and counts anew each time.
 */
#include "base/breaker.h"

#include "rig.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct breaker_options plain = {
    .requests = 10,
    .window_ms = 10000,
    .failed_percent = 60,
    .open_ms = 30000,
    .trials = 3,
    .budget_percent = 10,
    .burst = 10,
};

static bool hits(struct dice *dice, uint32_t times)
{
    return dice_below(dice, times) == 0;
}

static uint32_t between(struct dice *dice, uint32_t least, uint32_t most)
{
    return least + dice_below(dice, most - least + 1);
}

static struct breaker fresh(uint64_t now_ms)
{
    struct breaker breaker;

    breaker_init(&breaker, &plain, now_ms);
    return breaker;
}

static void serve(struct breaker *breaker, uint64_t now_ms, enum breaker_outcome outcome)
{
    struct breaker_call call;

    assert_true(breaker_begin(breaker, now_ms, false, &call));
    breaker_end(breaker, now_ms, &call, outcome);
}

static void serve_many(struct breaker *breaker, uint64_t now_ms, int count, enum breaker_outcome outcome)
{
    for (int i = 0; i < count; i++)
        serve(breaker, now_ms, outcome);
}

static bool is_refused(struct breaker *breaker, uint64_t now_ms)
{
    struct breaker_call call;

    return !breaker_begin(breaker, now_ms, false, &call);
}

/* ---- closed ---- */

static void it_opens_when_enough_requests_of_a_window_failed(void **state)
{
    struct breaker breaker = fresh(5);
    (void)state;

    serve_many(&breaker, 1000, 4, BREAKER_GOOD);
    serve_many(&breaker, 2000, 5, BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 2000), BREAKER_CLOSED);
    serve(&breaker, 9000, BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 9000), BREAKER_OPEN);
    assert_int_equal(breaker.cause.requests, 10);
    assert_int_equal(breaker.cause.failed, 6);
    assert_true(is_refused(&breaker, 9000));
    assert_int_equal(breaker_wait_ms(&breaker, 9000), 30000);
    assert_int_equal(breaker_wait_ms(&breaker, 38999), 1);
}

static void fewer_requests_than_it_takes_open_nothing(void **state)
{
    struct breaker breaker = fresh(0);
    (void)state;

    serve_many(&breaker, 0, 9, BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 0), BREAKER_CLOSED);
    /* The tenth decides, though it went well: nine in ten failed. */
    serve(&breaker, 1, BREAKER_GOOD);
    assert_int_equal(breaker_look(&breaker, 1), BREAKER_OPEN);
}

static void a_smaller_share_opens_nothing_however_many_fail(void **state)
{
    struct breaker breaker = fresh(0);
    (void)state;

    for (int i = 0; i < 10000; i++) {
        serve_many(&breaker, (uint64_t)i * 10, 5, BREAKER_GOOD);
        serve_many(&breaker, (uint64_t)i * 10, 5, BREAKER_FAILED);
    }
    assert_int_equal(breaker_look(&breaker, 100000), BREAKER_CLOSED);
}

static void what_failed_longer_ago_than_the_window_is_forgotten(void **state)
{
    struct breaker breaker = fresh(0);
    (void)state;

    serve_many(&breaker, 0, 9, BREAKER_FAILED);
    serve(&breaker, 10000, BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 10000), BREAKER_CLOSED);
    assert_int_equal(breaker_window(&breaker, 10000).requests, 1);
    assert_int_equal(breaker_window(&breaker, 1000000).requests, 0);
}

static void who_went_away_counts_for_nothing(void **state)
{
    struct breaker breaker = fresh(0);
    (void)state;

    serve_many(&breaker, 0, 1000, BREAKER_UNTOLD);
    serve_many(&breaker, 0, 9, BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 0), BREAKER_CLOSED);
    assert_int_equal(breaker_window(&breaker, 0).requests, 9);
    assert_int_equal(breaker.counts.untold, 1000);
}

static void an_answer_that_broke_off_is_a_failure_and_one_request(void **state)
{
    struct breaker breaker = fresh(0);
    struct breaker_call calls[10];
    (void)state;

    for (int i = 0; i < 10; i++) {
        assert_true(breaker_begin(&breaker, 0, false, &calls[i]));
        breaker_end(&breaker, 0, &calls[i], BREAKER_GOOD);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(breaker_look(&breaker, 1), BREAKER_CLOSED);
        breaker_take_back(&breaker, 1, &calls[i]);
    }
    assert_int_equal(breaker_look(&breaker, 1), BREAKER_OPEN);
    assert_int_equal(breaker.cause.requests, 10);
    assert_int_equal(breaker.cause.failed, 6);
}

/* ---- open and half open ---- */

static struct breaker opened(uint64_t now_ms)
{
    struct breaker breaker = fresh(now_ms);

    serve_many(&breaker, now_ms, 10, BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, now_ms), BREAKER_OPEN);
    return breaker;
}

static void it_refuses_everybody_until_its_time_is_over(void **state)
{
    struct breaker breaker = opened(0);
    (void)state;

    for (uint64_t now = 0; now < 30000; now += 100)
        assert_true(is_refused(&breaker, now));
    assert_int_equal(breaker.counts.refused, 300);
    assert_int_equal(breaker_look(&breaker, 29999), BREAKER_OPEN);
    assert_int_equal(breaker_look(&breaker, 30000), BREAKER_HALF_OPEN);
}

static void three_good_trials_close_it_and_nobody_else_goes_by_meanwhile(void **state)
{
    struct breaker breaker = opened(0);
    struct breaker_call trials[3];
    (void)state;

    for (int i = 0; i < 3; i++)
        assert_true(breaker_begin(&breaker, 30000, false, &trials[i]));
    assert_true(is_refused(&breaker, 30000));
    assert_int_equal(breaker_wait_ms(&breaker, 30000), 1000);
    breaker_end(&breaker, 30100, &trials[1], BREAKER_GOOD);
    breaker_end(&breaker, 30100, &trials[0], BREAKER_GOOD);
    assert_true(is_refused(&breaker, 30100));
    breaker_end(&breaker, 30100, &trials[2], BREAKER_GOOD);
    assert_int_equal(breaker_look(&breaker, 30100), BREAKER_CLOSED);
    assert_int_equal(breaker.counts.trials, 3);
    assert_int_equal(breaker.counts.closed, 1);
    /* And what failed before it opened is not held against it. */
    serve_many(&breaker, 30100, 9, BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 30100), BREAKER_CLOSED);
}

static void the_first_failed_trial_opens_it_again(void **state)
{
    struct breaker breaker = opened(0);
    struct breaker_call trials[3];
    (void)state;

    for (int i = 0; i < 3; i++)
        assert_true(breaker_begin(&breaker, 30000, false, &trials[i]));
    breaker_end(&breaker, 30001, &trials[0], BREAKER_GOOD);
    breaker_end(&breaker, 30002, &trials[1], BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 30002), BREAKER_OPEN);
    assert_int_equal(breaker_wait_ms(&breaker, 30002), 30000);
    /* The third one's word comes too late to say anything. */
    breaker_end(&breaker, 30003, &trials[2], BREAKER_FAILED);
    assert_int_equal(breaker_wait_ms(&breaker, 30003), 29999);
    assert_int_equal(breaker.counts.opened, 2);
}

static void a_trial_whose_client_went_away_is_tried_by_the_next(void **state)
{
    struct breaker breaker = opened(0);
    (void)state;

    serve_many(&breaker, 30000, 50, BREAKER_UNTOLD);
    serve_many(&breaker, 30000, 3, BREAKER_GOOD);
    assert_int_equal(breaker_look(&breaker, 30000), BREAKER_CLOSED);
}

static void a_trial_whose_answer_broke_off_opens_it_again(void **state)
{
    struct breaker breaker = opened(0);
    struct breaker_call trial;
    (void)state;

    assert_true(breaker_begin(&breaker, 30000, false, &trial));
    breaker_end(&breaker, 30000, &trial, BREAKER_GOOD);
    breaker_take_back(&breaker, 30500, &trial);
    assert_int_equal(breaker_look(&breaker, 30500), BREAKER_OPEN);
}

/* Whoever had them died, or waits still. */
static void trials_that_say_nothing_are_given_to_others(void **state)
{
    struct breaker breaker = opened(0);
    struct breaker_call lost[3];
    (void)state;

    for (int i = 0; i < 3; i++)
        assert_true(breaker_begin(&breaker, 30000, false, &lost[i]));
    assert_true(is_refused(&breaker, 30000 + BREAKER_TRIAL_MS - 1));
    serve_many(&breaker, 30000 + BREAKER_TRIAL_MS, 2, BREAKER_GOOD);
    /* One of the lost speaks after all: it is heard, and takes nobody's place. */
    breaker_end(&breaker, 30000 + BREAKER_TRIAL_MS, &lost[2], BREAKER_GOOD);
    assert_int_equal(breaker_look(&breaker, 30000 + BREAKER_TRIAL_MS), BREAKER_CLOSED);
}

static void a_late_trial_does_not_free_the_place_of_its_successor(void **state)
{
    struct breaker breaker = opened(0);
    struct breaker_call lost[3], next[3];
    (void)state;

    for (int i = 0; i < 3; i++)
        assert_true(breaker_begin(&breaker, 30000, false, &lost[i]));
    for (int i = 0; i < 3; i++)
        assert_true(breaker_begin(&breaker, 45000, false, &next[i]));
    for (int i = 0; i < 3; i++)
        breaker_end(&breaker, 45000, &lost[i], BREAKER_UNTOLD);
    assert_true(is_refused(&breaker, 45000));
}

static void what_began_before_it_opened_says_nothing_after_it_closed(void **state)
{
    struct breaker breaker = fresh(0);
    struct breaker_call old[20];
    (void)state;

    for (int i = 0; i < 20; i++)
        assert_true(breaker_begin(&breaker, 0, false, &old[i]));
    for (int i = 0; i < 10; i++)
        breaker_end(&breaker, 5000, &old[i], BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 5000), BREAKER_OPEN);
    serve_many(&breaker, 35000, 3, BREAKER_GOOD);
    for (int i = 10; i < 20; i++)
        breaker_end(&breaker, 35001, &old[i], BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 35001), BREAKER_CLOSED);
    assert_int_equal(breaker.counts.failed, 20);
}

static void a_clock_that_steps_back_stands_still(void **state)
{
    struct breaker breaker = opened(50000);
    (void)state;

    assert_true(is_refused(&breaker, 20000));
    assert_int_equal(breaker_wait_ms(&breaker, 1), 30000);
    assert_int_equal(breaker_look(&breaker, 80000), BREAKER_HALF_OPEN);
}

static void new_options_count_from_now_on(void **state)
{
    struct breaker breaker = opened(0);
    struct breaker_options options = plain;
    (void)state;

    options.open_ms = 1000;
    options.window_ms = 500;
    options.trials = 1;
    options.burst = 1;
    breaker_change(&breaker, &options, 100);
    assert_true(is_refused(&breaker, 1099));
    serve(&breaker, 1100, BREAKER_GOOD);
    assert_int_equal(breaker_look(&breaker, 1100), BREAKER_CLOSED);
    assert_true(breaker_grant_retry(&breaker, 1100));
    assert_false(breaker_grant_retry(&breaker, 1100));
    serve_many(&breaker, 1100, 9, BREAKER_FAILED);
    serve(&breaker, 1600, BREAKER_FAILED);
    assert_int_equal(breaker_look(&breaker, 1600), BREAKER_CLOSED);
}

/* No trial was left that could have said so, and nobody would ever have gone by again. */
static void as_many_good_trials_as_new_options_ask_for_close_it(void **state)
{
    struct breaker breaker = opened(0);
    struct breaker_options options = plain;
    (void)state;

    serve_many(&breaker, 30000, 2, BREAKER_GOOD);
    assert_int_equal(breaker_look(&breaker, 30000), BREAKER_HALF_OPEN);
    options.trials = 2;
    breaker_change(&breaker, &options, 30001);
    assert_int_equal(breaker_look(&breaker, 30001), BREAKER_CLOSED);
    assert_int_equal(breaker.counts.closed, 1);
}

/* ---- a shop that goes and comes back ---- */

#define TIMEOUT_MS 5000
#define EVERY_MS   50

struct sent {
    struct breaker_call call;
    uint64_t end_ms; /* 0: nobody's */
    bool is_good, is_lost;
};

/* A request at a shop that is away until `back_ms`: it fails at once, or says nothing until the time is over. */
static struct sent sent_at(struct dice *dice, uint64_t now_ms, uint64_t back_ms, bool is_slow)
{
    bool is_good = now_ms >= back_ms;
    uint64_t takes_ms = is_good ? 20 + dice_below(dice, 200) : is_slow ? TIMEOUT_MS : 1;

    return (struct sent){.end_ms = now_ms + takes_ms, .is_good = is_good, .is_lost = hits(dice, 10)};
}

/* When it closed for good, of a shop that went away at 10 s and came back at `back_ms`. A tenth of all workers' words is lost. */
static uint64_t day_of_a_shop(struct dice *dice, uint64_t back_ms, bool is_slow)
{
    struct breaker breaker = fresh(0);
    struct sent sent[TIMEOUT_MS / EVERY_MS + 2] = {0};
    uint64_t closed_ms = 0, opened_ms = 0;

    for (uint64_t now = 0; now < back_ms + 90000; now += EVERY_MS) {
        size_t spare = 0;
        for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
            if (sent[i].end_ms == 0 || sent[i].end_ms > now)
                continue;
            if (!sent[i].is_lost)
                breaker_end(&breaker, now, &sent[i].call, sent[i].is_good ? BREAKER_GOOD : BREAKER_FAILED);
            sent[i].end_ms = 0;
        }
        while (sent[spare].end_ms != 0)
            spare++;
        struct sent next = sent_at(dice, now, now < 10000 ? 0 : back_ms, is_slow);
        if (breaker_begin(&breaker, now, false, &next.call))
            sent[spare] = next;
        if (breaker_look(&breaker, now) == BREAKER_CLOSED)
            closed_ms = closed_ms != 0 || now < back_ms ? closed_ms : now;
        else {
            closed_ms = 0;
            opened_ms = opened_ms != 0 ? opened_ms : now;
        }
    }
    /* 10 s of good ones, then bad ones: within a window of them, and of the time until they are known to be bad. */
    assert_in_range(opened_ms, 10000, 10000 + 10000 + TIMEOUT_MS);
    return closed_ms;
}

static void it_is_closed_within_a_minute_of_the_shops_return(void **state)
{
    struct dice dice = {5};
    uint64_t longest = 0;
    (void)state;

    for (int round = 0; round < 2000; round++) {
        uint64_t back_ms = 25000 + dice_below(&dice, 100000);
        uint64_t closed_ms = day_of_a_shop(&dice, back_ms, hits(&dice, 2));
        assert_true(closed_ms >= back_ms);
        longest = closed_ms - back_ms > longest ? closed_ms - back_ms : longest;
    }
    assert_in_range(longest, 25000, 60000);
}

/* ---- retries ---- */

static void retries_are_a_tenth_of_requests_and_a_few(void **state)
{
    struct breaker breaker = fresh(0);
    struct breaker_call call;
    uint64_t retries = 0;
    (void)state;

    for (uint64_t i = 0; i < 1000; i++) {
        serve_many(&breaker, i * 1000, 1, BREAKER_GOOD);
        for (int again = 0; again < 3 && breaker_grant_retry(&breaker, i * 1000); again++) {
            /* A retry earns no further one. */
            assert_true(breaker_begin(&breaker, i * 1000, true, &call));
            breaker_end(&breaker, i * 1000, &call, BREAKER_GOOD);
            retries++;
        }
        assert_true(retries <= 10 + i / 10);
    }
    assert_true(retries >= 10 + 98);
    assert_int_equal(breaker.counts.retries, retries);
}

static void an_idle_time_brings_no_more_than_the_few(void **state)
{
    struct breaker breaker = fresh(0);
    int granted = 0;
    (void)state;

    serve_many(&breaker, 0, 100000, BREAKER_GOOD);
    while (breaker_grant_retry(&breaker, 1000000))
        granted++;
    assert_int_equal(granted, 10);
}

static void nothing_is_tried_again_while_it_is_not_closed(void **state)
{
    struct breaker breaker = opened(0);
    struct breaker_call trial;
    (void)state;

    assert_false(breaker_grant_retry(&breaker, 1));
    assert_true(breaker_begin(&breaker, 30000, false, &trial));
    assert_false(breaker_grant_retry(&breaker, 30000));
    assert_int_equal(breaker.counts.retries_denied, 2);
}

static void each_wait_is_twice_as_long_less_a_half_by_chance(void **state)
{
    struct dice dice = {3};
    (void)state;

    for (uint32_t number = 1; number <= 40; number++) {
        uint64_t longest = (uint64_t)100 << (number <= 11 ? number - 1 : 10);
        uint32_t least = UINT32_MAX, most = 0;
        for (int i = 0; i < 2000; i++) {
            uint32_t wait = breaker_backoff_ms(100, number, (uint32_t)dice_roll(&dice));
            least = wait < least ? wait : least;
            most = wait > most ? wait : most;
        }
        assert_in_range(least, longest / 2, longest * 55 / 100);
        assert_in_range(most, longest * 95 / 100, longest);
    }
    assert_int_equal(breaker_backoff_ms(0, 5, 77), 0);
    assert_true(breaker_backoff_ms(UINT32_MAX, 40, 1) >= UINT32_MAX / 2);
}

/* ---- a model that remembers everything ---- */

#define EVENTS    4000
#define UNDER_WAY 64

struct event {
    uint64_t at_ms;
    int requests, failed;
};

struct lease {
    uint64_t until_ms; /* 0: it is over */
    uint64_t number;
};

struct model {
    struct breaker_options options;
    uint64_t now_ms, until_ms, era, good, credit, lease_number;
    enum breaker_state state;
    struct event events[EVENTS];
    size_t event_count;
    struct lease leases[EVENTS];
    size_t lease_count;
};

static struct model model;

struct under_way {
    struct breaker_call call;
    uint64_t era, lease;
    bool is_trial, is_over;
};

static void model_enter(enum breaker_state state)
{
    model.state = state;
    model.era++;
    model.good = 0;
    model.event_count = 0;
    model.lease_count = 0;
    if (state == BREAKER_OPEN)
        model.until_ms = model.now_ms + model.options.open_ms;
}

static void model_time(uint64_t now_ms)
{
    if (now_ms > model.now_ms)
        model.now_ms = now_ms;
}

static struct breaker_step model_window(uint64_t now_ms)
{
    struct breaker_step sum = {0, 0};
    uint64_t length = model.options.window_ms / 10;

    for (size_t i = 0; i < model.event_count; i++)
        if (now_ms / length - model.events[i].at_ms / length < 10) {
            sum.requests += (uint32_t)model.events[i].requests;
            sum.failed += (uint32_t)model.events[i].failed;
        }
    return sum;
}

static bool model_begin(struct under_way *visit, bool is_retry)
{
    uint64_t busy = 0;

    if (model.state == BREAKER_OPEN && model.now_ms >= model.until_ms)
        model_enter(BREAKER_HALF_OPEN);
    if (model.state == BREAKER_OPEN)
        return false;
    *visit = (struct under_way){.is_trial = model.state == BREAKER_HALF_OPEN};
    if (visit->is_trial) {
        for (size_t i = 0; i < model.lease_count; i++)
            busy += model.leases[i].until_ms > model.now_ms;
        if (busy + model.good >= model.options.trials)
            return false;
        uint64_t length = model.options.open_ms < 10000 ? model.options.open_ms : 10000;
        visit->lease = ++model.lease_number;
        model.leases[model.lease_count++] = (struct lease){model.now_ms + length, visit->lease};
    }
    visit->era = model.era;
    if (!is_retry)
        model.credit += model.options.budget_percent;
    if (model.credit > model.options.burst * 100)
        model.credit = model.options.burst * 100;
    return true;
}

static void model_count(int requests, int failed)
{
    assert_true(model.event_count < EVENTS);
    model.events[model.event_count++] = (struct event){model.now_ms, requests, failed};
    struct breaker_step sum = model_window(model.now_ms);
    if (sum.requests >= model.options.requests &&
        sum.failed * 100.0 >= sum.requests * (double)model.options.failed_percent)
        model_enter(BREAKER_OPEN);
}

static void model_end(const struct under_way *visit, enum breaker_outcome outcome)
{
    if (visit->era != model.era)
        return;
    for (size_t i = 0; i < model.lease_count; i++)
        if (visit->is_trial && model.leases[i].number == visit->lease)
            model.leases[i].until_ms = 0;
    if (visit->is_trial && outcome == BREAKER_FAILED)
        model_enter(BREAKER_OPEN);
    else if (visit->is_trial && outcome == BREAKER_GOOD && ++model.good == model.options.trials)
        model_enter(BREAKER_CLOSED);
    else if (!visit->is_trial && outcome != BREAKER_UNTOLD)
        model_count(1, outcome == BREAKER_FAILED);
}

static void model_take_back(const struct under_way *visit)
{
    if (visit->era != model.era)
        return;
    if (visit->is_trial)
        model_enter(BREAKER_OPEN);
    else
        model_count(0, 1);
}

static void model_change(struct breaker_options options)
{
    if (options.window_ms != model.options.window_ms)
        model.event_count = 0;
    model.options = options;
    if (model.until_ms > model.now_ms + options.open_ms)
        model.until_ms = model.now_ms + options.open_ms;
    if (model.credit > options.burst * 100)
        model.credit = options.burst * 100;
    if (model.state == BREAKER_HALF_OPEN && model.good >= options.trials)
        model_enter(BREAKER_CLOSED);
}

static void expect_agreement(const struct breaker *breaker, uint64_t now_ms)
{
    if (now_ms < model.now_ms)
        now_ms = model.now_ms;
    struct breaker_step window = breaker_window(breaker, now_ms), expected = model_window(now_ms);
    bool is_tried = model.state == BREAKER_OPEN && now_ms >= model.until_ms;

    assert_int_equal(breaker_look(breaker, now_ms), is_tried ? BREAKER_HALF_OPEN : model.state);
    assert_int_equal(window.requests, expected.requests);
    assert_int_equal(window.failed,
                     expected.failed < expected.requests ? expected.failed : expected.requests);
    if (model.state == BREAKER_OPEN && !is_tried)
        assert_int_equal(breaker_wait_ms(breaker, now_ms), model.until_ms - now_ms);
}

static struct breaker_options any_options(struct dice *dice)
{
    return (struct breaker_options){
        .requests = between(dice, 1, 20),
        .window_ms = between(dice, 10, 5000),
        .failed_percent = between(dice, 1, 100),
        .open_ms = between(dice, 1, hits(dice, 2) ? 1000 : 30000),
        .trials = between(dice, 1, hits(dice, 4) ? BREAKER_TRIALS_MAX : 4),
        .budget_percent = between(dice, 0, 100),
        .burst = between(dice, 1, 10),
    };
}

static void a_random_day(uint64_t seed)
{
    struct dice dice = {seed};
    struct breaker breaker;
    struct under_way visits[UNDER_WAY];
    uint64_t now_ms = dice_below(&dice, 100000);
    uint32_t sickness = dice_below(&dice, 101);

    memset(visits, 0, sizeof(visits));
    memset(&model, 0, offsetof(struct model, events));
    model.event_count = model.lease_count = 0;
    model.options = any_options(&dice);
    model.now_ms = now_ms;
    model.era = 1;
    model.credit = model.options.burst * 100;
    breaker_init(&breaker, &model.options, now_ms);

    for (int step = 0; step < 1500; step++) {
        struct under_way *visit = &visits[dice_below(&dice, UNDER_WAY)];
        bool is_retry = hits(&dice, 5);
        now_ms += hits(&dice, 50) ? dice_below(&dice, 40000) : dice_below(&dice, 100);
        uint64_t seen_ms = now_ms - dice_below(&dice, 3); /* a worker whose clock is a little behind */
        model_time(seen_ms);
        if (hits(&dice, 100))
            sickness = dice_below(&dice, 101);
        if (visit->era == 0) {
            bool goes_by = model_begin(visit, is_retry);
            assert_int_equal(breaker_begin(&breaker, seen_ms, is_retry, &visit->call), goes_by);
            if (!goes_by)
                visit->era = 0;
        } else if (!visit->is_over) {
            enum breaker_outcome outcome = hits(&dice, 10)                     ? BREAKER_UNTOLD
                                           : dice_below(&dice, 100) < sickness ? BREAKER_FAILED
                                                                               : BREAKER_GOOD;
            model_end(visit, outcome);
            breaker_end(&breaker, seen_ms, &visit->call, outcome);
            visit->is_over = outcome == BREAKER_GOOD && hits(&dice, 4);
            visit->era = visit->is_over ? visit->era : 0;
        } else {
            model_take_back(visit);
            breaker_take_back(&breaker, seen_ms, &visit->call);
            visit->is_over = false;
            visit->era = 0;
        }
        if (hits(&dice, 100)) {
            model_change(any_options(&dice));
            breaker_change(&breaker, &model.options, seen_ms);
        }
        if (hits(&dice, 10)) {
            bool is_granted = model.state == BREAKER_CLOSED && model.credit >= 100;
            assert_int_equal(breaker_grant_retry(&breaker, seen_ms), is_granted);
            model.credit -= is_granted ? 100 : 0;
        }
        expect_agreement(&breaker, seen_ms);
        expect_agreement(&breaker, now_ms + dice_below(&dice, 6000)); /* nobody came in the meantime */
    }
}

static void it_agrees_with_a_naive_model_on_random_days(void **state)
{
    (void)state;

    for (uint64_t seed = 1; seed <= 400; seed++)
        a_random_day(seed);
}

/* ---- somebody dies in the middle of it ---- */

/* Opens, tries, opens again, tries, closes, lends and takes back: every change of every field is in it. */
static void live(struct breaker *breaker)
{
    struct breaker_call call, other;

    serve_many(breaker, 100, 2, BREAKER_GOOD);
    serve_many(breaker, 2500, 7, BREAKER_FAILED);
    (void)breaker_grant_retry(breaker, 2500);
    serve(breaker, 2600, BREAKER_UNTOLD);
    serve(breaker, 2600, BREAKER_FAILED);
    (void)is_refused(breaker, 2700);
    serve(breaker, 32600, BREAKER_GOOD);
    serve(breaker, 32600, BREAKER_FAILED);
    (void)breaker_begin(breaker, 62600, false, &call);
    (void)breaker_begin(breaker, 62600, false, &other);
    breaker_end(breaker, 62700, &other, BREAKER_GOOD);
    serve(breaker, 62700, BREAKER_GOOD);
    breaker_end(breaker, 62800, &call, BREAKER_GOOD);
    (void)breaker_begin(breaker, 63000, false, &call);
    breaker_end(breaker, 63000, &call, BREAKER_GOOD);
    breaker_take_back(breaker, 64000, &call);
    breaker_change(breaker, &plain, 65000);
}

/* Closes soon if all is well from now on; and opens, refuses, tries and closes as a new one would. */
static void expect_a_whole_life(struct breaker *breaker)
{
    struct breaker_call call;
    uint64_t now_ms = breaker->now_ms, end_ms = now_ms + breaker->options.open_ms + 2000;

    for (; breaker_look(breaker, now_ms) != BREAKER_CLOSED; now_ms += 500) {
        assert_true(now_ms <= end_ms);
        if (breaker_begin(breaker, now_ms, false, &call))
            breaker_end(breaker, now_ms, &call, BREAKER_GOOD);
    }
    assert_int_equal(breaker_window(breaker, now_ms).requests, 0);
    serve_many(breaker, now_ms, 9, BREAKER_FAILED);
    assert_int_equal(breaker_look(breaker, now_ms), BREAKER_CLOSED);
    serve(breaker, now_ms, BREAKER_FAILED);
    assert_int_equal(breaker_look(breaker, now_ms), BREAKER_OPEN);
    assert_true(is_refused(breaker, now_ms + 29999));
    serve_many(breaker, now_ms + 30000, 3, BREAKER_GOOD);
    assert_int_equal(breaker_look(breaker, now_ms + 30000), BREAKER_CLOSED);
    assert_true(breaker->credit <= 1000);
}

static bool bytes_are_equal(const void *one, const void *other, size_t count)
{
    return memcmp(one, other, count) == 0;
}

static void whoever_dies_in_it_leaves_one_that_works(void **state)
{
    struct breaker *breaker = shared_new(sizeof(*breaker)), seen, copy;
    uint32_t changes = 0;
    int status;
    (void)state;

    breaker_init(breaker, &plain, 0);
    seen = *breaker;
    pid_t child = fork_traced();
    if (child == 0) {
        live(breaker);
        _exit(0);
    }
    for (;;) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status))
            break;
        assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
        if (bytes_are_equal(&seen, breaker, sizeof(seen)))
            continue;
        copy = seen = *breaker;
        breaker_mend(&copy);
        assert_int_equal(copy.state, seen.state);
        expect_a_whole_life(&copy);
        changes++;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(changes > 100);
    assert_int_equal(breaker_look(breaker, 65000), BREAKER_CLOSED);
    assert_int_equal(breaker->counts.opened, 2);
    shared_free(breaker, sizeof(*breaker));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_when_enough_requests_of_a_window_failed),
        cmocka_unit_test(fewer_requests_than_it_takes_open_nothing),
        cmocka_unit_test(a_smaller_share_opens_nothing_however_many_fail),
        cmocka_unit_test(what_failed_longer_ago_than_the_window_is_forgotten),
        cmocka_unit_test(who_went_away_counts_for_nothing),
        cmocka_unit_test(an_answer_that_broke_off_is_a_failure_and_one_request),
        cmocka_unit_test(it_refuses_everybody_until_its_time_is_over),
        cmocka_unit_test(three_good_trials_close_it_and_nobody_else_goes_by_meanwhile),
        cmocka_unit_test(the_first_failed_trial_opens_it_again),
        cmocka_unit_test(a_trial_whose_client_went_away_is_tried_by_the_next),
        cmocka_unit_test(a_trial_whose_answer_broke_off_opens_it_again),
        cmocka_unit_test(trials_that_say_nothing_are_given_to_others),
        cmocka_unit_test(a_late_trial_does_not_free_the_place_of_its_successor),
        cmocka_unit_test(what_began_before_it_opened_says_nothing_after_it_closed),
        cmocka_unit_test(a_clock_that_steps_back_stands_still),
        cmocka_unit_test(new_options_count_from_now_on),
        cmocka_unit_test(as_many_good_trials_as_new_options_ask_for_close_it),
        cmocka_unit_test(it_is_closed_within_a_minute_of_the_shops_return),
        cmocka_unit_test(retries_are_a_tenth_of_requests_and_a_few),
        cmocka_unit_test(an_idle_time_brings_no_more_than_the_few),
        cmocka_unit_test(nothing_is_tried_again_while_it_is_not_closed),
        cmocka_unit_test(each_wait_is_twice_as_long_less_a_half_by_chance),
        cmocka_unit_test(it_agrees_with_a_naive_model_on_random_days),
        cmocka_unit_test(whoever_dies_in_it_leaves_one_that_works),
    };

    return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
