/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits: slots, pace and modes hold at every instant and in every window, and nobody waits where there is room. */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define SEC 1000

static struct settings settings_of(uint32_t max_active, uint32_t rate_milli, uint32_t burst)
{
    struct settings settings = settings_default();

    settings.max_active = max_active;
    settings.rate_milli = rate_milli;
    settings.burst = burst;
    settings.seen_ttl_sec = 86400;
    return settings;
}

static uint64_t in_state(const struct rig *rig, enum ticket_state state)
{
    return room_figures(rig->room).in_state[state];
}

static uint64_t slots(const struct rig *rig)
{
    return in_state(rig, TICKET_CALLED) + in_state(rig, TICKET_ENTERED) + in_state(rig, TICKET_ACTIVE);
}

/* FAILURES 57: whatever the phase of the clock. */
static void a_join_into_an_empty_room_is_called_at_once(void **state)
{
    struct settings settings = settings_of(1, 50000, 0);
    struct rig rig = rig_new(64, &settings);
    struct dice dice = {8};
    (void)state;

    for (uint64_t who = 0; who < 500; who++) {
        struct standing standing;
        assert_int_equal(rig_join(&rig, who, &standing), ERROR_NONE);
        assert_true(standing.is_ready);
        assert_int_equal(standing.state, TICKET_CALLED);
        assert_int_equal(rig_enter(&rig, &standing.place, &standing), ERROR_NONE);
        assert_int_equal(room_leave(rig.room, &standing.place), ERROR_NONE);
        room_tick(rig.room, 20 + dice_below(&dice, 200));
    }
    rig_free(&rig);
}

/* FAILURES 14: 512 newcomers at once against a limit of 100. */
static void of_512_at_once_exactly_max_active_get_in(void **state)
{
    struct settings settings = settings_of(100, 1000000, 1000);
    struct rig rig = rig_new(64, &settings);
    struct standing standing;
    (void)state;

    for (uint64_t who = 0; who < 512; who++) {
        assert_int_equal(rig_join(&rig, who, &standing), ERROR_NONE);
        assert_int_equal(standing.is_ready, who < 100);
        if (standing.is_ready)
            assert_int_equal(rig_enter(&rig, &standing.place, &standing), ERROR_NONE);
        rig_pass(&rig, 100);
        assert_true(slots(&rig) <= 100);
    }
    assert_int_equal(slots(&rig), 100);
    assert_int_equal(in_state(&rig, TICKET_WAITING), 412);
    rig_free(&rig);
}

/* ---- the rate ---- */

struct event {
    uint64_t at_ms;
    int64_t change; /* calls less refunds */
};

/* In every window from one event to another: calls - refunds <= burst + rate * w. */
static void expect_pace_kept(const struct event *events, uint32_t count, uint64_t burst_parts,
                             uint64_t rate_milli, uint64_t seed)
{
    for (uint32_t from = 0; from < count; from++) {
        int64_t sum = 0;
        for (uint32_t to = from; to < count; to++) {
            sum += events[to].change;
            uint64_t w_ms = events[to].at_ms - events[from].at_ms;
            if (sum * 1000000 > (int64_t)(burst_parts + rate_milli * w_ms))
                fail_msg("seed %u: %d calls in %u ms", (unsigned)seed, (int)sum, (unsigned)w_ms);
        }
    }
}

static void note(const struct rig *rig, struct event *events, uint32_t *count, uint64_t now_ms,
                 int64_t *before)
{
    struct figures figures = room_figures(rig->room);
    int64_t now = (int64_t)figures.calls - (int64_t)figures.refunds;

    if (now != *before)
        events[(*count)++] = (struct event){now_ms, now - *before};
    *before = now;
}

