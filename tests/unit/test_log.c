/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of the journal: what it says is written survives processes, what it says is synced survives power cuts, and what it
 * took in is there once and in order, whoever dies where and whatever the disk does.
 */
#include "rig.h"

#include "disk_sim.h"
#include "journal/log.h"
#include "journal/scan.h"
#include "log_reader.h"

#include <errno.h>
#include <string.h>

#define SEGMENT LOG_SEGMENT_LEAST
#define BIG     60000 /* a body of which some twenty make a segment */

static const struct log_options by_interval = {SYNC_INTERVAL, 1000, SEGMENT, SEGMENT / 4};

/* ---- a log on a simulated disk ---- */

struct fixture {
    struct log *log;
    struct disk_sim *sim;
    struct disk *disk;
    struct log_writer writer;
    struct log_start start;
    uint64_t numbers; /* records appended */
};

static struct log *log_new(void)
{
    struct log *log = shared_new(log_bytes());

    log_init(log);
    return log;
}

static struct fixture fixture_new(uint64_t position, const struct log_options *options)
{
    struct fixture f = {.log = log_new(), .sim = disk_sim_new(), .start = {position, 7}};

    f.disk = disk_sim_disk(f.sim);
    log_writer_init(&f.writer, f.disk);
    assert_int_equal(log_begin(f.log, f.disk, &f.start, options), 0);
    return f;
}

static void fixture_free(struct fixture *f)
{
    log_writer_close(&f->writer);
    disk_sim_free(f->sim);
    shared_free(f->log, log_bytes());
}

/* False: the log would not have it. */
static bool try_append(struct fixture *f, size_t len)
{
    uint64_t before = log_end(f->log);
    uint64_t end = log_append(f->log, &f->writer, RECORD_ROOM, body_of(f->numbers + 1, len), 1234);

    if (end == UINT64_MAX) {
        assert_int_equal(log_end(f->log), before);
        return false;
    }
    assert_true(end >= before + frame_record_bytes(len));
    assert_int_equal(log_end(f->log), end);
    f->numbers++;
    return true;
}

static void append(struct fixture *f, size_t len)
{
    assert_true(try_append(f, len));
}

static void flush(struct fixture *f)
{
    assert_int_equal(log_flush(f->log, &f->writer), 0);
    assert_int_equal(log_written(f->log), log_end(f->log));
}

static void sync_now(struct fixture *f)
{
    uint64_t written = log_written(f->log);

    assert_int_equal(log_sync(f->log, f->disk, 1), 0);
    assert_true(log_synced(f->log) >= written || !log_is_dirty(f->log));
}

static void prepare(struct fixture *f)
{
    assert_int_equal(log_prepare(f->log, f->disk), 0);
    assert_false(log_needs_prepare(f->log));
}

/* Everything is written and there, once and in order. */
static struct log_reading expect_all(struct fixture *f)
{
    flush(f);
    struct log_reading reading = log_read_back(f->disk, f->start);
    assert_int_equal(reading.position, log_end(f->log));
    assert_int_equal(reading.numbers, f->numbers);
    return reading;
}

static uint64_t there_after_crash(const struct fixture *f)
{
    struct disk_sim *after = disk_sim_crash(f->sim);
    uint64_t position = log_read_back(disk_sim_disk(after), f->start).position;

    disk_sim_free(after);
    return position;
}

static uint64_t there_after_cut(const struct fixture *f, enum sim_loss loss, uint64_t seed)
{
    struct disk_sim *after = disk_sim_power_cut(f->sim, loss, seed);
    uint64_t position = log_read_back(disk_sim_disk(after), f->start).position;

    disk_sim_free(after);
    return position;
}

/* What it says is really so. */
static void expect_true_to_its_word(const struct fixture *f, uint64_t seed)
{
    uint64_t end = log_end(f->log), written = log_written(f->log), synced = log_synced(f->log);

    assert_true(end >= written && written >= synced);
    assert_true(there_after_crash(f) >= written);
    for (int loss = SIM_DROP; loss < SIM_LOSSES; loss++)
        if (there_after_cut(f, loss, seed) < synced)
            fail_msg("synced up to %llu, and only %llu are there (loss %d, seed %llu)",
                     (unsigned long long)synced, (unsigned long long)there_after_cut(f, loss, seed), loss,
                     (unsigned long long)seed);
}

/* ---- order ---- */

static void records_come_back_as_they_went_in_at_any_size(void **state)
{
    static const size_t sizes[] = {8, 9, 15, 16, 17, 100, 4096, 65535, 65536, 8};
    struct fixture f = fixture_new(4096, &by_interval);
    (void)state;

    assert_int_equal(log_end(f.log), 4096 + FRAME_HEAD_BYTES);
    assert_int_equal(log_synced(f.log), log_end(f.log));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        append(&f, sizes[i]);
        assert_int_equal(log_end(f.log) % 8, 0);
    }
    struct log_reading reading = expect_all(&f);
    assert_int_equal(reading.segments, 1);
    assert_int_equal(reading.sequence, 7 + sizeof(sizes) / sizeof(sizes[0]));
    fixture_free(&f);
}

