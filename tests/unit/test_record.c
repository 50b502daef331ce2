/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A room and what its records make of it. Whatever is done to the one, the other is the same after each operation: in every
 * ticket, every figure and the hash; however often the records are applied, and from whatever snapshot they go on.
 */
#include "deeds.h"
#include "tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEC 1000

/* ---- a recorded room at random ---- */

struct play {
    struct rig live;
    struct tape tape;
    struct doers doers;
    uint64_t seed;
    uint32_t step;
    char where[64];
};

static struct play play_new(uint64_t seed, uint32_t pages)
{
    struct play play = {.seed = seed, .doers = doers_new(seed)};
    struct settings settings = settings_at_random(&play.doers.dice);

    play.live = rig_new(pages, &settings);
    room_record(play.live.room);
    tape_take_all(&play.tape, play.live.room);
    return play;
}

static void play_free(struct play *play)
{
    rig_free(&play->live);
    tape_free(&play->tape);
    doers_free(&play->doers);
}

static struct deed play_step(struct play *play)
{
    struct deed deed = doers_deed(&play->doers);
    struct answer answer = deed_do(play->live.room, &deed);

    doers_hear(&play->doers, &deed, &answer);
    tape_take_all(&play->tape, play->live.room);
    play->step++;
    snprintf(play->where, sizeof(play->where), "seed %lu step %u deed %d", play->seed, play->step, deed.kind);
    return deed;
}

static void the_copy_is_the_same_after_every_operation(void **state)
{
    uint64_t issued = 0, calls = 0, refunds = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct play play = play_new(seed, 128);
        struct copy copy = copy_new(128);
        uint32_t applied = 0;
        while (play.step < 4000) {
            play_step(&play);
            copy_replay(&copy, &play.tape, applied, play.tape.records);
            applied = play.tape.records;
            assert_same_room(play.live.room, copy.rig.room, play.where);
            if (play.step % 50 == 0) {
                room_check(play.live.room);
                room_check(copy.rig.room);
            }
        }
        struct figures figures = room_figures(play.live.room);
        issued += figures.issued;
        calls += figures.calls;
        refunds += figures.refunds;
        copy_free(&copy);
        play_free(&play);
    }
    assert_true(issued > 5000 && calls > 4000 && refunds > 200);
}

/* ---- keys ---- */

/* Taken piece by piece, with anything in between. */
struct snapshot {
    struct tape pieces;
    struct room_cursor cursor;
    uint32_t from; /* first record that is not in its first piece */
};

static void snapshot_begin(struct snapshot *snapshot, const struct tape *tape)
{
    tape_free(&snapshot->pieces);
    *snapshot = (struct snapshot){.from = tape->records};
}

static void snapshot_go_on(struct snapshot *snapshot, const struct room *room)
{
    static unsigned char piece[ROOM_PIECE_BYTES];
    size_t len = room_snapshot(room, &snapshot->cursor, piece);

    assert_true(len <= sizeof(piece));
    tape_add(&snapshot->pieces, (struct span){(const char *)piece, len});
}

/* A key's time is over between two records of the time. */
static void the_copy_is_the_same_while_keys_are_forgotten(void **state)
{
    struct settings settings = settings_default();
    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 3600;
    struct rig live = rig_new(64, &settings);
    struct copy copy = copy_new(64);
    struct tape tape = {0};
    struct standing standing;
    uint32_t applied = 0;
    (void)state;

    room_record(live.room);
    for (uint64_t key = 0; key < 50; key++) {
        assert_int_equal(rig_join_by_key(&live, 1, key, 1, &standing), ERROR_NONE);
        tape_take_all(&tape, live.room);
        room_tick(live.room, 70);
        tape_take_all(&tape, live.room);
    }
    for (uint32_t tick = 0; tick < 10000 && live.room->keys.by_scope.entries > 0; tick++) {
        room_tick(live.room, 70);
        tape_take_all(&tape, live.room);
        copy_replay(&copy, &tape, applied, tape.records);
        applied = tape.records;
        assert_same_room(live.room, copy.rig.room, "while keys are forgotten");
    }
    assert_int_equal(live.room->keys.by_scope.entries, 0);
    tape_free(&tape);
    rig_free(&live);
    copy_free(&copy);
}

/* A table that is full drops the oldest: in the copy too, whether it was made from records or from a snapshot. */
static void the_copy_drops_the_keys_that_the_room_drops(void **state)
{
    enum { PAGES = 1800 };
    struct settings settings = settings_default();
    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 3600;
    struct rig live = rig_new(PAGES, &settings);
    struct copy copy = copy_new(PAGES);
    struct tape tape = {0};
    struct snapshot snapshot = {0};
    struct standing standing;
    uint32_t applied = 0;
    (void)state;

    room_record(live.room);
    for (uint64_t key = 0; key < KEYS_MAX + 3000; key++) {
        assert_int_equal(rig_join_by_key(&live, 1, key, 1, &standing), ERROR_NONE);
        tape_take_all(&tape, live.room);
        if (key == KEYS_MAX - 1000)
            snapshot_begin(&snapshot, &tape);
        if (key >= KEYS_MAX - 1000 && key % 25 == 0 && !snapshot.cursor.is_done)
            snapshot_go_on(&snapshot, live.room);
        if (tape.records - applied < 10000)
            continue;
        copy_replay(&copy, &tape, applied, tape.records);
        applied = tape.records;
        assert_same_room(live.room, copy.rig.room, "while a table fills");
    }
    copy_replay(&copy, &tape, applied, tape.records);
    assert_same_room(live.room, copy.rig.room, "with a full table");
    assert_int_equal(room_figures(live.room).keys_dropped, 3000);
    assert_true(snapshot.cursor.is_done);
    struct copy other = copy_recovered(PAGES, &snapshot.pieces, &tape, snapshot.from);
    assert_same_room(live.room, other.rig.room, "from a snapshot taken over it");
    copy_free(&other);
    copy_free(&copy);
    tape_free(&snapshot.pieces);
    tape_free(&tape);
    rig_free(&live);
}

