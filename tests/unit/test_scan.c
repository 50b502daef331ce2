/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a journal back: whole, in pieces, cut, torn, damaged, half dropped by a power cut. A scan may refuse, or say what it
 * cuts off; it never leaves a record out in silence.
 */
#include "scribe.h"

#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT 65536

static struct shelf shelf;
static struct scribe *scribe;

static int set_up(void **state)
{
    (void)state;
    shelf_init(&shelf);
    scribe = scribe_new(&shelf);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    shelf_fini(&shelf);
    free(scribe);
    return 0;
}

static struct scan_report scan_expecting(enum scan_result expected, size_t records)
{
    struct reading reading = {.scribe = scribe};
    struct scan_report report;
    enum scan_result result = reading_scan(&reading, &shelf, &report);

    if (result != expected)
        fail_msg("scan: %d instead of %d: %s", result, expected, report.why);
    assert_int_equal(reading.count, records);
    return report;
}

/* Some thirty bytes each, as most records of rooms are. */
static void put_some(unsigned records)
{
    while (records-- > 0)
        scribe_put(scribe, RECORD_ROOM, 20 + scribe->chain.sequence % 30);
}

static void put_synced(void)
{
    scribe_put(scribe, RECORD_SYNCED, scribe_position(scribe));
}

static void start_machine_anew(void)
{
    memcpy(shelf.boot, "another start..", DISK_BOOT_BYTES);
}

static unsigned char *bytes_of(const char *file)
{
    return shelf_find(&shelf, file)->bytes;
}

static const struct written *last(size_t back)
{
    return &scribe->written[scribe->count - 1 - back];
}

static void damage(const struct written *written)
{
    bytes_of(written->file)[written->offset + 20] ^= 0x40;
}

static void remove_file(const char *name)
{
    assert_int_equal(shelf.disk.remove(&shelf.disk, name), 0);
}

/* ---- whole journals ---- */

static void an_empty_folder_is_a_beginning(void **state)
{
    (void)state;
    shelf_put(&shelf, "lost+found", 5);
    shelf_put(&shelf, LOG_NEXT, SEGMENT);
    shelf_put(&shelf, "journal-0000000000000000.bak", 100);
    struct scan_report report = scan_expecting(SCAN_GOOD, 0);
    assert_string_equal(report.tail.file, "");
    assert_int_equal(report.next, 0);
    assert_int_equal(report.next_sequence, 1);
    assert_false(report.has_snapshot || report.is_short || report.is_booted || report.is_closed);
    assert_false(scan_may_have_lost(&report));
}

static void records_come_back_in_order_with_their_places(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    scribe_put(scribe, RECORD_ZONE, 5);
    put_some(100);
    put_synced();
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_int_equal(report.end, scribe_position(scribe));
    assert_int_equal(report.sequence, scribe->chain.sequence);
    assert_int_equal(report.chain, scribe->chain.crc);
    assert_string_equal(report.tail.file, scribe->file);
    assert_int_equal(report.tail.offset, scribe->at);
    assert_int_equal(report.journal_bytes, scribe->at);
    assert_int_equal(report.segments, 1);
    assert_int_equal(report.torn_bytes, 0);
    assert_int_equal(report.next, SEGMENT);
    assert_int_equal(report.next_sequence, scribe->chain.sequence + 2);
    assert_int_equal(report.sync, SYNC_INTERVAL);
    assert_false(report.is_closed || report.is_booted || report.is_short || report.had_failed);
    assert_false(scan_may_have_lost(&report));
}

static void segments_are_read_one_after_the_other_whatever_order_they_are_listed_in(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    for (int n = 0; n < 5; n++) {
        put_some(50);
        scribe_next_segment(scribe, SEGMENT);
    }
    put_some(50);
    for (int n = 0; n < 3; n++) {
        struct shelf_file swapped = shelf.files[n];
        shelf.files[n] = shelf.files[5 - n];
        shelf.files[5 - n] = swapped;
        struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
        assert_int_equal(report.segments, 6);
        assert_int_equal(report.end, scribe_position(scribe));
        assert_int_equal(report.next, scribe->head.end);
        assert_string_equal(report.tail.file, scribe->file);
    }
}

static void records_of_any_size_are_read_across_the_edges_of_the_window(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, 8 << 20);
    for (unsigned n = 0; n < 120; n++)
        scribe_put(scribe, RECORD_ROOM, n % 3 == 0 ? FRAME_BODY_MAX : n % 3 == 1 ? 1 : 40000 + n);
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_true(report.journal_bytes > 4 << 20);
}