static void nothing_is_written_before_a_flush_and_all_of_it_after(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    uint64_t begun = log_end(f.log);
    (void)state;

    append(&f, 100);
    assert_int_equal(log_written(f.log), begun);
    assert_int_equal(log_read_back(f.disk, f.start).numbers, 0);
    expect_all(&f);
    uint64_t writes = disk_sim_calls(f.sim, SIM_WRITE);
    flush(&f); /* has nothing to do */
    assert_int_equal(disk_sim_calls(f.sim, SIM_WRITE), writes);
    fixture_free(&f);
}

/* Sizes at random, ten times around the ring and over several segments, flushed when it comes to it. */
static void a_ring_that_goes_round_and_round_loses_nothing(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    struct dice dice = {3};
    (void)state;

    while (log_end(f.log) < 10 * (1 << 18)) {
        append(&f, 8 + dice_below(&dice, dice_below(&dice, 8) == 0 ? FRAME_BODY_MAX - 7 : 500));
        if (dice_below(&dice, 30) == 0)
            expect_all(&f);
    }
    assert_true(expect_all(&f).segments >= 3);
    fixture_free(&f);
}

static void a_full_ring_is_flushed_by_the_append_that_needs_room(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    uint64_t begun = log_written(f.log), record = frame_record_bytes(BIG);
    (void)state;

    while (log_has_room(f.log, record)) {
        append(&f, BIG);
        assert_int_equal(log_written(f.log), begun);
    }
    assert_int_equal(f.numbers, (1 << 18) / record);
    append(&f, BIG);
    assert_int_equal(log_written(f.log), begun + (f.numbers - 1) * record);
    expect_all(&f);
    fixture_free(&f);
}

/* ---- segments ---- */

static void append_segment(struct fixture *f)
{
    for (uint64_t until = log_end(f->log) + SEGMENT; log_end(f->log) < until;)
        append(f, BIG);
}

static void the_prepared_segment_is_used_and_the_flush_takes_no_space(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    uint64_t allocations = disk_sim_calls(f.sim, SIM_ALLOCATE), renames = disk_sim_calls(f.sim, SIM_RENAME);
    (void)state;

    assert_int_equal(allocations, 2);
    assert_false(log_needs_prepare(f.log));
    assert_int_equal(disk_size_of(f.disk, LOG_NEXT), SEGMENT);
    append_segment(&f);
    flush(&f);
    assert_int_equal(disk_sim_calls(f.sim, SIM_ALLOCATE), allocations);
    assert_int_equal(disk_sim_calls(f.sim, SIM_RENAME), renames + 1);
    assert_true(log_needs_prepare(f.log));
    assert_false(disk_has(f.disk, LOG_NEXT));
    prepare(&f);
    assert_int_equal(disk_size_of(f.disk, LOG_NEXT), SEGMENT);
    append_segment(&f);
    assert_int_equal(expect_all(&f).segments, 3);
    assert_int_equal(disk_sim_calls(f.sim, SIM_ALLOCATE), allocations + 1);
    fixture_free(&f);
}

static void a_segment_that_nobody_prepared_is_made_on_the_spot(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    unsigned char boot[DISK_BOOT_BYTES];
    (void)state;

    append_segment(&f);
    append_segment(&f);
    struct log_reading reading = expect_all(&f);
    assert_int_equal(reading.segments, 3);
    assert_true(log_needs_prepare(f.log));
    struct frame_head head = log_head_of(f.disk, reading.first); /* it has all its space */
    f.disk->boot(f.disk, boot);
    assert_int_equal(head.end, head.first + SEGMENT);
    assert_int_equal(head.sync, SYNC_INTERVAL);
    assert_memory_equal(head.boot, boot, DISK_BOOT_BYTES);
    fixture_free(&f);
}

/* Records of one size, from which the last in a segment leaves exactly enough for the RECORD_END, or a word too little. */
static void the_last_record_of_a_segment_leaves_room_for_its_end(void **state)
{
    (void)state;
    for (int spare = -8; spare <= 8; spare += 8) {
        struct fixture f = fixture_new(0, &by_interval);
        for (int n = 0; n < 10; n++)
            append(&f, BIG);
        uint64_t left = SEGMENT - log_end(f.log);
        while (left > FRAME_BODY_MAX) {
            append(&f, BIG / 2);
            left = SEGMENT - log_end(f.log);
        }
        append(&f, left - FRAME_END_BYTES - FRAME_RECORD_BYTES - (uint64_t)(int64_t)spare);
        append(&f, 8);
        assert_int_equal(expect_all(&f).segments, 2);
        fixture_free(&f);
    }
}