/* ---- operations of many ---- */

/* A recorded room, what its records make of it, and one of which nothing is recorded. */
struct trio {
    struct rig live, plain;
    struct copy copy;
    struct tape tape;
    uint32_t applied;
};

static void trio_compare(struct trio *trio, const char *where)
{
    tape_take_all(&trio->tape, trio->live.room);
    copy_replay(&trio->copy, &trio->tape, trio->applied, trio->tape.records);
    trio->applied = trio->tape.records;
    assert_same_room(trio->live.room, trio->copy.rig.room, where);
    assert_same_room(trio->live.room, trio->plain.room, where);
}

static void trio_pass(struct trio *trio, uint64_t ms, const char *where)
{
    for (; ms > 0; ms -= 100) {
        room_tick(trio->live.room, 100);
        room_tick(trio->plain.room, 100);
        trio_compare(trio, where);
    }
}

static void trio_set(struct trio *trio, const struct settings *settings, const char *where)
{
    assert_int_equal(rig_set(&trio->live, settings), ERROR_NONE);
    assert_int_equal(rig_set(&trio->plain, settings), ERROR_NONE);
    trio_compare(trio, where);
}

/* More than an outbox holds: it is done in pieces, and comes to the same as in one. */
static void what_thousands_do_at_once_is_recorded_in_pieces_and_comes_to_the_same(void **state)
{
    enum { PEOPLE = 4000, PAGES = 256 };
    struct settings settings = settings_default();
    struct standing standing;
    uint32_t called;
    (void)state;

    settings.mode = MODE_HOLD;
    settings.max_active = 0;
    settings.away_ttl_sec = 60;
    settings.rate_milli = 30000000;
    struct trio trio = {rig_new(PAGES, &settings), rig_new(PAGES, &settings), copy_new(PAGES), {0}, 0};
    room_record(trio.live.room);
    tape_take_all(&trio.tape, trio.live.room);
    for (uint64_t who = 0; who < PEOPLE; who++) {
        assert_int_equal(rig_join(&trio.live, who, &standing), ERROR_NONE);
        assert_int_equal(rig_join(&trio.plain, who, &standing), ERROR_NONE);
        tape_take_all(&trio.tape, trio.live.room);
    }
    trio_compare(&trio, "joined");
    assert_int_equal(room_advance(trio.live.room, 1000, &called), ERROR_NONE);
    assert_true(called < 100 && room_has_more(trio.live.room));
    assert_int_equal(room_advance(trio.plain.room, 1000, &called), ERROR_NONE);
    assert_int_equal(called, 1000);
    trio_compare(&trio, "a thousand called by the operator");
    settings.mode = MODE_QUEUE;
    trio_set(&trio, &settings, "going on");
    trio_pass(&trio, 100, "thousands called by the pace");
    assert_int_equal(room_figures(trio.live.room).calls, PEOPLE);
    trio_pass(&trio, 121 * SEC, "nobody came");
    assert_int_equal(room_figures(trio.live.room).in_state[TICKET_DONE], PEOPLE);
    assert_int_equal(room_figures(trio.live.room).refunds, PEOPLE - 1000);

    settings.mode = MODE_HOLD;
    trio_set(&trio, &settings, "held");
    for (uint64_t who = 0; who < PEOPLE; who++) {
        assert_int_equal(rig_join(&trio.live, who, &standing), ERROR_NONE);
        assert_int_equal(rig_join(&trio.plain, who, &standing), ERROR_NONE);
        tape_take_all(&trio.tape, trio.live.room);
    }
    trio_pass(&trio, 180 * SEC, "everybody away");
    assert_int_equal(room_figures(trio.live.room).in_state[TICKET_WAITING], 0);
    trio_pass(&trio, 61 * SEC, "everybody over");
    assert_int_equal(room_figures(trio.live.room).in_state[TICKET_DONE], 2 * PEOPLE);

    for (uint64_t who = 0; who < PEOPLE; who++) {
        assert_int_equal(rig_join(&trio.live, who, &standing), ERROR_NONE);
        assert_int_equal(rig_join(&trio.plain, who, &standing), ERROR_NONE);
        tape_take_all(&trio.tape, trio.live.room);
    }
    settings.mode = MODE_OPEN;
    trio_set(&trio, &settings, "opened");
    assert_int_equal(room_figures(trio.live.room).in_state[TICKET_CALLED], PEOPLE);
    room_check(trio.live.room);
    room_check(trio.copy.rig.room);
    copy_free(&trio.copy);
    rig_free(&trio.live);
    rig_free(&trio.plain);
    tape_free(&trio.tape);
}

/* ---- the outbox ---- */

/* An owner who takes it only when it must: several operations are one record. */
static void an_outbox_that_is_not_full_has_room_for_any_operation(void **state)
{
    uint32_t merged = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct play play = play_new(seed, 128);
        struct copy copy = copy_new(128);
        uint32_t applied = 0;
        while (play.step < 2000) {
            struct deed deed = doers_deed(&play.doers);
            struct answer answer = deed_do(play.live.room, &deed);
            doers_hear(&play.doers, &deed, &answer);
            play.step++;
            assert_true(room_outbox(play.live.room).len <= OUTBOX_BYTES);
            if (!room_outbox_is_full(play.live.room) && !room_has_more(play.live.room)) {
                merged++;
                continue;
            }
            tape_take_all(&play.tape, play.live.room);
            copy_replay(&copy, &play.tape, applied, play.tape.records);
            applied = play.tape.records;
            snprintf(play.where, sizeof(play.where), "seed %lu step %u", seed, play.step);
            assert_same_room(play.live.room, copy.rig.room, play.where);
        }
        copy_free(&copy);
        play_free(&play);
    }
    assert_true(merged > 40000);
}

