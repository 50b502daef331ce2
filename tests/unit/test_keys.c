/* SPDX-License-Identifier: BSD-2-Clause */
/* Idempotency keys: a retry gets what the first try got, and a key is never worth more than its ticket. */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define SEC 1000

static struct rig held_room(uint32_t pages)
{
    struct settings settings = settings_default();

    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 3600;
    return rig_new(pages, &settings);
}

/* FAILURES 39: there is no moment at which a key is known without what it stands for. */
static void a_hundred_joins_with_one_key_are_one_ticket_and_equal_answers(void **state)
{
    struct rig rig = held_room(64);
    struct standing first, again;
    (void)state;

    rig_place(&rig, 1);
    assert_int_equal(rig_join_by_key(&rig, 2, 1, 10, &first), ERROR_NONE);
    assert_false(first.is_repeat);
    for (int i = 0; i < 100; i++) {
        /* Another visitor cookie each time, as of a client that keeps none: the key alone says who asks. */
        assert_int_equal(rig_join_by_key(&rig, 1000 + (uint64_t)i, 1, 10, &again), ERROR_NONE);
        assert_true(again.is_repeat);
        assert_int_equal(again.place.count, first.place.count);
        assert_memory_equal(&again.place.holder, &first.place.holder, sizeof(struct holder));
        assert_int_equal(again.position, first.position);
        assert_int_equal(again.is_ready, first.is_ready);
        assert_int_equal(again.issued_sec, first.issued_sec);
    }
    assert_int_equal(room_figures(rig.room).issued, 2);
    rig_free(&rig);
}

static void the_answer_stays_the_first_one_when_the_line_has_moved(void **state)
{
    struct rig rig = held_room(64);
    struct place head = rig_place(&rig, 1);
    struct standing first, again;
    (void)state;

    assert_int_equal(rig_join_by_key(&rig, 2, 1, 10, &first), ERROR_NONE);
    assert_int_equal(first.position, 2);
    assert_int_equal(room_leave(rig.room, &head), ERROR_NONE);
    assert_int_equal(rig_poll(&rig, &first.place).position, 1);
    assert_int_equal(rig_join_by_key(&rig, 2, 1, 10, &again), ERROR_NONE);
    assert_int_equal(again.position, 2);
    assert_int_equal(rig_poll(&rig, &first.place).position, 1);
    rig_free(&rig);
}

static void the_same_key_with_another_body_is_a_conflict_and_does_nothing(void **state)
{
    struct rig rig = held_room(64);
    struct standing standing;
    (void)state;

    assert_int_equal(rig_join_by_key(&rig, 1, 1, 10, &standing), ERROR_NONE);
    unsigned char *before = image_of(rig.base, rig.bytes, &rig.room->memory);
    assert_int_equal(rig_join_by_key(&rig, 2, 1, 11, &standing), ERROR_IDEMPOTENCY_CONFLICT);
    unsigned char *after = image_of(rig.base, rig.bytes, &rig.room->memory);
    assert_memory_equal(before, after, rig.bytes);
    free(before);
    free(after);
    rig_free(&rig);
}

static void two_holders_with_one_key_never_meet(void **state)
{
    struct rig rig = held_room(64);
    struct standing one, two;
    (void)state;

    /* The holder is in the scope: what both call "1" are different scopes here. */
    assert_int_equal(rig_join_by_key(&rig, 1, 101, 10, &one), ERROR_NONE);
    assert_int_equal(rig_join_by_key(&rig, 2, 201, 10, &two), ERROR_NONE);
    assert_int_not_equal(one.place.count, two.place.count);
    assert_false(two.is_repeat);
    rig_free(&rig);
}

static void a_key_is_forgotten_when_its_ticket_is_over(void **state)
{
    struct rig rig = held_room(64);
    struct standing first, again;
    (void)state;

    assert_int_equal(rig_join_by_key(&rig, 1, 1, 10, &first), ERROR_NONE);
    assert_int_equal(room_leave(rig.room, &first.place), ERROR_NONE);
    /* Not even a conflict: what the key stood for is no more. */
    assert_int_equal(rig_join_by_key(&rig, 1, 1, 99, &again), ERROR_NONE);
    assert_false(again.is_repeat);
    assert_int_equal(again.place.count, first.place.count + 1);
    assert_int_equal(rig_join_by_key(&rig, 7, 1, 99, &first), ERROR_NONE);
    assert_int_equal(first.place.count, again.place.count);
    rig_free(&rig);
}

