/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of tickets whose records a loss took away: whoever comes back with one stands where they stood, once, and nobody
 * else is harmed by it. A loss here is a room made from all records but the last few.
 */
#include "deeds.h"
#include "tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGES 96
#define SEC   1000

/* ---- a room that loses ---- */

struct house {
    uint32_t pages;
    struct rig rig;
    struct tape tape;
    uint32_t epoch;
};

static struct house house_new(uint32_t pages, const struct settings *settings)
{
    struct house house = {.pages = pages, .rig = rig_new(pages, settings), .epoch = 7};

    room_record(house.rig.room);
    tape_take_all(&house.tape, house.rig.room);
    return house;
}

/* Everybody stays in line and nobody goes away. */
static struct house held_house(uint32_t pages)
{
    struct settings settings = settings_default();

    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 86400;
    return house_new(pages, &settings);
}

static void house_free(struct house *house)
{
    tape_free(&house->tape);
    rig_free(&house->rig);
}

static void settle(struct house *house)
{
    tape_take_all(&house->tape, house->rig.room);
}

/* The room from its first `records` records, or by way of a snapshot; what follows them never was. */
static void go_back_to(struct house *house, uint32_t records, const struct tape *snapshot)
{
    struct tape *tape = &house->tape;
    struct copy copy;

    assert_true(records <= tape->records);
    tape->records = records;
    tape->used = records == 0 ? 0 : tape->end[records - 1];
    copy = copy_recovered(house->pages, snapshot, tape, snapshot == NULL ? 0 : records);
    room_check(copy.rig.room);
    copy_wake(&copy);
    rig_free(&house->rig);
    house->rig = copy.rig;
    free(copy.pool);
}

/* Everything since `records` is lost. */
static void lose(struct house *house, uint32_t records)
{
    go_back_to(house, records, NULL);
    house->epoch += 1 + house->epoch % 3;
    room_begin_epoch(house->rig.room, house->epoch);
    settle(house);
}

/* Nothing is lost: the same room from its records, and then from a snapshot. */
static void restart(struct house *house)
{
    struct tape snapshot = {0};

    uint64_t hash = room_hash(house->rig.room, 1);
    go_back_to(house, house->tape.records, NULL);
    assert_true(room_hash(house->rig.room, 1) == hash);
    tape_snapshot(&snapshot, house->rig.room);
    go_back_to(house, house->tape.records, &snapshot);
    assert_true(room_hash(house->rig.room, 1) == hash);
    tape_free(&snapshot);
}

/* ---- people ---- */

static struct place join(struct house *house, uint64_t who)
{
    struct join request = {.holder = holder_of(who),
                           .is_trusted = who % 2 == 0,
                           .key_id = (uint8_t)(who % 200),
                           .wall_sec = 1700000000 + (uint32_t)who};
    struct standing standing;
    uint32_t retry_after_sec;

    assert_int_equal(room_join(house->rig.room, &request, &standing, &retry_after_sec), ERROR_NONE);
    settle(house);
    standing.place.issue = (struct issue){true, request.is_trusted, request.key_id, request.wall_sec};
    return standing.place;
}

/* A ticket that nobody knows of any more. */
static struct place lose_one(struct house *house, uint64_t who)
{
    uint32_t known = house->tape.records;
    struct place place = join(house, who);

    lose(house, known);
    return place;
}

static enum error poll(struct house *house, const struct place *place, struct standing *standing)
{
    enum error error = room_status(house->rig.room, place, standing);

    settle(house);
    return error;
}

static enum error enter(struct house *house, const struct place *place, struct standing *standing)
{
    struct enter request = {.place = *place, .key_id = 4, .wall_sec = 1700009000};
    enum error error = room_enter(house->rig.room, &request, standing);

    settle(house);
    return error;
}

/* Each of the three ways to be seen gives a lost place back. */
static struct standing come_back(struct house *house, const struct place *place, uint32_t way)
{
    struct standing standing;

    if (way % 3 == 0)
        assert_int_equal(poll(house, place, &standing), ERROR_NONE);
    else if (way % 3 == 1)
        assert_int_equal(room_heartbeat(house->rig.room, place, &standing), ERROR_NONE);
    else
        assert_int_equal(enter(house, place, &standing), ERROR_NOT_READY);
    settle(house);
    room_check(house->rig.room);
    return standing;
}

static void assert_place(const struct standing *standing, const struct place *place)
{
    assert_int_equal(standing->place.epoch, place->epoch);
    assert_int_equal(standing->place.count, place->count);
    assert_true(holder_equal(&standing->place.holder, &place->holder));
}