/* FAILURES 16, 17, 19: random crowds, pauses, no-shows and lengths of tick. */
static void in_every_window_calls_less_refunds_stay_within_burst_and_rate(void **state)
{
    enum { STEPS = 3000 };
    static struct event events[2 * STEPS + 2];
    (void)state;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct dice dice = {seed};
        uint32_t rate_milli = 1 + dice_below(&dice, seed % 2 == 0 ? 3000 : 60000);
        uint32_t burst = seed % 3 == 0 ? 0 : 1 + dice_below(&dice, 5);
        struct settings settings = settings_of(seed % 4 == 0 ? 30 : 0, rate_milli, burst);
        settings.claim_ttl_sec = 5;
        struct rig rig = rig_new(256, &settings);
        uint64_t tick_parts = rate_milli * 100ULL;
        uint64_t default_parts = tick_parts < 1000000 ? 1000000 + tick_parts : 2 * tick_parts;
        uint64_t who = 0, now_ms = 0;
        int64_t before = 0;
        uint32_t count = 0;
        for (int step = 0; step < STEPS; step++) {
            uint32_t crowd = step / 500 % 2 == 0 ? dice_below(&dice, 4) : 0;
            for (uint32_t i = 0; i < crowd; i++) {
                struct standing standing;
                assert_int_equal(rig_join(&rig, who++, &standing), ERROR_NONE);
                if (standing.is_ready && dice_below(&dice, 2) == 0)
                    assert_int_equal(rig_enter(&rig, &standing.place, &standing), ERROR_NONE);
                note(&rig, events, &count, now_ms, &before);
                assert_true(count < 2 * STEPS);
            }
            uint32_t ms = 50 + dice_below(&dice, 150);
            room_tick(rig.room, ms);
            now_ms += ms;
            note(&rig, events, &count, now_ms, &before);
        }
        assert_true(count > 10 || rate_milli < 200);
        expect_pace_kept(events, count, burst == 0 ? default_parts : burst * 1000000ULL, rate_milli, seed);
        rig_free(&rig);
    }
}

/* Promise 9: with people waiting all the time the rate is not only a limit, it is kept. */
static void a_crowd_is_called_at_the_rate(void **state)
{
    static const uint32_t rates[] = {300, 1000, 3000, 4000, 6000, 7000, 10000, 20000, 50000, 125000, 999000};
    (void)state;

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct settings settings = settings_of(0, rates[i], 0);
        struct rig rig = rig_new(600, &settings);
        uint64_t people = rates[i] / 25; /* for forty seconds */
        for (uint64_t who = 0; who < people; who++)
            rig_place(&rig, who);
        uint64_t before = room_figures(rig.room).calls;
        rig_pass(&rig, 30 * SEC);
        uint64_t calls = room_figures(rig.room).calls - before;
        assert_true(calls + 1 >= rates[i] * 30ULL / 1000);
        assert_true(calls <= rates[i] * 30ULL / 1000 + rates[i] / 5000 + 1);
        rig_free(&rig);
    }
}

static void an_idle_room_banks_nothing(void **state)
{
    struct settings settings = settings_of(0, 10000, 3);
    struct rig rig = rig_new(64, &settings);
    struct standing standing;
    (void)state;

    for (int s = 0; s < 3600; s++)
        room_tick(rig.room, 1000);
    for (uint64_t who = 0; who < 20; who++) {
        assert_int_equal(rig_join(&rig, who, &standing), ERROR_NONE);
        assert_int_equal(standing.is_ready, who < 3);
    }
    rig_pass(&rig, 100);
    assert_int_equal(room_figures(rig.room).calls, 4);
    rig_free(&rig);
}

/* FAILURES 15: three waiting, pace for five hundred; those who come later do not walk through on what was left. */
static void nothing_is_called_beyond_the_end_of_the_line(void **state)
{
    struct settings settings = settings_of(0, 10000, 5);
    settings.mode = MODE_HOLD;
    struct rig rig = rig_new(64, &settings);
    (void)state;

    for (uint64_t who = 0; who < 3; who++)
        rig_place(&rig, who);
    settings.mode = MODE_QUEUE;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    rig_pass(&rig, 100);
    assert_int_equal(room_figures(rig.room).calls, 3);
    for (uint64_t who = 10; who < 507; who++)
        rig_place(&rig, who);
    assert_int_equal(room_figures(rig.room).calls, 5);
    rig_free(&rig);
}

static void a_clock_that_jumps_counts_one_second_at_most(void **state)
{
    struct settings settings = settings_of(0, 1000, 100000);
    settings.seen_ttl_sec = 10;
    struct rig rig = rig_new(64, &settings);
    struct place first = rig_place(&rig, 1), waiting;
    (void)state;

    settings.burst = 1; /* what the room began with is spent */
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    for (uint64_t who = 2; who < 30; who++)
        waiting = rig_place(&rig, who);
    settings.burst = 100000;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    uint64_t calls = room_figures(rig.room).calls;
    room_tick(rig.room, 1000000000);
    assert_int_equal(room_figures(rig.room).calls, calls + 1);
    room_tick(rig.room, UINT32_MAX);
    assert_int_equal(room_figures(rig.room).calls, calls + 2);
    assert_int_equal(rig_state(&rig, &first), TICKET_CALLED);
    assert_int_equal(rig_state(&rig, &waiting), TICKET_WAITING);
    rig_free(&rig);
}