static void an_end_without_a_segment_after_it_is_a_good_end(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    struct frame_chain before = scribe->chain;
    uint64_t end = scribe_position(scribe);
    scribe_put(scribe, RECORD_END, end + FRAME_END_BYTES);
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_int_equal(report.end, end);
    assert_int_equal(report.sequence, before.sequence);
    assert_int_equal(report.chain, before.crc);
    assert_int_equal(report.torn_bytes, 0);
    assert_int_equal(report.next, SEGMENT);
    assert_int_equal(report.next_sequence, scribe->chain.sequence + 1);
    assert_false(scan_may_have_lost(&report));

    shelf_find(&shelf, scribe->file)->len = scribe->at; /* nothing belongs behind it */
    report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_false(report.is_short);
}

/* Where the end says that the log goes on nothing else may ever have been, and nothing before. */
static void the_log_goes_on_no_earlier_than_its_end_says(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    scribe_put(scribe, RECORD_END, 5 * SEGMENT);
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_int_equal(report.next, 5 * SEGMENT);
}

/* A good checksum does not make it one. */
static void a_record_whose_body_its_type_never_has_is_none(void **state)
{
    static const enum record_type types[] = {RECORD_SYNCED, RECORD_END, RECORD_ZONE, RECORD_CLOSED};

    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    for (unsigned n = 0; n < sizeof(types) / sizeof(*types); n++) {
        struct frame_chain chain = scribe->chain;
        frame_write_record(bytes_of(scribe->file) + scribe->at, types[n], SPAN("1234"), 0, &chain);
        struct scan_report report = scan_expecting(SCAN_GOOD, 10);
        assert_int_equal(report.torn_bytes, 40);
        assert_int_equal(report.dropped_records, 0);
    }
}

static void an_orderly_end_is_known(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    scribe_put(scribe, RECORD_CLOSED, 0);
    start_machine_anew();
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_true(report.is_closed && report.is_booted);
    assert_false(scan_may_have_lost(&report));
    put_some(1);
    report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_false(report.is_closed);
    assert_true(scan_may_have_lost(&report));
}

static void the_reader_may_stop_it(void **state)
{
    struct reading reading = {.scribe = scribe, .stop_at = 7};
    struct scan_report report;

    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_STOPPED);
    assert_int_equal(reading.count, 7);
}

/* ---- cut and flipped ---- */

/* A segment of 64 KiB, with some zeros left at the end, of which the last record was not synced. */
static void write_64_kib(void)
{
    scribe_segment(scribe, 0, SEGMENT);
    scribe_put(scribe, RECORD_ZONE, 5);
    while (scribe->at + 300 < SEGMENT) {
        put_some(1);
        if (scribe->count % 50 == 0)
            put_synced();
    }
}

static const struct written *record_at(size_t offset)
{
    for (size_t n = 0; n < scribe->count; n++)
        if (offset < scribe->written[n].offset + scribe->written[n].bytes)
            return &scribe->written[n];
    return NULL;
}

/* A flip before the last record must be refused at its place, one in the last is a torn tail, one behind it too. */
static void check_flip(size_t offset)
{
    const struct written *flipped = record_at(offset);
    bool is_before = offset < last(0)->offset;
    struct reading reading = {.scribe = scribe};
    struct scan_report report;
    enum scan_result result = reading_scan(&reading, &shelf, &report);

    if (result != (is_before ? SCAN_DAMAGED : SCAN_GOOD))
        fail_msg("a flip at byte %zu: %d: %s", offset, result, report.why);
    if (is_before) {
        size_t place = offset < FRAME_HEAD_BYTES ? 0 : flipped->offset;
        assert_int_equal(report.place.offset, place);
        assert_string_equal(report.place.file, scribe->file);
        return;
    }
    assert_int_equal(reading.count, scribe->count - (flipped != NULL));
    assert_true(report.torn_bytes > 0);
    assert_false(report.is_short);
}

static void every_flipped_byte_of_64_kib_is_noticed(void **state)
{
    (void)state;
    write_64_kib();
    unsigned char *bytes = bytes_of(scribe->file);
    for (size_t offset = 0; offset < SEGMENT; offset++) {
        unsigned char flip = (unsigned char)(1 << offset % 8);
        bytes[offset] ^= flip;
        check_flip(offset);
        bytes[offset] ^= flip;
    }
    scan_expecting(SCAN_GOOD, scribe->count);
}

/* Nothing follows a cut, so it is no damage that a scan could see; but it is short, and so may have lost something. */
static void check_cut(size_t len)
{
    struct reading reading = {.scribe = scribe};
    struct scan_report report;
    enum scan_result result = reading_scan(&reading, &shelf, &report);
    size_t whole = 0;

    while (whole < scribe->count && scribe->written[whole].offset + scribe->written[whole].bytes <= len)
        whole++;
    if (result != SCAN_GOOD || reading.count != whole || !report.is_short || !scan_may_have_lost(&report))
        fail_msg("cut to %zu bytes: %d, %zu records, torn %d, short %d", len, result, reading.count,
                 (int)report.torn_bytes, report.is_short);
    assert_int_equal(report.next, len < FRAME_HEAD_BYTES ? 0 : SEGMENT); /* never where something stood */
}

