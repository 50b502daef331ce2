/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ticket's life, rule by rule. The tables here are written from the design's page, not from the code: which state may follow
 * which, what each operation does in each state, and how long each state lasts.
 */
#include "rig.h"

#include <string.h>

#define SEC 1000

/* ---- the table ---- */

static const bool may_follow[TICKET_STATES][TICKET_STATES] = {
    [TICKET_NONE] = {[TICKET_WAITING] = true},
    [TICKET_WAITING] = {[TICKET_AWAY] = true, [TICKET_CALLED] = true, [TICKET_DONE] = true},
    [TICKET_AWAY] = {[TICKET_WAITING] = true, [TICKET_DONE] = true},
    [TICKET_CALLED] = {[TICKET_ENTERED] = true, [TICKET_DONE] = true},
    [TICKET_ENTERED] = {[TICKET_ACTIVE] = true, [TICKET_DONE] = true},
    [TICKET_ACTIVE] = {[TICKET_DONE] = true},
};

static void the_table_allows_these_steps_and_no_others(void **state)
{
    (void)state;
    for (int from = 0; from < TICKET_STATES; from++)
        for (int to = 0; to < TICKET_STATES; to++)
            assert_int_equal(ticket_may_become(from, to), may_follow[from][to]);
    for (int s = 0; s < TICKET_STATES; s++) {
        bool is_inside = s == TICKET_CALLED || s == TICKET_ENTERED || s == TICKET_ACTIVE;
        assert_int_equal(ticket_life(s)->is_in_line, s == TICKET_WAITING);
        assert_int_equal(ticket_life(s)->holds_slot, is_inside);
        assert_int_equal(ticket_life(s)->is_alive, is_inside || s == TICKET_WAITING || s == TICKET_AWAY);
    }
}

enum act { POLL, JOIN_AGAIN, ENTER, LEAVE, TOUCH, END, GOODBYE, TIME_OVER, TURN, ACTS };

/* What an operation answers in a state, and the state after it. */
struct outcome {
    enum error error;
    enum ticket_state to;
};

#define OK(state)                  \
    {                              \
        ERROR_NONE, TICKET_##state \
    }
#define EARLY(state)                    \
    {                                   \
        ERROR_NOT_READY, TICKET_##state \
    }
#define UNKNOWN(state)                        \
    {                                         \
        ERROR_TOKEN_NOT_FOUND, TICKET_##state \
    }

static const struct outcome outcomes[TICKET_STATES][ACTS] = {
    /* POLL, JOIN_AGAIN, ENTER, LEAVE, TOUCH, END, GOODBYE (and its grace over), TIME_OVER, TURN */
    [TICKET_WAITING] = {OK(WAITING), OK(WAITING), EARLY(WAITING), OK(DONE), UNKNOWN(WAITING),
                        UNKNOWN(WAITING), OK(DONE), OK(AWAY), OK(CALLED)},
    [TICKET_AWAY] = {OK(WAITING), OK(WAITING), EARLY(WAITING), OK(DONE), UNKNOWN(AWAY), UNKNOWN(AWAY),
                     OK(DONE), OK(DONE), OK(AWAY)},
    [TICKET_CALLED] = {OK(CALLED), OK(CALLED), OK(ENTERED), OK(DONE), UNKNOWN(CALLED), UNKNOWN(CALLED),
                       OK(DONE), OK(DONE), OK(CALLED)},
    [TICKET_ENTERED] = {OK(ENTERED), OK(ENTERED), OK(ENTERED), OK(DONE), OK(ACTIVE), OK(DONE), OK(ENTERED),
                        OK(DONE), OK(ENTERED)},
    [TICKET_ACTIVE] = {OK(ACTIVE), OK(ACTIVE), OK(ACTIVE), OK(DONE), OK(ACTIVE), OK(DONE), OK(ACTIVE),
                       OK(DONE), OK(ACTIVE)},
    [TICKET_DONE] = {UNKNOWN(DONE), OK(WAITING), UNKNOWN(DONE), UNKNOWN(DONE), UNKNOWN(DONE), UNKNOWN(DONE),
                     UNKNOWN(DONE), OK(DONE), OK(DONE)},
};

static struct settings settings_of(enum room_mode mode)
{
    struct settings settings = settings_default();

    settings.mode = mode;
    settings.max_active = 0;
    settings.away_ttl_sec = 300;
    return settings;
}

static void set_mode(struct rig *rig, enum room_mode mode)
{
    struct settings settings = *room_settings(rig->room);

    settings.mode = mode;
    assert_int_equal(rig_set(rig, &settings), ERROR_NONE);
}

/* Leads somebody into a state by real operations; the room is on hold afterwards. */
static struct place lead_to(struct rig *rig, enum ticket_state state)
{
    struct standing standing;
    bool is_let_in = state == TICKET_CALLED || state == TICKET_ENTERED || state == TICKET_ACTIVE;

    set_mode(rig, is_let_in ? MODE_QUEUE : MODE_HOLD);
    struct place place = rig_place(rig, 1000);
    set_mode(rig, MODE_HOLD);
    if (state == TICKET_AWAY)
        rig_pass(rig, 10 * SEC);
    if (state == TICKET_ENTERED || state == TICKET_ACTIVE)
        assert_int_equal(rig_enter(rig, &place, &standing), ERROR_NONE);
    if (state == TICKET_ACTIVE)
        assert_int_equal(room_session_touch(rig->room, &place), ERROR_NONE);
    if (state == TICKET_DONE)
        assert_int_equal(room_leave(rig->room, &place), ERROR_NONE);
    assert_int_equal(rig_state(rig, &place), state);
    return place;
}

