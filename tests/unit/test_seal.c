/* SPDX-License-Identifier: BSD-2-Clause */
/* Going on after a scan: what was whole stays, what was torn is out of the way, and any step may be the last. */
#include "scribe.h"

#include "rig.h"

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

static void put_some(unsigned records)
{
    while (records-- > 0)
        scribe_put(scribe, RECORD_ROOM, 30);
}

static void write_three_segments(void)
{
    scribe_segment(scribe, 0, SEGMENT);
    put_some(40);
    scribe_next_segment(scribe, SEGMENT);
    put_some(40);
    scribe_next_segment(scribe, SEGMENT);
    put_some(40);
}

static void damage(const struct written *written)
{
    shelf_find(&shelf, written->file)->bytes[written->offset + 20] ^= 0x40;
}

/* All that a scan gives, as one text. */
struct text {
    char bytes[1 << 20];
    size_t len, records;
    struct frame_record last[2]; /* the last is last[0] */
};

static bool add_record(void *context, const struct frame_record *record, const struct scan_place *place,
                       bool is_snapshot)
{
    struct text *text = context;

    (void)place;
    (void)is_snapshot;
    text->last[1] = text->last[0];
    text->last[0] = *record;
    text->records++;
    if (record->type == RECORD_ROOM) {
        assert_true(text->len + record->body.len < sizeof(text->bytes));
        memcpy(text->bytes + text->len, record->body.data, record->body.len);
        text->len += record->body.len;
    }
    return true;
}

static struct text *scan_text(struct scan_report *report)
{
    struct text *text = calloc(1, sizeof(*text));
    struct scan_reader reader = {add_record, text, NULL};

    assert_non_null(text);
    if (journal_scan(&shelf.disk, &reader, report) != SCAN_GOOD)
        fail_msg("%s", report->why);
    return text;
}

static size_t count_files(void)
{
    size_t count = 0;

    for (int n = 0; n < SHELF_FILES; n++)
        count += shelf.files[n].name[0] != '\0';
    return count;
}

/* A segment where the log goes on, and a scan over all of it. */
static void go_on_and_check(const struct log_start *start, const struct text *before)
{
    struct scan_report report;

    scribe->chain.sequence = start->sequence;
    scribe_segment(scribe, start->position, SEGMENT);
    put_some(3);
    struct text *after = scan_text(&report);
    assert_int_equal(after->len, before->len + 90);
    assert_memory_equal(after->bytes, before->bytes, before->len);
    assert_int_equal(report.end, scribe_position(scribe));
    assert_int_equal(report.torn_bytes, 0);
    free(after);
}

static void seal_and_check(void)
{
    struct scan_report report;
    struct log_start start;
    struct text *before = scan_text(&report);

    assert_int_equal(journal_seal(&shelf.disk, &report, &start), 0);
    assert_int_equal(shelf.opened, 0);
    assert_int_equal(start.position, report.next);
    assert_int_equal(start.position % 8, 0);
    assert_int_equal(start.sequence, report.next_sequence);
    struct text *sealed = scan_text(&report);
    assert_int_equal(sealed->len, before->len);
    assert_int_equal(report.torn_bytes, 0);
    assert_int_equal(report.dropped_records, 0);
    free(sealed);
    go_on_and_check(&start, before);
    free(before);
}

static void a_whole_journal_goes_on_in_a_new_segment(void **state)
{
    (void)state;
    write_three_segments();
    seal_and_check();
}

static void an_empty_folder_begins_at_nothing(void **state)
{
    struct scan_report report;
    struct log_start start = {9, 9};

    (void)state;
    free(scan_text(&report));
    assert_int_equal(journal_seal(&shelf.disk, &report, &start), 0);
    assert_int_equal(start.position, 0);
    assert_int_equal(start.sequence, 1);
}

static void a_beginning_that_was_torn_is_removed(void **state)
{
    (void)state;
    memset(shelf_put(&shelf, "journal-0000000000000000", SEGMENT)->bytes, 0xff, 10);
    struct scan_report report;
    struct log_start start;
    free(scan_text(&report));
    assert_int_equal(journal_seal(&shelf.disk, &report, &start), 0);
    assert_int_equal(start.position, 0);
    assert_int_equal(count_files(), 0);
}

static void a_torn_tail_is_cut_and_does_not_come_back(void **state)
{
    (void)state;
    write_three_segments();
    damage(&scribe->written[scribe->count - 1]);
    seal_and_check();
}

