/* SPDX-License-Identifier: BSD-2-Clause */
/* Bodies are made from their record's number, so that nothing needs to be kept to know them again. */
#include "scribe.h"

#include "base/little.h"
#include "rig.h"

#include <stdlib.h>
#include <string.h>

struct scribe *scribe_new(struct shelf *shelf)
{
    struct scribe *scribe = calloc(1, sizeof(*scribe));

    assert_non_null(scribe);
    scribe->shelf = shelf;
    scribe->head.sync = SYNC_INTERVAL;
    scribe->chain.sequence = 1;
    memcpy(scribe->head.boot, shelf->boot, DISK_BOOT_BYTES);
    return scribe;
}

static void begin_file(struct scribe *scribe, bool is_snapshot, uint64_t first, size_t bytes)
{
    scribe->head.is_snapshot = is_snapshot;
    scribe->head.version = FRAME_VERSION;
    scribe->head.first = first;
    scribe->head.end = is_snapshot ? 0 : first + bytes;
    scribe->head.sequence = scribe->chain.sequence;
    frame_name(is_snapshot, first, scribe->file);
    frame_write_head(&scribe->head, shelf_put(scribe->shelf, scribe->file, bytes)->bytes);
    scribe->chain.crc = scribe->head.crc;
    scribe->at = FRAME_HEAD_BYTES;
}

void scribe_segment(struct scribe *scribe, uint64_t first, size_t bytes)
{
    begin_file(scribe, false, first, bytes);
}

static struct span body_of(enum record_type type, uint64_t sequence, uint64_t value)
{
    static unsigned char body[FRAME_PADDED(FRAME_BODY_MAX)];
    struct dice dice = {sequence};
    size_t len = type == RECORD_ROOM ? value : type == RECORD_CLOSED ? 0 : 8;

    if (type != RECORD_ROOM)
        little_put64(body, value);
    for (size_t n = 0; type == RECORD_ROOM && n < len; n += 8)
        little_put64(body + n, dice_roll(&dice));
    return (struct span){(const char *)body, len};
}

static uint64_t time_of(uint64_t sequence)
{
    return 1700000000000 + sequence;
}

static size_t put_record(struct scribe *scribe, enum record_type type, uint64_t value)
{
    struct span body = body_of(type, scribe->chain.sequence, value);
    struct shelf_file *file = shelf_find(scribe->shelf, scribe->file);
    size_t bytes = frame_record_bytes(body.len);

    if (scribe->at + bytes > file->len)
        shelf_put(scribe->shelf, scribe->file, scribe->at + bytes);
    frame_write_record(file->bytes + scribe->at, type, body, time_of(scribe->chain.sequence), &scribe->chain);
    scribe->at += bytes;
    return bytes;
}

void scribe_put(struct scribe *scribe, enum record_type type, uint64_t value)
{
    assert_true(scribe->count < SCRIBE_RECORDS);
    struct written *written = &scribe->written[scribe->count++];

    *written = (struct written){.type = type,
                                .sequence = scribe->chain.sequence,
                                .position = scribe_position(scribe),
                                .value = value,
                                .offset = scribe->at};
    memcpy(written->file, scribe->file, sizeof(written->file));
    written->bytes = put_record(scribe, type, value);
}

void scribe_next_segment(struct scribe *scribe, size_t bytes)
{
    uint64_t next = scribe_position(scribe) + FRAME_END_BYTES;

    scribe_put(scribe, RECORD_END, next);
    scribe_segment(scribe, next, bytes);
}

void scribe_snapshot(struct scribe *scribe, uint64_t first, unsigned records, uint64_t must_reach)
{
    struct scribe aside = {.shelf = scribe->shelf, .head = scribe->head, .chain.sequence = 1};

    begin_file(&aside, true, first, FRAME_HEAD_BYTES);
    for (unsigned n = 1; n < records; n++)
        put_record(&aside, RECORD_ROOM, 30);
    put_record(&aside, RECORD_END, must_reach);
}

uint64_t scribe_position(const struct scribe *scribe)
{
    return scribe->head.first + scribe->at;
}

static void check_journal_record(struct reading *reading, const struct frame_record *record,
                                 const struct scan_place *place)
{
    const struct scribe *scribe = reading->scribe;

    assert_true(reading->from + reading->count < scribe->count);
    const struct written *written = &scribe->written[reading->from + reading->count];
    assert_int_equal(record->sequence, written->sequence);
    assert_int_equal(record->type, written->type);
    assert_int_equal(record->time_ms, time_of(written->sequence));
    assert_true(span_equal(record->body, body_of(written->type, written->sequence, written->value)));
    assert_string_equal(place->file, written->file);
    assert_int_equal(place->offset, written->offset);
}

static bool take(void *context, const struct frame_record *record, const struct scan_place *place,
                 bool is_snapshot)
{
    struct reading *reading = context;

    if (is_snapshot) {
        assert_int_equal(reading->count, 0);
        assert_int_equal(record->sequence, ++reading->snapshot_count);
        return true;
    }
    check_journal_record(reading, record, place);
    return ++reading->count != reading->stop_at;
}

static void take_progress(void *context, uint64_t done, uint64_t total)
{
    struct reading *reading = context;

    assert_true(done >= reading->done && done <= total);
    reading->done = done;
    reading->total = total;
}

enum scan_result reading_scan(struct reading *reading, struct shelf *shelf, struct scan_report *report)
{
    struct scan_reader reader = {take, reading, take_progress};

    reading->count = reading->snapshot_count = 0;
    reading->done = reading->total = 0;
    enum scan_result result = journal_scan(&shelf->disk, &reader, report);
    assert_int_equal(shelf->opened, 0);
    if (result == SCAN_GOOD) {
        assert_int_equal(report->journal_records, reading->count);
        assert_int_equal(report->snapshot_records, reading->snapshot_count);
        assert_int_equal(reading->done, reading->total);
        assert_string_equal(report->why, "");
    } else if (result != SCAN_STOPPED) {
        assert_int_equal(report->why[strlen(report->why) - 1], '.'); /* none of it was cut off */
    }
    return result;
}