static void a_file_cut_at_any_byte_is_noticed(void **state)
{
    (void)state;
    write_64_kib();
    struct shelf_file *file = shelf_find(&shelf, scribe->file);
    for (size_t len = 0; len < SEGMENT; len++) {
        file->len = len;
        check_cut(len);
    }
}

static void the_end_of_64_kib_may_be_garbage_of_any_kind(void **state)
{
    struct dice dice = {1};

    (void)state;
    write_64_kib();
    unsigned char *bytes = bytes_of(scribe->file);
    for (unsigned round = 0; round < 200; round++) {
        size_t from = scribe->at + dice_below(&dice, SEGMENT - (uint32_t)scribe->at);
        bytes[from] = 1;
        for (size_t n = from + 1; n < SEGMENT; n++)
            bytes[n] = (unsigned char)dice_roll(&dice);
        struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
        assert_true(report.torn_bytes > 0 && report.torn_bytes <= SEGMENT - scribe->at);
        assert_int_equal(report.dropped_records, 0);
        memset(bytes + scribe->at, 0, SEGMENT - scribe->at);
    }
}

/* ---- several segments, some not there ---- */

static void write_three_segments(void)
{
    scribe_segment(scribe, 0, SEGMENT);
    put_some(40);
    scribe_next_segment(scribe, SEGMENT);
    put_some(40);
    scribe_next_segment(scribe, SEGMENT);
    put_some(40);
}

static void a_missing_segment_is_refused_by_name(void **state)
{
    (void)state;
    write_three_segments();
    const struct written *first_end = &scribe->written[40];
    char missing[FRAME_NAME_BYTES], cut[64];
    frame_name(false, first_end->value, missing);
    snprintf(cut, sizeof(cut), "truncate %s to %zu bytes", first_end->file, first_end->offset);
    remove_file(missing);
    struct scan_report report = scan_expecting(SCAN_DAMAGED, 41);
    assert_string_equal(report.place.file, missing);
    assert_non_null(strstr(report.why, missing));
    assert_non_null(strstr(report.why, "is missing"));
    assert_non_null(strstr(report.why, cut));
}

/* The way out that a refusal names leads out, and the loss is known then. */
static void who_follows_the_advice_gets_what_is_whole_and_known_to_be_a_part(void **state)
{
    (void)state;
    for (int is_missing = 0; is_missing < 2; is_missing++) {
        tear_down(NULL);
        set_up(NULL);
        write_three_segments();
        const struct written *bad = &scribe->written[is_missing ? 41 : 30];
        if (is_missing)
            remove_file(bad->file);
        else
            damage(bad);
        struct scan_report report = scan_expecting(SCAN_DAMAGED, is_missing ? 41 : 30);
        shelf_find(&shelf, report.tail.file)->len = report.tail.offset;
        for (size_t n = 41; n < scribe->count; n++)
            shelf.disk.remove(&shelf.disk, scribe->written[n].file);
        report = scan_expecting(SCAN_GOOD, is_missing ? 40 : 30);
        assert_true(report.is_short && scan_may_have_lost(&report));
    }
}

static void a_missing_beginning_is_refused(void **state)
{
    (void)state;
    write_three_segments();
    remove_file("journal-0000000000000000");
    struct scan_report report = scan_expecting(SCAN_DAMAGED, 0);
    assert_string_equal(report.place.file, "journal-0000000000000000");
    assert_non_null(strstr(report.why, "is missing"));
}

static void damage_in_a_segment_that_is_over_is_refused_wherever_it_is(void **state)
{
    (void)state;
    write_three_segments();
    for (size_t n = 0; n < scribe->count - 1; n++) {
        damage(&scribe->written[n]);
        struct scan_report report = scan_expecting(SCAN_DAMAGED, n);
        assert_int_equal(report.place.offset, scribe->written[n].offset);
        assert_string_equal(report.place.file, scribe->written[n].file);
        damage(&scribe->written[n]);
    }
}

/* Behind the end nobody looks. */
static void what_stands_behind_the_end_of_a_segment_is_nothing(void **state)
{
    (void)state;
    write_three_segments();
    const struct written *end = &scribe->written[40];
    memset(bytes_of(end->file) + end->offset + end->bytes, 0xaa, 100);
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_int_equal(report.torn_bytes, 0);
}