/* Every setting at its longest, the longest name, all epochs there may be, a clear of them, a key with a join. */
static void the_largest_operations_fit_an_outbox(void **state)
{
    char name[ROOM_ID_MAX];
    struct settings longest = settings_default();
    struct texts texts = {0};
    struct rig live = rig_new(64, NULL);
    struct standing standing;
    uint32_t cleared;
    (void)state;

    for (size_t i = 0; i < setting_numbers; i++) {
        const struct setting_info *info = &setting_list[i];
        setting_set(&longest, info, info->kind == SETTING_MILLI ? info->highest - 1 : info->highest);
    }
    longest.mode = MODE_CLOSED;
    longest.preset = PRESET_CONCERT;
    longest.smooth = longest.session_renew = 0; /* "false" is longer */
    memset(name, 'x', sizeof(name));
    for (size_t i = setting_numbers; i < setting_count; i++)
        memset((char *)&texts + setting_list[i].offset, 'x', setting_list[i].bytes);
    void *at = shared_new(ROOM_BYTES);
    struct room *named = room_init(at, at, (struct span){name, sizeof(name)}, UINT32_MAX, &longest, &texts);
    room_record(named);
    assert_false(room_outbox_is_full(
        named)); /* the file gives them to a room that was just made, and nobody took that */
    assert_int_equal(room_set_settings(named, &longest, &texts, false), ERROR_NONE);
    assert_true(room_outbox(named).len <= OUTBOX_BYTES);
    room_outbox_taken(named);
    assert_false(room_outbox_is_full(named));
    shared_free(at, ROOM_BYTES);

    room_record(live.room);
    room_outbox_taken(live.room);
    for (uint32_t i = 1; i <= ROOM_EPOCHS; i++) {
        room_begin_epoch(live.room, 7 + i);
        room_outbox_taken(live.room);
    }
    rig_set(&live, &longest);
    assert_true(room_outbox(live.room).len > 400);
    assert_int_equal(room_clear(live.room, &cleared), ERROR_NONE);
    assert_true(room_outbox(live.room).len > 1000);
    assert_true(room_outbox(live.room).len <= OUTBOX_BYTES);
    room_outbox_taken(live.room);
    longest.mode = MODE_HOLD;
    rig_set(&live, &longest);
    room_outbox_taken(live.room);
    assert_int_equal(rig_join_by_key(&live, 1, 1, 1, &standing), ERROR_NONE);
    assert_true(room_outbox(live.room).len > 0);
    rig_free(&live);
}

static void join_and_never_take(void)
{
    struct rig live = rig_new(64, NULL);
    struct standing standing;

    room_record(live.room);
    for (uint64_t who = 0; who < 200; who++)
        rig_join(&live, who, &standing);
}

/* Rather no room than one that its journal does not know. */
static void an_owner_who_never_takes_the_outbox_is_stopped(void **state)
{
    (void)state;
    assert_true(dies(join_and_never_take));
}

/* What was left by an owner who died is there for the next, and is not lost by being taken twice. */
static void an_outbox_that_is_taken_twice_is_one_record(void **state)
{
    struct rig live = rig_new(64, NULL);
    struct copy copy = copy_new(64);
    struct tape tape = {0};
    (void)state;

    room_record(live.room);
    rig_place(&live, 1);
    tape_add(&tape, room_outbox(live.room)); /* and dies before it says so */
    tape_take_all(&tape, live.room);
    rig_place(&live, 2);
    tape_take_all(&tape, live.room);
    assert_int_equal(tape.records, 3);
    copy_replay(&copy, &tape, 0, tape.records);
    assert_same_room(live.room, copy.rig.room, "taken twice");
    tape_free(&tape);
    copy_free(&copy);
    rig_free(&live);
}

/* ---- a room's beginning and end ---- */

static void a_record_says_that_it_makes_or_ends_a_room(void **state)
{
    struct rig live = rig_new(64, NULL);
    struct tape tape = {0};
    struct span name;
    uint32_t epoch;
    (void)state;

    room_record(live.room);
    tape_take_all(&tape, live.room);
    rig_place(&live, 1);
    tape_take_all(&tape, live.room);
    room_dissolve(live.room);
    tape_take_all(&tape, live.room);
    assert_false(room_is_over(live.room));
    room_end(live.room);
    tape_take_all(&tape, live.room);
    assert_true(room_is_over(live.room));
    assert_int_equal(tape.records, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(record_makes_room(tape_record(&tape, i), &name, &epoch), i == 0);
        assert_int_equal(record_ends_room(tape_record(&tape, i)), i == 3);
    }
    assert_true(record_makes_room(tape_record(&tape, 0), &name, &epoch));
    assert_true(span_equal(name, SPAN("sale")));
    assert_int_equal(epoch, 7);
    struct copy copy = copy_new(64);
    copy_replay(&copy, &tape, 0, tape.records);
    assert_int_equal(room_figures(copy.rig.room).in_state[TICKET_WAITING], 0);
    room_check(copy.rig.room);
    copy_free(&copy);
    tape_free(&tape);
    rig_free(&live);
}

/* ---- bytes ---- */

static uint64_t number_at(struct span bytes, size_t at, size_t len)
{
    uint64_t number = 0;

    assert_true(at + len <= bytes.len);
    for (size_t i = len; i-- > 0;)
        number = number << 8 | (unsigned char)bytes.data[at + i];
    return number;
}

/* The data of the nth part of this kind; and that it lies where the document has it lie. */
static struct span part_of(struct span body, uint64_t kind, int nth)
{
    assert_int_equal(body.len % 8, 0);
    for (size_t at = 16; at < body.len;) {
        size_t len = (size_t)number_at(body, at + 4, 4);
        assert_int_equal(number_at(body, at + 2, 2), 0);
        for (size_t pad = len; pad % 8 != 0; pad++)
            assert_int_equal(body.data[at + 8 + pad], 0);
        if (number_at(body, at, 2) == kind && nth-- == 0)
            return (struct span){body.data + at + 8, len};
        at += 8 + (len + 7) / 8 * 8;
    }
    fail_msg("there is no part of kind %lu", kind);
    return SPAN("");
}