static void a_seal_says_that_all_before_it_is_on_the_disk(void **state)
{
    struct scan_report report, again;
    struct log_start start;

    (void)state;
    write_three_segments();
    free(scan_text(&report));
    assert_int_equal(journal_seal(&shelf.disk, &report, &start), 0);
    struct text *text = scan_text(&again);
    assert_int_equal(text->last[0].type, RECORD_END);
    assert_int_equal(text->last[1].type, RECORD_SYNCED);
    damage(&scribe->written[100]);
    memcpy(shelf.boot, "another start..", DISK_BOOT_BYTES);
    struct scan_reader reader = {add_record, text, NULL};
    assert_int_equal(journal_scan(&shelf.disk, &reader, &again), SCAN_DAMAGED);
    free(text);
}

/* A disk may be full: then there is no space but what the file has. */
static void a_seal_takes_no_space_that_the_segment_does_not_have(void **state)
{
    (void)state;
    for (size_t left = 0; left <= 120; left += 8) {
        tear_down(NULL);
        set_up(NULL);
        scribe_segment(scribe, 0, SEGMENT);
        put_some(40);
        shelf_find(&shelf, scribe->file)->len = scribe->at + left;
        seal_and_check();
        size_t len = shelf_find(&shelf, "journal-0000000000000000")->len;
        assert_int_equal(len,
                         scribe->written[39].offset + scribe->written[39].bytes + (left < 40 ? 40 : left));
    }
}

static void dropped_segments_and_useless_files_are_removed_and_others_stay(void **state)
{
    (void)state;
    write_three_segments();
    damage(&scribe->written[20]);
    memcpy(shelf.boot, "another start..", DISK_BOOT_BYTES);
    shelf_put(&shelf, LOG_NEXT, SEGMENT);
    shelf_put(&shelf, SNAPSHOT_NEW, 100);
    shelf_put(&shelf, LOG_FAILED, 0);
    shelf_put(&shelf, "notes.txt", 10);
    seal_and_check();
    assert_int_equal(count_files(), 4);
    assert_non_null(shelf_find(&shelf, "journal-0000000000000000"));
    assert_non_null(shelf_find(&shelf, scribe->file));
    assert_non_null(shelf_find(&shelf, LOG_FAILED));
    assert_non_null(shelf_find(&shelf, "notes.txt"));
}

static void sealing_again_and_again_changes_nothing(void **state)
{
    (void)state;
    write_three_segments();
    for (unsigned n = 0; n < 5; n++) {
        struct scan_report report;
        struct log_start start;
        free(scan_text(&report));
        assert_int_equal(journal_seal(&shelf.disk, &report, &start), 0);
    }
    seal_and_check();
}

/* The n-th call fails, for each n; what is there then is scanned and sealed like anything else. */
static void a_seal_that_was_interrupted_anywhere_is_done_again(void **state)
{
    (void)state;
    for (uint32_t n = 1, calls = n; calls >= n; n++) {
        struct scan_report report;
        struct log_start start;
        tear_down(NULL);
        set_up(NULL);
        write_three_segments();
        damage(&scribe->written[60]);
        memcpy(shelf.boot, "another start..", DISK_BOOT_BYTES);
        shelf_put(&shelf, LOG_NEXT, SEGMENT);
        struct text *before = scan_text(&report);
        shelf.calls = 0;
        shelf.fails_at = n;
        int error = journal_seal(&shelf.disk, &report, &start);
        calls = shelf.calls;
        shelf.fails_at = 0;
        assert_int_equal(error == 0, calls < n);
        assert_int_equal(shelf.opened, 0);
        struct text *after = scan_text(&report);
        assert_int_equal(after->len, before->len);
        assert_memory_equal(after->bytes, before->bytes, before->len);
        free(before);
        free(after);
        seal_and_check();
    }
}

/* ... and if what it wrote is torn at any byte, too. */
static void a_seal_torn_at_any_byte_is_done_again(void **state)
{
    struct scan_report report;
    struct log_start start;
    struct shelf whole;

    (void)state;
    write_three_segments();
    struct text *before = scan_text(&report);
    assert_int_equal(journal_seal(&shelf.disk, &report, &start), 0);
    shelf_copy(&whole, &shelf);
    for (size_t torn = 0; torn < 80; torn++) {
        shelf_fini(&shelf);
        shelf_copy(&shelf, &whole);
        memset(shelf_find(&shelf, scribe->file)->bytes + scribe->at + torn, 0, 80 - torn);
        struct text *after = scan_text(&report);
        assert_int_equal(after->len, before->len);
        assert_false(scan_may_have_lost(&report));
        free(after);
    }
    free(before);
    shelf_fini(&whole);
}