static void another_size_holds_from_the_next_segment_on(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    struct log_options options = by_interval;
    (void)state;

    append_segment(&f);
    options.segment_bytes = 2 * SEGMENT;
    log_set_options(f.log, &options);
    assert_int_equal(log_options(f.log).segment_bytes, 2 * SEGMENT);
    prepare(&f); /* the one that is there is too small */
    assert_int_equal(disk_size_of(f.disk, LOG_NEXT), 2 * SEGMENT);
    append_segment(&f);
    append_segment(&f);
    assert_int_equal(expect_all(&f).segments, 3);
    prepare(&f);
    options.segment_bytes = SEGMENT;
    log_set_options(f.log, &options);
    for (int n = 0; n < 4; n++)
        append_segment(&f);
    assert_int_equal(expect_all(&f).segments, 7);
    fixture_free(&f);
}

/* Recovery asks the last segment's head whether an answer waited for the sync. */
static void another_mode_begins_another_segment(void **state)
{
    struct log_options options = by_interval;
    options.sync = SYNC_ALWAYS;
    struct fixture f = fixture_new(0, &options);
    (void)state;

    append(&f, 100);
    options.sync = SYNC_OFF;
    log_set_options(f.log, &options);
    append(&f, 100);
    options.sync = SYNC_INTERVAL;
    log_set_options(f.log, &options); /* before the second segment was ever written to */
    assert_false(log_has_room(f.log, 200));
    append(&f, 100);
    append(&f, 100);
    struct log_reading reading = expect_all(&f);
    assert_int_equal(reading.segments, 3);
    assert_int_equal(reading.sync, SYNC_INTERVAL);
    fixture_free(&f);
}

/* Else answers that waited for nothing would be taken for some that waited for a sync. */
static void a_weaker_mode_holds_once_the_disk_says_so(void **state)
{
    struct log_options options = by_interval;
    options.sync = SYNC_ALWAYS;
    struct fixture f = fixture_new(0, &options);
    (void)state;

    assert_true(log_syncs_all(f.log));
    options.sync = SYNC_INTERVAL;
    log_set_options(f.log, &options);
    assert_true(log_syncs_all(f.log));
    append(&f, 100);
    assert_true(log_syncs_all(f.log));
    flush(&f);
    assert_true(log_syncs_all(f.log));
    sync_now(&f);
    assert_false(log_syncs_all(f.log));
    options.sync = SYNC_ALWAYS;
    log_set_options(f.log, &options);
    assert_true(log_syncs_all(f.log));
    fixture_free(&f);
}

/* ---- syncing ---- */

static void a_sync_notes_how_far_it_came_and_a_note_needs_no_sync(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    assert_false(log_is_dirty(f.log));
    append(&f, 100);
    assert_true(log_is_dirty(f.log));
    flush(&f);
    uint64_t written = log_written(f.log), syncs = disk_sim_calls(f.sim, SIM_SYNC);
    sync_now(&f);
    assert_int_equal(log_synced(f.log), written);
    assert_int_equal(disk_sim_calls(f.sim, SIM_SYNC), syncs + 1);
    assert_true(log_end(f.log) > written); /* the note */
    assert_false(log_is_dirty(f.log));
    struct log_reading reading = expect_all(&f);
    assert_int_equal(reading.noted, written);
    assert_int_equal(reading.last, RECORD_SYNCED);
    sync_now(&f);
    sync_now(&f);
    assert_int_equal(disk_sim_calls(f.sim, SIM_SYNC), syncs + 1);
    assert_int_equal(log_end(f.log), reading.position); /* no note of a note */
    append(&f, 100);
    assert_true(log_is_dirty(f.log));
    fixture_free(&f);
}

/* What is only in the ring is nothing that a sync could save. */
static void a_sync_covers_what_was_written_and_no_more(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    append(&f, 100);
    flush(&f);
    uint64_t written = log_written(f.log);
    append(&f, 100);
    sync_now(&f);
    assert_int_equal(log_synced(f.log), written);
    assert_true(log_is_dirty(f.log));
    expect_all(&f);
    sync_now(&f);
    assert_false(log_is_dirty(f.log));
    fixture_free(&f);
}

static void a_sync_reaches_every_segment_since_the_last_one(void **state)
{
    (void)state;
    for (int segments = 0; segments < 5; segments++) {
        struct fixture f = fixture_new(SEGMENT, &by_interval);
        append(&f, 100);
        for (int n = 0; n < segments; n++)
            append_segment(&f);
        flush(&f);
        assert_true(there_after_cut(&f, SIM_DROP, 1) < log_written(f.log));
        sync_now(&f);
        for (int loss = 0; loss < SIM_LOSSES; loss++)
            assert_int_equal(there_after_cut(&f, loss, 1), log_written(f.log));
        fixture_free(&f);
    }
}

/* A snapshot is whole and synced before a segment is removed for it. */
static void a_segment_that_was_compacted_away_is_not_missed(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    char name[FRAME_NAME_BYTES];
    (void)state;

    append_segment(&f);
    append_segment(&f);
    flush(&f);
    frame_name(false, 0, name);
    assert_int_equal(f.disk->remove(f.disk, name), 0);
    sync_now(&f);
    assert_int_equal(log_trouble(f.log), LOG_FINE);
    fixture_free(&f);
}

