/* SPDX-License-Identifier: BSD-2-Clause */

/* What an operator does to a room: batches, a longest wait, advance, clear, dissolve. */

#include "rig.h"

#define SEC 1000

static struct settings batch_of(uint32_t batch, uint32_t interval_sec, bool smooth)
{
    struct settings settings = settings_default();
    settings.max_active = 0;
    settings.batch = batch;
    settings.interval_sec = interval_sec;
    settings.smooth = smooth;
    settings.seen_ttl_sec = 3600;
    return settings;
}

static struct settings held(void)
{
    struct settings settings = settings_default();
    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 3600;
    return settings;
}

static uint64_t calls(struct rig *rig)
{
    return room_figures(rig->room).calls;
}

static uint64_t in_state(struct rig *rig, enum ticket_state state)
{
    return room_figures(rig->room).in_state[state];
}

static void join_many(struct rig *rig, uint64_t first, uint64_t people)
{
    for (uint64_t who = first; who < first + people; who++)
        rig_place(rig, who);
}

static void a_batch_in_one_go_comes_once_an_interval(void **state)
{
    struct settings settings = batch_of(50, 10, false);
    struct rig rig = rig_new(256, &settings);
    (void)state;

    join_many(&rig, 0, 500);
    assert_int_equal(calls(&rig), 0);
    rig_pass(&rig, 100);
    assert_int_equal(calls(&rig), 50);
    for (uint64_t batch = 1; batch < 5; batch++) {
        rig_pass(&rig, 9900);
        assert_int_equal(calls(&rig), 50 * batch);
        rig_pass(&rig, 100);
        assert_int_equal(calls(&rig), 50 * (batch + 1));
    }
    rig_free(&rig);
}

/* FAILURES 15: nor for the moment between the end of the line and the next tick, however the line ended. */
static void a_batch_does_not_outlive_its_line(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct settings settings = batch_of(20, 10, false);
        settings.max_active = 1;
        struct rig rig = rig_new(256, &settings);
        struct standing standing;
        uint32_t cleared;
        struct place inside = rig_place(&rig, 0), waiting = rig_place(&rig, 1);
        rig_pass(&rig, 100);
        assert_int_equal(calls(&rig), 1);
        if (way == 0) {
            assert_int_equal(room_clear(rig.room, &cleared), ERROR_NONE);
        } else {
            assert_int_equal(room_leave(rig.room, &waiting), ERROR_NONE);
            assert_int_equal(room_leave(rig.room, &inside), ERROR_NONE);
        }
        assert_int_equal(rig_join(&rig, 2, &standing), ERROR_NONE);
        assert_false(standing.is_ready);
        rig_free(&rig);
    }
}

/* FAILURES 15: three waiting, one batch of 500, and the next 497 arrivals walk through. */
static void a_batch_does_not_reach_beyond_the_end_of_the_line(void **state)
{
    struct settings settings = batch_of(500, 10, false);
    struct rig rig = rig_new(256, &settings);
    struct standing standing;
    (void)state;

    join_many(&rig, 0, 3);
    rig_pass(&rig, 100);
    assert_int_equal(calls(&rig), 3);
    for (uint64_t who = 10; who < 507; who++) {
        assert_int_equal(rig_join(&rig, who, &standing), ERROR_NONE);
        assert_false(standing.is_ready);
    }
    rig_pass(&rig, 9800);
    assert_int_equal(calls(&rig), 3);
    rig_pass(&rig, 200);
    assert_int_equal(calls(&rig), 500);
    rig_free(&rig);
}

static void a_smooth_batch_is_spread_over_its_interval(void **state)
{
    struct settings settings = batch_of(500, 10, true);
    struct rig rig = rig_new(256, &settings);
    (void)state;

    join_many(&rig, 0, 2000);
    for (int tick = 1; tick <= 300; tick++) {
        rig_pass(&rig, 100);
        /* 50 a second exactly, and two ticks' worth at the most ahead of it. */
        assert_in_range(calls(&rig), (uint64_t)tick * 5, (uint64_t)tick * 5 + 10);
    }
    rig_free(&rig);
}

static void switching_between_paces_gains_no_calls(void **state)
{
    struct settings rate = settings_default(), batch = batch_of(100, 10, false);
    rate.rate_milli = 1000;
    rate.max_active = 0;
    rate.seen_ttl_sec = 3600;
    struct rig rig = rig_new(256, &rate);
    (void)state;

    join_many(&rig, 0, 500);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(rig_set(&rig, i % 2 == 0 ? &batch : &rate), ERROR_NONE);
        rig_pass(&rig, 100);
    }
    assert_true(calls(&rig) <= 1 + 5);
    rig_free(&rig);
}