static enum error run_act(struct rig *rig, enum act act, struct place *place)
{
    struct standing standing;
    enum error error;

    switch (act) {
    case POLL:
        return room_status(rig->room, place, &standing);
    case JOIN_AGAIN:
        error = rig_join(rig, 1000, &standing);
        *place = standing.place;
        return error;
    case ENTER:
        return rig_enter(rig, place, &standing);
    case LEAVE:
        return room_leave(rig->room, place);
    case TOUCH:
        return room_session_touch(rig->room, place);
    case END:
        return room_session_end(rig->room, place);
    case GOODBYE:
        error = room_leave_soon(rig->room, place);
        rig_pass(rig, 10 * SEC);
        return error;
    case TIME_OVER:
        for (int s = 0; s < 600 && rig_state(rig, place) == TICKET_WAITING; s++)
            rig_pass(rig, SEC);
        if (ticket_life(rig_state(rig, place))->is_alive && rig->room->in_state[TICKET_AWAY] == 0)
            rig_pass(rig, 600 * SEC);
        return ERROR_NONE;
    case TURN:
        set_mode(rig, MODE_QUEUE);
        rig_pass(rig, 100);
        return ERROR_NONE;
    case ACTS:
        break;
    }
    fail();
    return ERROR_NONE;
}

static void every_operation_does_in_every_state_what_the_table_says(void **state)
{
    bool is_walked[TICKET_STATES][TICKET_STATES] = {{false}};
    (void)state;

    for (int from = TICKET_WAITING; from < TICKET_STATES; from++)
        for (enum act act = POLL; act < ACTS; act++) {
            struct settings settings = settings_of(MODE_HOLD);
            struct rig rig = rig_new(64, &settings);
            struct place place = lead_to(&rig, from);
            const struct outcome *expected = &outcomes[from][act];
            enum ticket_state before = from;
            if (act == TIME_OVER && from == TICKET_AWAY)
                rig_pass(&rig, 300 * SEC);
            enum error error = run_act(&rig, act, &place);
            if (error != expected->error || rig_state(&rig, &place) != expected->to)
                fail_msg("act %d in state %s: error %d, now %s", act, ticket_life(from)->name, error,
                         ticket_life(rig_state(&rig, &place))->name);
            if (act == JOIN_AGAIN && from == TICKET_DONE)
                before = TICKET_NONE;
            is_walked[before][rig_state(&rig, &place)] |= before != rig_state(&rig, &place);
            room_check(rig.room);
            rig_free(&rig);
        }
    assert_memory_equal(is_walked, may_follow, sizeof(may_follow));
}

/* ---- being seen ---- */

static struct rig held_room(void)
{
    struct settings settings = settings_of(MODE_HOLD);

    return rig_new(256, &settings);
}

static void not_seen_for_seen_ttl_is_away_and_back_at_the_same_place(void **state)
{
    struct rig rig = held_room();
    struct place first = rig_place(&rig, 1), second = rig_place(&rig, 2), third = rig_place(&rig, 3);
    (void)state;

    assert_int_equal(rig_poll(&rig, &third).position, 3);
    rig_pass(&rig, 5 * SEC);
    rig_poll(&rig, &first);
    rig_poll(&rig, &third);
    rig_pass(&rig, 5 * SEC - 100);
    assert_int_equal(rig_state(&rig, &second), TICKET_WAITING);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &second), TICKET_AWAY);
    assert_int_equal(rig_poll(&rig, &third).position, 2);
    assert_int_equal(rig_poll(&rig, &second).position, 2);
    assert_int_equal(rig_poll(&rig, &second).place.count, 2);
    /* FAILURES 5: they came back between, and what was shown does not rise. */
    assert_int_equal(rig_poll(&rig, &third).position, 2);
    rig_free(&rig);
}

/* FAILURES 13: a longer interval that they were told counts three times. */
static void three_told_intervals_pass_before_someone_is_away(void **state)
{
    struct settings settings = settings_of(MODE_HOLD);
    settings.rate_milli = 1000;
    struct rig rig = rig_new(64, &settings);
    struct place last;
    (void)state;

    for (uint64_t who = 0; who < 150; who++)
        last = rig_place(&rig, who);
    uint32_t told_sec = rig_poll(&rig, &last).next_poll_sec;
    assert_true(told_sec >= 20);
    rig_pass(&rig, told_sec * 3 * SEC - 100);
    assert_int_equal(rig_state(&rig, &last), TICKET_WAITING);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &last), TICKET_AWAY);
    rig_free(&rig);
}

