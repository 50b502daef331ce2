/* SPDX-License-Identifier: BSD-2-Clause */
/* What the clients of halls and lobbies need of a room: tickets by their holder, and the poll intervals they know. */
#include "rig.h"

#include <string.h>

static struct settings settings_of(const char *preset, const char *mode)
{
    struct settings settings = settings_default();
    struct setting_change changes[] = {{SPAN("preset"), span_of(preset)}, {SPAN("mode"), span_of(mode)}};
    char reason[256];

    assert_true(settings_apply(&settings, NULL, changes, 2, reason, sizeof(reason)));
    return settings;
}

static struct place held_by(uint64_t who)
{
    return (struct place){.holder = holder_of(who)};
}

/* ---- by holder ---- */

static void a_holder_without_a_ticket_is_not_found(void **state)
{
    struct rig rig = rig_new(64, NULL);
    struct place nobody = held_by(1);
    struct enter enter = {.place = nobody, .key_id = 1, .wall_sec = 1000};
    struct standing standing;

    (void)state;
    rig_place(&rig, 2);
    assert_int_equal(room_status(rig.room, &nobody, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_heartbeat(rig.room, &nobody, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_look(rig.room, &nobody, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_enter(rig.room, &enter, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_leave(rig.room, &nobody), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_session_touch(rig.room, &nobody), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

static void a_holder_is_told_entered_and_gone_like_their_ticket(void **state)
{
    struct rig rig = rig_new(64, NULL);
    struct place place = rig_place(&rig, 1), mine = held_by(1);
    struct enter enter = {.place = mine, .key_id = 1, .wall_sec = 1000};
    struct standing standing;

    (void)state;
    assert_int_equal(room_status(rig.room, &mine, &standing), ERROR_NONE);
    assert_int_equal(standing.place.epoch, place.epoch);
    assert_int_equal(standing.place.count, place.count);
    assert_int_equal(room_enter(rig.room, &enter, &standing), ERROR_NONE);
    assert_int_equal(rig_state(&rig, &place), TICKET_ENTERED);
    assert_int_equal(room_session_touch(rig.room, &mine), ERROR_NONE);
    assert_int_equal(rig_state(&rig, &place), TICKET_ACTIVE);
    assert_int_equal(room_leave(rig.room, &mine), ERROR_NONE);
    assert_int_equal(rig_state(&rig, &place), TICKET_DONE);
    assert_int_equal(room_status(rig.room, &mine, &standing), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

static void a_holder_who_is_away_stands_again_at_their_place(void **state)
{
    struct settings settings = settings_of("hall", "hold");
    struct rig rig = rig_new(64, &settings);
    struct place place = rig_place(&rig, 1), mine = held_by(1);
    struct standing standing;

    (void)state;
    rig_pass(&rig, 20000);
    assert_int_equal(rig_state(&rig, &place), TICKET_AWAY);
    assert_int_equal(room_status(rig.room, &mine, &standing), ERROR_NONE);
    assert_int_equal(rig_state(&rig, &place), TICKET_WAITING);
    rig_free(&rig);
}

/* ---- polls ---- */

/* The interval that somebody is told with so many ahead of them. */
static uint32_t poll_behind(struct rig *rig, uint32_t ahead)
{
    struct standing standing;
    uint32_t waiting = (uint32_t)room_figures(rig->room).in_state[TICKET_WAITING];

    for (; waiting < ahead; waiting++)
        assert_int_equal(rig_join(rig, waiting + 1, &standing), ERROR_NONE);
    assert_int_equal(rig_join(rig, waiting + 1, &standing), ERROR_NONE);
    assert_int_equal(standing.position, ahead + 1);
    return standing.next_poll_sec;
}

static void those_in_a_hall_ask_by_their_position(void **state)
{
    struct settings settings = settings_of("hall", "hold");
    struct rig rig = rig_new(4096, &settings);

    (void)state;
    assert_int_equal(poll_behind(&rig, 0), 1);
    assert_int_equal(poll_behind(&rig, 999), 1);
    assert_int_equal(poll_behind(&rig, 1000), 5);
    assert_int_equal(poll_behind(&rig, 4999), 5);
    assert_int_equal(poll_behind(&rig, 5000), 10);
    assert_int_equal(poll_behind(&rig, 9999), 10);
    assert_int_equal(poll_behind(&rig, 10000), 30);
    assert_int_equal(poll_behind(&rig, 99999), 30);
    assert_int_equal(poll_behind(&rig, 100000), 60);
    rig_free(&rig);
}

static void those_in_a_lobby_ask_by_how_many_are_ahead(void **state)
{
    struct settings settings = settings_of("lobby", "hold");
    struct rig rig = rig_new(1024, &settings);

    (void)state;
    assert_int_equal(poll_behind(&rig, 0), 2);
    assert_int_equal(poll_behind(&rig, 500), 2);
    assert_int_equal(poll_behind(&rig, 501), 5);
    assert_int_equal(poll_behind(&rig, 2000), 5);
    assert_int_equal(poll_behind(&rig, 2001), 10);
    assert_int_equal(poll_behind(&rig, 10000), 10);
    assert_int_equal(poll_behind(&rig, 10001), 15);
    rig_free(&rig);
}

static void who_asks_as_told_is_there(void **state)
{
    struct settings settings = settings_of("lobby", "hold");
    struct rig rig = rig_new(1024, &settings);
    struct standing standing;

    (void)state;
    assert_int_equal(poll_behind(&rig, 10001), 15);
    struct place last = held_by(10002);
    rig_pass(&rig, 44000); /* three of the intervals they were told, and not seen_ttl_sec alone */
    assert_int_equal(room_look(rig.room, &last, &standing), ERROR_NONE);
    assert_int_equal(standing.state, TICKET_WAITING);
    rig_pass(&rig, 2000);
    assert_int_equal(room_look(rig.room, &last, &standing), ERROR_NONE);
    assert_int_equal(standing.state, TICKET_AWAY);
    rig_free(&rig);
}

/* ---- a pass that takes somebody further ---- */

/* Somebody comes with the pass of this place, under the key that stands for it. */
static enum error spend(struct rig *rig, const struct place *place, uint64_t somebody)
{
    struct enter enter = {.place = *place, .key_id = 1, .wall_sec = 1000, .spends = true};
    struct standing standing;

    enter.request = key_of(7, somebody);
    return room_enter(rig->room, &enter, &standing);
}

static void a_pass_is_spent_by_one_person_who_may_repeat_it_for_a_while(void **state)
{
    struct settings settings = settings_of("lobby", "queue");
    struct rig rig = rig_new(64, &settings);
    struct place place = rig_place(&rig, 1);
    struct standing standing;
    (void)state;

    assert_int_equal(rig_enter(&rig, &place, &standing), ERROR_NONE);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    assert_int_equal(spend(&rig, &place, 100), ERROR_NONE);
    assert_int_equal(spend(&rig, &place, 200), ERROR_IDEMPOTENCY_CONFLICT);
    rig_pass(&rig, 200000);
    assert_int_equal(spend(&rig, &place, 100), ERROR_NONE);
    rig_pass(&rig, 301000); /* the key is forgotten, the session lives */
    assert_int_equal(spend(&rig, &place, 200), ERROR_IDEMPOTENCY_CONFLICT);
    assert_int_equal(spend(&rig, &place, 100), ERROR_IDEMPOTENCY_CONFLICT);
    assert_int_equal(room_session_touch(rig.room, &place), ERROR_NONE);
    assert_int_equal(rig_enter(&rig, &place, &standing), ERROR_NONE); /* it is still their own pass */
    rig_free(&rig);
}

static void whoever_is_not_inside_spends_nothing(void **state)
{
    struct settings settings = settings_of("lobby", "hold");
    struct rig rig = rig_new(64, &settings);
    struct place place = rig_place(&rig, 1);
    uint32_t called;
    (void)state;

    assert_int_equal(spend(&rig, &place, 100), ERROR_NOT_READY);
    assert_int_equal(room_advance(rig.room, 1, &called), ERROR_NONE);
    assert_int_equal(spend(&rig, &place, 200), ERROR_NONE);
    rig_free(&rig);
}

/* ---- a lobby that follows its hall ---- */

static struct settings settings_following(const char *pace)
{
    struct settings settings = settings_of("lobby", "queue");
    struct setting_change changes[] = {{SPAN("pace"), span_of(pace)}, {SPAN("rate"), SPAN("10")}};
    char reason[256];

    assert_true(settings_apply(&settings, NULL, changes, 2, reason, sizeof(reason)));
    return settings;
}

static void tell_that_people_wait(struct rig *rig, uint32_t ms)
{
    struct shop_report report = {.left_alone_ms = ms, .failures = 1000};

    assert_int_equal(room_shop(rig->room, &report), ERROR_NONE);
}

static void a_lobby_calls_nobody_while_people_wait_in_its_hall(void **state)
{
    struct settings settings = settings_following("hall");
    struct rig rig = rig_new(64, &settings);
    uint32_t called;
    (void)state;

    tell_that_people_wait(&rig, 3000);
    for (uint64_t who = 1; who <= 20; who++)
        rig_place(&rig, who);
    rig_pass(&rig, 2000);
    tell_that_people_wait(&rig, 3000);
    rig_pass(&rig, 2900);
    assert_int_equal(room_figures(rig.room).calls, 0);
    assert_int_equal(room_figures(rig.room).pace_reason, FOLLOW_FROZEN);
    assert_int_equal(room_advance(rig.room, 1, &called), ERROR_NONE);
    assert_int_equal(room_figures(rig.room).calls, 1); /* an operator knows better */
    rig_pass(&rig, 1000);
    assert_in_range(room_figures(rig.room).calls, 8, 12);
    assert_int_equal(room_figures(rig.room).rate_milli, 10000); /* its pace is what the settings say */
    assert_int_equal(room_figures(rig.room).pace_reason, FOLLOW_FIXED);
    rig_free(&rig);
}

static void a_lobby_whose_pace_is_fixed_does_not_care_about_its_hall(void **state)
{
    struct settings settings = settings_following("fixed");
    struct rig rig = rig_new(64, &settings);
    (void)state;

    tell_that_people_wait(&rig, 60000);
    for (uint64_t who = 1; who <= 5; who++)
        rig_place(&rig, who);
    rig_pass(&rig, 1000);
    assert_int_equal(room_figures(rig.room).calls, 5);
    rig_free(&rig);
}

static void a_freeze_ends_with_the_pace_that_knew_it(void **state)
{
    struct settings follows = settings_following("hall"), fixed = settings_following("fixed");
    struct rig rig = rig_new(64, &follows);
    (void)state;

    rig_place(&rig, 1);
    tell_that_people_wait(&rig, 60000);
    rig_place(&rig, 2);
    follows.rate_milli *= 2;
    assert_int_equal(rig_set(&rig, &follows), ERROR_NONE);
    assert_int_equal(room_figures(rig.room).pace_reason, FOLLOW_FROZEN); /* another rate is no other pace */
    rig_pass(&rig, 1000);
    assert_int_equal(room_figures(rig.room).calls, 1);
    assert_int_equal(rig_set(&rig, &fixed), ERROR_NONE);
    rig_pass(&rig, 1000);
    assert_int_equal(room_figures(rig.room).calls, 2);
    rig_free(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_holder_without_a_ticket_is_not_found),
        cmocka_unit_test(a_holder_is_told_entered_and_gone_like_their_ticket),
        cmocka_unit_test(a_holder_who_is_away_stands_again_at_their_place),
        cmocka_unit_test(those_in_a_hall_ask_by_their_position),
        cmocka_unit_test(those_in_a_lobby_ask_by_how_many_are_ahead),
        cmocka_unit_test(who_asks_as_told_is_there),
        cmocka_unit_test(a_pass_is_spent_by_one_person_who_may_repeat_it_for_a_while),
        cmocka_unit_test(whoever_is_not_inside_spends_nothing),
        cmocka_unit_test(a_lobby_calls_nobody_while_people_wait_in_its_hall),
        cmocka_unit_test(a_lobby_whose_pace_is_fixed_does_not_care_about_its_hall),
        cmocka_unit_test(a_freeze_ends_with_the_pace_that_knew_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