/* Read by offsets alone, as somebody would who has docs/formats/journal.md and not this code. */
static void the_bytes_of_records_are_as_their_document_says(void **state)
{
    struct settings settings = settings_default();
    struct tape tape = {0}, snapshot = {0};
    struct standing standing;
    uint32_t called;
    (void)state;

    settings.mode = MODE_HOLD;
    settings.session_max_sec = 900;
    settings.tier = 1;
    struct rig live = rig_new(64, &settings);
    room_record(live.room);
    tape_take(&tape, live.room);
    struct span body = tape_record(&tape, 0);
    assert_int_equal(number_at(body, 0, 4), 7);
    assert_int_equal(number_at(body, 4, 4), 0);
    assert_int_equal(number_at(body, 8, 8), 1);
    assert_int_equal(number_at(body, 16, 2), 6); /* made comes first, face last */
    assert_int_equal(number_at(body, body.len - 64, 2), 1);
    struct span part = part_of(body, 6, 0);
    assert_int_equal(part.len, 12);
    assert_int_equal(number_at(part, 0, 4), 7);
    assert_int_equal(number_at(part, 4, 4), 4);
    assert_memory_equal(part.data + 8, "sale", 4);
    part = part_of(body, 7, 0);
    assert_int_equal(number_at(part, 0, 4), 0);
    assert_int_equal(number_at(part, 4, 4), 0);
    assert_int_equal(number_at(part, 8, 4), 0);
    assert_memory_equal(part.data + 16, "mode=hold\npreset=plain\nmax_active=1000\n", 38);

    /* A join with a key after 12.3 s. */
    room_tick(live.room, 1000);
    live.room->clock_ms = 12300;
    struct join join = {.holder = holder_of(1),
                        .is_trusted = true,
                        .key_id = 33,
                        .wall_sec = 1700000000,
                        .request = {true, holder_of(2), UINT64_MAX}};
    assert_int_equal(room_join(live.room, &join, &standing, &called), ERROR_NONE);
    tape_take(&tape, live.room);
    body = tape_record(&tape, 1);
    assert_int_equal(number_at(body, 8, 8), 2);
    part = part_of(body, 2, 0);
    assert_int_equal(part.len, 8 + 32);
    assert_int_equal(number_at(part, 0, 4), 1);
    assert_int_equal(number_at(part, 4, 4), 1);
    assert_memory_equal(part.data + 8, join.holder.id, 12);
    assert_int_equal(number_at(part, 8 + 12, 4), 1700000000);
    assert_int_equal(number_at(part, 8 + 16, 4), 123 + 100);
    assert_int_equal(number_at(part, 8 + 20, 4), 123);
    assert_int_equal(number_at(part, 8 + 24, 4), 1);
    assert_int_equal(number_at(part, 8 + 28, 1), 1);
    assert_int_equal(number_at(part, 8 + 29, 1), 4);
    assert_int_equal(number_at(part, 8 + 30, 1), 33);
    assert_int_equal(number_at(part, 8 + 31, 1), standing.next_poll_sec);
    part = part_of(body, 5, 0);
    assert_int_equal(part.len, 32);
    assert_memory_equal(part.data, join.request.scope.id, 12);
    assert_int_equal(number_at(part, 12, 4), 1);
    assert_true(number_at(part, 16, 8) == (UINT64_MAX >> 6 | (uint64_t)standing.next_poll_sec << 58));
    assert_int_equal(number_at(part, 24, 4), 123);
    assert_int_equal(number_at(part, 28, 4), 1);
    part = part_of(body, 1, 0);
    assert_int_equal(part.len, 56);
    assert_int_equal(number_at(part, 0, 8), 12300);
    assert_int_equal(number_at(part, 8, 8), 10000000); /* ten calls, of a burst of ten */
    assert_int_equal(number_at(part, 16, 8), 1);
    assert_int_equal(number_at(part, 24, 8), 0);
    assert_int_equal(number_at(part, 48, 4), 1);
    assert_int_equal(number_at(part, 52, 4), 0);

    /* Called by the operator, told and entered. */
    struct place place = standing.place;
    assert_int_equal(room_advance(live.room, 1, &called), ERROR_NONE);
    rig_poll(&live, &place);
    assert_int_equal(rig_enter(&live, &place, &standing), ERROR_NONE);
    tape_take(&tape, live.room);
    body = tape_record(&tape, 2);
    part = part_of(body, 2, 0);
    assert_int_equal(number_at(part, 8 + 28, 1), 3);
    assert_int_equal(number_at(part, 8 + 29, 1), 4);
    assert_int_equal(number_at(part_of(body, 2, 1), 8 + 29, 1), 5);
    part = part_of(body, 2, 2);
    assert_int_equal(number_at(part, 8 + 20, 4), 1700000100);
    assert_int_equal(number_at(part, 8 + 24, 4), 123);
    assert_int_equal(number_at(part, 8 + 28, 1), 4);
    assert_int_equal(number_at(part, 8 + 31, 1), 4);
    part = part_of(body, 1, 0);
    assert_int_equal(number_at(part, 24, 8), 1);
    assert_int_equal(number_at(part, 52, 4), 1);

    /* Two who fall silent, a loss, somebody who is gone, a clear, an end. */
    rig_place(&live, 5);
    rig_place(&live, 6);
    tape_take(&tape, live.room);
    rig_pass(&live, 11 * SEC);
    tape_take(&tape, live.room);
    part = part_of(tape_record(&tape, 4), 4, 0);
    assert_int_equal(part.len, 24);
    assert_int_equal(number_at(part, 0, 4) / 126, 0);
    assert_int_equal(number_at(part, 4, 4), 123 + 100 + 18000);
    assert_int_equal(number_at(part, 8, 8), 1 << 2 | 1 << 3);
    assert_int_equal(number_at(part, 16, 8), 0);
    assert_int_equal(room_leave(live.room, &place), ERROR_NONE);
    room_begin_epoch(live.room, 9);
    tape_take(&tape, live.room);
    part = part_of(tape_record(&tape, 5), 3, 0);
    assert_int_equal(part.len, 8);
    assert_int_equal(number_at(part, 0, 4), 1);
    part = part_of(tape_record(&tape, 5), 9, 0);
    assert_int_equal(part.len, 24);
    assert_int_equal(number_at(part, 0, 4), 7);
    assert_int_equal(number_at(part, 4, 4), 0);
    assert_int_equal(number_at(part, 8, 4), 4);
    assert_int_equal(number_at(part, 12, 4), 9);
    assert_true(number_at(part, 16, 4) > 4000000);
    assert_int_equal(number_at(part, 20, 4), 0);
    tape_snapshot(&snapshot, live.room);
    part = part_of(tape_record(&snapshot, 0), 8, 0);
    assert_int_equal(part.len, 128);
    assert_int_equal(number_at(part, 0, 4), 900);
    assert_int_equal(number_at(part, 4, 4), 1);
    assert_int_equal(number_at(part_of(tape_record(&snapshot, 0), 12, 0), 0, 4), 2);
    part = part_of(tape_record(&snapshot, 1), 2, 0);
    assert_int_equal(number_at(part, 0, 4), 2);
    assert_int_equal(number_at(part, 4, 4), 2);
    assert_int_equal(number_at(part, 8 + 32 + 28, 1), 2);
    room_dissolve(live.room);
    room_end(live.room);
    tape_take(&tape, live.room);
    assert_int_equal(part_of(tape_record(&tape, 6), 10, 0).len, 0);
    assert_int_equal(part_of(tape_record(&tape, 6), 11, 0).len, 0);
    tape_free(&tape);
    tape_free(&snapshot);
    rig_free(&live);
}