static void a_segment_that_was_being_begun_is_a_torn_tail(void **state)
{
    (void)state;
    write_three_segments();
    uint64_t end = scribe_position(scribe), next = end + FRAME_END_BYTES;
    struct frame_chain before = scribe->chain;
    char name[FRAME_NAME_BYTES];
    scribe_put(scribe, RECORD_END, next);
    frame_name(false, next, name);
    unsigned char *bytes = shelf_put(&shelf, name, SEGMENT)->bytes;
    for (unsigned torn = 0; torn < FRAME_HEAD_BYTES; torn += 8) {
        memset(bytes, 0xff, torn);
        struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
        assert_int_equal(report.torn_bytes, torn);
        assert_int_equal(report.end, end);
        assert_int_equal(report.chain, before.crc);
        assert_int_equal(report.next, next + SEGMENT);
        assert_false(report.is_short || scan_may_have_lost(&report));
    }
    scribe_segment(scribe, next, SEGMENT);
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_int_equal(report.end, next + FRAME_HEAD_BYTES);
}

static void a_journal_that_was_being_begun_begins_again(void **state)
{
    (void)state;
    unsigned char *bytes = shelf_put(&shelf, "journal-0000000000000000", SEGMENT)->bytes;
    for (unsigned torn = 0; torn < FRAME_HEAD_BYTES; torn += 8) {
        memset(bytes, 0xff, torn);
        struct scan_report report = scan_expecting(SCAN_GOOD, 0);
        assert_string_equal(report.tail.file, "");
        assert_int_equal(report.torn_bytes, torn);
        assert_int_equal(report.next, 0);
        assert_int_equal(report.next_sequence, 1);
    }
}

/* The end of one segment was not written, but the next was begun: nothing is lost with it. */
static void a_segment_begun_before_the_end_of_the_one_before_is_dropped_if_it_is_empty(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    scribe_next_segment(scribe, SEGMENT);
    const struct written *end = last(0);
    memset(bytes_of(end->file) + end->offset, 0, end->bytes);
    struct scan_report report = scan_expecting(SCAN_GOOD, 10);
    assert_int_equal(report.next, scribe->head.end);
    assert_int_equal(report.torn_bytes, FRAME_HEAD_BYTES);
    const struct written *record = last(1);
    memset(bytes_of(record->file) + record->offset, 0, record->bytes);
    scan_expecting(SCAN_DAMAGED, 9); /* ... but its head knows of a record that was there */
}

static void a_segment_of_another_place_or_with_too_low_numbers_is_refused(void **state)
{
    (void)state;
    write_three_segments();
    const struct written *record = last(0);
    unsigned char *head = bytes_of(record->file);
    struct frame_head changed = scribe->head;
    changed.first += 8;
    frame_write_head(&changed, head);
    struct scan_report report = scan_expecting(SCAN_DAMAGED, 82);
    assert_int_equal(report.place.offset, 0);
    changed = scribe->head;
    changed.sequence -= 1;
    frame_write_head(&changed, head);
    report = scan_expecting(SCAN_DAMAGED, 82);
    assert_int_equal(report.place.offset, 0);
    changed.sequence += 1;
    changed.end = changed.first;
    frame_write_head(&changed, head);
    scan_expecting(SCAN_DAMAGED, 82);
    frame_write_head(&scribe->head, head);
    scan_expecting(SCAN_GOOD, scribe->count);
}

static void numbers_may_be_left_out_between_segments(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    uint64_t next = 2 * SEGMENT;
    scribe_put(scribe, RECORD_END, next);
    scribe->chain.sequence += 5;
    scribe_segment(scribe, next, SEGMENT);
    put_some(10);
    scan_expecting(SCAN_GOOD, scribe->count);
}

static void a_newer_version_is_refused_with_a_sentence(void **state)
{
    (void)state;
    write_three_segments();
    struct frame_head newer = scribe->head;
    newer.version = FRAME_VERSION + 1;
    frame_write_head(&newer, bytes_of(scribe->file));
    struct scan_report report = scan_expecting(SCAN_NEWER, 82);
    char expected[320];
    snprintf(expected, sizeof(expected),
             "%s was written by a newer version of Weir (format 2, this one knows 1): use that version or a "
             "newer one.",
             scribe->file);
    assert_string_equal(report.why, expected);
    damage(&scribe->written[50]); /* a newer one behind damage counts more */
    scan_expecting(SCAN_NEWER, 50);
}

/* ---- snapshots ---- */