static void a_key_holds_for_three_hundred_seconds_and_not_longer(void **state)
{
    struct rig rig = held_room(64);
    struct standing first, again;
    (void)state;

    assert_int_equal(rig_join_by_key(&rig, 1, 1, 10, &first), ERROR_NONE);
    rig_pass(&rig, 300 * SEC - 100);
    assert_int_equal(rig_join_by_key(&rig, 2, 1, 10, &again), ERROR_NONE);
    assert_true(again.is_repeat);
    rig_pass(&rig, 100);
    assert_int_equal(rig_join_by_key(&rig, 2, 1, 99, &again), ERROR_NONE);
    assert_false(again.is_repeat);
    assert_int_equal(again.place.count, 2);
    rig_free(&rig);
}

/* A key used anew for a new ticket is young again; the old ones behind it in the queue are not. */
static void a_key_used_anew_does_not_keep_others_beyond_their_time(void **state)
{
    struct rig rig = held_room(64);
    struct standing first, second, again;
    (void)state;

    assert_int_equal(rig_join_by_key(&rig, 1, 1, 10, &first), ERROR_NONE);
    assert_int_equal(rig_join_by_key(&rig, 2, 2, 10, &second), ERROR_NONE);
    assert_int_equal(room_leave(rig.room, &first.place), ERROR_NONE);
    rig_pass(&rig, 299 * SEC);
    assert_int_equal(rig_join_by_key(&rig, 1, 1, 10, &again), ERROR_NONE);
    rig_pass(&rig, 2 * SEC);
    assert_int_equal(rig_join_by_key(&rig, 3, 2, 99, &again), ERROR_NONE);
    assert_false(again.is_repeat);
    assert_int_equal(rig_join_by_key(&rig, 4, 1, 10, &again), ERROR_NONE);
    assert_true(again.is_repeat);
    rig_free(&rig);
}

/* All keys lead to one ticket: what counts here is the table. */
static void a_full_table_drops_the_oldest_and_counts_it(void **state)
{
    struct rig rig = held_room(1800);
    struct standing standing;
    (void)state;

    for (uint64_t key = 0; key < KEYS_MAX; key++)
        assert_int_equal(rig_join_by_key(&rig, 1, key, 10, &standing), ERROR_NONE);
    assert_int_equal(room_figures(rig.room).keys_dropped, 0);
    assert_int_equal(rig_join_by_key(&rig, 2, 0, 10, &standing), ERROR_NONE);
    for (uint64_t key = KEYS_MAX; key < KEYS_MAX + 1000; key++)
        assert_int_equal(rig_join_by_key(&rig, 1, key, 10, &standing), ERROR_NONE);
    /* The repeat found the table full and made room too. */
    uint64_t dropped = room_figures(rig.room).keys_dropped;
    assert_true(dropped == 1000 || dropped == 1001);
    assert_int_equal(rig_join_by_key(&rig, 1, 500, 99, &standing), ERROR_NONE);
    assert_int_equal(rig_join_by_key(&rig, 1, 2000, 99, &standing), ERROR_IDEMPOTENCY_CONFLICT);
    room_check(rig.room);
    /* All of it is given back when the time is over, at most a few hundred keys a tick. */
    rig_pass(&rig, 300 * SEC);
    rig_pass(&rig, (KEYS_MAX / 256 + 1) * 100);
    assert_int_equal(keys_pages(&rig.room->keys), 0);
    room_check(rig.room);
    rig_free(&rig);
}