static void a_record_of_another_room_is_refused(void **state)
{
    struct rig live = rig_new(64, NULL);
    struct copy copy = copy_new(64);
    struct tape tape = {0};
    bool is_full;
    (void)state;

    room_record(live.room);
    tape_take_all(&tape, live.room);
    copy.rig.room->number = 8;
    assert_false(room_apply(copy.rig.room, tape_record(&tape, 0), false, &is_full));
    assert_false(is_full);
    tape_free(&tape);
    copy_free(&copy);
    rig_free(&live);
}

/* ---- records that come again ---- */

static void records_that_come_again_change_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct play play = play_new(seed, 128);
        struct copy each = copy_new(128), batch = copy_new(128);
        uint32_t applied = 0;
        while (play.step < 1500) {
            play_step(&play);
            if (dice_below(&play.doers.dice, 8) > 0)
                continue;
            for (uint32_t i = applied; i < play.tape.records; i++)
                for (int times = 0; times < 2; times++)
                    copy_apply(&each, tape_record(&play.tape, i), false);
            for (int times = 0; times < 2; times++)
                copy_replay(&batch, &play.tape, applied, play.tape.records);
            copy_apply(&batch, tape_record(&play.tape, dice_below(&play.doers.dice, play.tape.records)),
                       false);
            applied = play.tape.records;
            assert_same_room(play.live.room, each.rig.room, play.where);
            assert_same_room(play.live.room, batch.rig.room, play.where);
        }
        copy_replay(&batch, &play.tape, 0, applied);
        assert_int_equal(room_hash(batch.rig.room, 1), room_hash(each.rig.room, 1));
        room_check(each.rig.room);
        room_check(batch.rig.room);
        copy_free(&each);
        copy_free(&batch);
        play_free(&play);
    }
}

/* ---- snapshots ---- */

static void compare_recovered(const struct play *play, const struct snapshot *snapshot, uint32_t pages)
{
    struct copy copy = copy_recovered(pages, &snapshot->pieces, &play->tape, snapshot->from);

    assert_same_room(play->live.room, copy.rig.room, play->where);
    room_check(copy.rig.room);
    copy_free(&copy);
}

/* Pieces are of different moments, and records since the first are applied over all of them. */
static void a_snapshot_taken_while_the_room_goes_on_is_made_whole_by_the_records(void **state)
{
    uint32_t snapshots = 0, pieces = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct play play = play_new(seed, 128);
        struct snapshot snapshot = {0};
        while (play.step < 3000) {
            if (dice_below(&play.doers.dice, 60) == 0)
                snapshot_begin(&snapshot, &play.tape);
            while (!snapshot.cursor.is_done && dice_below(&play.doers.dice, 2) == 0)
                snapshot_go_on(&snapshot, play.live.room);
            play_step(&play);
            if (!snapshot.cursor.is_done || dice_below(&play.doers.dice, 40) > 0)
                continue;
            compare_recovered(&play, &snapshot, 128);
            snapshots++;
            pieces += snapshot.pieces.records;
        }
        tape_free(&snapshot.pieces);
        play_free(&play);
    }
    assert_true(snapshots > 1000 && pieces >= 3 * snapshots);
}

static struct settings busy_settings(struct dice *dice)
{
    struct settings s = settings_default();

    s.mode = dice_below(dice, 6) == 0 ? MODE_HOLD : MODE_QUEUE;
    s.max_active = 1000 + dice_below(dice, 2000);
    s.rate_milli = 100000;
    s.claim_ttl_sec = 1 + dice_below(dice, 60);
    s.session_max_sec = dice_below(dice, 3) * 400;
    s.tier = 1 + dice_below(dice, 2);
    return s;
}

