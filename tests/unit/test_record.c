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

    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct play play = play_new(seed, 128);
        struct copy copy = copy_new(128);
        uint32_t applied = 0;
        while (play.step < 6000) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_copy_is_the_same_after_every_operation),
        cmocka_unit_test(the_copy_is_the_same_while_keys_are_forgotten),
        cmocka_unit_test(records_that_come_again_change_nothing),
        cmocka_unit_test(a_snapshot_taken_while_the_room_goes_on_is_made_whole_by_the_records),
        cmocka_unit_test(a_snapshot_of_many_pieces_is_made_whole_too),
        cmocka_unit_test(a_room_of_lone_survivors_needs_no_more_pages_at_once_than_promised),
        cmocka_unit_test(a_snapshot_names_the_room_as_its_records_do_after_any_number_of_epochs),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
