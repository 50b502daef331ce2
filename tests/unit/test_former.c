/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A room without a journal after a restart: it knows nobody, but passes say who was inside. Each makes its session anew, once, for
 * a while, within the slots.
 */
#include "rig.h"

#define SEC   1000
#define START 1700001000U /* wall clock, when the room was made again */

static struct rig rig_after_restart(uint32_t max_active)
{
    struct settings settings = settings_default();

    settings.max_active = max_active;
    struct rig rig = rig_new(64, &settings);
    room_had_former(rig.room, START);
    return rig;
}

/* A pass of the room before: its numbers may well be somebody else's now. */
static struct place former_pass(uint64_t who, uint32_t count)
{
    return (struct place){.epoch = 7,
                          .count = count,
                          .holder = holder_of(who),
                          .issue = {true, who % 2 == 0, 4, START - 60},
                          .grant = {true, 4, 2, START - 60}};
}

static enum error touch(struct rig *rig, const struct place *pass)
{
    enum error error = room_session_touch(rig->room, pass);

    room_check(rig->room);
    return error;
}

static uint32_t inside(const struct rig *rig)
{
    return room_slots_used(rig->room);
}

static void a_pass_from_before_the_restart_goes_on_and_means_one_session(void **state)
{
    struct rig rig = rig_after_restart(3);
    struct place one = former_pass(1, 1), two = former_pass(2, 1), beyond = former_pass(3, 4000);
    struct place later = former_pass(4, 2);
    struct standing standing;
    (void)state;

    assert_int_equal(touch(&rig, &one), ERROR_NONE);
    assert_int_equal(touch(&rig, &two), ERROR_NONE);
    assert_int_equal(touch(&rig, &beyond), ERROR_NONE);
    for (int i = 0; i < 900; i++) {
        rig_pass(&rig, 1 * SEC); /* long after nobody comes back any more */
        assert_int_equal(touch(&rig, &one), ERROR_NONE);
        assert_int_equal(touch(&rig, &two), ERROR_NONE);
    }
    assert_int_equal(inside(&rig), 2);
    assert_int_equal(room_figures(rig.room).issued, 3);
    assert_int_equal(room_figures(rig.room).calls, 0);
    assert_int_equal(room_look(rig.room, &two, &standing), ERROR_NONE);
    assert_int_equal(standing.iat_sec, START - 60);
    assert_int_equal(standing.pass_key_id, 4);
    assert_true(standing.is_trusted);
    assert_int_equal(touch(&rig, &later), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

enum ending { ENDED, LEFT, EXPIRED, CLEARED, ENDINGS };

static void what_ended_after_the_restart_stays_closed(void **state)
{
    (void)state;
    for (int ending = 0; ending < ENDINGS; ending++) {
        struct rig rig = rig_after_restart(0);
        struct place pass = former_pass(1, 1), not_seen = former_pass(3, 3);
        struct standing standing;
        uint32_t cleared;
        assert_int_equal(touch(&rig, &pass), ERROR_NONE);
        if (ending == ENDED)
            assert_int_equal(room_session_end(rig.room, &pass), ERROR_NONE);
        if (ending == LEFT)
            assert_int_equal(room_leave(rig.room, &pass), ERROR_NONE);
        if (ending == EXPIRED)
            rig_pass(&rig, 601 * SEC);
        if (ending == CLEARED)
            assert_int_equal(room_clear(rig.room, &cleared), ERROR_NONE);
        assert_int_equal(touch(&rig, &not_seen) == ERROR_NONE, ending == ENDED || ending == LEFT);
        for (int i = 0; i < 700; i++) {
            assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
            assert_int_equal(room_session_extend(rig.room, &pass, 60), ERROR_TOKEN_NOT_FOUND);
            rig_pass(&rig, 1 * SEC);
        }
        /* Not even by way of another ticket of theirs. */
        rig_place(&rig, 2);
        struct place again = rig_place(&rig, 1);
        assert_int_equal(rig_state(&rig, &again), TICKET_CALLED);
        assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
        assert_int_equal(rig_state(&rig, &again), TICKET_CALLED);
        assert_int_equal(rig_enter(&rig, &again, &standing), ERROR_NONE);
        assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
        rig_free(&rig);
    }
}

static void who_is_revoked_before_they_came_back_does_not(void **state)
{
    struct rig rig = rig_after_restart(0);
    struct place pass = former_pass(1, 1);
    (void)state;

    assert_int_equal(room_leave(rig.room, &pass), ERROR_NONE);
    assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_leave(rig.room, &pass), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

static void only_a_pass_that_is_older_than_the_room_is_of_the_time_before(void **state)
{
    struct rig rig = rig_after_restart(0);
    struct place young = former_pass(1, 1), ticket = former_pass(2, 2);
    struct standing standing;
    (void)state;

    young.grant.sec = START;
    ticket.grant = (struct grant){0};
    assert_int_equal(touch(&rig, &young), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(touch(&rig, &ticket), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_status(rig.room, &ticket, &standing), ERROR_TOKEN_NOT_FOUND);
    struct place old = former_pass(3, 3);
    assert_int_equal(room_status(rig.room, &old, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(inside(&rig), 0);
    rig_free(&rig);

    /* And a room that is not known to have been there before takes none. */
    struct rig other = rig_new(64, NULL);
    assert_int_equal(touch(&other, &old), ERROR_TOKEN_NOT_FOUND);
    rig_free(&other);
}

static void a_pass_of_another_tier_than_the_room_gives_makes_no_session(void **state)
{
    struct rig rig = rig_after_restart(0);
    struct place pass = former_pass(1, 1);
    (void)state;

    pass.grant.tier = 1;
    assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(inside(&rig), 0);
    pass.grant.tier = 2;
    assert_int_equal(touch(&rig, &pass), ERROR_NONE);
    rig_free(&rig);
}

static void slots_hold_and_the_line_is_overtaken_only_by_who_was_inside(void **state)
{
    struct rig rig = rig_after_restart(2);
    struct place one = former_pass(1, 1), two = former_pass(2, 2), three = former_pass(3, 3);
    (void)state;

    struct place waiting;
    struct place first = rig_place(&rig, 10);
    assert_int_equal(rig_state(&rig, &first), TICKET_CALLED);
    assert_int_equal(touch(&rig, &one), ERROR_NONE);
    waiting = rig_place(&rig, 11);
    assert_int_equal(touch(&rig, &two), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(rig_state(&rig, &waiting), TICKET_WAITING);
    assert_int_equal(inside(&rig), 2);
    assert_int_equal(room_session_end(rig.room, &one), ERROR_NONE);
    assert_int_equal(touch(&rig, &two), ERROR_NONE);
    assert_int_equal(touch(&rig, &three), ERROR_TOKEN_NOT_FOUND);
    rig_pass(&rig, 1 * SEC);
    assert_int_equal(rig_state(&rig, &waiting), TICKET_WAITING);
    assert_int_equal(inside(&rig), 2);
    rig_free(&rig);
}

/* They joined the line because their page did before it came to the gate. */
static void who_joined_again_meanwhile_goes_on_with_that_ticket(void **state)
{
    struct settings settings = settings_default();
    (void)state;

    settings.mode = MODE_HOLD;
    struct rig rig = rig_new(64, &settings);
    room_had_former(rig.room, START);
    rig_place(&rig, 5);
    struct place again = rig_place(&rig, 1), pass = former_pass(1, 77);
    assert_int_equal(touch(&rig, &pass), ERROR_NONE);
    assert_int_equal(rig_state(&rig, &again), TICKET_ACTIVE);
    assert_int_equal(room_figures(rig.room).issued, 2);
    assert_int_equal(touch(&rig, &again), ERROR_NONE);
    assert_int_equal(room_session_end(rig.room, &again), ERROR_NONE);
    assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

static void nobody_comes_back_after_the_time_for_it_though_the_room_was_empty(void **state)
{
    static const uint32_t ttls_sec[] = {600, 60};
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct settings settings = settings_default();
        settings.session_ttl_sec = ttls_sec[i];
        struct rig rig = rig_new(64, &settings);
        struct place pass = former_pass(1, 1);
        room_had_former(rig.room, START);
        for (uint32_t sec = 0; sec < (i == 0 ? ROOM_RETURN_SEC : 60U); sec++) {
            assert_false(room_is_at_rest(rig.room));
            rig_pass(&rig, 1 * SEC);
        }
        assert_true(room_is_at_rest(rig.room));
        assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
        rig_free(&rig);
    }
}

/* Their ticket has the very number again that the pass has: that alone is no session. */
static void the_same_number_is_not_the_same_ticket(void **state)
{
    struct settings settings = settings_default();
    (void)state;

    settings.mode = MODE_HOLD;
    struct rig rig = rig_new(64, &settings);
    room_had_former(rig.room, START);
    rig_pass(&rig, (uint64_t)ROOM_RETURN_SEC * SEC);
    struct place again = rig_place(&rig, 1), pass = former_pass(1, 1);
    assert_int_equal(again.count, pass.count);
    assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(rig_state(&rig, &again), TICKET_WAITING);
    rig_free(&rig);
}

/* What is remembered of those who came back must not be pushed out: rather nobody comes back any more. */
static void keys_that_were_dropped_end_it(void **state)
{
    struct rig rig = rig_after_restart(0);
    struct place pass = former_pass(1, 1);
    (void)state;

    rig.room->keys.dropped = 1;
    assert_int_equal(touch(&rig, &pass), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

static void without_memory_nobody_comes_back_and_the_room_stays_whole(void **state)
{
    (void)state;
    for (uint32_t pages = 0; pages < 12; pages++) {
        struct rig rig = rig_new(pages, NULL);
        struct place pass = former_pass(1, 1);
        room_had_former(rig.room, START);
        enum error error = touch(&rig, &pass);
        assert_true(error == ERROR_NONE || error == ERROR_QUEUE_FULL);
        assert_int_equal(inside(&rig), error == ERROR_NONE);
        rig_free(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_from_before_the_restart_goes_on_and_means_one_session),
        cmocka_unit_test(what_ended_after_the_restart_stays_closed),
        cmocka_unit_test(who_is_revoked_before_they_came_back_does_not),
        cmocka_unit_test(only_a_pass_that_is_older_than_the_room_is_of_the_time_before),
        cmocka_unit_test(a_pass_of_another_tier_than_the_room_gives_makes_no_session),
        cmocka_unit_test(slots_hold_and_the_line_is_overtaken_only_by_who_was_inside),
        cmocka_unit_test(who_joined_again_meanwhile_goes_on_with_that_ticket),
        cmocka_unit_test(nobody_comes_back_after_the_time_for_it_though_the_room_was_empty),
        cmocka_unit_test(the_same_number_is_not_the_same_ticket),
        cmocka_unit_test(keys_that_were_dropped_end_it),
        cmocka_unit_test(without_memory_nobody_comes_back_and_the_room_stays_whole),
    };
    return cmocka_run_group_tests_name("former", tests, NULL, NULL);
}