/* Setting the same again, or to and fro, makes no credit. */
static void changing_settings_brings_no_credit(void **state)
{
    struct settings settings = settings_of(0, 1000, 10), other = settings_of(0, 2000, 1);
    struct rig rig = rig_new(64, &settings);
    (void)state;

    for (uint64_t who = 0; who < 50; who++)
        rig_place(&rig, who);
    assert_int_equal(room_figures(rig.room).calls, 10);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(rig_set(&rig, i % 2 == 0 ? &other : &settings), ERROR_NONE);
        room_tick(rig.room, 0);
    }
    assert_int_equal(room_figures(rig.room).calls, 10);
    rig_free(&rig);
}

/* ---- the other limits ---- */

/* FAILURES 6: the head waits its time, and nobody overtakes; those behind with their time over do not either. */
static void min_wait_holds_the_head_and_nobody_overtakes(void **state)
{
    struct settings settings = settings_of(0, 1000000, 0);
    settings.min_wait_sec = 5;
    settings.seen_ttl_sec = 10;
    struct rig rig = rig_new(64, &settings);
    struct place away = rig_place(&rig, 1), next;
    struct dice dice = {9};
    (void)state;

    assert_int_equal(rig_state(&rig, &away), TICKET_WAITING);
    rig_pass(&rig, 4900);
    assert_int_equal(rig_state(&rig, &away), TICKET_WAITING);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &away), TICKET_CALLED);

    uint64_t who = 100, now_ms = 0;
    struct {
        uint64_t joined_ms;
        struct place place;
        bool is_called;
    } people[400];
    uint32_t count = 0;
    while (count < 400) {
        next = rig_place(&rig, who++);
        people[count].place = next;
        people[count].joined_ms = now_ms;
        people[count++].is_called = false;
        uint32_t ms = 30 + dice_below(&dice, 170);
        room_tick(rig.room, ms);
        now_ms += ms;
        for (uint32_t i = 0; i < count; i++) {
            if (people[i].is_called || rig_state(&rig, &people[i].place) != TICKET_CALLED)
                continue;
            people[i].is_called = true;
            assert_true(now_ms - people[i].joined_ms >= 5000);
            assert_true(i == 0 || people[i - 1].is_called);
        }
    }
    assert_true(people[300].is_called);
    rig_free(&rig);
}

static void no_more_than_max_called_are_called_and_not_entered(void **state)
{
    struct settings settings = settings_of(100, 1000000, 0);
    settings.max_called = 3;
    struct rig rig = rig_new(64, &settings);
    struct place place[50];
    struct standing standing;
    (void)state;

    for (uint64_t who = 0; who < 50; who++) {
        place[who] = rig_place(&rig, who);
        assert_true(in_state(&rig, TICKET_CALLED) <= 3);
    }
    for (int i = 0; i < 47; i++) {
        assert_int_equal(in_state(&rig, TICKET_CALLED), 3);
        assert_int_equal(rig_enter(&rig, &place[i], &standing), ERROR_NONE);
        assert_int_equal(in_state(&rig, TICKET_CALLED), 2);
        rig_pass(&rig, 100);
    }
    rig_free(&rig);
}