static void a_segment_that_was_taken_away_under_the_log_breaks_it(void **state)
{
    (void)state;
    for (int is_sync = 0; is_sync < 2; is_sync++) {
        struct fixture f = fixture_new(0, &by_interval);
        char name[FRAME_NAME_BYTES];
        append(&f, 100);
        flush(&f);
        append(&f, 100);
        frame_name(false, 0, name);
        assert_int_equal(f.disk->remove(f.disk, name), 0);
        log_writer_close(&f.writer); /* another process, which has it not open */
        assert_int_equal(is_sync ? log_sync(f.log, f.disk, 1) : log_flush(f.log, &f.writer), -ENOENT);
        assert_int_equal(log_trouble(f.log), LOG_BROKEN);
        assert_false(disk_has(f.disk, name)); /* and is not made again, with a hole in it */
        fixture_free(&f);
    }
}

static void one_process_is_told_to_sync_once_per_interval(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    assert_false(log_claim_sync(f.log, 5000)); /* nothing to sync */
    append(&f, 100);
    assert_true(log_claim_sync(f.log, 5000));
    assert_false(log_claim_sync(f.log, 5000));
    assert_false(log_claim_sync(f.log, 5999));
    assert_false(log_claim_sync(f.log, 4990)); /* another process looks at the clock a little later */
    assert_true(log_claim_sync(f.log, 6000));  /* the first one died over it */
    assert_true(log_claim_sync(f.log, 20));    /* the clock was set back */
    flush(&f);
    sync_now(&f);
    assert_false(log_claim_sync(f.log, 90000));
    struct log_options options = by_interval;
    append(&f, 100);
    options.sync = SYNC_ALWAYS;
    log_set_options(f.log, &options);
    assert_false(log_claim_sync(f.log, 90000));
    options.sync = SYNC_OFF;
    log_set_options(f.log, &options);
    assert_false(log_claim_sync(f.log, 90000));
    fixture_free(&f);
}

static void claim_meanwhile(void *context, struct disk_sim *sim, enum sim_call call)
{
    struct fixture *f = context;
    (void)sim;

    if (call == SIM_SYNC)
        assert_false(log_claim_sync(f->log, 90000));
}

/* A disk that hangs is not waited for by ever more threads. */
static void nobody_is_told_to_sync_while_somebody_does(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    append(&f, 100);
    flush(&f);
    append(&f, 100);
    uint64_t syncs = disk_sim_calls(f.sim, SIM_SYNC);
    disk_sim_watch(f.sim, claim_meanwhile, &f);
    sync_now(&f);
    disk_sim_watch(f.sim, NULL, NULL);
    assert_int_equal(disk_sim_calls(f.sim, SIM_SYNC), syncs + 1);
    assert_true(log_claim_sync(f.log, 90000));
    fixture_free(&f);
}

/* ---- beginning and end ---- */

static void a_log_that_was_begun_is_found_after_a_power_cut(void **state)
{
    struct fixture f = fixture_new(SEGMENT, &by_interval);
    (void)state;

    for (int loss = 0; loss < SIM_LOSSES; loss++)
        assert_int_equal(there_after_cut(&f, loss, 1), SEGMENT + FRAME_HEAD_BYTES);
    fixture_free(&f);
}

/* It takes the space that the first one needs, and who knows what is in it. */
static void a_left_over_next_segment_is_not_used(void **state)
{
    struct fixture f = {.log = log_new(), .sim = disk_sim_new(), .start = {0, 1}};
    (void)state;

    f.disk = disk_sim_disk(f.sim);
    disk_sim_set_space(f.sim, SEGMENT + SEGMENT / 2);
    int file = f.disk->open(f.disk, LOG_NEXT, DISK_MAKE);
    assert_int_equal(f.disk->allocate(f.disk, file, SEGMENT), 0);
    assert_int_equal(f.disk->write(f.disk, file, "old", 3, SEGMENT / 2), 0);
    assert_int_equal(f.disk->close(f.disk, file), 0);
    log_writer_init(&f.writer, f.disk);
    assert_int_equal(log_begin(f.log, f.disk, &f.start, &by_interval), 0);
    disk_sim_set_space(f.sim, UINT64_MAX);
    append_segment(&f);
    append_segment(&f);
    expect_all(&f);
    fixture_free(&f);
}

static void bytes_of_another_log_are_never_written_over(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    struct log *other = log_new();
    (void)state;

    append(&f, 100);
    flush(&f);
    assert_int_equal(log_begin(other, f.disk, &f.start, &by_interval), -EEXIST);
    expect_all(&f);
    shared_free(other, log_bytes());
    fixture_free(&f);
}

static void a_closed_log_ends_in_the_record_that_says_so(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    append(&f, 100);
    flush(&f);
    sync_now(&f);
    append(&f, 100);
    for (int times = 1; times <= 2; times++) {
        assert_int_equal(log_close(f.log, &f.writer, 5), 0);
        assert_int_equal(log_synced(f.log), log_end(f.log));
        assert_int_equal(there_after_cut(&f, SIM_DROP, 1), log_end(f.log));
        struct log_reading reading = log_read_back(f.disk, f.start);
        assert_int_equal(reading.numbers, 2);
        assert_int_equal(reading.last, RECORD_CLOSED);
    }
    fixture_free(&f);
}