/* Whatever the length of a tick: a tenth of a second is rounded in their favour, never against them. */
static void nobodys_time_is_ever_short_whatever_the_ticks(void **state)
{
    struct dice dice = {6};
    (void)state;

    for (int round = 0; round < 300; round++) {
        struct rig rig = held_room();
        struct standing standing;
        uint64_t since_ms = 0, now_ms = 0;
        while (now_ms < 3000 + dice_below(&dice, 500)) {
            uint32_t ms = 90 + dice_below(&dice, 40);
            room_tick(rig.room, ms);
            now_ms += ms;
        }
        struct place place = rig_place(&rig, 1);
        int rule = round % 4;
        uint32_t ttl_sec = 10;
        since_ms = now_ms;
        if (rule == 1 || rule == 2) {
            set_mode(&rig, MODE_QUEUE);
            room_tick(rig.room, 100);
            now_ms += 100;
            since_ms = now_ms;
            rig_poll(&rig, &place);
            ttl_sec = room_settings(rig.room)->claim_ttl_sec;
        }
        if (rule == 2) {
            assert_int_equal(rig_enter(&rig, &place, &standing), ERROR_NONE);
            ttl_sec = room_settings(rig.room)->arrive_ttl_sec;
        }
        if (rule == 3)
            room_leave_soon(rig.room, &place);
        enum ticket_state before = rig_state(&rig, &place);
        while (rig_state(&rig, &place) == before) {
            uint32_t ms = 90 + dice_below(&dice, 40);
            room_tick(rig.room, ms);
            now_ms += ms;
        }
        uint64_t lasted_ms = now_ms - since_ms;
        if (lasted_ms < ttl_sec * 1000ULL || lasted_ms > ttl_sec * 1000ULL + 330)
            fail_msg("round %d, rule %d: %u s lasted %u ms", round, rule, ttl_sec, (unsigned)lasted_ms);
        rig_free(&rig);
    }
}

/* FAILURES 8: an absent head costs nobody more than one tick, a hundred absent neither. */
static void absent_heads_cost_nobody_more_than_one_tick(void **state)
{
    struct rig rig = held_room();
    struct place present;
    (void)state;

    for (uint64_t who = 0; who < 100; who++)
        rig_place(&rig, who);
    rig_pass(&rig, 9 * SEC);
    present = rig_place(&rig, 200);
    set_mode(&rig, MODE_HOLD);
    rig_pass(&rig, 900);
    struct settings settings = *room_settings(rig.room);
    settings.mode = MODE_QUEUE;
    settings.max_active = 1;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    /* Now the hundred are overdue, and nobody has noticed yet. */
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &present), TICKET_CALLED);
    assert_int_equal(room_figures(rig.room).in_state[TICKET_AWAY], 100);
    assert_int_equal(room_figures(rig.room).calls, 1);
    rig_free(&rig);
}

/* More end in this tick than one tick deals with, so that it has not come to the absent head when it calls. */
static void a_head_whose_absence_was_not_noticed_yet_is_not_called(void **state)
{
    enum { CROWD = 17000, ABSENT = 100 };
    struct settings settings = settings_of(MODE_HOLD);
    settings.rate_milli = 100000000; /* short poll intervals */
    settings.away_ttl_sec = 10;
    settings.max_active = 1;
    struct rig rig = rig_new(400, &settings);
    (void)state;

    for (uint64_t who = 0; who < CROWD; who++)
        rig_place(&rig, who);
    rig_pass(&rig, 10 * SEC);
    struct place absent = rig_place(&rig, CROWD);
    for (uint64_t who = 1; who < ABSENT; who++)
        rig_place(&rig, CROWD + who);
    struct place present = rig_place(&rig, CROWD + ABSENT);
    rig_pass(&rig, 9900);
    rig_poll(&rig, &present);
    assert_int_equal(room_figures(rig.room).in_state[TICKET_AWAY], CROWD);
    assert_int_equal(rig_state(&rig, &absent), TICKET_WAITING);
    set_mode(&rig, MODE_QUEUE);
    rig_pass(&rig, 100);
    assert_true(room_figures(rig.room).in_state[TICKET_AWAY] > ABSENT); /* some of the crowd are left over */
    assert_int_equal(rig_state(&rig, &absent), TICKET_AWAY);
    assert_int_equal(rig_state(&rig, &present), TICKET_CALLED);
    rig_free(&rig);
}

/* FAILURES 10: nobody has to ask for it. */
static void who_never_comes_back_is_over_after_away_ttl_without_anyone_polling(void **state)
{
    struct rig rig = held_room();
    struct place place = rig_place(&rig, 1);
    (void)state;

    rig_pass(&rig, (10 + 300) * SEC - 100);
    assert_int_equal(rig_state(&rig, &place), TICKET_AWAY);
    rig_pass(&rig, 100);
    assert_int_equal(room_figures(rig.room).in_state[TICKET_DONE], 1);
    struct standing standing;
    assert_int_equal(room_status(rig.room, &place, &standing), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

static void whom_the_line_passed_while_away_is_next_on_return(void **state)
{
    struct rig rig = held_room();
    struct place place[6];
    (void)state;

    for (uint64_t who = 0; who < 6; who++)
        place[who] = rig_place(&rig, who);
    for (int i = 0; i < 4; i++) {
        rig_pass(&rig, 3 * SEC);
        for (int who = 1; who < 6; who++)
            rig_poll(&rig, &place[who]);
    }
    assert_int_equal(rig_state(&rig, &place[0]), TICKET_AWAY);
    struct settings settings = *room_settings(rig.room);
    settings.mode = MODE_QUEUE;
    settings.max_active = 2;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &place[1]), TICKET_CALLED);
    assert_int_equal(rig_state(&rig, &place[2]), TICKET_CALLED);
    assert_int_equal(rig_poll(&rig, &place[0]).position, 1);
    assert_int_equal(room_leave(rig.room, &place[1]), ERROR_NONE);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &place[0]), TICKET_CALLED);
    assert_int_equal(rig_state(&rig, &place[3]), TICKET_WAITING);
    rig_free(&rig);
}