static void modes_do_what_they_say(void **state)
{
    struct settings settings = settings_of(2, 1000, 1);
    settings.mode = MODE_HOLD;
    settings.min_wait_sec = 1000;
    struct rig rig = rig_new(64, &settings);
    struct standing standing;
    (void)state;

    for (uint64_t who = 0; who < 10; who++) {
        assert_int_equal(rig_join(&rig, who, &standing), ERROR_NONE);
        assert_false(standing.is_ready);
    }
    rig_pass(&rig, 60 * SEC);
    assert_int_equal(room_figures(rig.room).calls, 0);

    settings.mode = MODE_CLOSED;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    assert_int_equal(rig_join(&rig, 100, &standing), ERROR_ROOM_CLOSED);
    assert_int_equal(rig_join(&rig, 5, &standing), ERROR_NONE); /* who has a ticket keeps it */
    assert_int_equal(standing.position, 6);
    rig_pass(&rig, 60 * SEC);
    assert_int_equal(room_figures(rig.room).calls, 0);

    /* Open: everybody, beyond slots and pace, and slots are counted. */
    settings.mode = MODE_OPEN;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    rig_pass(&rig, 100);
    assert_int_equal(slots(&rig), 10);
    assert_int_equal(rig_join(&rig, 200, &standing), ERROR_NONE);
    assert_true(standing.is_ready);
    assert_int_equal(rig_enter(&rig, &standing.place, &standing), ERROR_NONE);
    assert_int_equal(slots(&rig), 11);

    /* Back to the queue: nobody is thrown out, nobody called until there is room, and nothing is refunded. */
    settings.mode = MODE_QUEUE;
    settings.min_wait_sec = 0;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    assert_int_equal(rig_join(&rig, 300, &standing), ERROR_NONE);
    rig_pass(&rig, 119 * SEC);
    assert_int_equal(slots(&rig), 11);
    assert_int_equal(rig_state(&rig, &standing.place), TICKET_WAITING);
    rig_pass(&rig, 1 * SEC); /* the ten never came */
    assert_int_equal(rig_state(&rig, &standing.place), TICKET_CALLED);
    assert_int_equal(room_figures(rig.room).refunds, 0);
    rig_free(&rig);
}

static void a_line_is_full_at_max_waiting_those_away_included(void **state)
{
    struct settings settings = settings_of(1, 1000, 1);
    settings.max_waiting = 3;
    settings.seen_ttl_sec = 10;
    struct rig rig = rig_new(64, &settings);
    struct standing standing;
    struct place place[4];
    (void)state;

    for (uint64_t who = 0; who < 4; who++)
        place[who] = rig_place(&rig, who);
    assert_int_equal(rig_join(&rig, 10, &standing), ERROR_QUEUE_FULL);
    rig_pass(&rig, 15 * SEC);
    assert_int_equal(in_state(&rig, TICKET_AWAY), 3);
    assert_int_equal(rig_join(&rig, 10, &standing), ERROR_QUEUE_FULL);
    assert_int_equal(rig_join(&rig, 3, &standing), ERROR_NONE);
    assert_int_equal(room_leave(rig.room, &place[1]), ERROR_NONE);
    assert_int_equal(rig_join(&rig, 10, &standing), ERROR_NONE);
    assert_int_equal(room_figures(rig.room).issued, 5);
    rig_free(&rig);
}

/* FAILURES 50: the memory ends; who is in line stays in line, and the line drains to its last. */
static void a_full_zone_refuses_and_the_line_stays_whole_and_drains(void **state)
{
    (void)state;
    for (uint32_t pages = 0; pages < 40; pages++) {
        struct settings settings = settings_of(1, 1000000, 0);
        struct rig rig = rig_new(pages, &settings);
        struct standing standing;
        uint64_t joined = 0;
        while (rig_join(&rig, joined, &standing) == ERROR_NONE)
            joined++;
        for (int attempt = 0; attempt < 5; attempt++) {
            unsigned char *before = image_of(rig.base, rig.bytes, &rig.room->memory);
            assert_int_equal(rig_join_by_key(&rig, 100000, 1, 1, &standing), ERROR_QUEUE_FULL);
            unsigned char *after = image_of(rig.base, rig.bytes, &rig.room->memory);
            assert_memory_equal(before, after, rig.bytes);
            free(before);
            free(after);
        }
        room_check(rig.room);
        assert_int_equal(room_figures(rig.room).issued, joined);
        for (uint64_t who = 0; who < joined; who++) {
            assert_int_equal(rig_join(&rig, who, &standing), ERROR_NONE);
            assert_true(standing.is_repeat && standing.is_ready);
            assert_int_equal(standing.place.count, who + 1);
            assert_int_equal(rig_enter(&rig, &standing.place, &standing), ERROR_NONE);
            assert_int_equal(room_session_end(rig.room, &standing.place), ERROR_NONE);
            rig_pass(&rig, 100);
        }
        assert_true(joined == 0 || rig_join(&rig, 200000, &standing) == ERROR_NONE);
        assert_int_equal(room_check(rig.room), pages);
        rig_free(&rig);
    }
}

/* ---- order ---- */

/*
 * Promises 1, 3, 5 and 6 over a long random day, with ticks of any length: each call goes to the lowest place that waits, slots
 * are never exceeded, no shown position rises, and everybody is somewhere.
 */