/* The same with thousands of people and keys: a snapshot of many pieces, between which pages come and go. */
static void a_snapshot_of_many_pieces_is_made_whole_too(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct play play = play_new(seed, 2048);
        struct snapshot snapshot = {0};
        struct settings settings = busy_settings(&play.doers.dice);
        rig_set(&play.live, &settings);
        tape_take_all(&play.tape, play.live.room);
        play.doers.settings = busy_settings;
        play.doers.holders = 5000;
        play.doers.keys = 20000;
        for (uint64_t who = 0; who < 5000; who++) {
            struct standing standing;
            assert_int_equal(rig_join_by_key(&play.live, who, who, who, &standing), ERROR_NONE);
            tape_take_all(&play.tape, play.live.room);
        }
        for (int i = 0; i < 4; i++) {
            snapshot_begin(&snapshot, &play.tape);
            while (!snapshot.cursor.is_done) {
                snapshot_go_on(&snapshot, play.live.room);
                for (uint32_t until = play.step + 200; play.step < until;)
                    play_step(&play);
            }
            assert_true(snapshot.pieces.records >= 5);
            compare_recovered(&play, &snapshot, 2048);
        }
        tape_free(&snapshot.pieces);
        play_free(&play);
    }
}

/* One person is left on each of many pages: small records, and a page for every one of them. */
static void a_room_of_lone_survivors_needs_no_more_pages_at_once_than_promised(void **state)
{
    struct settings settings = settings_default();
    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 3600;
    struct rig live = rig_new(4096, &settings);
    struct tape tape = {0}, snapshot = {0};
    (void)state;

    room_record(live.room);
    for (uint32_t count = 1; count <= 2000 * LINE_PAGE_COUNT; count++) {
        struct place place = rig_place(&live, count);
        if (count % LINE_PAGE_COUNT != 7)
            assert_int_equal(room_leave(live.room, &place), ERROR_NONE);
        tape_take_all(&tape, live.room);
    }
    assert_int_equal(room_figures(live.room).in_state[TICKET_WAITING], 2000);
    tape_snapshot(&snapshot, live.room);
    struct copy copy = copy_recovered(4096, &snapshot, &tape, tape.records);
    assert_same_room(live.room, copy.rig.room, "lone survivors");
    copy_free(&copy);

    /* All of them are called and gone while the snapshot is taken: their records bring every page back for a while. */
    uint32_t from = tape.records;
    struct snapshot late = {0};
    snapshot_begin(&late, &tape);
    snapshot_go_on(&late, live.room);
    uint32_t called;
    assert_int_equal(room_advance(live.room, 1000, &called), ERROR_NONE);
    tape_take_all(&tape, live.room);
    for (uint32_t tick = 0; tick < 1300; tick++) {
        room_tick(live.room, 100);
        tape_take_all(&tape, live.room);
    }
    while (!late.cursor.is_done)
        snapshot_go_on(&late, live.room);
    copy = copy_recovered(4096, &late.pieces, &tape, from);
    assert_same_room(live.room, copy.rig.room, "survivors who are gone");
    room_check(copy.rig.room);
    copy_free(&copy);
    tape_free(&late.pieces);
    tape_free(&snapshot);
    tape_free(&tape);
    rig_free(&live);
}

/* The owner of rooms makes a room of the number that its records name; more epochs than are kept must not change it. */
static void a_snapshot_names_the_room_as_its_records_do_after_any_number_of_epochs(void **state)
{
    struct rig live = rig_new(64, NULL);
    struct tape tape = {0}, snapshot = {0};
    struct record_head head;
    struct span name, parts;
    uint32_t epoch;
    (void)state;

    room_record(live.room);
    rig_place(&live, 1);
    for (uint32_t i = 1; i <= 2 * ROOM_EPOCHS; i++) {
        room_begin_epoch(live.room, 7 + i);
        tape_take_all(&tape, live.room);
    }
    tape_snapshot(&snapshot, live.room);
    for (uint32_t i = 0; i < snapshot.records; i++) {
        assert_true(record_read_head(tape_record(&snapshot, i), &head, &parts));
        assert_int_equal(head.room, room_number(live.room));
    }
    assert_true(record_makes_room(tape_record(&snapshot, 0), &name, &epoch));
    assert_int_equal(epoch, room_number(live.room));
    assert_true(span_equal(name, room_name(live.room)));
    struct copy copy = copy_recovered(64, &snapshot, &tape, tape.records);
    assert_same_room(live.room, copy.rig.room, "after many epochs");
    room_check(copy.rig.room);
    copy_free(&copy);
    tape_free(&snapshot);
    tape_free(&tape);
    rig_free(&live);
}

/* ---- after the last record ---- */

/* Visitors whose page polls as it was told, by a clock of their own. */
struct poller {
    struct place place;
    uint64_t due_ms;
};

static void poll_all_due(struct room *room, struct tape *tape, struct poller *poller, uint32_t pollers,
                         uint64_t now_ms)
{
    struct standing standing;

    for (uint32_t i = 0; i < pollers; i++) {
        if (poller[i].due_ms > now_ms)
            continue;
        /* Who was called and did not enter is over, and polls no more. */
        enum error error = room_status(room, &poller[i].place, &standing);
        poller[i].due_ms = error == ERROR_NONE ? now_ms + standing.next_poll_sec * 1000ULL : UINT64_MAX;
        tape_take_all(tape, room);
    }
}

/* They joined a fast line, which the operator then slowed down: intervals grew long after anything was recorded of them. */
static void nobody_who_polls_as_told_is_away_after_a_recovery(void **state)
{
    enum { POLLERS = 300 };
    struct settings settings = settings_default();
    settings.max_active = 1;
    settings.rate_milli = 100000;
    (void)state;

    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct rig live = rig_new(64, &settings);
        struct poller poller[POLLERS];
        struct tape tape = {0};
        struct dice dice = {seed};
        uint64_t now_ms = 0, crash_ms = (uint64_t)(60 + dice_below(&dice, 120)) * 1000;
        room_record(live.room);
        for (uint64_t i = 0; i < POLLERS; i++) {
            poller[i] = (struct poller){rig_place(&live, i), 0};
            tape_take_all(&tape, live.room);
        }
        struct settings slower = settings;
        slower.rate_milli = 40 + dice_below(&dice, 100);
        assert_int_equal(rig_set(&live, &slower), ERROR_NONE);
        for (; now_ms < crash_ms; now_ms += 100) {
            room_tick(live.room, 100);
            tape_take_all(&tape, live.room);
            poll_all_due(live.room, &tape, poller, POLLERS, now_ms);
        }
        assert_int_equal(room_figures(live.room).in_state[TICKET_AWAY], 0);
        struct copy copy = copy_recovered(64, NULL, &tape, 0);
        copy_wake(&copy);
        for (; now_ms < crash_ms + 200 * SEC; now_ms += 100) {
            room_tick(copy.rig.room, 100);
            tape_take_all(&tape, copy.rig.room);
            poll_all_due(copy.rig.room, &tape, poller, POLLERS, now_ms);
            assert_int_equal(room_figures(copy.rig.room).in_state[TICKET_AWAY], 0);
        }
        copy_free(&copy);
        tape_free(&tape);
        rig_free(&live);
    }
}