/* After four billion keys the numbers begin again, and nothing is lost at the seam. */
static void numbers_of_keys_begin_again_after_the_last(void **state)
{
    struct rig rig = held_room(64);
    struct standing first[600], again;
    (void)state;

    rig.room->keys.first = UINT32_MAX - 299;
    rig.room->keys.last = UINT32_MAX - 300;
    for (uint64_t key = 0; key < 600; key++)
        assert_int_equal(rig_join_by_key(&rig, key, key, 10, &first[key]), ERROR_NONE);
    for (uint64_t key = 0; key < 600; key++) {
        assert_int_equal(rig_join_by_key(&rig, 9999, key, 10, &again), ERROR_NONE);
        assert_int_equal(again.place.count, first[key].place.count);
    }
    rig_pass(&rig, 301 * SEC);
    assert_int_equal(keys_pages(&rig.room->keys), 0);
    room_check(rig.room);
    rig_free(&rig);
}

/* ---- walking over them ---- */

/* Each that is there all the while once, in order, whatever comes and goes; over the seam of their numbers too. */
static void a_walk_over_the_keys_meets_each_that_stays_once(void **state)
{
    static const uint32_t firsts[] = {1, UINT32_MAX - 299, UINT32_MAX, UINT32_MAX - 63};
    (void)state;

    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        struct rig rig = held_room(64);
        struct keys *keys = &rig.room->keys;
        struct memory *memory = room_memory(rig.room);
        const struct key *key;
        uint32_t number = 0, met = 0;
        assert_null(keys_next(keys, memory, &number));
        keys->first = firsts[i];
        keys->last = firsts[i] - 1;
        for (uint32_t at = 0; at < 600; at++) {
            struct key one = {.scope = holder_of(at), .count = at + 1, .at = at};
            assert_true(keys_add(keys, memory, &one));
            memory_commit(memory);
        }
        number = 0;
        while ((key = keys_next(keys, memory, &number)) != NULL) {
            /* The first hundred were met when another hundred are forgotten behind the walk and before it. */
            assert_int_equal(key->at, met < 100 ? met : met + 100);
            if (++met != 100)
                continue;
            for (uint32_t forget = 0; forget < 200; forget++) {
                assert_true(keys_forget(keys, memory, 199 + KEYS_TTL_SEC * 10));
                memory_commit(memory);
            }
            struct key late = {.scope = holder_of(9999), .count = 9999, .at = 600};
            assert_true(keys_add(keys, memory, &late));
            memory_commit(memory);
        }
        assert_int_equal(met, 501);
        /* All are forgotten while a walk is under way. */
        number = 0;
        assert_non_null(keys_next(keys, memory, &number));
        while (keys_forget(keys, memory, LINE_NEVER))
            memory_commit(memory);
        assert_null(keys_next(keys, memory, &number));
        rig_free(&rig);
    }
}

/* ---- enter ---- */

static struct enter enter_of(const struct standing *standing, uint64_t key, uint64_t body)
{
    return (struct enter){
        .place = standing->place, .key_id = 4, .wall_sec = 1700000100, .request = key_of(key, body)};
}

static void enters_with_a_key_are_one_and_another_body_is_a_conflict(void **state)
{
    struct rig rig = rig_new(64, NULL);
    struct standing standing, first, again;
    (void)state;

    assert_int_equal(rig_join(&rig, 1, &standing), ERROR_NONE);
    struct enter enter = enter_of(&standing, 1, 10), other = enter_of(&standing, 1, 11);
    assert_int_equal(room_enter(rig.room, &enter, &first), ERROR_NONE);
    enter.wall_sec += 50;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(room_enter(rig.room, &enter, &again), ERROR_NONE);
        assert_true(again.is_repeat);
        assert_int_equal(again.iat_sec, first.iat_sec);
        assert_int_equal(room_enter(rig.room, &other, &again), ERROR_IDEMPOTENCY_CONFLICT);
    }
    /* A key whose ticket is over stands for nothing any more: no conflict, no ticket. */
    assert_int_equal(room_leave(rig.room, &standing.place), ERROR_NONE);
    assert_int_equal(room_enter(rig.room, &enter, &again), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_enter(rig.room, &other, &again), ERROR_TOKEN_NOT_FOUND);
    rig_free(&rig);
}