/* FAILURES 12: thousands with all kinds of intervals, asking as late as they were told and a little later. */
static void nobody_who_polls_as_told_is_ever_away_or_expired(void **state)
{
    enum { PEOPLE = 3000, TICKS = 36000 };
    static struct place place[PEOPLE];
    static uint32_t due_tick[PEOPLE], shown[PEOPLE];
    struct settings settings = settings_of(MODE_QUEUE);
    struct dice dice = {7};
    (void)state;

    settings.rate_milli = 700;
    settings.max_active = 400;
    struct rig rig = rig_new(128, &settings);
    for (uint32_t who = 0; who < PEOPLE; who++) {
        struct standing standing;
        assert_int_equal(rig_join(&rig, who, &standing), ERROR_NONE);
        place[who] = standing.place;
        shown[who] = standing.position;
        due_tick[who] = standing.next_poll_sec * 10;
    }
    for (uint32_t tick = 1; tick <= TICKS; tick++) {
        room_tick(rig.room, 100);
        for (uint32_t who = 0; who < PEOPLE; who++) {
            if (due_tick[who] != tick)
                continue;
            struct standing standing;
            enum error error = room_status(rig.room, &place[who], &standing);
            if (error != ERROR_NONE || standing.state == TICKET_AWAY)
                fail_msg("person %u at tick %u: error %d", who, tick, error);
            assert_true(standing.position <= shown[who]);
            shown[who] = standing.position;
            assert_true(standing.next_poll_sec >= 1 && standing.next_poll_sec <= 60);
            if (standing.is_ready) { /* enters, shops, leaves */
                assert_int_equal(rig_enter(&rig, &place[who], &standing), ERROR_NONE);
                assert_int_equal(room_leave(rig.room, &place[who]), ERROR_NONE);
            } else {
                due_tick[who] = tick + standing.next_poll_sec * (10 + dice_below(&dice, 3));
            }
        }
        assert_int_equal(room_figures(rig.room).in_state[TICKET_AWAY], 0);
    }
    struct figures figures = room_figures(rig.room);
    assert_int_equal(figures.refunds, 0);
    assert_int_equal(figures.calls, figures.in_state[TICKET_DONE] + figures.in_state[TICKET_CALLED]);
    assert_true(figures.calls > 2000);
    rig_free(&rig);
}

/* ---- a call is a promise ---- */

/* A room with one slot, and somebody called into it by the tick: they have not been told yet. */
static struct rig called_room(struct place *called, struct place *next, uint32_t claim_ttl_sec)
{
    struct settings settings = settings_of(MODE_HOLD);
    settings.claim_ttl_sec = claim_ttl_sec;
    settings.max_active = 1;
    settings.away_ttl_sec = 3600;
    struct rig rig = rig_new(64, &settings);

    *called = rig_place(&rig, 1);
    *next = rig_place(&rig, 2);
    set_mode(&rig, MODE_QUEUE);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, called), TICKET_CALLED);
    return rig;
}