/* ---- compaction ---- */

static void write_ten_segments(uint64_t firsts[10])
{
    scribe_segment(scribe, 0, SEGMENT);
    for (unsigned n = 0; n < 10; n++) {
        firsts[n] = scribe->head.first;
        put_some(10);
        if (n < 9)
            scribe_next_segment(scribe, SEGMENT);
    }
}

static void compaction_removes_what_the_snapshot_stands_for_and_nothing_else(void **state)
{
    uint64_t firsts[10];
    struct scan_report report;

    (void)state;
    write_ten_segments(firsts);
    struct text *text;
    scribe_snapshot(scribe, 0, 5, 0);
    scribe_snapshot(scribe, firsts[2], 5, firsts[3]);
    scribe_snapshot(scribe, firsts[6] + FRAME_HEAD_BYTES, 5, firsts[7]);
    text = scan_text(&report);
    assert_int_equal(report.segments, 4);
    assert_int_equal(journal_compact(&shelf.disk, firsts[2]), 0);
    assert_int_equal(count_files(), 8 + 2);
    assert_int_equal(journal_compact(&shelf.disk, firsts[6] + FRAME_HEAD_BYTES), 0);
    assert_int_equal(count_files(), 4 + 1);
    struct text *after = scan_text(&report);
    assert_int_equal(after->len, text->len);
    assert_memory_equal(after->bytes, text->bytes, text->len);
    assert_int_equal(journal_compact(&shelf.disk, firsts[6] + FRAME_HEAD_BYTES), 0);
    assert_int_equal(count_files(), 4 + 1);
    free(after);
    free(text);
}

static void the_segment_under_way_is_never_removed(void **state)
{
    uint64_t firsts[10];

    (void)state;
    write_ten_segments(firsts);
    assert_int_equal(journal_compact(&shelf.disk, UINT64_MAX), 0);
    assert_int_equal(count_files(), 1);
    assert_non_null(shelf_find(&shelf, scribe->file));
}

static void a_compaction_that_was_interrupted_anywhere_leaves_a_journal(void **state)
{
    uint64_t firsts[10];

    (void)state;
    for (uint32_t n = 1, calls = n; calls >= n; n++) {
        struct scan_report report;
        tear_down(NULL);
        set_up(NULL);
        write_ten_segments(firsts);
        scribe_snapshot(scribe, firsts[2], 5, firsts[3]);
        scribe_snapshot(scribe, firsts[6], 5, firsts[7]);
        struct text *before = scan_text(&report);
        shelf.calls = 0;
        shelf.fails_at = n;
        int error = journal_compact(&shelf.disk, firsts[6]);
        calls = shelf.calls;
        shelf.fails_at = 0;
        assert_int_equal(error == 0, calls < n);
        struct text *after = scan_text(&report);
        assert_int_equal(after->len, before->len);
        assert_int_equal(journal_compact(&shelf.disk, firsts[6]), 0);
        assert_int_equal(count_files(), 5);
        free(before);
        free(after);
    }
}

#define SEAL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEAL_TEST(a_whole_journal_goes_on_in_a_new_segment),
        SEAL_TEST(an_empty_folder_begins_at_nothing),
        SEAL_TEST(a_beginning_that_was_torn_is_removed),
        SEAL_TEST(a_torn_tail_is_cut_and_does_not_come_back),
        SEAL_TEST(a_seal_says_that_all_before_it_is_on_the_disk),
        SEAL_TEST(a_seal_takes_no_space_that_the_segment_does_not_have),
        SEAL_TEST(dropped_segments_and_useless_files_are_removed_and_others_stay),
        SEAL_TEST(sealing_again_and_again_changes_nothing),
        SEAL_TEST(a_seal_that_was_interrupted_anywhere_is_done_again),
        SEAL_TEST(a_seal_torn_at_any_byte_is_done_again),
        SEAL_TEST(compaction_removes_what_the_snapshot_stands_for_and_nothing_else),
        SEAL_TEST(the_segment_under_way_is_never_removed),
        SEAL_TEST(a_compaction_that_was_interrupted_anywhere_leaves_a_journal),
    };
    return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