static void record_time(struct rig *live, struct tape *tape, uint64_t ms)
{
    for (; ms > 0; ms -= 100) {
        room_tick(live->room, 100);
        tape_take_all(tape, live->room);
    }
}

static const struct ticket *ticket_of(const struct room *room, const struct place *place)
{
    return line_find(&room->line, &room->memory, place->count);
}

/* One of each state, some near the end of their time. */
static void a_recovery_gives_fresh_time_to_those_who_must_be_seen_and_keeps_every_other_time(void **state)
{
    enum { UNTOLD, TOLD, ENTERED, ACTIVE, AWAY, WAITING, LEAVING, PEOPLE };
    static const enum ticket_state states[PEOPLE] = {TICKET_CALLED, TICKET_CALLED, TICKET_ENTERED,
                                                     TICKET_ACTIVE, TICKET_AWAY,   TICKET_WAITING,
                                                     TICKET_WAITING};
    struct settings settings = settings_default();
    struct place place[PEOPLE];
    struct standing standing;
    struct tape tape = {0};
    uint32_t called;
    (void)state;

    settings.mode = MODE_HOLD;
    settings.session_ttl_sec = 50;
    settings.session_max_sec = 80;
    struct rig live = rig_new(64, &settings);
    room_record(live.room);
    for (uint64_t i = 0; i <= AWAY; i++)
        place[i] = rig_place(&live, i);
    assert_int_equal(room_advance(live.room, 4, &called), ERROR_NONE);
    for (uint64_t i = TOLD; i <= ACTIVE; i++)
        rig_poll(&live, &place[i]);
    for (uint64_t i = ENTERED; i <= ACTIVE; i++)
        assert_int_equal(rig_enter(&live, &place[i], &standing), ERROR_NONE);
    assert_int_equal(room_session_touch(live.room, &place[ACTIVE]), ERROR_NONE);
    record_time(&live, &tape, 40 * SEC);
    for (uint64_t i = WAITING; i <= LEAVING; i++)
        place[i] = rig_place(&live, i);
    assert_int_equal(room_leave_soon(live.room, &place[LEAVING]), ERROR_NONE);
    record_time(&live, &tape, 9 * SEC);
    struct copy copy = copy_recovered(64, NULL, &tape, 0);
    struct room *room = copy.rig.room;
    assert_same_room(live.room, room, "before it goes on");
    assert_int_equal(room->clock_ms, live.room->clock_ms);
    copy_wake(&copy);
    room_check(room);
    for (uint32_t i = 0; i < PEOPLE; i++) {
        assert_int_equal(ticket_of(room, &place[i])->state, states[i]);
        if (i != ACTIVE && i != WAITING)
            assert_int_equal(ticket_of(room, &place[i])->deadline, ticket_of(live.room, &place[i])->deadline);
    }
    assert_int_equal(ticket_of(room, &place[WAITING])->deadline, room_now(room) + 100);
    assert_int_equal(ticket_of(room, &place[ACTIVE])->deadline, 800); /* its longest time, and no longer */

    rig_pass(&copy.rig, 1 * SEC); /* the grace is over */
    assert_int_equal(rig_state(&copy.rig, &place[LEAVING]), TICKET_DONE);
    assert_int_equal(rig_state(&copy.rig, &place[WAITING]), TICKET_WAITING);
    rig_pass(&copy.rig, 9 * SEC);
    assert_int_equal(rig_state(&copy.rig, &place[WAITING]), TICKET_AWAY);
    assert_int_equal(rig_state(&copy.rig, &place[TOLD]), TICKET_CALLED);
    rig_pass(&copy.rig, 1 * SEC);
    assert_int_equal(rig_state(&copy.rig, &place[TOLD]), TICKET_DONE);
    assert_int_equal(rig_enter(&copy.rig, &place[UNTOLD], &standing), ERROR_NONE);
    room_check(room);
    copy_free(&copy);
    tape_free(&tape);
    rig_free(&live);
}

/* They joined when an hour was allowed: whoever looks for the absent must not wait for that. */
static void a_time_that_was_shortened_is_short_after_a_recovery(void **state)
{
    struct settings settings = settings_default();
    struct tape tape = {0};
    (void)state;

    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 3600;
    struct rig live = rig_new(64, &settings);
    room_record(live.room);
    for (uint64_t i = 0; i < 20; i++)
        rig_place(&live, i);
    settings.seen_ttl_sec = 10;
    assert_int_equal(rig_set(&live, &settings), ERROR_NONE);
    tape_take_all(&tape, live.room);
    struct copy copy = copy_recovered(64, NULL, &tape, 0);
    copy_wake(&copy);
    room_check(copy.rig.room);
    rig_pass(&copy.rig, 60 * SEC);
    assert_int_equal(room_figures(copy.rig.room).in_state[TICKET_AWAY], 20);
    copy_free(&copy);
    tape_free(&tape);
    rig_free(&live);
}