static void a_snapshot_comes_first_and_the_journal_goes_on_from_it(void **state)
{
    (void)state;
    write_three_segments();
    const struct written *from = &scribe->written[60];
    scribe_snapshot(scribe, 0, 9, 0);
    scribe_snapshot(scribe, from->position, 5, last(10)->position);
    struct reading reading = {.scribe = scribe, .from = 60};
    struct scan_report report;
    assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_GOOD);
    assert_true(report.has_snapshot);
    assert_int_equal(report.snapshot_first, from->position);
    assert_int_equal(reading.snapshot_count, 5);
    assert_int_equal(reading.count, scribe->count - 60);
    assert_int_equal(report.segments, 2);

    remove_file("journal-0000000000000000"); /* what is before it is not needed */
    assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_GOOD);
    assert_int_equal(reading.count, scribe->count - 60);
}

/* A place between two records, or the end of the journal. */
static void the_journal_goes_on_at_the_first_record_at_or_after_the_snapshot(void **state)
{
    (void)state;
    write_three_segments();
    struct reading reading = {.scribe = scribe, .from = 61};
    struct scan_report report;
    scribe_snapshot(scribe, scribe->written[60].position + 8, 5, 0);
    assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_GOOD);
    assert_int_equal(reading.count, scribe->count - 61);
    scribe_snapshot(scribe, scribe_position(scribe), 5, scribe_position(scribe));
    assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_GOOD);
    assert_int_equal(reading.count, 0);
    assert_int_equal(report.end, scribe_position(scribe));
}

static void every_flip_and_cut_of_a_snapshot_is_refused_before_any_of_it_is_given(void **state)
{
    char name[FRAME_NAME_BYTES];
    struct reading reading = {.scribe = scribe};
    struct scan_report report;

    (void)state;
    write_three_segments();
    scribe_snapshot(scribe, 0, 50, 0);
    frame_name(true, 0, name);
    struct shelf_file *file = shelf_find(&shelf, name);
    reading.scribe = scribe;
    for (size_t offset = 0; offset < file->len; offset++) {
        file->bytes[offset] ^= 0x10;
        assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_DAMAGED);
        assert_int_equal(reading.snapshot_count, 0);
        assert_string_equal(report.place.file, name);
        file->bytes[offset] ^= 0x10;
    }
    while (file->len-- > 0) {
        assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_DAMAGED);
        assert_int_equal(reading.snapshot_count, 0);
    }
}

static void a_snapshot_of_a_newer_version_is_refused(void **state)
{
    (void)state;
    write_three_segments();
    scribe_snapshot(scribe, 0, 5, 0);
    struct frame_head newer = scribe->head;
    newer.is_snapshot = true;
    newer.version = 9;
    frame_write_head(&newer, bytes_of("snapshot-0000000000000000"));
    scan_expecting(SCAN_NEWER, 0);
}

static void a_journal_that_does_not_reach_what_the_snapshot_saw_is_refused(void **state)
{
    (void)state;
    write_three_segments();
    uint64_t end = scribe_position(scribe);
    scribe_snapshot(scribe, scribe->written[41].position, 5, end);
    struct reading reading = {.scribe = scribe, .from = 41};
    struct scan_report report;
    assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_GOOD);
    damage(last(0)); /* a torn tail by itself */
    assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_DAMAGED);
    assert_non_null(strstr(report.why, "the snapshot says that it went on"));
    assert_string_equal(report.place.file, last(0)->file);
    assert_int_equal(report.place.offset, last(0)->offset);
    start_machine_anew();
    assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_DAMAGED);
}

static void a_snapshot_without_its_journal_is_refused(void **state)
{
    (void)state;
    scribe_segment(scribe, SEGMENT, SEGMENT);
    put_some(10);
    scribe_snapshot(scribe, 640, 5, 640);
    scan_expecting(SCAN_DAMAGED, 0);
    remove_file(scribe->file);
    scan_expecting(SCAN_DAMAGED, 0);
}

/* ---- after a power cut ---- */

static void damage_is_a_tail_after_a_start_of_the_machine_unless_a_sync_is_proven(void **state)
{
    (void)state;
    write_three_segments();
    damage(&scribe->written[90]);
    scan_expecting(SCAN_DAMAGED, 90);
    start_machine_anew();
    struct scan_report report = scan_expecting(SCAN_GOOD, 90);
    assert_int_equal(report.dropped_records, scribe->count - 91);
    assert_true(report.is_booted && scan_may_have_lost(&report));
    assert_int_equal(report.next_sequence, scribe->chain.sequence);
    assert_int_equal(report.next, scribe->head.end);

    scribe_put(scribe, RECORD_SYNCED, scribe->written[90].position); /* right up to the bad one */
    report = scan_expecting(SCAN_GOOD, 90);
    put_some(1);
    scribe_put(scribe, RECORD_SYNCED, scribe->written[91].position);
    report = scan_expecting(SCAN_DAMAGED, 90);
    assert_int_equal(report.place.offset, scribe->written[90].offset);
}