/* "Not yet" is not kept: the same key enters when the turn has come. */
static void an_enter_that_came_too_early_succeeds_later_with_the_same_key(void **state)
{
    struct rig rig = held_room(64);
    struct standing standing, answer;
    (void)state;

    assert_int_equal(rig_join(&rig, 1, &standing), ERROR_NONE);
    struct enter enter = enter_of(&standing, 1, 10);
    assert_int_equal(room_enter(rig.room, &enter, &answer), ERROR_NOT_READY);
    struct settings settings = *room_settings(rig.room);
    settings.mode = MODE_QUEUE;
    assert_int_equal(rig_set(&rig, &settings), ERROR_NONE);
    rig_pass(&rig, 100);
    assert_int_equal(room_enter(rig.room, &enter, &answer), ERROR_NONE);
    assert_false(answer.is_repeat);
    rig_free(&rig);
}

/* ---- a full zone ---- */

/* People join until the memory ends. Returns the last who got in. */
static struct standing fill_up(struct rig *rig)
{
    struct standing last = no_standing, standing;
    uint64_t who = 1;

    for (; rig_join(rig, who, &standing) == ERROR_NONE; who++)
        last = standing;
    /* Pages for keys are gone as well. */
    assert_int_equal(rig_join_by_key(rig, who, 1, 1, &standing), ERROR_QUEUE_FULL);
    return last;
}

/* FAILURES 20: a call is a promise, whether there is room for a key or not. */
static void an_enter_with_a_key_succeeds_in_a_full_zone(void **state)
{
    struct settings settings = settings_default();
    struct standing first, answer;
    settings.max_active = 1;
    struct rig rig = rig_new(12, &settings);
    (void)state;

    assert_int_equal(rig_join(&rig, 0, &first), ERROR_NONE);
    assert_true(first.is_ready);
    fill_up(&rig);
    struct enter enter = enter_of(&first, 5, 10);
    assert_int_equal(room_enter(rig.room, &enter, &answer), ERROR_NONE);
    assert_int_equal(answer.state, TICKET_ENTERED);
    uint32_t iat_sec = answer.iat_sec;
    enter.wall_sec++;
    assert_int_equal(room_enter(rig.room, &enter, &answer), ERROR_NONE);
    assert_true(answer.is_repeat);
    assert_int_equal(answer.iat_sec, iat_sec);
    room_check(rig.room);
    rig_free(&rig);
}

static void who_has_a_ticket_gets_it_again_in_a_full_zone_with_a_new_key(void **state)
{
    struct rig rig = held_room(12);
    struct standing first, answer;
    (void)state;

    assert_int_equal(rig_join(&rig, 0, &first), ERROR_NONE);
    fill_up(&rig);
    assert_int_equal(rig_join_by_key(&rig, 0, 5, 10, &answer), ERROR_NONE);
    assert_true(answer.is_repeat);
    assert_int_equal(answer.place.count, first.place.count);
    assert_int_equal(answer.position, 1);
    room_check(rig.room);
    rig_free(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_joins_with_one_key_are_one_ticket_and_equal_answers),
        cmocka_unit_test(the_answer_stays_the_first_one_when_the_line_has_moved),
        cmocka_unit_test(the_same_key_with_another_body_is_a_conflict_and_does_nothing),
        cmocka_unit_test(two_holders_with_one_key_never_meet),
        cmocka_unit_test(a_key_is_forgotten_when_its_ticket_is_over),
        cmocka_unit_test(a_key_holds_for_three_hundred_seconds_and_not_longer),
        cmocka_unit_test(a_key_used_anew_does_not_keep_others_beyond_their_time),
        cmocka_unit_test(a_full_table_drops_the_oldest_and_counts_it),
        cmocka_unit_test(numbers_of_keys_begin_again_after_the_last),
        cmocka_unit_test(a_walk_over_the_keys_meets_each_that_stays_once),
        cmocka_unit_test(enters_with_a_key_are_one_and_another_body_is_a_conflict),
        cmocka_unit_test(an_enter_that_came_too_early_succeeds_later_with_the_same_key),
        cmocka_unit_test(an_enter_with_a_key_succeeds_in_a_full_zone),
        cmocka_unit_test(who_has_a_ticket_gets_it_again_in_a_full_zone_with_a_new_key),
    };
    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