static void claim_ttl_counts_from_the_first_answer_that_told_them(void **state)
{
    struct place called, next;
    struct rig rig = called_room(&called, &next, 60);
    struct standing standing;
    (void)state;

    rig_pass(&rig, 100 * SEC);
    standing = rig_poll(&rig, &called);
    assert_true(standing.is_ready);
    assert_int_equal(standing.position, 1);
    rig_pass(&rig, 59 * SEC);
    rig_poll(&rig, &called); /* being told again buys nothing */
    rig_pass(&rig, 900);
    assert_int_equal(rig_state(&rig, &called), TICKET_CALLED);
    assert_int_equal(rig_enter(&rig, &called, &standing), ERROR_NONE);
    rig_free(&rig);

    rig = called_room(&called, &next, 60);
    rig_poll(&rig, &called);
    rig_pass(&rig, 59 * SEC);
    rig_poll(&rig, &called);
    rig_pass(&rig, SEC);
    assert_int_equal(rig_enter(&rig, &called, &standing), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

static void an_untold_call_stands_for_the_longest_of_claim_ttl_two_polls_and_two_minutes(void **state)
{
    static const uint32_t claim_ttl_sec[] = {1, 60, 119, 121, 500};
    struct place called, next;
    (void)state;

    for (size_t i = 0; i < sizeof(claim_ttl_sec) / sizeof(claim_ttl_sec[0]); i++) {
        struct rig rig = called_room(&called, &next, claim_ttl_sec[i]);
        uint32_t stands_sec = claim_ttl_sec[i] > 120 ? claim_ttl_sec[i] : 120;
        rig_pass(&rig, stands_sec * SEC - 100);
        assert_int_equal(rig_state(&rig, &called), TICKET_CALLED);
        rig_pass(&rig, 100);
        assert_int_equal(room_figures(rig.room).in_state[TICKET_DONE], 1);
        rig_free(&rig);
    }
}

/* The answer to a repeated join is the first one, which did not tell them: the time to claim has not begun. */
static void a_repeated_join_answer_does_not_start_the_time_to_claim(void **state)
{
    struct settings settings = settings_of(MODE_HOLD);
    struct rig rig = rig_new(64, &settings);
    struct standing standing;
    (void)state;

    settings.claim_ttl_sec = 5;
    rig_set(&rig, &settings);
    assert_int_equal(rig_join_by_key(&rig, 1, 9, 9, &standing), ERROR_NONE);
    struct place place = standing.place;
    set_mode(&rig, MODE_QUEUE);
    rig_pass(&rig, 100);
    assert_int_equal(rig_join_by_key(&rig, 1, 9, 9, &standing), ERROR_NONE);
    assert_true(standing.is_repeat && !standing.is_ready);
    rig_pass(&rig, 60 * SEC);
    assert_true(rig_poll(&rig, &place).is_ready);
    assert_int_equal(rig_enter(&rig, &place, &standing), ERROR_NONE);
    rig_free(&rig);
}

/* FAILURES 20: whatever happens to pace and slots meanwhile. */
static void who_was_called_enters_although_the_room_was_closed_and_slowed_meanwhile(void **state)
{
    struct place called, next;
    struct rig rig = called_room(&called, &next, 60);
    struct standing standing;
    struct settings settings = *room_settings(rig.room);
    (void)state;

    assert_true(rig_poll(&rig, &called).is_ready);
    settings.mode = MODE_CLOSED;
    settings.rate_milli = 1;
    settings.max_called = 1;
    settings.claim_ttl_sec = 1;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    for (int i = 0; i < 59; i++) {
        assert_true(rig_poll(&rig, &called).is_ready);
        rig_pass(&rig, SEC);
    }
    assert_int_equal(rig_enter(&rig, &called, &standing), ERROR_NONE);
    rig_free(&rig);
}

static void a_no_show_gives_slot_and_pace_to_the_next_in_the_same_tick(void **state)
{
    struct settings settings = settings_of(MODE_QUEUE);
    settings.max_active = 1;
    settings.rate_milli = 1; /* one call in 1000 s: only the refund can pay for the second */
    settings.seen_ttl_sec = 600;
    struct rig rig = rig_new(64, &settings);
    struct place first = rig_place(&rig, 1), second = rig_place(&rig, 2);
    (void)state;

    assert_int_equal(rig_state(&rig, &first), TICKET_CALLED);
    rig_pass(&rig, 60 * SEC - 100);
    assert_int_equal(rig_state(&rig, &second), TICKET_WAITING);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &second), TICKET_CALLED);
    assert_int_equal(room_figures(rig.room).refunds, 1);
    assert_int_equal(room_figures(rig.room).calls, 2);
    /* Who left instead of entering gives it back as well. */
    struct place third = rig_place(&rig, 3);
    assert_int_equal(room_leave(rig.room, &second), ERROR_NONE);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &third), TICKET_CALLED);
    /* Who entered does not: they had their turn. */
    struct standing standing;
    struct place fourth = rig_place(&rig, 4);
    assert_int_equal(rig_enter(&rig, &third, &standing), ERROR_NONE);
    assert_int_equal(room_leave(rig.room, &third), ERROR_NONE);
    rig_pass(&rig, 300 * SEC);
    assert_int_equal(rig_state(&rig, &fourth), TICKET_WAITING);
    assert_int_equal(room_figures(rig.room).refunds, 2);
    rig_free(&rig);
}

/* ---- inside ---- */

/* Somebody who has just entered. */
static struct rig entered_room(struct settings settings, struct place *place)
{
    struct rig rig = rig_new(64, &settings);
    struct standing standing;

    *place = rig_place(&rig, 1);
    assert_int_equal(rig_enter(&rig, place, &standing), ERROR_NONE);
    return rig;
}

static void who_enters_and_never_arrives_gives_the_slot_back_after_arrive_ttl(void **state)
{
    struct place place;
    struct rig rig = entered_room(settings_of(MODE_QUEUE), &place);
    (void)state;

    rig_pass(&rig, 180 * SEC - 100);
    assert_int_equal(rig_state(&rig, &place), TICKET_ENTERED);
    rig_poll(&rig, &place); /* asking is not arriving */
    rig_pass(&rig, 100);
    assert_int_equal(room_figures(rig.room).in_state[TICKET_DONE], 1);
    rig_free(&rig);
}

/* FAILURES 9, 53: a session lives as long as requests come, and not longer than session_ttl after the last. */
static void a_session_slides_with_every_request(void **state)
{
    struct settings settings = settings_of(MODE_QUEUE);
    static const uint32_t ttl_sec[] = {1, 2, 10, 600};
    (void)state;

    for (size_t i = 0; i < sizeof(ttl_sec) / sizeof(ttl_sec[0]); i++) {
        struct place place;
        settings.session_ttl_sec = ttl_sec[i];
        struct rig rig = entered_room(settings, &place);
        rig_pass(&rig, 100 * SEC);
        for (int n = 0; n < 40; n++) {
            assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
            rig_pass(&rig, ttl_sec[i] * SEC - 100);
        }
        assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
        rig_pass(&rig, ttl_sec[i] * SEC);
        assert_int_equal(room_session_touch(rig.room, &place), ERROR_TOKEN_NOT_FOUND);
        rig_free(&rig);
    }
}

static void a_request_shortly_before_the_end_counts_in_full(void **state)
{
    struct settings settings = settings_of(MODE_QUEUE);
    struct place place;
    (void)state;

    settings.session_ttl_sec = 2;
    struct rig rig = entered_room(settings, &place);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    rig_pass(&rig, 900);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    rig_pass(&rig, 1900);
    assert_int_equal(rig_state(&rig, &place), TICKET_ACTIVE);
    rig_free(&rig);
}

static void session_max_ends_a_session_however_busy_it_is(void **state)
{
    struct settings settings = settings_of(MODE_QUEUE);
    struct place place;
    (void)state;

    settings.session_max_sec = 100;
    struct rig rig = entered_room(settings, &place);
    for (int s = 0; s < 100; s++) {
        assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
        rig_pass(&rig, SEC);
    }
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);

    settings.session_max_sec = 50; /* shorter than arrive_ttl */
    rig = entered_room(settings, &place);
    rig_pass(&rig, 50 * SEC);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