/* ---- space ---- */

/* Of segments of a MiB, with a reserve of a quarter: the disk holds three, and the third is filled. */
static void a_nearly_full_disk_is_said_to_be_before_it_is_full(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    disk_sim_set_space(f.sim, 2 * SEGMENT);
    append_segment(&f); /* goes over into the second */
    flush(&f);
    assert_false(log_is_short(f.log));
    assert_true(log_needs_prepare(f.log));
    assert_int_equal(log_prepare(f.log, f.disk), -ENOSPC);
    assert_false(disk_has(f.disk, LOG_NEXT)); /* leaves nothing behind */
    assert_true(log_needs_prepare(f.log));
    assert_false(log_is_short(f.log)); /* plenty left in this one */
    while (log_end(f.log) < 2 * SEGMENT - SEGMENT / 4 - 2 * BIG)
        append(&f, BIG);
    flush(&f);
    assert_false(log_is_short(f.log));
    while (log_end(f.log) < 2 * SEGMENT - SEGMENT / 4)
        append(&f, BIG);
    flush(&f);
    assert_true(log_is_short(f.log));
    assert_int_equal(log_trouble(f.log), LOG_FINE);
    disk_sim_set_space(f.sim, UINT64_MAX);
    prepare(&f);
    assert_false(log_is_short(f.log));
    expect_all(&f);
    fixture_free(&f);
}

/* What is in the ring for it has no space yet. */
static void a_segment_that_is_not_made_yet_is_no_space(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    while (log_end(f.log) < SEGMENT)
        append(&f, BIG);
    assert_false(log_is_short(f.log)); /* LOG_NEXT is there for it */
    flush(&f);
    while (log_end(f.log) < 2 * SEGMENT)
        append(&f, BIG);
    assert_true(log_is_short(f.log));
    flush(&f);
    assert_false(log_is_short(f.log)); /* made on the spot */
    fixture_free(&f);
}

static void a_full_disk_makes_the_log_wait_and_space_makes_it_go_on(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    char text[256];
    (void)state;

    log_trouble_text(f.log, text, sizeof(text));
    assert_string_equal(text, "");
    disk_sim_set_space(f.sim, 2 * SEGMENT);
    while (try_append(&f, BIG))
        continue;
    assert_int_equal(log_trouble(f.log), LOG_FULL);
    assert_true(log_is_short(f.log));
    log_trouble_text(f.log, text, sizeof(text));
    assert_non_null(strstr(text, "No space left"));
    uint64_t written = log_written(f.log);
    assert_true(log_end(f.log) - written > BIG); /* what it took in waits */
    assert_false(try_append(&f, BIG));
    assert_int_equal(log_flush(f.log, &f.writer), -ENOSPC);
    assert_int_equal(log_written(f.log), written);
    assert_int_equal(log_sync(f.log, f.disk, 1), 0); /* what was written is still good */
    expect_true_to_its_word(&f, 1);

    assert_true(disk_has(f.disk, LOG_ASIDE)); /* as far as there was space */
    disk_sim_set_space(f.sim, 5 * SEGMENT);
    prepare(&f);
    flush(&f);
    assert_false(disk_has(f.disk, LOG_ASIDE)); /* LOG_NEXT was there first */
    assert_int_equal(log_trouble(f.log), LOG_FINE);
    prepare(&f);
    assert_false(log_is_short(f.log));
    append(&f, BIG);
    expect_all(&f);
    fixture_free(&f);
}

static void a_next_segment_that_somebody_left_half_made_is_made_anew(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    append_segment(&f);
    flush(&f);
    int file = f.disk->open(f.disk, LOG_NEXT, DISK_MAKE);
    assert_int_equal(f.disk->allocate(f.disk, file, SEGMENT / 2), 0);
    f.disk->close(f.disk, file);
    assert_true(log_needs_prepare(f.log));
    prepare(&f);
    assert_int_equal(disk_size_of(f.disk, LOG_NEXT), SEGMENT);

    /* And no segment is made of it. */
    append_segment(&f);
    flush(&f);
    file = f.disk->open(f.disk, LOG_NEXT, DISK_MAKE);
    assert_int_equal(f.disk->allocate(f.disk, file, SEGMENT / 2), 0);
    f.disk->close(f.disk, file);
    append_segment(&f);
    log_head_of(f.disk, expect_all(&f).first);
    fixture_free(&f);
}

/* ---- trouble ---- */