static void who_would_wait_longer_than_max_eta_is_refused_but_not_who_is_called_at_once(void **state)
{
    struct settings settings = settings_default();
    settings.rate_milli = 100;
    settings.max_eta_sec = 25;
    struct rig rig = rig_new(64, &settings);
    struct standing standing;
    struct join join = {.holder = holder_of(99), .key_id = 1, .wall_sec = 1};
    uint32_t retry_after_sec;
    (void)state;

    assert_int_equal(rig_join(&rig, 1, &standing), ERROR_NONE);
    assert_true(standing.is_ready);
    assert_int_equal(rig_join(&rig, 2, &standing), ERROR_NONE);
    assert_int_equal(rig_join(&rig, 3, &standing), ERROR_NONE);
    assert_int_equal(room_join(rig.room, &join, &standing, &retry_after_sec), ERROR_WAIT_TOO_LONG);
    assert_in_range(retry_after_sec, 5, 10);
    assert_int_equal(in_state(&rig, TICKET_WAITING), 2);
    /* Who has a place keeps it. */
    assert_int_equal(rig_join(&rig, 3, &standing), ERROR_NONE);
    rig_free(&rig);

    settings.max_eta_sec = 5;
    rig = rig_new(64, &settings);
    assert_int_equal(rig_join(&rig, 1, &standing), ERROR_NONE);
    assert_int_equal(rig_join(&rig, 2, &standing), ERROR_WAIT_TOO_LONG);
    assert_int_equal(room_figures(rig.room).issued, 1);
    room_check(rig.room);
    rig_free(&rig);
}

static void advance_calls_beyond_the_pace_and_not_beyond_the_slots(void **state)
{
    struct settings settings = held();
    settings.max_active = 30;
    struct rig rig = rig_new(64, &settings);
    uint32_t called;
    (void)state;

    join_many(&rig, 0, 100);
    assert_int_equal(room_advance(rig.room, 20, &called), ERROR_NONE);
    assert_int_equal(called, 20);
    assert_int_equal(room_figures(rig.room).last_called, 20);
    assert_int_equal(room_advance(rig.room, 20, &called), ERROR_NONE);
    assert_int_equal(called, 10);
    rig_pass(&rig, 60 * SEC);
    assert_int_equal(calls(&rig), 30);
    /* What the slots held back is not kept: when they are free again nobody is called in a held room. */
    rig_pass(&rig, 120 * SEC);
    assert_int_equal(in_state(&rig, TICKET_CALLED), 0);
    assert_int_equal(calls(&rig), 30);
    rig_free(&rig);
}

static void advance_keeps_nothing_for_those_who_come_later(void **state)
{
    struct settings settings = held();
    struct rig rig = rig_new(64, &settings);
    struct standing standing;
    uint32_t called;
    (void)state;

    join_many(&rig, 0, 5);
    assert_int_equal(room_advance(rig.room, 1000, &called), ERROR_NONE);
    assert_int_equal(called, 5);
    assert_int_equal(rig_join(&rig, 100, &standing), ERROR_NONE);
    assert_false(standing.is_ready);
    rig_pass(&rig, SEC);
    assert_int_equal(calls(&rig), 5);
    rig_free(&rig);
}

static void advance_of_more_than_a_tick_can_do_goes_on_with_the_next(void **state)
{
    struct settings settings = held();
    settings.max_active = 0;
    struct rig rig = rig_new(1500, &settings);
    uint32_t called;
    (void)state;

    join_many(&rig, 0, 50000);
    assert_int_equal(room_advance(rig.room, 45000, &called), ERROR_NONE);
    assert_in_range(called, 1, 44999);
    rig_pass(&rig, SEC);
    assert_int_equal(calls(&rig), 45000);
    rig_free(&rig);
}

/* FAILURES 4 and 49: numbering goes on, and nothing of before answers. */
static void after_a_clear_nobody_is_known_and_numbering_goes_on(void **state)
{
    struct settings settings = settings_default();
    settings.max_active = 10;
    settings.burst = 10;
    struct rig rig = rig_new(512, &settings);
    struct place place[1000];
    struct standing standing;
    uint32_t cleared;
    (void)state;

    for (uint64_t who = 0; who < 1000; who++)
        place[who] = rig_place(&rig, who);
    assert_int_equal(rig_enter(&rig, &place[0], &standing), ERROR_NONE);
    assert_int_equal(room_session_touch(rig.room, &place[0]), ERROR_NONE);
    assert_int_equal(room_clear(rig.room, &cleared), ERROR_NONE);
    assert_int_equal(cleared, 1000);
    room_check(rig.room);
    for (uint64_t who = 0; who < 1000; who++) {
        assert_int_equal(room_status(rig.room, &place[who], &standing), ERROR_TOKEN_NOT_FOUND);
        assert_int_equal(room_session_touch(rig.room, &place[who]), ERROR_TOKEN_NOT_FOUND);
    }
    for (uint64_t who = 0; who < 1000; who++) {
        assert_int_equal(rig_join(&rig, who, &standing), ERROR_NONE);
        assert_int_equal(standing.place.count, 1001 + who);
        assert_int_equal(standing.position, who + 1); /* the pace is spent */
    }
    rig_pass(&rig, SEC);
    room_check(rig.room);
    assert_int_equal(room_figures(rig.room).issued, 2000);
    assert_int_equal(in_state(&rig, TICKET_DONE), 1000);
    rig_free(&rig);
}