/* Everybody fell silent with turns left over: these lapse with the tick, and are not kept for who comes after a recovery. */
static void turns_that_lapsed_are_not_there_again_after_a_recovery(void **state)
{
    struct settings settings = settings_default();
    settings.mode = MODE_HOLD;
    struct rig live = rig_new(64, &settings);
    struct tape tape = {0};
    struct standing standing;
    uint32_t called;
    (void)state;

    room_record(live.room);
    tape_take_all(&tape, live.room);
    for (uint64_t i = 0; i < 300; i++) {
        rig_place(&live, i);
        tape_take_all(&tape, live.room);
    }
    record_time(&live, &tape, 9900);
    assert_int_equal(room_advance(live.room, 300, &called), ERROR_NONE);
    assert_true(called < 300 && room_has_more(live.room));
    tape_take(&tape, live.room);
    for (uint32_t wait = 0; room_figures(live.room).in_state[TICKET_WAITING] > 0; wait++) {
        assert_true(wait < 100);
        room_tick(live.room, 1000);
        tape_take_all(&tape, live.room);
    }
    assert_int_equal(live.room->advance, 0);
    struct copy copy = copy_recovered(64, NULL, &tape, 0);
    copy_wake(&copy);
    assert_int_equal(rig_join(&copy.rig, 1000, &standing), ERROR_NONE);
    assert_int_equal(standing.state, TICKET_WAITING);
    copy_free(&copy);
    tape_free(&tape);
    rig_free(&live);
}

static struct settings patient_settings(struct dice *dice)
{
    struct settings s = settings_default();

    s.mode = dice_below(dice, 5) == 0 ? MODE_HOLD : MODE_QUEUE;
    s.max_active = 1 + dice_below(dice, 20);
    s.rate_milli = 1 + dice_below(dice, 20000);
    s.seen_ttl_sec = s.claim_ttl_sec = s.arrive_ttl_sec = 86400;
    s.session_ttl_sec = s.away_ttl_sec = 604800;
    s.session_max_sec = dice_below(dice, 3) * 40;
    return s;
}

/* The room that was never interrupted and the one that was brought back answer alike, where only time seen could differ. */
static void a_room_that_was_brought_back_goes_on_like_the_one_that_never_stopped(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct play play = play_new(seed, 128);
        struct settings settings = patient_settings(&play.doers.dice);
        struct tape other = {0};
        play.doers.settings = patient_settings;
        play.doers.keys = 0;
        assert_int_equal(rig_set(&play.live, &settings), ERROR_NONE);
        tape_take_all(&play.tape, play.live.room);
        while (play.step < 400)
            play_step(&play);
        room_tick(play.live.room, 1000); /* so that both know the same time */
        tape_take_all(&play.tape, play.live.room);
        struct copy copy = copy_recovered(128, NULL, &play.tape, 0);
        assert_same_room(play.live.room, copy.rig.room, play.where);
        copy_wake(&copy);
        uint32_t until = play.tape.records;
        for (uint32_t step = 0; step < 600; step++) {
            struct deed deed = doers_deed(&play.doers);
            struct answer a = deed_do(play.live.room, &deed), b = deed_do(copy.rig.room, &deed);
            doers_hear(&play.doers, &deed, &a);
            tape_take_all(&play.tape, play.live.room);
            tape_take_all(&other, copy.rig.room);
            snprintf(play.where, sizeof(play.where), "seed %lu step %u deed %d", seed, step, deed.kind);
            if (a.error != b.error || a.number != b.number || a.standing.state != b.standing.state ||
                a.standing.place.count != b.standing.place.count ||
                a.standing.is_repeat != b.standing.is_repeat || a.standing.iat_sec != b.standing.iat_sec)
                fail_msg("%s: the answers differ", play.where);
            assert_same_room(play.live.room, copy.rig.room, play.where);
        }
        /* Its own records go on where the others ended. */
        struct copy third = copy_recovered(128, NULL, &play.tape, 0);
        struct copy fourth = copy_new(128);
        copy_replay(&fourth, &play.tape, 0, until);
        copy_replay(&fourth, &other, 0, other.records);
        assert_same_room(third.rig.room, fourth.rig.room, play.where);
        copy_free(&third);
        copy_free(&fourth);
        tape_free(&other);
        copy_free(&copy);
        play_free(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_copy_is_the_same_after_every_operation),
        cmocka_unit_test(the_copy_is_the_same_while_keys_are_forgotten),
        cmocka_unit_test(the_copy_drops_the_keys_that_the_room_drops),
        cmocka_unit_test(what_thousands_do_at_once_is_recorded_in_pieces_and_comes_to_the_same),
        cmocka_unit_test(an_outbox_that_is_not_full_has_room_for_any_operation),
        cmocka_unit_test(the_largest_operations_fit_an_outbox),
        cmocka_unit_test(an_owner_who_never_takes_the_outbox_is_stopped),
        cmocka_unit_test(an_outbox_that_is_taken_twice_is_one_record),
        cmocka_unit_test(a_record_says_that_it_makes_or_ends_a_room),
        cmocka_unit_test(the_bytes_of_records_are_as_their_document_says),
        cmocka_unit_test(a_record_of_another_room_is_refused),
        cmocka_unit_test(records_that_come_again_change_nothing),
        cmocka_unit_test(a_snapshot_taken_while_the_room_goes_on_is_made_whole_by_the_records),
        cmocka_unit_test(a_snapshot_of_many_pieces_is_made_whole_too),
        cmocka_unit_test(a_room_of_lone_survivors_needs_no_more_pages_at_once_than_promised),
        cmocka_unit_test(a_snapshot_names_the_room_as_its_records_do_after_any_number_of_epochs),
        cmocka_unit_test(nobody_who_polls_as_told_is_away_after_a_recovery),
        cmocka_unit_test(a_recovery_gives_fresh_time_to_those_who_must_be_seen_and_keeps_every_other_time),
        cmocka_unit_test(a_time_that_was_shortened_is_short_after_a_recovery),
        cmocka_unit_test(turns_that_lapsed_are_not_there_again_after_a_recovery),
        cmocka_unit_test(a_room_that_was_brought_back_goes_on_like_the_one_that_never_stopped),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