static void a_failed_sync_breaks_the_log_for_good_and_is_never_tried_again(void **state)
{
    static const enum sim_call calls[] = {SIM_SYNC, SIM_SYNC_FOLDER};
    (void)state;

    for (int which = 0; which < 2; which++) {
        struct fixture f = fixture_new(0, &by_interval);
        char text[256];
        append_segment(&f);
        flush(&f);
        uint64_t synced = log_synced(f.log);
        disk_sim_fail(f.sim, calls[which], 1, EIO, false);
        assert_int_equal(log_sync(f.log, f.disk, 1), -EIO);
        assert_int_equal(log_trouble(f.log), LOG_BROKEN);
        log_trouble_text(f.log, text, sizeof(text));
        assert_non_null(strstr(text, "sync"));
        assert_non_null(strstr(text, "Input/output error"));
        assert_true(disk_has(f.disk, LOG_FAILED));
        uint64_t syncs = disk_sim_calls(f.sim, SIM_SYNC), folders = disk_sim_calls(f.sim, SIM_SYNC_FOLDER);
        for (int times = 0; times < 3; times++) {
            assert_false(try_append(&f, 100));
            assert_int_equal(log_flush(f.log, &f.writer), -EIO);
            assert_int_equal(log_sync(f.log, f.disk, 1), -EIO);
            assert_int_equal(log_close(f.log, &f.writer, 1), -EIO);
            assert_false(log_needs_prepare(f.log));
            assert_int_equal(log_prepare(f.log, f.disk), 0);
        }
        assert_int_equal(disk_sim_calls(f.sim, SIM_SYNC), syncs);
        assert_int_equal(disk_sim_calls(f.sim, SIM_SYNC_FOLDER), folders);
        assert_int_equal(log_synced(f.log), synced);
        expect_true_to_its_word(&f, 1);
        fixture_free(&f);
    }
}

static void a_failed_write_breaks_the_log_for_good(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    char text[256];
    (void)state;

    append(&f, 1000);
    uint64_t written = log_written(f.log);
    disk_sim_fail(f.sim, SIM_WRITE, 1, EIO, false);
    assert_int_equal(log_flush(f.log, &f.writer), -EIO);
    assert_int_equal(log_trouble(f.log), LOG_BROKEN);
    log_trouble_text(f.log, text, sizeof(text));
    assert_non_null(strstr(text, "write"));
    assert_int_equal(log_flush(f.log, &f.writer), -EIO);
    assert_int_equal(log_sync(f.log, f.disk, 1), -EIO);
    assert_false(try_append(&f, 100));
    assert_int_equal(log_written(f.log), written);
    assert_false(disk_has(f.disk, LOG_FAILED));
    fixture_free(&f);
}

/* In the middle of another process's flush. */
static void fail_a_sync(void *context, struct disk_sim *sim, enum sim_call call)
{
    struct fixture *f = context;

    if (call != SIM_WRITE)
        return;
    disk_sim_watch(sim, NULL, NULL);
    disk_sim_fail(sim, SIM_SYNC, 1, EIO, false);
    assert_int_equal(log_sync(f->log, f->disk, 1), -EIO);
}

static void a_log_that_broke_is_not_made_good_by_what_others_find(void **state)
{
    static const int found[] = {0, ENOSPC, ENODEV};
    (void)state;

    for (int i = 0; i < 3; i++) {
        struct fixture f = fixture_new(0, &by_interval);
        char text[256];
        append(&f, 100);
        flush(&f);
        append(&f, 100);
        disk_sim_watch(f.sim, fail_a_sync, &f);
        disk_sim_fail(f.sim, SIM_WRITE, found[i] != 0, found[i], false);
        assert_int_equal(log_flush(f.log, &f.writer), -found[i]);
        assert_int_equal(log_trouble(f.log), LOG_BROKEN);
        log_trouble_text(f.log, text, sizeof(text));
        assert_non_null(strstr(text, "Input/output error")); /* the first reason */
        fixture_free(&f);
    }
}

/* A process that has too many files open has lost nothing. */
static void a_shortage_of_descriptors_passes(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    append(&f, 100);
    log_writer_close(&f.writer);
    disk_sim_fail(f.sim, SIM_OPEN, 1, EMFILE, true);
    assert_int_equal(log_flush(f.log, &f.writer), -EMFILE);
    assert_int_equal(log_trouble(f.log), LOG_FULL);
    disk_sim_heal(f.sim);
    flush(&f);
    assert_int_equal(log_trouble(f.log), LOG_FINE);
    disk_sim_fail(f.sim, SIM_OPEN, 1, EMFILE, true);
    assert_int_equal(log_sync(f.log, f.disk, 1), -EMFILE);
    assert_true(log_is_dirty(f.log));
    disk_sim_heal(f.sim);
    sync_now(&f);
    assert_false(log_is_dirty(f.log));
    assert_int_equal(log_trouble(f.log), LOG_FINE);
    fixture_free(&f);
}