static void a_key_of_before_a_clear_stands_for_nothing(void **state)
{
    struct settings settings = held();
    struct rig rig = rig_new(64, &settings);
    struct standing first, again;
    uint32_t cleared;
    (void)state;

    assert_int_equal(rig_join_by_key(&rig, 1, 7, 7, &first), ERROR_NONE);
    assert_int_equal(room_clear(rig.room, &cleared), ERROR_NONE);
    assert_int_equal(rig_join_by_key(&rig, 1, 7, 7, &again), ERROR_NONE);
    assert_int_equal(again.place.count, 2);
    assert_false(again.is_repeat);
    rig_free(&rig);
}

static void clearing_again_and_again_loses_no_page(void **state)
{
    struct settings settings = held();
    struct rig rig = rig_new(256, &settings);
    uint32_t cleared, pages = 0;
    (void)state;

    for (uint64_t round = 0; round < 50; round++) {
        for (uint64_t who = 0; who < 1500; who++) {
            struct standing standing;
            assert_int_equal(rig_join_by_key(&rig, round << 32 | who, round << 32 | who, 1, &standing),
                             ERROR_NONE);
        }
        assert_int_equal(room_clear(rig.room, &cleared), ERROR_NONE);
        assert_int_equal(cleared, 1500);
        if (round % 3 == 0)
            rig_pass(&rig, 200);
        if (round == 0)
            pages = room_check(rig.room);
        assert_int_equal(room_check(rig.room), pages);
        rig_pass(&rig, 300 * SEC);
    }
    room_dissolve(rig.room);
    assert_int_equal(room_check(rig.room), pages);
    assert_int_equal(room_memory(rig.room)->spare_count, pages);
    rig_free(&rig);
}

static void in_a_room_that_was_opened_whoever_joins_is_called_at_once(void **state)
{
    struct settings settings = held();
    struct rig rig = rig_new(256, &settings);
    struct standing standing;
    (void)state;

    join_many(&rig, 0, 2000);
    settings.mode = MODE_OPEN;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    assert_int_equal(rig_join(&rig, 5000, &standing), ERROR_NONE);
    assert_true(standing.is_ready);
    assert_int_equal(calls(&rig), 2001);
    rig_free(&rig);
}

static void looking_at_a_ticket_is_not_being_seen(void **state)
{
    struct settings settings = held();
    settings.seen_ttl_sec = 10;
    struct rig rig = rig_new(64, &settings);
    struct place place = rig_place(&rig, 1);
    struct standing standing;
    (void)state;

    for (int i = 0; i < 40; i++) {
        rig_pass(&rig, SEC);
        assert_int_equal(room_look(rig.room, &place, &standing), ERROR_NONE);
        assert_int_equal(standing.position, 1);
    }
    assert_int_equal(standing.state, TICKET_AWAY);
    rig_free(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_in_one_go_comes_once_an_interval),
        cmocka_unit_test(a_batch_does_not_outlive_its_line),
        cmocka_unit_test(a_batch_does_not_reach_beyond_the_end_of_the_line),
        cmocka_unit_test(a_smooth_batch_is_spread_over_its_interval),
        cmocka_unit_test(switching_between_paces_gains_no_calls),
        cmocka_unit_test(who_would_wait_longer_than_max_eta_is_refused_but_not_who_is_called_at_once),
        cmocka_unit_test(advance_calls_beyond_the_pace_and_not_beyond_the_slots),
        cmocka_unit_test(advance_keeps_nothing_for_those_who_come_later),
        cmocka_unit_test(advance_of_more_than_a_tick_can_do_goes_on_with_the_next),
        cmocka_unit_test(after_a_clear_nobody_is_known_and_numbering_goes_on),
        cmocka_unit_test(a_key_of_before_a_clear_stands_for_nothing),
        cmocka_unit_test(clearing_again_and_again_loses_no_page),
        cmocka_unit_test(in_a_room_that_was_opened_whoever_joins_is_called_at_once),
        cmocka_unit_test(looking_at_a_ticket_is_not_being_seen),
    };
    return cmocka_run_group_tests_name("operator", tests, NULL, NULL);
}