/* By every way there is, and with nothing done by trying. */
static void assert_unknown(struct house *house, const struct place *place)
{
    struct room *room = house->rig.room;
    struct standing standing;
    uint64_t hash = room_hash(room, 1);

    assert_int_equal(room_look(room, place, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_status(room, place, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_heartbeat(room, place, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(enter(house, place, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_leave(room, place), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_leave_soon(room, place), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_session_touch(room, place), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_session_end(room, place), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(room_outbox(room).len, 0);
    assert_true(room_hash(room, 1) == hash);
}

static uint32_t position(const struct house *house, const struct place *place)
{
    struct standing standing;

    assert_int_equal(room_look(house->rig.room, place, &standing), ERROR_NONE);
    return standing.position;
}

static void set_mode(struct house *house, enum room_mode mode)
{
    struct settings settings = *room_settings(house->rig.room);

    settings.mode = mode;
    assert_int_equal(rig_set(&house->rig, &settings), ERROR_NONE);
    settle(house);
}

static void pass(struct house *house, uint64_t ms)
{
    for (; ms > 0; ms -= 100) {
        room_tick(house->rig.room, 100);
        settle(house);
    }
}

/* ---- coming back ---- */

/* Ten who are known, twenty who were lost, five who came later; the lost come back in any order and by any way. */
static void a_lost_ticket_comes_back_to_its_own_place(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct house house = held_house(PAGES);
        struct dice dice = {seed};
        struct place place[35];
        uint32_t order[20];
        for (uint32_t i = 0; i < 10; i++)
            place[i] = join(&house, i);
        uint32_t known = house.tape.records;
        for (uint32_t i = 10; i < 30; i++)
            place[i] = join(&house, i);
        lose(&house, known);
        for (uint32_t i = 30; i < 35; i++)
            place[i] = join(&house, i);
        assert_int_equal(place[30].count, 1);
        assert_int_equal(position(&house, &place[34]), 15);

        for (uint32_t i = 0; i < 20; i++) {
            uint32_t j = dice_below(&dice, i + 1);
            order[i] = order[j];
            order[j] = 10 + i;
        }
        bool is_back[35] = {false};
        for (uint32_t i = 0; i < 20; i++) {
            const struct place *lost = &place[order[i]];
            struct standing standing = come_back(&house, lost, dice_below(&dice, 3));
            uint32_t ahead = 10;
            is_back[order[i]] = true;
            for (uint32_t j = 10; j < order[i]; j++)
                ahead += is_back[j];
            assert_place(&standing, lost);
            assert_int_equal(standing.state, TICKET_WAITING);
            assert_int_equal(standing.position, ahead + 1);
            assert_int_equal(standing.is_trusted, lost->issue.is_trusted);
            assert_int_equal(standing.key_id, lost->issue.key_id);
            assert_int_equal(standing.issued_sec, lost->issue.sec);
            if (dice_below(&dice, 4) == 0)
                restart(&house);
        }
        struct figures figures = room_figures(house.rig.room);
        assert_int_equal(figures.issued, 35);
        assert_int_equal(figures.in_state[TICKET_WAITING], 35);
        assert_int_equal(figures.in_state[TICKET_DONE], 0);
        /* And they are called in that order. */
        for (uint32_t i = 0; i < 35; i++) {
            uint32_t called;
            assert_int_equal(room_advance(house.rig.room, 1, &called), ERROR_NONE);
            settle(&house);
            assert_int_equal(called, 1);
            struct standing standing;
            assert_int_equal(room_look(house.rig.room, &place[i], &standing), ERROR_NONE);
            assert_int_equal(standing.state, TICKET_CALLED);
        }
        house_free(&house);
    }
}

static void a_position_that_was_shown_does_not_rise_when_the_lost_come_back(void **state)
{
    struct house house = held_house(PAGES);
    struct standing standing;
    struct place lost[5];
    (void)state;

    uint32_t known = house.tape.records;
    for (uint32_t i = 0; i < 5; i++)
        lost[i] = join(&house, i);
    lose(&house, known);
    struct place later = join(&house, 10);
    assert_int_equal(poll(&house, &later, &standing), ERROR_NONE);
    assert_int_equal(standing.position, 1);
    for (uint32_t i = 5; i-- > 0;) {
        assert_int_equal(come_back(&house, &lost[i], 0).position, 1);
        assert_int_equal(poll(&house, &later, &standing), ERROR_NONE);
        assert_int_equal(standing.position, 1);
    }
    /* Shown or not, the place is where it is. */
    uint32_t called;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(room_advance(house.rig.room, 1, &called), ERROR_NONE);
        settle(&house);
        assert_int_equal(poll(&house, &later, &standing), ERROR_NONE);
        assert_int_equal(standing.state, TICKET_WAITING);
    }
    house_free(&house);
}

/* ---- once ---- */

enum ending { LEFT, LEFT_BEFORE_IT_CAME_BACK, TIME_OVER, NOT_CLAIMED, SESSION_ENDED, ENDINGS };

static void end_it(struct house *house, const struct place *place, enum ending ending)
{
    struct standing standing;

    switch (ending) {
    case LEFT:
        come_back(house, place, 0);
        assert_int_equal(room_leave(house->rig.room, place), ERROR_NONE);
        break;
    case LEFT_BEFORE_IT_CAME_BACK:
        assert_int_equal(room_leave(house->rig.room, place), ERROR_NONE);
        break;
    case TIME_OVER:
        come_back(house, place, 1);
        assert_int_equal(room_leave_soon(house->rig.room, place), ERROR_NONE);
        pass(house, 11 * SEC);
        break;
    case NOT_CLAIMED:
        come_back(house, place, 2);
        set_mode(house, MODE_OPEN);
        assert_int_equal(poll(house, place, &standing), ERROR_NONE);
        assert_true(standing.is_ready);
        pass(house, 61 * SEC);
        set_mode(house, MODE_HOLD);
        break;
    case SESSION_ENDED:
        come_back(house, place, 0);
        set_mode(house, MODE_OPEN);
        assert_int_equal(enter(house, place, &standing), ERROR_NONE);
        assert_int_equal(room_session_end(house->rig.room, place), ERROR_NONE);
        set_mode(house, MODE_HOLD);
        break;
    case ENDINGS:
        break;
    }
    settle(house);
    room_check(house->rig.room);
}

/* However it ended, and whatever happens to the room afterwards. */
static void a_lost_ticket_comes_back_once(void **state)
{
    (void)state;
    for (int ending = 0; ending < ENDINGS; ending++) {
        struct house house = held_house(PAGES);
        struct place place[3];
        join(&house, 100);
        uint32_t known = house.tape.records;
        for (uint32_t i = 0; i < 3; i++)
            place[i] = join(&house, i);
        lose(&house, known);
        end_it(&house, &place[1], (enum ending)ending);
        assert_unknown(&house, &place[1]);
        restart(&house);
        assert_unknown(&house, &place[1]);
        lose(&house, house.tape.records);
        assert_unknown(&house, &place[1]);
        restart(&house);
        assert_unknown(&house, &place[1]);
        pass(&house, 3 * SEC);
        assert_unknown(&house, &place[1]);
        /* The others are none the worse. */
        struct standing standing = come_back(&house, &place[0], 1);
        assert_place(&standing, &place[0]);
        standing = come_back(&house, &place[2], 0);
        assert_place(&standing, &place[2]);
        assert_true(position(&house, &place[0]) < position(&house, &place[2]));
        house_free(&house);
    }
}

/* A page full of them, and its neighbours: what is remembered is remembered of each. */
static void whole_pages_of_lost_tickets_come_back_once(void **state)
{
    enum { LOST = 3 * LINE_PAGE_COUNT };
    struct house house = held_house(PAGES);
    static struct place place[LOST];
    (void)state;

    for (uint32_t i = 0; i < 50; i++)
        join(&house, 1000 + i);
    uint32_t known = house.tape.records;
    for (uint32_t i = 0; i < LOST; i++)
        place[i] = join(&house, i);
    lose(&house, known);
    for (uint32_t i = LOST; i-- > 0;)
        come_back(&house, &place[i], i);
    for (uint32_t i = 0; i < LOST; i++) {
        assert_int_equal(position(&house, &place[i]), 51);
        assert_int_equal(room_leave(house.rig.room, &place[i]), ERROR_NONE);
        settle(&house);
    }
    for (uint32_t i = 0; i < LOST; i++)
        assert_unknown(&house, &place[i]);
    restart(&house);
    for (uint32_t i = 0; i < LOST; i++)
        assert_unknown(&house, &place[i]);
    assert_int_equal(room_figures(house.rig.room).in_state[TICKET_WAITING], 50);
    room_check(house.rig.room);
    house_free(&house);
}

/* ---- one holder, two tickets ---- */

static void the_older_place_wins_and_both_tickets_mean_it(void **state)
{
    struct house house = held_house(PAGES);
    struct standing standing;
    (void)state;

    join(&house, 100);
    uint32_t known = house.tape.records;
    struct place older = join(&house, 1);
    lose(&house, known);
    join(&house, 101);
    struct place newer = join(&house, 1);
    assert_int_not_equal(newer.epoch, older.epoch);
    assert_int_equal(position(&house, &newer), 3);
    standing = come_back(&house, &older, 0);
    assert_place(&standing, &older);
    assert_int_equal(standing.position, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(poll(&house, &newer, &standing), ERROR_NONE);
        assert_place(&standing, &older);
        assert_int_equal(poll(&house, &older, &standing), ERROR_NONE);
        assert_place(&standing, &older);
        restart(&house);
    }
    assert_int_equal(room_figures(house.rig.room).in_state[TICKET_WAITING], 3);
    /* A join is told the older one too, and after another loss it is still the only one. */
    struct place again = join(&house, 1);
    assert_int_equal(again.epoch, older.epoch);
    assert_int_equal(again.count, older.count);
    lose(&house, house.tape.records);
    assert_int_equal(poll(&house, &newer, &standing), ERROR_NONE);
    assert_place(&standing, &older);
    /* Left by one name, it is left by both. */
    assert_int_equal(room_leave(house.rig.room, &newer), ERROR_NONE);
    settle(&house);
    assert_unknown(&house, &older);
    assert_unknown(&house, &newer);
    restart(&house);
    assert_unknown(&house, &older);
    assert_unknown(&house, &newer);
    house_free(&house);
}

/* A retry of a leave must not leave what came later. */
static void a_ticket_that_was_over_before_is_no_name_for_one_that_came_back(void **state)
{
    struct house house = held_house(PAGES);
    struct standing standing;
    (void)state;

    struct place left = join(&house, 1);
    assert_int_equal(room_leave(house.rig.room, &left), ERROR_NONE);
    settle(&house);
    struct place lost = lose_one(&house, 1), later = join(&house, 1);
    come_back(&house, &lost, 0);
    assert_int_equal(poll(&house, &later, &standing), ERROR_NONE);
    assert_place(&standing, &lost);
    assert_unknown(&house, &left);
    restart(&house);
    assert_unknown(&house, &left);
    assert_int_equal(poll(&house, &lost, &standing), ERROR_NONE);
    house_free(&house);
}

/* Two losses, three tickets: whichever comes first, the oldest wins in the end. */
static void the_oldest_of_three_wins_in_whatever_order_they_come(void **state)
{
    static const uint32_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;

    for (int o = 0; o < 6; o++) {
        struct house house = held_house(PAGES);
        struct place place[3];
        struct standing standing;
        join(&house, 100);
        uint32_t known = house.tape.records;
        place[0] = join(&house, 1);
        lose(&house, known);
        known = house.tape.records;
        place[1] = join(&house, 1);
        lose(&house, known);
        place[2] = join(&house, 1);
        uint32_t oldest = 2;
        for (int i = 0; i < 3; i++) {
            uint32_t which = orders[o][i];
            oldest = which < oldest ? which : oldest;
            assert_int_equal(poll(&house, &place[which], &standing), ERROR_NONE);
            assert_place(&standing, &place[oldest]);
            room_check(house.rig.room);
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(poll(&house, &place[i], &standing), ERROR_NONE);
            assert_place(&standing, &place[0]);
        }
        assert_int_equal(room_figures(house.rig.room).in_state[TICKET_WAITING], 2);
        restart(&house);
        assert_int_equal(room_leave(house.rig.room, &place[orders[o][0]]), ERROR_NONE);
        settle(&house);
        for (int i = 0; i < 3; i++)
            assert_unknown(&house, &place[i]);
        house_free(&house);
    }
}

/* It was left, and that was lost too: so it stands, and the one taken after it does not come back beside it or after it. */
static void a_ticket_that_is_known_wins_over_a_later_one_that_was_lost(void **state)
{
    (void)state;
    for (int has_restart = 0; has_restart < 2; has_restart++) {
        struct house house = held_house(PAGES);
        struct standing standing;
        struct place first = join(&house, 1);
        uint32_t known = house.tape.records;
        assert_int_equal(room_leave(house.rig.room, &first), ERROR_NONE);
        settle(&house);
        struct place lost = join(&house, 1);
        lose(&house, known);
        assert_int_equal(poll(&house, &lost, &standing), ERROR_NONE);
        assert_place(&standing, &first);
        /* Nothing more is recorded when it is polled again. */
        uint32_t records = house.tape.records;
        assert_int_equal(poll(&house, &lost, &standing), ERROR_NONE);
        assert_int_equal(house.tape.records, records);
        if (has_restart)
            restart(&house);
        assert_int_equal(poll(&house, &lost, &standing), ERROR_NONE);
        assert_place(&standing, &first);
        assert_int_equal(room_leave(house.rig.room, &lost), ERROR_NONE);
        settle(&house);
        assert_unknown(&house, &first);
        assert_unknown(&house, &lost);
        restart(&house);
        assert_unknown(&house, &lost);
        house_free(&house);
    }
}

/* Called, entered or active at a later place: that turn is theirs, and the older place is not given beside it or after it. */
static void a_turn_that_has_come_wins_over_an_older_place(void **state)
{
    (void)state;
    for (int stage = 0; stage < 3; stage++) {
        struct house house = held_house(PAGES);
        struct standing standing;
        uint32_t called;
        struct place neighbour = join(&house, 100); /* on the same page */
        uint32_t known = house.tape.records;
        struct place older = join(&house, 1);
        lose(&house, known);
        struct place newer = join(&house, 1);
        assert_int_equal(room_advance(house.rig.room, 2, &called), ERROR_NONE);
        settle(&house);
        if (stage >= 1)
            assert_int_equal(enter(&house, &newer, &standing), ERROR_NONE);
        if (stage >= 2)
            assert_int_equal(room_session_touch(house.rig.room, &newer), ERROR_NONE);
        settle(&house);
        assert_int_equal(poll(&house, &older, &standing), ERROR_NONE);
        assert_place(&standing, &newer);
        assert_true(standing.is_ready);
        restart(&house);
        assert_int_equal(enter(&house, &older, &standing), ERROR_NONE);
        assert_place(&standing, &newer);
        uint32_t iat_sec = standing.iat_sec;
        assert_int_equal(enter(&house, &newer, &standing), ERROR_NONE);
        assert_int_equal(standing.iat_sec, iat_sec);
        assert_int_equal(room_session_end(house.rig.room, &newer), ERROR_NONE);
        settle(&house);
        /* A second turn for the same ticket would be a second pass. */
        assert_unknown(&house, &older);
        assert_unknown(&house, &newer);
        restart(&house);
        assert_int_equal(room_leave(house.rig.room, &neighbour), ERROR_NONE);
        settle(&house);
        assert_unknown(&house, &older);
        house_free(&house);
    }
}

/* ---- never ---- */

static void what_was_known_and_is_over_does_not_come_back(void **state)
{
    struct house house = held_house(PAGES);
    static struct place place[3 * LINE_PAGE_COUNT];
    (void)state;

    for (uint32_t i = 0; i < 3 * LINE_PAGE_COUNT; i++)
        place[i] = join(&house, i);
    /* Two whole pages are reclaimed, and some of the third are over. */
    for (uint32_t i = 0; i < 2 * LINE_PAGE_COUNT + 20; i++) {
        assert_int_equal(room_leave(house.rig.room, &place[i]), ERROR_NONE);
        settle(&house);
    }
    lose(&house, house.tape.records);
    for (uint32_t i = 0; i < 2 * LINE_PAGE_COUNT + 20; i++)
        assert_unknown(&house, &place[i]);
    for (uint32_t i = 2 * LINE_PAGE_COUNT + 20; i < 3 * LINE_PAGE_COUNT; i++)
        come_back(&house, &place[i], i);
    house_free(&house);
}

static void nobody_comes_back_to_a_room_that_was_cleared(void **state)
{
    struct house house = held_house(PAGES);
    uint32_t cleared;
    (void)state;

    struct place old = join(&house, 1);
    uint32_t known = house.tape.records;
    struct place lost = join(&house, 2), back = join(&house, 3);
    lose(&house, known);
    come_back(&house, &back, 0);
    assert_int_equal(room_clear(house.rig.room, &cleared), ERROR_NONE);
    settle(&house);
    assert_int_equal(cleared, 2);
    for (int i = 0; i < 3; i++) {
        assert_unknown(&house, &old);
        assert_unknown(&house, &lost);
        assert_unknown(&house, &back);
        restart(&house);
    }
    lose(&house, house.tape.records);
    assert_unknown(&house, &old);
    assert_unknown(&house, &lost);
    assert_unknown(&house, &back);
    house_free(&house);
}

static void what_never_was_a_ticket_of_this_room_does_not_come_back(void **state)
{
    struct house house = held_house(PAGES);
    (void)state;

    join(&house, 1);
    join(&house, 2);
    uint32_t known = house.tape.records;
    struct place lost = join(&house, 3), other = lost;
    lose(&house, known);
    struct place new = join(&house, 4);

    other.epoch = lost.epoch - 1;
    assert_unknown(&house, &other);
    other.epoch = lost.epoch + 1;
    assert_unknown(&house, &other);
    other.epoch = UINT32_MAX;
    assert_unknown(&house, &other);
    other = lost;
    other.count = 0;
    assert_unknown(&house, &other);
    other.count = UINT32_MAX;
    assert_unknown(&house, &other);
    other.count = UINT32_MAX - 1;
    assert_unknown(&house, &other);
    /* Where the places of the next epoch are, this one has none. */
    other.count = house.rig.room->epoch[1].base - house.rig.room->epoch[0].base + 1;
    assert_unknown(&house, &other);
    other.count = 2; /* known, and another's */
    assert_unknown(&house, &other);
    other = new; /* not given yet */
    other.count++;
    other.holder = holder_of(9);
    assert_unknown(&house, &other);
    /* A pass names a place and says nothing of how it was issued. */
    other = lost;
    other.issue = (struct issue){0};
    assert_unknown(&house, &other);
    other = lost;
    come_back(&house, &lost, 0);
    other.holder = holder_of(8);
    assert_unknown(&house, &other);
    /* Nor by the name of another epoch where one was lost in this. */
    lose_one(&house, 5);
    other = lost;
    other.holder = holder_of(5);
    other.count = house.rig.room->epoch[1].base - house.rig.room->epoch[0].base + 2;
    assert_unknown(&house, &other);
    house_free(&house);
}

/* ---- memory ---- */

/* Nothing is taken away before it is sure that something can be given. */
static void without_memory_nobody_comes_back_and_nobody_loses_what_they_have(void **state)
{
    struct house house = held_house(PAGES);
    struct memory *memory;
    struct standing standing;
    page_ref kept[PAGES];
    (void)state;

    struct place first = join(&house, 100);
    uint32_t known = house.tape.records;
    for (uint32_t i = 0; i < 2 * LINE_PAGE_COUNT; i++)
        join(&house, 200 + i);
    struct place older = join(&house, 1), alone = join(&house, 2);
    lose(&house, known);
    struct place newer = join(&house, 1);
    memory = room_memory(house.rig.room);
    for (uint32_t spare = 0; spare < 8; spare++) {
        uint32_t away = 0;
        while (memory->spare_count > spare) {
            kept[away++] = memory_take_back(memory, memory);
            memory_commit(memory);
        }
        enum error error = poll(&house, &older, &standing);
        assert_true(error == ERROR_NONE || error == ERROR_ENGINE_UNAVAILABLE);
        room_check(house.rig.room);
        if (error == ERROR_ENGINE_UNAVAILABLE) {
            assert_int_equal(spare < 5, true);
            assert_int_equal(poll(&house, &newer, &standing), ERROR_NONE);
            assert_place(&standing, &newer);
        } else {
            assert_place(&standing, &older);
        }
        if (spare < 1)
            assert_int_equal(poll(&house, &alone, &standing), ERROR_ENGINE_UNAVAILABLE);
        assert_int_equal(poll(&house, &first, &standing), ERROR_NONE);
        restart(&house);
        memory = room_memory(house.rig.room);
        (void)kept;
    }
    assert_int_equal(poll(&house, &newer, &standing), ERROR_NONE);
    assert_place(&standing, &older);
    come_back(&house, &alone, 0);
    house_free(&house);
}

/* ---- many losses ---- */

/* All tickets ever given by a room, and who got them. */
struct given {
    struct place *place;
    uint32_t count, max;
};

static void given_add(struct given *given, const struct place *place)
{
    for (uint32_t i = 0; i < given->count; i++)
        if (given->place[i].epoch == place->epoch && given->place[i].count == place->count)
            fail_msg("epoch %u count %u is given twice", place->epoch, place->count);
    if (given->count == given->max) {
        given->max = 2 * given->max + 64;
        given->place = realloc(given->place, given->max * sizeof(given->place[0]));
        assert_non_null(given->place);
    }
    given->place[given->count++] = *place;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return x->count < y->count ? -1 : x->count > y->count;
}

/* Everybody came with a ticket of their own, and some left: who did not, stands in the order in which tickets were given. */
static void after_any_losses_everybody_stands_in_the_order_of_arrival(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 15; seed++) {
        struct house house = held_house(PAGES);
        struct dice dice = {seed};
        struct given given = {0};
        uint64_t who = 1;
        for (int round = 0; round < 12; round++) {
            uint32_t known = house.tape.records;
            for (uint32_t joins = dice_below(&dice, 60); joins > 0; joins--) {
                struct place place = join(&house, who++);
                given_add(&given, &place);
                if (dice_below(&dice, 3) == 0)
                    known = house.tape.records;
            }
            for (uint32_t polls = dice_below(&dice, 40); polls > 0 && given.count > 0; polls--)
                come_back(&house, &given.place[dice_below(&dice, given.count)], polls);
            if (dice_below(&dice, 3) == 0)
                known = house.tape.records;
            if (dice_below(&dice, 4) == 0)
                restart(&house);
            else
                lose(&house, known < house.tape.records ? known : house.tape.records);
        }
        qsort(given.place, given.count, sizeof(given.place[0]), by_place);
        for (uint32_t i = given.count; i-- > 0;)
            assert_place(&(struct standing){.place = come_back(&house, &given.place[i], i).place},
                         &given.place[i]);
        restart(&house);
        for (uint32_t i = 0; i < given.count; i++) {
            struct standing standing;
            uint32_t called;
            assert_int_equal(room_advance(house.rig.room, 1, &called), ERROR_NONE);
            settle(&house);
            assert_int_equal(poll(&house, &given.place[i], &standing), ERROR_NONE);
            assert_int_equal(standing.state, TICKET_CALLED);
        }
        assert_int_equal(room_figures(house.rig.room).issued, given.count);
        free(given.place);
        house_free(&house);
    }
}

/* What tickets were used for. By number of the ticket in `given`. */
struct passes {
    uint32_t iat_sec[3000]; /* of the pass for its place; 0 = none */
    bool is_for_another[3000];
    uint32_t number;
};

static uint32_t ticket_number(const struct given *given, const struct place *place)
{
    uint32_t i = 0;

    while (i < given->count && by_place(&given->place[i], place) != 0)
        i++;
    assert_true(i < given->count);
    return i;
}

/* One pass for each place; and a ticket that was good for the turn of another place has no turn of its own any more. */
static void passes_note(struct passes *passes, const struct given *given, const struct deed *deed,
                        const struct answer *answer, const char *where)
{
    uint32_t ticket = ticket_number(given, &deed->enter.place);
    uint32_t place = ticket_number(given, &answer->standing.place);

    if (passes->iat_sec[place] != 0 && passes->iat_sec[place] != answer->standing.iat_sec)
        fail_msg("%s: another pass for the same place", where);
    if (ticket == place && passes->is_for_another[ticket])
        fail_msg("%s: a second turn for one ticket", where);
    passes->number += passes->iat_sec[place] == 0;
    passes->iat_sec[place] = answer->standing.iat_sec;
    passes->is_for_another[ticket] |= ticket != place;
}

/* Deeds at random by few people with many tickets each, and losses of what follows the last enter, which is never lost. */
static void no_number_is_given_twice_and_no_ticket_has_two_turns(void **state)
{
    uint32_t losses = 0, passes = 0, aliases = 0;
    char where[64];
    (void)state;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct settings settings = settings_default();
        settings.max_active = 20;
        settings.rate_milli = 2000;
        settings.session_ttl_sec = 30;
        struct house house = house_new(PAGES, &settings);
        struct doers doers = doers_new(seed);
        struct given given = {0};
        struct passes *used = calloc(1, sizeof(*used));
        uint32_t synced = house.tape.records;
        doers.settings = NULL;
        doers.has_clear = false;
        doers.holders = 15;
        for (uint32_t step = 0; step < 2500; step++) {
            struct deed deed = doers_deed(&doers);
            struct answer answer = deed_do(house.rig.room, &deed);
            settle(&house);
            snprintf(where, sizeof(where), "seed %lu step %u", seed, step);
            uint32_t before = doers.places;
            doers_hear(&doers, &deed, &answer);
            if (doers.places > before)
                given_add(&given, &doers.place[before]);
            if (deed.kind == DEED_STATUS && answer.error == ERROR_NONE)
                aliases += by_place(&deed.place, &answer.standing.place) != 0;
            if (deed.kind == DEED_ENTER && answer.error == ERROR_NONE) {
                passes_note(used, &given, &deed, &answer, where);
                synced = house.tape.records;
            }
            if (step % 60 == 0)
                room_check(house.rig.room);
            if (dice_below(&doers.dice, 60) > 0)
                continue;
            lose(&house, house.tape.records - dice_below(&doers.dice, house.tape.records - synced + 1));
            synced = house.tape.records;
            losses++;
        }
        passes += used->number;
        free(used);
        free(given.place);
        doers_free(&doers);
        house_free(&house);
    }
    assert_true(losses > 1500 && passes > 1500 && aliases > 300);
}

/* ---- more losses than a room remembers ---- */

static void whoever_waits_keeps_their_place_through_any_number_of_losses(void **state)
{
    enum { LOSSES = 2 * ROOM_EPOCHS - 8 }; /* as many as the line has places for */
    struct house house = held_house(400);
    struct place lost[LOSSES], first = join(&house, 1000), middle = first;
    struct standing standing;
    uint32_t backs = 0;
    (void)state;

    for (uint32_t i = 0; i < LOSSES; i++) {
        if (i == 40)
            middle = join(&house, 2000);
        lost[i] = lose_one(&house, i);
        assert_int_equal(poll(&house, &first, &standing), ERROR_NONE);
        assert_place(&standing, &first);
    }
    restart(&house);
    assert_int_equal(position(&house, &first), 1);
    assert_int_equal(position(&house, &middle), 2);
    /* Of the last fifty losses everybody comes back; of the first, nobody. */
    for (uint32_t i = 0; i < LOSSES; i++) {
        enum error error = poll(&house, &lost[i], &standing);
        assert_true(error == ERROR_NONE || (error == ERROR_TOKEN_NOT_FOUND && i < LOSSES - 50));
        assert_true(error == ERROR_TOKEN_NOT_FOUND || i >= 40);
        if (error == ERROR_NONE)
            assert_place(&standing, &lost[i]);
        backs += error == ERROR_NONE;
    }
    assert_int_equal(room_figures(house.rig.room).in_state[TICKET_WAITING], backs + 2);
    restart(&house);
    assert_int_equal(position(&house, &lost[LOSSES - 1]), backs + 2);
    house_free(&house);
}

/* Somebody from long ago stands, and there are no places left between them and the end of the line for those who are lost. */
static void where_the_line_ends_losses_are_final_and_numbers_stay_their_own(void **state)
{
    struct house house = held_house(400);
    struct place first = join(&house, 1000), lost;
    struct given given = {0};
    struct standing standing;
    uint32_t finals = 0, refused = 0;
    (void)state;

    for (uint64_t i = 0; i < 140; i++) {
        uint32_t known = house.tape.records;
        struct join request = {.holder = holder_of(i), .key_id = 1, .wall_sec = 1};
        uint32_t retry_after_sec;
        enum error error = room_join(house.rig.room, &request, &standing, &retry_after_sec);
        settle(&house);
        refused += error == ERROR_QUEUE_FULL;
        assert_true(error == ERROR_NONE || error == ERROR_QUEUE_FULL);
        lose(&house, known);
        assert_int_equal(poll(&house, &first, &(struct standing){0}), ERROR_NONE);
        if (error != ERROR_NONE)
            continue;
        lost = standing.place;
        lost.issue = (struct issue){.is_known = true};
        given_add(&given, &lost);
        if (poll(&house, &lost, &standing) == ERROR_NONE) {
            assert_place(&standing, &lost);
            assert_int_equal(finals, 0);
            assert_int_equal(room_leave(house.rig.room, &lost), ERROR_NONE);
            settle(&house);
        } else {
            finals++;
        }
        room_check(house.rig.room);
    }
    assert_true(finals > 10 && given.count - finals > 100);
    assert_int_equal(refused, 0);
    /* When whoever stood there is gone, a loss is no longer final. */
    assert_int_equal(room_leave(house.rig.room, &first), ERROR_NONE);
    settle(&house);
    pass(&house, 1 * SEC);
    lost = lose_one(&house, 5000);
    assert_place(&(struct standing){.place = come_back(&house, &lost, 0).place}, &lost);
    free(given.place);
    house_free(&house);
}

/* What a loss leaves behind is given up some day: else it would stop the line when its numbers come round. */
static void nothing_is_remembered_of_losses_that_are_far_behind(void **state)
{
    struct house house = held_house(400);
    struct place left = join(&house, 1000);
    (void)state;

    /* Somebody who came and left, on a page that never became full; and lost ones who came back and left. */
    assert_int_equal(room_leave(house.rig.room, &left), ERROR_NONE);
    settle(&house);
    struct place lost[5];
    for (uint32_t i = 0; i < 5; i++) {
        lost[i] = lose_one(&house, i);
        come_back(&house, &lost[i], i);
        assert_int_equal(room_leave(house.rig.room, &lost[i]), ERROR_NONE);
        settle(&house);
    }
    uint32_t pages = line_pages(&house.rig.room->line, room_memory(house.rig.room));
    assert_true(pages >= 6);
    for (uint64_t i = 0; i < 160; i++) {
        struct place last = lose_one(&house, 100 + i);
        assert_place(&(struct standing){.place = come_back(&house, &last, 0).place}, &last);
        assert_int_equal(room_leave(house.rig.room, &last), ERROR_NONE);
        pass(&house, 100);
        for (uint32_t j = 0; j < 5; j++)
            assert_unknown(&house, &lost[j]);
        /* A page and two nodes for each that may still be remembered. */
        assert_true(line_pages(&house.rig.room->line, room_memory(house.rig.room)) <= 3 * (ROOM_EPOCHS + 8));
    }
    restart(&house);
    room_check(house.rig.room);
    house_free(&house);
}

/* ---- sessions ---- */

/* What a pass names that was given for this ticket by enter(). */
static struct place pass_for(const struct place *ticket)
{
    struct place pass = *ticket;

    pass.issue = (struct issue){true, ticket->issue.is_trusted, 4, 1700009000};
    pass.grant = (struct grant){true, 4, 2, 1700009000};
    return pass;
}

static enum error touch(struct house *house, const struct place *pass)
{
    enum error error = room_session_touch(house->rig.room, pass);

    settle(house);
    room_check(house->rig.room);
    return error;
}

static enum ticket_state state_of(const struct house *house, const struct place *place)
{
    struct standing standing;

    return room_look(house->rig.room, place, &standing) == ERROR_NONE ? standing.state : TICKET_DONE;
}

/* How far the records reach that a loss leaves of somebody who is inside. */
enum reach { BEFORE_THE_JOIN, WAITING_STILL, CALLED_ONLY, AWAY_AGAIN, REACHES };

static struct place lose_session(struct house *house, uint64_t who, enum reach reach)
{
    struct standing standing;
    uint32_t known = house->tape.records, called;

    struct place place = join(house, who);
    if (reach == WAITING_STILL)
        known = house->tape.records;
    if (reach == AWAY_AGAIN) {
        pass(house, 11 * SEC);
        known = house->tape.records;
        poll(house, &place, &standing);
    }
    assert_int_equal(room_advance(house->rig.room, 1, &called), ERROR_NONE);
    settle(house);
    if (reach == CALLED_ONLY)
        known = house->tape.records;
    assert_int_equal(enter(house, &place, &standing), ERROR_NONE);
    assert_int_equal(touch(house, &place), ERROR_NONE);
    lose(house, known);
    assert_true(state_of(house, &place) != TICKET_ACTIVE);
    return place;
}

static struct house quiet_house(uint32_t max_active)
{
    struct settings settings = settings_default();

    settings.mode = MODE_HOLD;
    settings.max_active = max_active;
    return house_new(PAGES, &settings);
}

/* And gives the very same pass again to whoever enters again. */
static void a_pass_whose_session_was_lost_makes_it_anew_and_once(void **state)
{
    (void)state;
    for (int reach = 0; reach < REACHES; reach++) {
        struct house house = quiet_house(2);
        struct standing standing;
        struct place place = lose_session(&house, 2, (enum reach)reach), pass = pass_for(&place);
        assert_int_equal(touch(&house, &pass), ERROR_NONE);
        assert_int_equal(state_of(&house, &place), TICKET_ACTIVE);
        struct figures figures = room_figures(house.rig.room);
        assert_int_equal(figures.in_state[TICKET_ACTIVE], 1);
        assert_int_equal(figures.issued, 1);
        assert_int_equal(enter(&house, &place, &standing), ERROR_NONE);
        assert_true(standing.is_repeat);
        assert_place(&standing, &place);
        assert_int_equal(standing.iat_sec, 1700009000);
        assert_int_equal(standing.pass_key_id, 4);
        assert_true(standing.is_trusted);
        restart(&house);
        assert_int_equal(touch(&house, &pass), ERROR_NONE);

        assert_int_equal(room_session_end(house.rig.room, &pass), ERROR_NONE);
        settle(&house);
        assert_unknown(&house, &pass);
        restart(&house);
        assert_unknown(&house, &pass);
        lose(&house, house.tape.records);
        assert_unknown(&house, &pass);
        house_free(&house);
    }
}

/* They stand at their place then, are away if they do not come back, and go on when a slot is free. */
static void a_lost_session_takes_no_slot_that_somebody_else_has(void **state)
{
    struct house house = quiet_house(1);
    struct standing standing;
    uint32_t called;
    (void)state;

    struct place place = lose_session(&house, 1, BEFORE_THE_JOIN), pass_of_it = pass_for(&place);
    struct place other = join(&house, 10);
    assert_int_equal(room_advance(house.rig.room, 1, &called), ERROR_NONE);
    settle(&house);
    assert_int_equal(enter(&house, &other, &standing), ERROR_NONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(touch(&house, &pass_of_it), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(state_of(&house, &place), TICKET_WAITING);
    assert_int_equal(room_slots_used(house.rig.room), 1);
    pass(&house, 11 * SEC);
    assert_int_equal(state_of(&house, &place), TICKET_AWAY);
    assert_int_equal(room_session_end(house.rig.room, &other), ERROR_NONE);
    settle(&house);
    assert_int_equal(touch(&house, &pass_of_it), ERROR_NONE);
    assert_int_equal(state_of(&house, &place), TICKET_ACTIVE);
    house_free(&house);
}

/* What the room knows to be over is not lost, and neither is what a clear or an operator ended. */
static void a_pass_whose_session_is_over_makes_none(void **state)
{
    struct house house = quiet_house(0);
    struct standing standing;
    uint32_t called, cleared;
    (void)state;

    struct place known = join(&house, 1), revoked, gone;
    assert_int_equal(room_advance(house.rig.room, 1, &called), ERROR_NONE);
    assert_int_equal(enter(&house, &known, &standing), ERROR_NONE);
    assert_int_equal(room_session_end(house.rig.room, &known), ERROR_NONE);
    settle(&house);
    struct place pass_of_known = pass_for(&known);
    assert_unknown(&house, &pass_of_known);
    revoked = lose_session(&house, 2, BEFORE_THE_JOIN);
    assert_unknown(&house, &pass_of_known);
    struct place pass_revoked = pass_for(&revoked);
    assert_int_equal(room_leave(house.rig.room, &pass_revoked), ERROR_NONE);
    settle(&house);
    assert_unknown(&house, &pass_revoked);
    gone = lose_session(&house, 3, BEFORE_THE_JOIN);
    assert_int_equal(room_clear(house.rig.room, &cleared), ERROR_NONE);
    settle(&house);
    struct place pass_gone = pass_for(&gone);
    assert_unknown(&house, &pass_gone);
    house_free(&house);
}

static void while_calls_are_frozen_those_inside_come_back_and_nobody_else_comes_in(void **state)
{
    struct settings settings = settings_default();
    struct standing standing;
    uint32_t called;
    (void)state;

    settings.max_active = 2;
    settings.arrive_ttl_sec = 30;
    struct house house = house_new(PAGES, &settings);
    uint32_t known = house.tape.records;
    struct place place = join(&house, 1), pass_of_it = pass_for(&place);
    assert_int_equal(enter(&house, &place, &standing), ERROR_NONE);
    lose(&house, known);
    room_freeze_calls(house.rig.room);
    assert_false(room_is_at_rest(house.rig.room));

    struct place other = join(&house, 2);
    assert_int_equal(state_of(&house, &other), TICKET_WAITING);
    for (int i = 0; i < 29; i++) {
        pass(&house, 1 * SEC);
        assert_int_equal(poll(&house, &other, &standing), ERROR_NONE);
        assert_int_equal(standing.state, TICKET_WAITING);
        assert_true(standing.eta_sec >= 29 - (uint32_t)i);
    }
    assert_int_equal(touch(&house, &pass_of_it), ERROR_NONE);
    pass(&house, 1 * SEC);
    assert_int_equal(state_of(&house, &other), TICKET_CALLED);

    /* What the operator calls is called. */
    room_freeze_calls(house.rig.room);
    assert_int_equal(room_session_end(house.rig.room, &pass_of_it), ERROR_NONE);
    settle(&house);
    join(&house, 3);
    pass(&house, 1 * SEC);
    assert_int_equal(room_advance(house.rig.room, 1, &called), ERROR_NONE);
    assert_int_equal(called, 1);
    house_free(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_ticket_comes_back_to_its_own_place),
        cmocka_unit_test(a_position_that_was_shown_does_not_rise_when_the_lost_come_back),
        cmocka_unit_test(a_lost_ticket_comes_back_once),
        cmocka_unit_test(whole_pages_of_lost_tickets_come_back_once),
        cmocka_unit_test(the_older_place_wins_and_both_tickets_mean_it),
        cmocka_unit_test(a_ticket_that_was_over_before_is_no_name_for_one_that_came_back),
        cmocka_unit_test(the_oldest_of_three_wins_in_whatever_order_they_come),
        cmocka_unit_test(a_ticket_that_is_known_wins_over_a_later_one_that_was_lost),
        cmocka_unit_test(a_turn_that_has_come_wins_over_an_older_place),
        cmocka_unit_test(what_was_known_and_is_over_does_not_come_back),
        cmocka_unit_test(nobody_comes_back_to_a_room_that_was_cleared),
        cmocka_unit_test(what_never_was_a_ticket_of_this_room_does_not_come_back),
        cmocka_unit_test(without_memory_nobody_comes_back_and_nobody_loses_what_they_have),
        cmocka_unit_test(after_any_losses_everybody_stands_in_the_order_of_arrival),
        cmocka_unit_test(no_number_is_given_twice_and_no_ticket_has_two_turns),
        cmocka_unit_test(whoever_waits_keeps_their_place_through_any_number_of_losses),
        cmocka_unit_test(where_the_line_ends_losses_are_final_and_numbers_stay_their_own),
        cmocka_unit_test(nothing_is_remembered_of_losses_that_are_far_behind),
        cmocka_unit_test(a_pass_whose_session_was_lost_makes_it_anew_and_once),
        cmocka_unit_test(a_lost_session_takes_no_slot_that_somebody_else_has),
        cmocka_unit_test(a_pass_whose_session_is_over_makes_none),
        cmocka_unit_test(while_calls_are_frozen_those_inside_come_back_and_nobody_else_comes_in),
    };
    return cmocka_run_group_tests_name("heal", tests, NULL, NULL);
}