/* What a process does with a log, over a few segments. It goes on whatever fails, as nginx would. */
static void live(struct fixture *f, int turns, uint64_t seed)
{
    struct dice dice = {seed};

    for (int turn = 0; turn < turns; turn++) {
        for (uint32_t n = dice_below(&dice, 3); n < 4; n++)
            try_append(f, dice_below(&dice, 3) == 0 ? 8 + dice_below(&dice, 200) : BIG);
        log_flush(f->log, &f->writer);
        if (dice_below(&dice, 3) == 0)
            log_sync(f->log, f->disk, 1);
        if (log_needs_prepare(f->log) && dice_below(&dice, 4) == 0)
            log_prepare(f->log, f->disk);
    }
    log_close(f->log, &f->writer, 1);
}

static bool expect_next(void *context, const struct frame_record *record, const struct scan_place *place,
                        bool is_snapshot)
{
    uint64_t *numbers = context;
    (void)place, (void)is_snapshot;

    if (record->type == RECORD_ROOM)
        assert_int_equal(number_of(record->body), ++*numbers);
    return true;
}

/* Numbers found, all from 1 on. */
static uint64_t scan(struct disk *disk, struct scan_report *report)
{
    uint64_t numbers = 0;
    struct scan_reader reader = {.each = expect_next, .context = &numbers};

    if (journal_scan(disk, &reader, report) != SCAN_GOOD)
        fail_msg("%s", report->why);
    return numbers;
}

/* All up to `least` is found (a RECORD_END at the end does not count), and another log goes on from there. Frees the sim. */
static void expect_recovery(struct disk_sim *sim, uint64_t least, bool may_have_lost)
{
    struct fixture f = {.log = log_new(), .sim = sim, .disk = disk_sim_disk(sim)};
    struct scan_report report;

    f.numbers = scan(f.disk, &report);
    assert_true(report.end + FRAME_END_BYTES >= least);
    assert_true(may_have_lost || !scan_may_have_lost(&report));
    assert_int_equal(journal_seal(f.disk, &report, &f.start), 0);
    log_writer_init(&f.writer, f.disk);
    assert_int_equal(log_begin(f.log, f.disk, &f.start, &by_interval), 0);
    append(&f, 100);
    flush(&f);
    sync_now(&f);
    struct disk_sim *after = disk_sim_power_cut(sim, SIM_DROP, 1);
    assert_int_equal(scan(disk_sim_disk(after), &report), f.numbers);
    disk_sim_free(after);
    fixture_free(&f);
}

static void check_after_call(void *context, struct disk_sim *sim, enum sim_call call)
{
    const struct fixture *f = context;
    uint64_t seed = disk_sim_calls(sim, SIM_ANY);

    if (call == SIM_CLOSE || call == SIM_LIST || call == SIM_SIZE)
        return; /* change nothing */
    expect_true_to_its_word(f, seed);
    expect_recovery(disk_sim_power_cut(sim, (enum sim_loss)(seed % SIM_LOSSES), seed), log_synced(f->log),
                    true);
    if (seed % 4 == 0)
        expect_recovery(disk_sim_crash(sim), log_written(f->log), false);
}

static void a_power_cut_after_any_call_leaves_all_that_was_said_to_be_synced(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct fixture f = fixture_new(0, &by_interval);
        disk_sim_watch(f.sim, check_after_call, &f);
        live(&f, 30, seed);
        disk_sim_watch(f.sim, NULL, NULL);
        assert_true(expect_all(&f).segments >= 3);
        assert_int_equal(log_trouble(f.log), LOG_FINE);
        fixture_free(&f);
    }
}

static void cut_while_closing(void *context, struct disk_sim *sim, enum sim_call call)
{
    const struct fixture *f = context;

    for (uint64_t seed = 0; call == SIM_WRITE && seed < 32; seed++)
        expect_recovery(disk_sim_power_cut(sim, SIM_REORDER, seed), log_synced(f->log), true);
}

/* RECORD_CLOSED vouches for all before it, also for a note of a sync that nobody would have synced. */
static void a_power_cut_while_closing_leaves_no_hole_before_the_end(void **state)
{
    struct fixture f = fixture_new(0, &by_interval);
    (void)state;

    append(&f, 2 * 512 - FRAME_END_BYTES - FRAME_RECORD_BYTES - log_end(f.log)); /* the note ends a sector */
    flush(&f);
    sync_now(&f);
    assert_int_equal(log_end(f.log) % 512, 0);
    disk_sim_watch(f.sim, cut_while_closing, &f);
    assert_int_equal(log_close(f.log, &f.writer, 1), 0);
    disk_sim_watch(f.sim, NULL, NULL);
    fixture_free(&f);
}

/* Once the fault is over. */
static void expect_broken(struct fixture *f)
{
    uint64_t syncs = disk_sim_calls(f->sim, SIM_SYNC), folders = disk_sim_calls(f->sim, SIM_SYNC_FOLDER);

    assert_true(log_flush(f->log, &f->writer) < 0 && log_sync(f->log, f->disk, 1) < 0);
    assert_int_equal(disk_sim_calls(f->sim, SIM_SYNC), syncs);
    assert_int_equal(disk_sim_calls(f->sim, SIM_SYNC_FOLDER), folders);
}

static void expect_to_go_on(struct fixture *f)
{
    append(f, 100);
    expect_all(f);
    sync_now(f);
    assert_int_equal(log_trouble(f->log), LOG_FINE);
}