/* The shop knows better how long something takes: a payment, say. */
static void an_extended_session_lasts_that_long_seen_or_not_and_no_request_shortens_it(void **state)
{
    struct settings settings = settings_of(MODE_QUEUE);
    struct place place;
    (void)state;

    settings.session_ttl_sec = 10;
    settings.session_max_sec = 1000;
    struct rig rig = entered_room(settings, &place);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    assert_int_equal(room_session_extend(rig.room, &place, 300), ERROR_NONE);
    rig_pass(&rig, 100 * SEC);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    assert_int_equal(room_session_extend(rig.room, &place, 5), ERROR_NONE); /* less than there is */
    rig_pass(&rig, 200 * SEC - 100);
    assert_int_equal(rig_state(&rig, &place), TICKET_ACTIVE);
    rig_pass(&rig, 100);
    assert_int_equal(room_session_extend(rig.room, &place, 300), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);

    rig = entered_room(settings, &place);
    assert_int_equal(room_session_extend(rig.room, &place, 5000), ERROR_NONE); /* before the first request */
    rig_pass(&rig, 500 * SEC);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    rig_pass(&rig, 500 * SEC - 100);
    assert_int_equal(rig_state(&rig, &place), TICKET_ACTIVE);
    rig_pass(&rig, 100); /* session_max_sec */
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

static void without_session_renew_requests_do_not_prolong(void **state)
{
    struct settings settings = settings_of(MODE_QUEUE);
    struct place place;
    (void)state;

    settings.session_renew = 0;
    settings.session_ttl_sec = 30;
    struct rig rig = entered_room(settings, &place);
    rig_pass(&rig, 20 * SEC);
    for (int s = 0; s < 30; s++) { /* counted from the arrival */
        assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
        rig_pass(&rig, SEC);
    }
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

/* FAILURES 21: five enters are one; a repeated one says the same to the last bit, whatever was changed meanwhile. */
static void a_repeated_enter_gets_the_same_pass_after_settings_changed(void **state)
{
    struct settings settings = settings_of(MODE_QUEUE);
    struct place place;
    struct standing first, again;
    (void)state;

    settings.session_max_sec = 1000;
    struct rig rig = rig_new(64, &settings);
    place = rig_place(&rig, 1);
    assert_int_equal(rig_enter(&rig, &place, &first), ERROR_NONE);
    assert_false(first.is_repeat);
    assert_int_equal(first.pass_life_sec, 1000);
    settings.session_max_sec = 77;
    settings.tier = 1;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    rig_pass(&rig, 10 * SEC);
    struct enter later = {.place = place, .key_id = 99, .wall_sec = 1800000000};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(room_enter(rig.room, &later, &again), ERROR_NONE);
        assert_true(again.is_repeat);
        assert_int_equal(again.iat_sec, first.iat_sec);
        assert_int_equal(again.pass_life_sec, first.pass_life_sec);
        assert_int_equal(again.pass_key_id, first.pass_key_id);
        assert_int_equal(again.tier, first.tier);
        assert_int_equal(again.issued_sec, first.issued_sec);
        assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    }
    assert_int_equal(room_figures(rig.room).calls, 1);
    struct place second = rig_place(&rig, 2);
    assert_int_equal(rig_enter(&rig, &second, &again), ERROR_NONE);
    assert_int_equal(again.pass_life_sec, 77);
    assert_int_equal(again.tier, 1);
    rig_free(&rig);
}

static void more_promises_at_once_than_can_be_kept_apart_are_refused(void **state)
{
    struct settings settings = settings_of(MODE_QUEUE);
    settings.burst = 100;
    struct rig rig = rig_new(64, &settings);
    struct place place[ROOM_TERMS];
    struct standing standing;
    (void)state;

    for (uint32_t i = 0; i < ROOM_TERMS; i++) {
        settings.session_max_sec = 1000 + i;
        assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
        place[i] = rig_place(&rig, i);
        assert_int_equal(rig_enter(&rig, &place[i], &standing), ERROR_NONE);
    }
    settings.session_max_sec = 5000;
    settings.rate_milli = 1;
    assert_int_equal(rig_set(&rig, &settings), ERROR_INVALID_SETTING);
    assert_int_equal(room_settings(rig.room)->session_max_sec, 1000 + ROOM_TERMS - 1);
    assert_int_not_equal(room_settings(rig.room)->rate_milli, 1);
    for (uint32_t i = 0; i < ROOM_TERMS; i++) {
        assert_int_equal(rig_enter(&rig, &place[i], &standing), ERROR_NONE);
        assert_int_equal(standing.pass_life_sec, 1000 + i);
    }
    settings.session_max_sec = 1003; /* one that is known is no problem */
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    settings.session_max_sec = 5000;
    assert_int_equal(room_leave(rig.room, &place[7]), ERROR_NONE);
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    room_check(rig.room);
    rig_free(&rig);
}

/* ---- goodbye, perhaps ---- */

/* FAILURES 13: a refresh says goodbye and polls again. */
static void a_goodbye_takes_effect_after_ten_seconds_unless_they_poll(void **state)
{
    static const uint32_t seen_before_ms[] = {0, 100, 5 * SEC, 9900};
    (void)state;

    for (size_t i = 0; i < sizeof(seen_before_ms) / sizeof(seen_before_ms[0]); i++) {
        struct rig rig = held_room();
        struct place refreshes = rig_place(&rig, 1), leaves = rig_place(&rig, 2);
        rig_pass(&rig, seen_before_ms[i]);
        assert_int_equal(room_leave_soon(rig.room, &refreshes), ERROR_NONE);
        assert_int_equal(room_leave_soon(rig.room, &leaves), ERROR_NONE);
        rig_pass(&rig, 9900);
        assert_int_equal(room_leave_soon(rig.room, &leaves), ERROR_NONE); /* a second one changes nothing */
        assert_int_equal(rig_state(&rig, &leaves), TICKET_WAITING);
        assert_int_equal(rig_poll(&rig, &refreshes).position, 1);
        rig_pass(&rig, 100);
        assert_int_equal(rig_state(&rig, &leaves), TICKET_DONE);
        assert_int_equal(rig_state(&rig, &refreshes), TICKET_WAITING);
        rig_free(&rig);
    }
}

static void a_goodbye_of_someone_called_buys_no_time_when_taken_back(void **state)
{
    struct place called, next;
    struct rig rig = called_room(&called, &next, 60);
    struct standing standing;
    (void)state;

    rig_poll(&rig, &called);
    rig_pass(&rig, 30 * SEC);
    assert_int_equal(room_leave_soon(rig.room, &called), ERROR_NONE);
    rig_pass(&rig, 5 * SEC);
    assert_true(rig_poll(&rig, &called).is_ready);
    rig_pass(&rig, 25 * SEC - 100);
    assert_int_equal(rig_state(&rig, &called), TICKET_CALLED);
    rig_pass(&rig, 100);
    assert_int_equal(rig_enter(&rig, &called, &standing), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);

    rig = called_room(&called, &next, 60);
    rig_poll(&rig, &called);
    assert_int_equal(room_leave_soon(rig.room, &called), ERROR_NONE);
    rig_pass(&rig, 9900);
    assert_int_equal(rig_enter(&rig, &called, &standing), ERROR_NONE); /* entering takes it back too */
    rig_pass(&rig, 60 * SEC);
    assert_int_equal(rig_state(&rig, &called), TICKET_ENTERED);
    rig_free(&rig);

    rig = called_room(&called, &next, 60);
    rig_poll(&rig, &next);
    assert_int_equal(room_leave_soon(rig.room, &called), ERROR_NONE);
    rig_pass(&rig, 9900);
    rig_poll(&rig, &next);
    rig_pass(&rig, 100);
    assert_int_equal(rig_state(&rig, &called), TICKET_DONE);
    assert_int_equal(rig_state(&rig, &next), TICKET_CALLED);
    rig_free(&rig);
}

/* FAILURES 9: said goodbye, was called within the grace, never came back: the slot is free when the grace is over. */
static void a_call_within_the_grace_does_not_keep_someone_who_left(void **state)
{
    struct rig rig = held_room();
    struct place leaves = rig_place(&rig, 1), refreshes = rig_place(&rig, 2);
    struct standing standing;
    (void)state;

    assert_int_equal(room_leave_soon(rig.room, &leaves), ERROR_NONE);
    assert_int_equal(room_leave_soon(rig.room, &refreshes), ERROR_NONE);
    rig_pass(&rig, 2 * SEC);
    set_mode(&rig, MODE_QUEUE);
    rig_pass(&rig, 200);
    assert_int_equal(rig_state(&rig, &refreshes), TICKET_CALLED);
    assert_true(rig_poll(&rig, &refreshes).is_ready);
    rig_pass(&rig, 8 * SEC);
    assert_int_equal(rig_state(&rig, &leaves), TICKET_DONE);
    rig_pass(&rig, 50 * SEC);
    assert_int_equal(rig_enter(&rig, &refreshes, &standing), ERROR_NONE);
    rig_free(&rig);
}

/* Those inside unload the waiting page because they go on to the shop. */
static void a_goodbye_from_inside_ends_nothing(void **state)
{
    struct place place;
    struct rig rig = entered_room(settings_of(MODE_QUEUE), &place);
    (void)state;

    assert_int_equal(room_leave_soon(rig.room, &place), ERROR_NONE);
    rig_pass(&rig, 100 * SEC);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    assert_int_equal(room_leave_soon(rig.room, &place), ERROR_NONE);
    rig_pass(&rig, 100 * SEC);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    rig_free(&rig);
}

/* ---- whose ticket ---- */

static void a_place_is_its_holders_alone_and_of_its_epoch_alone(void **state)
{
    struct rig rig = held_room();
    struct place place = rig_place(&rig, 1);
    struct standing standing;
    (void)state;

    for (int wrong = 0; wrong < 4; wrong++) {
        struct place other = place;
        if (wrong == 0)
            other.holder = holder_of(2);
        if (wrong == 1)
            other.epoch--;
        if (wrong == 2)
            other.count = 0;
        if (wrong == 3)
            other.count = UINT32_MAX;
        assert_int_equal(room_status(rig.room, &other, &standing), ERROR_TOKEN_NOT_FOUND);
        assert_int_equal(rig_enter(&rig, &other, &standing), ERROR_TOKEN_NOT_FOUND);
        assert_int_equal(room_leave(rig.room, &other), ERROR_TOKEN_NOT_FOUND);
        assert_int_equal(room_leave_soon(rig.room, &other), ERROR_TOKEN_NOT_FOUND);
        assert_int_equal(room_session_touch(rig.room, &other), ERROR_TOKEN_NOT_FOUND);
        assert_int_equal(room_session_end(rig.room, &other), ERROR_TOKEN_NOT_FOUND);
    }
    assert_int_equal(rig_state(&rig, &place), TICKET_WAITING);
    rig_free(&rig);
}

/* FAILURES 4, 7: one ticket per holder while it lives, a new and higher number after that. */
static void joining_again_returns_the_same_ticket_until_it_is_over(void **state)
{
    struct rig rig = held_room();
    struct standing standing;
    struct place first = rig_place(&rig, 1);
    (void)state;

    rig_place(&rig, 2);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(rig_join(&rig, 1, &standing), ERROR_NONE);
        assert_true(standing.is_repeat);
        assert_int_equal(standing.place.count, first.count);
        assert_int_equal(standing.position, 1);
    }
    assert_int_equal(room_figures(rig.room).issued, 2);
    assert_int_equal(room_leave(rig.room, &first), ERROR_NONE);
    assert_int_equal(rig_join(&rig, 1, &standing), ERROR_NONE);
    assert_false(standing.is_repeat);
    assert_int_equal(standing.place.count, 3);
    assert_int_equal(standing.position, 2);
    rig_free(&rig);
}