static void an_orderly_end_proves_the_sync_of_everything_before(void **state)
{
    (void)state;
    write_three_segments();
    scribe_put(scribe, RECORD_CLOSED, 0);
    damage(&scribe->written[90]);
    start_machine_anew();
    scan_expecting(SCAN_DAMAGED, 90);
}

static void a_segment_lost_by_a_power_cut_is_told_from_one_that_was_removed(void **state)
{
    (void)state;
    write_three_segments();
    char missing[FRAME_NAME_BYTES];
    frame_name(false, scribe->written[40].value, missing);
    remove_file(missing);
    start_machine_anew();
    struct scan_report report = scan_expecting(SCAN_GOOD, 41);
    assert_int_equal(report.dropped_records, 40);
    assert_true(scan_may_have_lost(&report));
    assert_string_equal(report.tail.file, "journal-0000000000000000");
    put_synced();
    scan_expecting(SCAN_DAMAGED, 41);
}

static void a_failed_sync_counts_like_a_power_cut(void **state)
{
    (void)state;
    write_three_segments();
    damage(&scribe->written[90]);
    shelf_put(&shelf, LOG_FAILED, 0);
    struct scan_report report = scan_expecting(SCAN_GOOD, 90);
    assert_true(report.had_failed && !report.is_booted && scan_may_have_lost(&report));
}

static void a_machine_that_does_not_say_when_it_started_counts_as_started_anew(void **state)
{
    (void)state;
    memset(shelf.boot, 0, DISK_BOOT_BYTES);
    memset(scribe->head.boot, 0, DISK_BOOT_BYTES);
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    struct scan_report report = scan_expecting(SCAN_GOOD, 10);
    assert_true(report.is_booted);
}

/* The newest head says when the log was written last. */
static void a_log_that_was_begun_since_the_start_of_the_machine_has_no_unsynced_past(void **state)
{
    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(40);
    start_machine_anew();
    memcpy(scribe->head.boot, shelf.boot, DISK_BOOT_BYTES);
    scribe_next_segment(scribe, SEGMENT);
    put_some(5);
    damage(&scribe->written[30]);
    scan_expecting(SCAN_DAMAGED, 30);
    damage(&scribe->written[30]);
    damage(last(0));
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count - 1);
    assert_false(report.is_booted || scan_may_have_lost(&report));
}

/* A change of the mode begins another segment; what is missing may belong to either. */
static void where_the_mode_changed_the_one_that_waits_for_less_counts(void **state)
{
    (void)state;
    for (int to_always = 0; to_always < 2; to_always++) {
        tear_down(NULL);
        set_up(NULL);
        scribe->head.sync = to_always ? SYNC_INTERVAL : SYNC_ALWAYS;
        scribe_segment(scribe, 0, SEGMENT);
        put_some(10);
        scribe->head.sync = to_always ? SYNC_ALWAYS : SYNC_INTERVAL;
        scribe_next_segment(scribe, SEGMENT);
        start_machine_anew();
        for (size_t n = 0; n < 3; n++)
            memset(bytes_of(last(n)->file) + last(n)->offset, 0, last(n)->bytes);
        struct scan_report report = scan_expecting(SCAN_GOOD, 8);
        assert_int_equal(report.dropped_records, 0);
        assert_int_equal(report.sync, SYNC_INTERVAL);
        assert_true(scan_may_have_lost(&report));
    }
}

static void the_first_head_is_never_a_tail_if_records_follow(void **state)
{
    (void)state;
    write_three_segments();
    bytes_of("journal-0000000000000000")[9] ^= 1;
    start_machine_anew();
    struct scan_report report = scan_expecting(SCAN_DAMAGED, 0);
    assert_int_equal(report.place.offset, 0);
}

/* Of what was not synced each page is there or not; `least` records are. */
static void drop_pages(struct dice *dice, size_t page, const struct written *synced)
{
    for (int n = 0; n < SHELF_FILES; n++) {
        struct shelf_file *file = &shelf.files[n];
        bool is_later = strcmp(file->name, synced->file) > 0;
        size_t from = is_later ? 0 : synced->offset + synced->bytes;
        if (file->name[0] == '\0' || strcmp(file->name, synced->file) < 0)
            continue;
        for (size_t at = from / page * page; at < file->len; at += page) {
            size_t begin = at < from ? from : at, end = at + page < file->len ? at + page : file->len;
            if (dice_below(dice, 3) == 0)
                memset(file->bytes + begin, 0, end - begin);
        }
    }
}