static void a_random_day_keeps_order_slots_positions_and_people(void **state)
{
    enum { PEOPLE = 6000 };
    static struct place place[PEOPLE + 1];
    static uint32_t shown[PEOPLE + 1];
    static uint8_t was[PEOPLE + 1];
    (void)state;

    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct dice dice = {seed};
        struct settings settings = settings_of(1 + dice_below(&dice, 60), 1000 + dice_below(&dice, 40000), 0);
        settings.seen_ttl_sec = 10;
        settings.away_ttl_sec = 40;
        settings.claim_ttl_sec = 8;
        settings.arrive_ttl_sec = 10;
        settings.session_ttl_sec = 15;
        struct rig rig = rig_new(256, &settings);
        uint32_t last = 0, first = 1; /* all before `first` are over */
        for (int step = 0; step < 20000; step++) {
            struct standing standing;
            if (last < PEOPLE && dice_below(&dice, 3) == 0) {
                assert_int_equal(rig_join(&rig, ++last, &standing), ERROR_NONE);
                place[last] = standing.place;
                shown[last] = standing.position;
                was[last] = (uint8_t)standing.state;
                assert_int_equal(standing.place.count, last);
            }
            for (int i = 0; i < 4 && last > 0; i++) {
                uint32_t who = last - dice_below(&dice, last < 600 ? last : 600);
                if (room_status(rig.room, &place[who], &standing) != ERROR_NONE)
                    continue;
                if (standing.position > shown[who])
                    fail_msg("seed %u: %u was shown %u, then %u", (unsigned)seed, who, shown[who],
                             standing.position);
                shown[who] = standing.position;
                if (standing.is_ready && dice_below(&dice, 2) == 0)
                    rig_enter(&rig, &place[who], &standing);
                if (dice_below(&dice, 8) == 0)
                    room_leave_soon(rig.room, &place[who]);
                if (dice_below(&dice, 40) == 0)
                    room_leave(rig.room, &place[who]);
                room_session_touch(rig.room, &place[who]);
            }
            while (first < last && rig_state(&rig, &place[first]) == TICKET_DONE)
                first++;
            for (uint32_t who = first; who <= last; who++)
                was[who] = (uint8_t)rig_state(&rig, &place[who]);
            room_tick(rig.room, 60 + dice_below(&dice, 80));

            uint32_t lowest_waiting = UINT32_MAX, highest_called = 0;
            for (uint32_t who = first; who <= last; who++) {
                enum ticket_state now = rig_state(&rig, &place[who]);
                if (now == TICKET_WAITING && who < lowest_waiting)
                    lowest_waiting = who;
                if (now == TICKET_CALLED && was[who] == TICKET_WAITING)
                    highest_called = who;
            }
            if (highest_called > lowest_waiting)
                fail_msg("seed %u: %u was called before %u", (unsigned)seed, highest_called, lowest_waiting);
            struct figures figures = room_figures(rig.room);
            uint64_t sum = 0;
            for (int s = TICKET_WAITING; s < TICKET_STATES; s++)
                sum += figures.in_state[s];
            assert_int_equal(sum, figures.issued);
            assert_int_equal(figures.issued, last);
            assert_true(slots(&rig) <= settings.max_active);
        }
        room_check(rig.room);
        rig_free(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_into_an_empty_room_is_called_at_once),
        cmocka_unit_test(of_512_at_once_exactly_max_active_get_in),
        cmocka_unit_test(in_every_window_calls_less_refunds_stay_within_burst_and_rate),
        cmocka_unit_test(a_crowd_is_called_at_the_rate),
        cmocka_unit_test(an_idle_room_banks_nothing),
        cmocka_unit_test(nothing_is_called_beyond_the_end_of_the_line),
        cmocka_unit_test(a_clock_that_jumps_counts_one_second_at_most),
        cmocka_unit_test(changing_settings_brings_no_credit),
        cmocka_unit_test(min_wait_holds_the_head_and_nobody_overtakes),
        cmocka_unit_test(no_more_than_max_called_are_called_and_not_entered),
        cmocka_unit_test(modes_do_what_they_say),
        cmocka_unit_test(a_line_is_full_at_max_waiting_those_away_included),
        cmocka_unit_test(a_full_zone_refuses_and_the_line_stays_whole_and_drains),
        cmocka_unit_test(a_random_day_keeps_order_slots_positions_and_people),
    };
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