/* Its answer does not say whose turn it is. */
static void a_heartbeat_renews_and_does_not_begin_the_time_to_claim(void **state)
{
    struct settings settings = settings_of(MODE_HOLD);
    settings.seen_ttl_sec = 10;
    settings.claim_ttl_sec = 5;
    struct rig rig = rig_new(64, &settings);
    struct place place = rig_place(&rig, 1);
    struct standing standing;
    uint32_t called;
    (void)state;

    for (int i = 0; i < 10; i++) {
        rig_pass(&rig, 9 * SEC);
        assert_int_equal(room_heartbeat(rig.room, &place, &standing), ERROR_NONE);
    }
    assert_int_equal(rig_state(&rig, &place), TICKET_WAITING);
    assert_int_equal(room_advance(rig.room, 1, &called), ERROR_NONE);
    assert_int_equal(room_heartbeat(rig.room, &place, &standing), ERROR_NONE);
    rig_pass(&rig, 100 * SEC);
    assert_int_equal(rig_state(&rig, &place), TICKET_CALLED);
    assert_true(rig_poll(&rig, &place).is_ready);
    rig_pass(&rig, 6 * SEC);
    assert_int_equal(rig_state(&rig, &place), TICKET_DONE);
    assert_int_equal(room_heartbeat(rig.room, &place, &standing), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heartbeat_renews_and_does_not_begin_the_time_to_claim),
        cmocka_unit_test(the_table_allows_these_steps_and_no_others),
        cmocka_unit_test(every_operation_does_in_every_state_what_the_table_says),
        cmocka_unit_test(not_seen_for_seen_ttl_is_away_and_back_at_the_same_place),
        cmocka_unit_test(three_told_intervals_pass_before_someone_is_away),
        cmocka_unit_test(nobodys_time_is_ever_short_whatever_the_ticks),
        cmocka_unit_test(absent_heads_cost_nobody_more_than_one_tick),
        cmocka_unit_test(a_head_whose_absence_was_not_noticed_yet_is_not_called),
        cmocka_unit_test(who_never_comes_back_is_over_after_away_ttl_without_anyone_polling),
        cmocka_unit_test(whom_the_line_passed_while_away_is_next_on_return),
        cmocka_unit_test(nobody_who_polls_as_told_is_ever_away_or_expired),
        cmocka_unit_test(claim_ttl_counts_from_the_first_answer_that_told_them),
        cmocka_unit_test(an_untold_call_stands_for_the_longest_of_claim_ttl_two_polls_and_two_minutes),
        cmocka_unit_test(a_repeated_join_answer_does_not_start_the_time_to_claim),
        cmocka_unit_test(who_was_called_enters_although_the_room_was_closed_and_slowed_meanwhile),
        cmocka_unit_test(a_no_show_gives_slot_and_pace_to_the_next_in_the_same_tick),
        cmocka_unit_test(who_enters_and_never_arrives_gives_the_slot_back_after_arrive_ttl),
        cmocka_unit_test(a_session_slides_with_every_request),
        cmocka_unit_test(a_request_shortly_before_the_end_counts_in_full),
        cmocka_unit_test(session_max_ends_a_session_however_busy_it_is),
        cmocka_unit_test(an_extended_session_lasts_that_long_seen_or_not_and_no_request_shortens_it),
        cmocka_unit_test(without_session_renew_requests_do_not_prolong),
        cmocka_unit_test(a_repeated_enter_gets_the_same_pass_after_settings_changed),
        cmocka_unit_test(more_promises_at_once_than_can_be_kept_apart_are_refused),
        cmocka_unit_test(a_goodbye_takes_effect_after_ten_seconds_unless_they_poll),
        cmocka_unit_test(a_goodbye_of_someone_called_buys_no_time_when_taken_back),
        cmocka_unit_test(a_call_within_the_grace_does_not_keep_someone_who_left),
        cmocka_unit_test(a_goodbye_from_inside_ends_nothing),
        cmocka_unit_test(a_place_is_its_holders_alone_and_of_its_epoch_alone),
        cmocka_unit_test(joining_again_returns_the_same_ticket_until_it_is_over),
    };
    return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}