struct failure {
    enum sim_call call;
    int error;
    bool passes; /* or else it may break the log */
};

/* Returns whether it came to the failure at all. */
static bool live_with(const struct failure *failure, uint64_t n, bool is_for_good)
{
    struct fixture f = {.log = log_new(), .sim = disk_sim_new(), .start = {0, 7}};

    f.disk = disk_sim_disk(f.sim);
    log_writer_init(&f.writer, f.disk);
    disk_sim_fail(f.sim, failure->call, n, failure->error, is_for_good);
    if (log_begin(f.log, f.disk, &f.start, &by_interval) == 0) {
        live(&f, 15, n);
        expect_true_to_its_word(&f, n);
        disk_sim_heal(f.sim);
        bool is_broken = log_trouble(f.log) == LOG_BROKEN;
        assert_false(is_broken && failure->passes);
        if (is_broken)
            expect_broken(&f);
        else
            expect_to_go_on(&f);
        expect_true_to_its_word(&f, n);
    }
    bool was_met = disk_sim_calls(f.sim, failure->call) >= n;
    fixture_free(&f);
    return was_met;
}

static void a_call_that_fails_makes_no_word_untrue_whichever_it_is(void **state)
{
    static const struct failure failures[] = {
        {SIM_OPEN, EIO, false},        {SIM_WRITE, EIO, false},    {SIM_SYNC, EIO, false},
        {SIM_SYNC_FOLDER, EIO, false}, {SIM_ALLOCATE, EIO, false}, {SIM_RENAME, EIO, false},
        {SIM_REMOVE, EIO, false},      {SIM_LIST, EIO, false},     {SIM_WRITE, ENOSPC, true},
        {SIM_ALLOCATE, EDQUOT, true},  {SIM_RENAME, ENOSPC, true}, {SIM_OPEN, EMFILE, true},
        {SIM_LIST, ENFILE, true},      {SIM_SYNC, ENOSPC, false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
        for (int is_for_good = 0; is_for_good < 2; is_for_good++) {
            uint64_t n = 1;
            while (live_with(&failures[i], n, is_for_good))
                n++;
            assert_true(n > 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_they_went_in_at_any_size),
        cmocka_unit_test(nothing_is_written_before_a_flush_and_all_of_it_after),
        cmocka_unit_test(a_ring_that_goes_round_and_round_loses_nothing),
        cmocka_unit_test(a_full_ring_is_flushed_by_the_append_that_needs_room),
        cmocka_unit_test(the_prepared_segment_is_used_and_the_flush_takes_no_space),
        cmocka_unit_test(a_segment_that_nobody_prepared_is_made_on_the_spot),
        cmocka_unit_test(the_last_record_of_a_segment_leaves_room_for_its_end),
        cmocka_unit_test(another_size_holds_from_the_next_segment_on),
        cmocka_unit_test(another_mode_begins_another_segment),
        cmocka_unit_test(a_weaker_mode_holds_once_the_disk_says_so),
        cmocka_unit_test(a_sync_notes_how_far_it_came_and_a_note_needs_no_sync),
        cmocka_unit_test(a_sync_covers_what_was_written_and_no_more),
        cmocka_unit_test(a_sync_reaches_every_segment_since_the_last_one),
        cmocka_unit_test(a_segment_that_was_compacted_away_is_not_missed),
        cmocka_unit_test(a_segment_that_was_taken_away_under_the_log_breaks_it),
        cmocka_unit_test(one_process_is_told_to_sync_once_per_interval),
        cmocka_unit_test(nobody_is_told_to_sync_while_somebody_does),
        cmocka_unit_test(a_log_that_was_begun_is_found_after_a_power_cut),
        cmocka_unit_test(a_left_over_next_segment_is_not_used),
        cmocka_unit_test(bytes_of_another_log_are_never_written_over),
        cmocka_unit_test(a_closed_log_ends_in_the_record_that_says_so),
        cmocka_unit_test(a_nearly_full_disk_is_said_to_be_before_it_is_full),
        cmocka_unit_test(a_segment_that_is_not_made_yet_is_no_space),
        cmocka_unit_test(a_full_disk_makes_the_log_wait_and_space_makes_it_go_on),
        cmocka_unit_test(a_next_segment_that_somebody_left_half_made_is_made_anew),
        cmocka_unit_test(a_failed_sync_breaks_the_log_for_good_and_is_never_tried_again),
        cmocka_unit_test(a_failed_write_breaks_the_log_for_good),
        cmocka_unit_test(a_log_that_broke_is_not_made_good_by_what_others_find),
        cmocka_unit_test(a_shortage_of_descriptors_passes),
        cmocka_unit_test(a_power_cut_after_any_call_leaves_all_that_was_said_to_be_synced),
        cmocka_unit_test(a_power_cut_while_closing_leaves_no_hole_before_the_end),
        cmocka_unit_test(a_call_that_fails_makes_no_word_untrue_whichever_it_is),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