static void unsynced_pages_may_be_lost_in_any_order_but_nothing_before_the_last_sync(void **state)
{
    static const size_t pages[] = {512, 4096};
    struct dice dice = {7};
    unsigned dropped = 0, refused = 0;

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        tear_down(NULL);
        set_up(NULL);
        scribe_segment(scribe, 0, SEGMENT);
        put_some(50 + dice_below(&dice, 300));
        if (dice_below(&dice, 2) == 0)
            scribe_next_segment(scribe, SEGMENT);
        put_some(1);
        size_t synced = scribe->count - 1;
        put_some(dice_below(&dice, 50));
        scribe_put(scribe, RECORD_SYNCED, scribe->written[synced + 1].position);
        for (unsigned n = 0; n < 3; n++) {
            put_some(50 + dice_below(&dice, 300));
            scribe_next_segment(scribe, SEGMENT);
        }
        put_some(20);
        drop_pages(&dice, pages[round % 2], &scribe->written[synced]);

        struct reading reading = {.scribe = scribe};
        struct scan_report report;
        refused += reading_scan(&reading, &shelf, &report) == SCAN_DAMAGED;
        start_machine_anew();
        if (reading_scan(&reading, &shelf, &report) != SCAN_GOOD)
            fail_msg("round %u: %s", round, report.why);
        assert_true(reading.count > synced);
        assert_true(reading.count == scribe->count || scan_may_have_lost(&report));
        assert_true(report.next >= scribe_position(scribe));
        assert_true(report.next_sequence > reading.count + report.dropped_records);
        dropped += report.dropped_records > 0;
    }
    assert_true(dropped > 200 && refused > 200);
}

static void what_may_have_been_lost_depends_on_the_mode(void **state)
{
    static const struct {
        struct scan_report report;
        bool may_have_lost;
    } cases[] = {
        {{.sync = SYNC_OFF}, false},
        {{.sync = SYNC_INTERVAL}, false},
        {{.sync = SYNC_ALWAYS}, false},
        {{.sync = SYNC_OFF, .is_booted = true}, true},
        {{.sync = SYNC_INTERVAL, .is_booted = true}, true},
        {{.sync = SYNC_ALWAYS, .is_booted = true}, false},
        {{.sync = SYNC_OFF, .is_booted = true, .is_closed = true}, false},
        {{.sync = SYNC_INTERVAL, .had_failed = true}, true},
        {{.sync = SYNC_ALWAYS, .had_failed = true}, false},
        {{.sync = SYNC_ALWAYS, .is_short = true}, true},
        {{.sync = SYNC_ALWAYS, .is_booted = true, .dropped_records = 1}, true},
        {{.sync = SYNC_ALWAYS, .is_closed = true, .had_lost = true}, true},
        {{.sync = SYNC_INTERVAL, .torn_bytes = 9}, false},
    };

    (void)state;
    for (unsigned n = 0; n < sizeof(cases) / sizeof(*cases); n++)
        assert_int_equal(scan_may_have_lost(&cases[n].report), cases[n].may_have_lost);
}

static void a_loss_that_a_recovery_had_found_is_not_forgotten(void **state)
{
    (void)state;
    write_three_segments();
    struct scan_report report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_false(scan_may_have_lost(&report));
    shelf_put(&shelf, LOG_LOST, 0);
    report = scan_expecting(SCAN_GOOD, scribe->count);
    assert_true(report.had_lost && scan_may_have_lost(&report));
}

/* ---- disks that fail, folders in use ---- */

static void a_call_that_fails_ends_the_scan_and_says_where(void **state)
{
    struct reading reading = {.scribe = scribe};
    struct scan_report report;
    uint32_t n = 0;

    (void)state;
    write_three_segments();
    damage(last(0));
    scribe_snapshot(scribe, 0, 5, 0);
    reading.scribe = scribe;
    do {
        shelf.calls = 0;
        shelf.fails_at = ++n;
        enum scan_result result = reading_scan(&reading, &shelf, &report);
        assert_int_equal(result, shelf.calls < n ? SCAN_GOOD : SCAN_FAILED);
        if (result == SCAN_FAILED)
            assert_non_null(strstr(report.why, "Input/output error"));
    } while (shelf.calls >= n);
    assert_true(n > 15);
}

/* A record more at every read, as if nginx was running; now and then a segment. */
static void go_on_writing(struct shelf *in_use)
{
    (void)in_use;
    if (scribe->count % 100 == 99)
        scribe_next_segment(scribe, SEGMENT);
    if (scribe->count < 3000)
        put_some(1);
}

/* Bytes that were read before they were written; others behind them, after. */
static void write_behind_the_reader(struct shelf *in_use)
{
    static unsigned reads;

    (void)in_use;
    if (scribe->count < 225 && reads++ % 3 == 2)
        for (unsigned n = 0; n < 25; n++)
            scribe_put(scribe, RECORD_ROOM, FRAME_BODY_MAX);
}

