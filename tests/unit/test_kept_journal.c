/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Journals that were written by earlier versions of the format are kept under data/ and stay readable. What each of them holds
 * is in a text beside it. They are never made anew: a reader that needs that cannot read what people have on their disks.
 */
#include "rig.h"

#include "journal/folder.h"
#include "journal/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DATA "tests/unit/data/"

static char read_text[16384];
static size_t read_len;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    read_len += (size_t)vsnprintf(read_text + read_len, sizeof(read_text) - read_len, format, arguments);
    va_end(arguments);
    assert_true(read_len < sizeof(read_text));
}

static const char *word_of(enum record_type type)
{
    switch (type) {
#define WORD_CASE(name, number, word) \
    case name:                        \
        return word;
        RECORD_LIST(WORD_CASE)
#undef WORD_CASE
    }
    return "?";
}

static bool say_record(void *context, const struct frame_record *record, const struct scan_place *place,
                       bool is_snapshot)
{
    (void)context;
    assert_int_equal(is_snapshot, strncmp(place->file, "snapshot-", 9) == 0);
    say("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %s%s", place->file, place->offset, record->sequence,
        record->time_ms, word_of(record->type), record->body.len > 0 ? " " : "");
    for (size_t n = 0; n < record->body.len; n++)
        say("%02x", (unsigned char)record->body.data[n]);
    say("\n");
    return true;
}

static void check_kept(const char *folder_path, const char *list_path, struct scan_report *report)
{
    static char expected[sizeof(read_text)];
    struct scan_reader reader = {say_record, NULL, NULL};
    struct folder folder;
    FILE *list = fopen(list_path, "re");

    assert_non_null(list);
    expected[fread(expected, 1, sizeof(expected) - 1, list)] = '\0';
    assert_int_equal(fclose(list), 0);
    assert_int_equal(folder_open(&folder, folder_path), 0);
    read_len = 0;
    enum scan_result result = journal_scan(&folder.disk, &reader, report);
    folder_close(&folder);
    if (result != SCAN_GOOD)
        fail_msg("%s", report->why);
    assert_string_equal(read_text, expected);
}

static void a_journal_of_version_1_reads_as_it_was_written(void **state)
{
    struct scan_report report;

    (void)state;
    check_kept(DATA "journal-v1", DATA "journal-v1.txt", &report);
    assert_true(report.has_snapshot && report.is_closed && !report.is_short);
    assert_int_equal(report.torn_bytes, 0);
    assert_int_equal(report.segments, 2);
    assert_int_equal(report.sync, SYNC_INTERVAL);
    assert_false(scan_may_have_lost(&report));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_journal_of_version_1_reads_as_it_was_written),
    };
    return cmocka_run_group_tests_name("kept_journal", tests, NULL, NULL);
}