static void a_log_that_is_being_written_is_never_called_damaged(void **state)
{
    struct reading reading = {.scribe = scribe};
    struct scan_report report;

    (void)state;
    scribe_segment(scribe, 0, SEGMENT);
    put_some(10);
    reading.scribe = scribe;
    shelf.before_read = go_on_writing;
    for (unsigned n = 0; n < 40; n++) {
        size_t least = scribe->count;
        assert_int_equal(reading_scan(&reading, &shelf, &report), SCAN_GOOD);
        assert_true(reading.count >= least);
    }
    tear_down(NULL);
    set_up(NULL);
    scribe_segment(scribe, 0, 16 << 20);
    put_some(10);
    reading.scribe = scribe;
    shelf.before_read = write_behind_the_reader;
    for (unsigned n = 0; n < 6; n++) {
        size_t least = scribe->count;
        if (reading_scan(&reading, &shelf, &report) != SCAN_GOOD)
            fail_msg("%s", report.why);
        assert_true(reading.count >= least);
    }
}

#define SCAN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCAN_TEST(an_empty_folder_is_a_beginning),
        SCAN_TEST(records_come_back_in_order_with_their_places),
        SCAN_TEST(segments_are_read_one_after_the_other_whatever_order_they_are_listed_in),
        SCAN_TEST(records_of_any_size_are_read_across_the_edges_of_the_window),
        SCAN_TEST(an_end_without_a_segment_after_it_is_a_good_end),
        SCAN_TEST(the_log_goes_on_no_earlier_than_its_end_says),
        SCAN_TEST(a_record_whose_body_its_type_never_has_is_none),
        SCAN_TEST(an_orderly_end_is_known),
        SCAN_TEST(the_reader_may_stop_it),
        SCAN_TEST(every_flipped_byte_of_64_kib_is_noticed),
        SCAN_TEST(a_file_cut_at_any_byte_is_noticed),
        SCAN_TEST(the_end_of_64_kib_may_be_garbage_of_any_kind),
        SCAN_TEST(a_missing_segment_is_refused_by_name),
        SCAN_TEST(who_follows_the_advice_gets_what_is_whole_and_known_to_be_a_part),
        SCAN_TEST(a_missing_beginning_is_refused),
        SCAN_TEST(damage_in_a_segment_that_is_over_is_refused_wherever_it_is),
        SCAN_TEST(what_stands_behind_the_end_of_a_segment_is_nothing),
        SCAN_TEST(a_segment_that_was_being_begun_is_a_torn_tail),
        SCAN_TEST(a_journal_that_was_being_begun_begins_again),
        SCAN_TEST(a_segment_begun_before_the_end_of_the_one_before_is_dropped_if_it_is_empty),
        SCAN_TEST(a_segment_of_another_place_or_with_too_low_numbers_is_refused),
        SCAN_TEST(numbers_may_be_left_out_between_segments),
        SCAN_TEST(a_newer_version_is_refused_with_a_sentence),
        SCAN_TEST(a_snapshot_comes_first_and_the_journal_goes_on_from_it),
        SCAN_TEST(the_journal_goes_on_at_the_first_record_at_or_after_the_snapshot),
        SCAN_TEST(every_flip_and_cut_of_a_snapshot_is_refused_before_any_of_it_is_given),
        SCAN_TEST(a_snapshot_of_a_newer_version_is_refused),
        SCAN_TEST(a_journal_that_does_not_reach_what_the_snapshot_saw_is_refused),
        SCAN_TEST(a_snapshot_without_its_journal_is_refused),
        SCAN_TEST(damage_is_a_tail_after_a_start_of_the_machine_unless_a_sync_is_proven),
        SCAN_TEST(an_orderly_end_proves_the_sync_of_everything_before),
        SCAN_TEST(a_segment_lost_by_a_power_cut_is_told_from_one_that_was_removed),
        SCAN_TEST(a_failed_sync_counts_like_a_power_cut),
        SCAN_TEST(a_machine_that_does_not_say_when_it_started_counts_as_started_anew),
        SCAN_TEST(a_log_that_was_begun_since_the_start_of_the_machine_has_no_unsynced_past),
        SCAN_TEST(where_the_mode_changed_the_one_that_waits_for_less_counts),
        SCAN_TEST(the_first_head_is_never_a_tail_if_records_follow),
        SCAN_TEST(unsynced_pages_may_be_lost_in_any_order_but_nothing_before_the_last_sync),
        SCAN_TEST(what_may_have_been_lost_depends_on_the_mode),
        SCAN_TEST(a_loss_that_a_recovery_had_found_is_not_forgotten),
        SCAN_TEST(a_call_that_fails_ends_the_scan_and_says_where),
        SCAN_TEST(a_log_that_is_being_written_is_never_called_damaged),
    };
    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
