/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One walk from record to record. What makes it more than that is its end: wherever something is no record, everything behind it
 * is searched, at each place where a record could begin, for records that came later. What is found there decides between a tail
 * and damage, as scan.h says.
 *
 * The folder may be in use. What was not there when it was read first may be there a moment later, and records behind it too:
 * so before anything is called damage, the place is read once more.
 */
#include "journal/scan.h"

#include "base/little.h"
#include "journal/listing.h"
#include "journal/window.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct scan {
    struct disk *disk;
    const struct scan_reader *reader;
    struct scan_report *report;
    struct listing listing;
    struct window window;
    unsigned char boot[DISK_BOOT_BYTES];
    uint64_t total_bytes, told_bytes; /* for the progress */

    /* of the journal */
    struct frame_chain chain;   /* of what follows the last record read */
    bool is_over;               /* that record was RECORD_END */
    uint64_t reach, must_reach; /* position at which it goes on; and that which the snapshot says it had */
    uint64_t next, highest; /* no byte was seen at or behind this position, no record with a higher number */
};

/* Where a walk through a file stands. */
struct cursor {
    struct scan_place place; /* of the record that was read last, or is none */
    size_t bytes;            /* of that record */
    struct frame_chain chain;
};

/* A place at which there is no record, or no segment. */
struct fault {
    struct scan_place place;
    uint64_t position;
    bool is_missing; /* the whole file */
};

/* What lies behind it. */
struct rest {
    uint64_t records;    /* whole ones that came later */
    uint64_t synced;     /* up to where they say that all was on the disk */
    uint64_t torn_bytes; /* up to the last that is not zero */
    bool is_followed;    /* a later segment began when records had been written that are not there */
};

static enum scan_result scan_prepare(struct scan *scan);
static enum scan_result scan_snapshot(struct scan *scan);
static enum scan_result scan_journal(struct scan *scan);
static void scan_finish(struct scan *scan);

enum scan_result journal_scan(struct disk *disk, const struct scan_reader *reader, struct scan_report *report)
{
    struct scan scan = {.disk = disk, .reader = reader, .report = report, .window.file = -1};

    *report = (struct scan_report){.sequence = 1};
    enum scan_result result = scan_prepare(&scan);
    if (result == SCAN_GOOD && scan.listing.snapshots.count > 0)
        result = scan_snapshot(&scan);
    if (result == SCAN_GOOD && (scan.listing.segments.count > 0 || report->has_snapshot))
        result = scan_journal(&scan);
    if (result == SCAN_GOOD)
        scan_finish(&scan);
    listing_free(&scan.listing);
    window_fini(&scan.window);
    return result;
}

static bool may_lack_unsynced(const struct scan_report *report)
{
    return report->is_booted || report->had_failed;
}

bool scan_may_have_lost(const struct scan_report *report)
{
    return report->had_lost || report->is_short || report->dropped_records > 0 ||
           (may_lack_unsynced(report) && !report->is_closed && report->sync != SYNC_ALWAYS);
}

/* ---- refusals ---- */

__attribute__((format(printf, 4, 5))) static enum scan_result
refuse(struct scan *scan, enum scan_result result, const struct scan_place *place, const char *format, ...)
{
    va_list arguments;

    scan->report->place = *place;
    va_start(arguments, format);
    vsnprintf(scan->report->why, sizeof(scan->report->why), format, arguments);
    va_end(arguments);
    return result;
}

static enum scan_result refuse_unread(struct scan *scan, const struct scan_place *place, int error)
{
    return refuse(scan, SCAN_FAILED, place, "%s cannot be read at byte %" PRIu64 ": %s.",
                  place->file[0] != '\0' ? place->file : "The folder", place->offset, strerror(-error));
}

static enum scan_result refuse_newer(struct scan *scan, const struct scan_place *place, uint32_t version)
{
    return refuse(scan, SCAN_NEWER, place,
                  "%s was written by a newer version of Weir (format %" PRIu32
                  ", this one knows %d): use that version or a newer one.",
                  place->file, version, FRAME_VERSION);
}

static enum scan_result refuse_snapshot(struct scan *scan, const struct scan_place *place)
{
    return refuse(scan, SCAN_DAMAGED, place,
                  "%s is damaged at byte %" PRIu64
                  ": nothing was changed. Restore it from a copy, or move it "
                  "away if there is an older snapshot, or the journal from its very beginning.",
                  place->file, place->offset);
}

/* Where there is nothing to go back to. */
static enum scan_result refuse_all(struct scan *scan, const struct scan_place *place, const char *what)
{
    return refuse(scan, SCAN_DAMAGED, place,
                  "%s, byte %" PRIu64 ": %s. Nothing was changed. Restore the folder's files from a copy, or "
                  "move all of them away to start empty.",
                  place->file, place->offset, what);
}

/* A segment that was truncated is shorter than it was made; by that the next scan knows that something was lost. */
static enum scan_result refuse_rest(struct scan *scan, const struct fault *fault)
{
    const struct scan_place *tail = &scan->report->tail;
    char what[48] = "is missing";

    if (!fault->is_missing)
        snprintf(what, sizeof(what), "is damaged at byte %" PRIu64, fault->place.offset);
    return refuse(scan, SCAN_DAMAGED, &fault->place,
                  "%s %s, and whole records follow: nothing was changed. Restore it from a copy, or give up "
                  "what follows: truncate %s to %" PRIu64
                  " bytes and remove the later segments; what was lost then returns when its holders poll.",
                  fault->place.file, what, tail->file, tail->offset);
}

/* ---- reading ---- */

static struct scan_place place_of(bool is_snapshot, uint64_t first)
{
    struct scan_place place = {.offset = 0};

    frame_name(is_snapshot, first, place.file);
    return place;
}

/* Only a file that nobody has written is so far out. */
static uint64_t plus(uint64_t position, uint64_t bytes)
{
    return position > UINT64_MAX - bytes ? UINT64_MAX : position + bytes;
}

static void raise_to(uint64_t *number, uint64_t least)
{
    if (*number < least)
        *number = least;
}

static enum scan_result open_file(struct scan *scan, const struct scan_place *place, uint64_t *bytes)
{
    int64_t size = window_open(&scan->window, place->file);

    if (size == 0)
        size = scan->disk->size(scan->disk, scan->window.file);
    if (size < 0)
        return refuse_unread(scan, place, (int)size);
    *bytes = (uint64_t)size;
    return SCAN_GOOD;
}

static enum scan_result measure(struct scan *scan, bool is_snapshot, uint64_t first)
{
    struct scan_place place = place_of(is_snapshot, first);
    uint64_t bytes = 0;
    enum scan_result result = open_file(scan, &place, &bytes);

    scan->total_bytes += is_snapshot ? 2 * bytes : bytes;
    if (!is_snapshot)
        raise_to(&scan->next, plus(first, bytes));
    return result;
}

static enum scan_result scan_prepare(struct scan *scan)
{
    const struct listing_files *segments = &scan->listing.segments, *snapshots = &scan->listing.snapshots;
    struct scan_place folder = {.offset = 0};
    enum scan_result result = SCAN_GOOD;
    int error = window_init(&scan->window, scan->disk);

    if (error == 0)
        error = listing_read(&scan->listing, scan->disk);
    if (error < 0)
        return refuse_unread(scan, &folder, error);
    scan->disk->boot(scan->disk, scan->boot);
    scan->report->had_failed = scan->listing.has_failed;
    scan->report->had_lost = scan->listing.has_lost;
    if (snapshots->count > 0)
        result = measure(scan, true, snapshots->firsts[snapshots->count - 1]);
    for (size_t n = 0; n < segments->count && result == SCAN_GOOD; n++)
        result = measure(scan, false, segments->firsts[n]);
    return result;
}

static void tell_progress(struct scan *scan, uint64_t done)
{
    if (scan->reader->progress == NULL || done == scan->told_bytes)
        return;
    scan->told_bytes = done;
    scan->reader->progress(scan->reader->context, done < scan->total_bytes ? done : scan->total_bytes,
                           scan->total_bytes);
}

static enum scan_result read_bytes(struct scan *scan, const struct scan_place *place, struct span *bytes)
{
    int error = window_at(&scan->window, place->offset, bytes);

    if (error < 0)
        return refuse_unread(scan, place, error);
    tell_progress(scan, scan->window.read);
    return SCAN_GOOD;
}

static bool is_head_of(const struct frame_head *head, bool is_snapshot, uint64_t first)
{
    return head->is_snapshot == is_snapshot && head->first == first &&
           (is_snapshot || head->end >= plus(first, FRAME_HEAD_BYTES));
}

/* The head of the file that is open. A whole one of another file is bad. */
static enum scan_result read_head(struct scan *scan, bool is_snapshot, uint64_t first,
                                  struct frame_head *head, enum frame_found *found)
{
    struct scan_place place = place_of(is_snapshot, first);
    struct span bytes;
    enum scan_result result = read_bytes(scan, &place, &bytes);

    if (result != SCAN_GOOD)
        return result;
    *found = frame_read_head(bytes, head);
    if (*found == FRAME_NEWER)
        return refuse_newer(scan, &place, head->version);
    if (*found == FRAME_GOOD && !is_head_of(head, is_snapshot, first))
        *found = FRAME_BAD;
    return SCAN_GOOD;
}

static struct cursor cursor_behind(const struct frame_head *head)
{
    return (struct cursor){.place = place_of(head->is_snapshot, head->first),
                           .bytes = FRAME_HEAD_BYTES,
                           .chain = {head->crc, head->sequence}};
}

static bool has_sound_body(const struct frame_record *record)
{
    switch (record->type) {
    case RECORD_SYNCED:
    case RECORD_END:
    case RECORD_ZONE:
        return record->body.len == 8;
    case RECORD_CLOSED:
        return record->body.len == 0;
    case RECORD_ROOM:
        break;
    }
    return true;
}

static enum scan_result read_record(struct scan *scan, struct cursor *cursor, struct frame_record *record,
                                    enum frame_found *found)
{
    struct frame_chain chain = cursor->chain;
    struct span bytes;

    cursor->place.offset += cursor->bytes;
    cursor->bytes = 0;
    enum scan_result result = read_bytes(scan, &cursor->place, &bytes);
    if (result != SCAN_GOOD)
        return result;
    *found = frame_read_record(bytes, &chain, record);
    if (*found == FRAME_GOOD && !has_sound_body(record))
        *found = FRAME_BAD;
    if (*found == FRAME_GOOD) {
        cursor->chain = chain;
        cursor->bytes = frame_record_bytes(record->body.len);
    }
    return SCAN_GOOD;
}

static enum scan_result deliver(struct scan *scan, const struct frame_record *record,
                                const struct scan_place *place, bool is_snapshot)
{
    const struct scan_reader *reader = scan->reader;

    return reader->each(reader->context, record, place, is_snapshot) ? SCAN_GOOD : SCAN_STOPPED;
}

/* ---- the snapshot ---- */

static enum scan_result open_snapshot(struct scan *scan, struct cursor *cursor)
{
    uint64_t first = scan->report->snapshot_first;
    enum frame_found found = FRAME_BAD;
    struct frame_head head;
    uint64_t bytes;

    cursor->place = place_of(true, first);
    enum scan_result result = open_file(scan, &cursor->place, &bytes);
    if (result == SCAN_GOOD)
        result = read_head(scan, true, first, &head, &found);
    if (result == SCAN_GOOD && found != FRAME_GOOD)
        return refuse_snapshot(scan, &cursor->place);
    if (result == SCAN_GOOD)
        *cursor = cursor_behind(&head);
    return result;
}

/* It got its name when it was whole, so whatever is wrong with it is damage. */
static enum scan_result walk_snapshot(struct scan *scan, bool is_delivered)
{
    struct scan_report *report = scan->report;
    struct frame_record record = {.type = RECORD_ROOM};
    enum frame_found found;
    struct cursor cursor;
    enum scan_result result = open_snapshot(scan, &cursor);

    report->snapshot_records = 0;
    while (result == SCAN_GOOD && record.type != RECORD_END) {
        result = read_record(scan, &cursor, &record, &found);
        if (result == SCAN_GOOD && found != FRAME_GOOD)
            return refuse_snapshot(scan, &cursor.place);
        report->snapshot_records++;
        if (result == SCAN_GOOD && is_delivered)
            result = deliver(scan, &record, &cursor.place, true);
    }
    if (result != SCAN_GOOD)
        return result;
    report->snapshot_bytes = cursor.place.offset + cursor.bytes;
    scan->must_reach = little_get64(record.body.data);
    raise_to(&scan->must_reach, report->snapshot_first);
    return SCAN_GOOD;
}

/* Read twice: nobody is given a part of a snapshot that turns out not to be whole. */
static enum scan_result scan_snapshot(struct scan *scan)
{
    const struct listing_files *snapshots = &scan->listing.snapshots;

    scan->report->has_snapshot = true;
    scan->report->snapshot_first = snapshots->firsts[snapshots->count - 1];
    enum scan_result result = walk_snapshot(scan, false);
    return result == SCAN_GOOD ? walk_snapshot(scan, true) : result;
}

/* ---- the journal ---- */

static enum scan_result scan_segment(struct scan *scan, size_t index);
static enum scan_result walk_segment(struct scan *scan, size_t index, struct cursor *cursor);
static enum scan_result take_record(struct scan *scan, uint64_t position, const struct cursor *cursor,
                                    const struct frame_record *record);
static bool is_good_now(struct scan *scan, const struct cursor *cursor);
static enum scan_result judge(struct scan *scan, const struct fault *fault, size_t index, uint64_t offset);
static enum scan_result search(struct scan *scan, size_t index, uint64_t offset, struct rest *rest);

/* Without a snapshot it is read from position 0. */
static enum scan_result scan_journal(struct scan *scan)
{
    const struct listing_files *segments = &scan->listing.segments;
    struct scan_report *report = scan->report;
    struct scan_place start = place_of(false, report->snapshot_first);
    size_t index = listing_find(segments, report->snapshot_first);

    if (index == segments->count)
        return refuse_all(scan, &start, "the segment that begins here or before is missing");
    scan->reach = segments->firsts[index];
    enum scan_result result;
    do
        result = scan_segment(scan, index++);
    while (result == SCAN_GOOD && scan->is_over && index < segments->count);
    if (result == SCAN_GOOD && scan->reach < scan->must_reach)
        return refuse_all(scan, report->tail.file[0] != '\0' ? &report->tail : &start,
                          "the journal ends here, but the snapshot says that it went on");
    return result;
}

/* What a head says of the whole log: the newest one counts. */
static void note_head(struct scan *scan, const struct frame_head *head)
{
    static const unsigned char unknown[DISK_BOOT_BYTES];
    struct scan_report *report = scan->report;

    report->sync = head->sync;
    report->is_booted = memcmp(head->boot, scan->boot, DISK_BOOT_BYTES) != 0 ||
                        memcmp(head->boot, unknown, DISK_BOOT_BYTES) == 0;
    raise_to(&scan->next, head->end);
    if (head->sequence > 0)
        raise_to(&scan->highest, head->sequence - 1);
}

/* The journal's end is at the beginning of this segment, for now. */
static void enter_segment(struct scan *scan, const struct frame_head *head, uint64_t bytes)
{
    struct scan_report *report = scan->report;

    note_head(scan, head);
    report->segments++;
    report->journal_bytes += FRAME_HEAD_BYTES;
    report->is_short = bytes < head->end - head->first;
    report->tail = place_of(false, head->first);
    report->tail.offset = FRAME_HEAD_BYTES;
    report->end = plus(head->first, FRAME_HEAD_BYTES);
    report->sequence = head->sequence;
    report->chain = head->crc;
    scan->reach = report->end;
    scan->chain = (struct frame_chain){head->crc, head->sequence};
}

/* Numbers go on from segment to segment; where a recovery dropped records, some are left out. */
static enum scan_result scan_segment(struct scan *scan, size_t index)
{
    uint64_t first = scan->listing.segments.firsts[index], bytes = 0;
    struct fault fault = {place_of(false, scan->reach), scan->reach, first != scan->reach};
    enum frame_found found = FRAME_BAD;
    struct frame_head head;

    scan->is_over = false;
    if (fault.is_missing)
        return judge(scan, &fault, index, 0);
    enum scan_result result = open_file(scan, &fault.place, &bytes);
    if (result == SCAN_GOOD)
        result = read_head(scan, false, first, &head, &found);
    if (result != SCAN_GOOD)
        return result;
    if (found != FRAME_GOOD || head.sequence < scan->chain.sequence) {
        scan->report->is_short = bytes < FRAME_HEAD_BYTES;
        return judge(scan, &fault, index, 0);
    }
    enter_segment(scan, &head, bytes);
    struct cursor cursor = cursor_behind(&head);
    return walk_segment(scan, index, &cursor);
}

static enum scan_result walk_segment(struct scan *scan, size_t index, struct cursor *cursor)
{
    uint64_t first = scan->listing.segments.firsts[index];
    enum scan_result result = SCAN_GOOD;
    struct frame_record record;
    enum frame_found found;

    while (result == SCAN_GOOD && !scan->is_over) {
        result = read_record(scan, cursor, &record, &found);
        if (result != SCAN_GOOD)
            break;
        uint64_t position = plus(first, cursor->place.offset);
        if (found == FRAME_GOOD) {
            result = take_record(scan, position, cursor, &record);
            continue;
        }
        struct fault fault = {cursor->place, position, false};
        result = judge(scan, &fault, index, cursor->place.offset);
        if (result != SCAN_DAMAGED || !is_good_now(scan, cursor))
            break;
        result = SCAN_GOOD;
    }
    return result;
}

/* RECORD_END is not yet the end of the journal: it is if a segment follows, which then moves it on. */
static enum scan_result take_record(struct scan *scan, uint64_t position, const struct cursor *cursor,
                                    const struct frame_record *record)
{
    struct scan_report *report = scan->report;

    scan->chain = cursor->chain;
    scan->is_over = record->type == RECORD_END;
    raise_to(&scan->highest, record->sequence);
    report->journal_bytes += cursor->bytes;
    report->is_closed = record->type == RECORD_CLOSED;
    if (scan->is_over) {
        scan->reach = little_get64(record->body.data);
        raise_to(&scan->next, scan->reach);
        report->is_short = false;
    } else {
        report->tail.offset = cursor->place.offset + cursor->bytes;
        report->end = scan->reach = plus(position, cursor->bytes);
        report->sequence = cursor->chain.sequence;
        report->chain = cursor->chain.crc;
        report->time_ms = record->time_ms;
    }
    if (position < report->snapshot_first)
        return SCAN_GOOD;
    report->journal_records++;
    return deliver(scan, record, &cursor->place, false);
}

/* Leaves the window where the walk goes on. */
static bool is_good_now(struct scan *scan, const struct cursor *cursor)
{
    struct cursor again = *cursor;
    struct frame_record record;
    enum frame_found found;
    uint64_t bytes;

    return open_file(scan, &again.place, &bytes) == SCAN_GOOD &&
           read_record(scan, &again, &record, &found) == SCAN_GOOD && found == FRAME_GOOD;
}

/* ---- what comes after ---- */

/* The fault lies at `offset` of this segment, or right before this segment. */
static enum scan_result judge(struct scan *scan, const struct fault *fault, size_t index, uint64_t offset)
{
    struct scan_report *report = scan->report;
    struct rest rest = {.records = 0};
    enum scan_result result = search(scan, index, offset, &rest);

    if (result != SCAN_GOOD)
        return result;
    report->torn_bytes = rest.torn_bytes;
    report->dropped_records = rest.records;
    if (rest.records == 0 && !rest.is_followed)
        return SCAN_GOOD;
    if (report->tail.file[0] == '\0')
        return refuse_all(scan, &fault->place, "the first head is damaged, and whole records follow");
    /* What a restart after a failed sync says of syncs is not true before LOG_FAILED is gone. */
    if (report->had_failed || (may_lack_unsynced(report) && rest.synced <= fault->position))
        return SCAN_GOOD;
    return refuse_rest(scan, fault);
}

static void note_later(struct rest *rest, const struct frame_record *record, uint64_t position)
{
    rest->records++;
    if (record->type == RECORD_SYNCED)
        raise_to(&rest->synced, little_get64(record->body.data));
    if (record->type == RECORD_CLOSED)
        raise_to(&rest->synced, position);
}

/*
 * One missing record may be the RECORD_END, with which nothing is lost. What else is missing was answered by the mode of before,
 * whatever this head says.
 */
static enum scan_result search_head(struct scan *scan, uint64_t first, struct rest *rest)
{
    enum sync_mode before = scan->report->sync;
    enum frame_found found = FRAME_BAD;
    struct frame_head head;
    enum scan_result result = read_head(scan, false, first, &head, &found);

    if (result == SCAN_GOOD && found == FRAME_GOOD && head.sequence >= scan->chain.sequence) {
        note_head(scan, &head);
        if (before < head.sync)
            scan->report->sync = before;
        if (head.sequence - scan->chain.sequence > 1)
            rest->is_followed = true;
    }
    return result;
}

static bool is_zeros(struct span bytes)
{
    static const char zeros[8];

    return memcmp(bytes.data, zeros, bytes.len) == 0;
}

/* Everything begins at a multiple of 8 bytes. */
static enum scan_result search_bytes(struct scan *scan, uint64_t first, struct scan_place *place,
                                     struct rest *rest)
{
    uint64_t start = place->offset, behind = start;
    enum scan_result result;
    struct span bytes;

    while ((result = read_bytes(scan, place, &bytes)) == SCAN_GOOD && bytes.len > 0) {
        struct frame_record record;
        struct span word = {bytes.data, bytes.len < 8 ? bytes.len : 8};
        size_t step = 8;
        bool is_later = frame_is_later_record(bytes, &scan->chain, &record) && has_sound_body(&record);
        if (is_later) {
            step = frame_record_bytes(record.body.len);
            note_later(rest, &record, plus(first, place->offset));
            raise_to(&scan->highest, record.sequence);
        }
        if (is_later || !is_zeros(word))
            behind = place->offset + (is_later ? step : word.len);
        place->offset += step;
    }
    rest->torn_bytes += behind - start;
    return result;
}

/* From `offset` of this segment to the end of the last one. */
static enum scan_result search(struct scan *scan, size_t index, uint64_t offset, struct rest *rest)
{
    const struct listing_files *segments = &scan->listing.segments;
    enum scan_result result = SCAN_GOOD;

    for (; index < segments->count && result == SCAN_GOOD; index++, offset = 0) {
        uint64_t first = segments->firsts[index], bytes;
        struct scan_place place = place_of(false, first);
        result = open_file(scan, &place, &bytes);
        if (result == SCAN_GOOD && offset == 0)
            result = search_head(scan, first, rest);
        place.offset = offset;
        if (result == SCAN_GOOD)
            result = search_bytes(scan, first, &place, rest);
    }
    return result;
}

/* ---- the end ---- */

/* Where a journal was never begun it begins at 0 again. Else there is room for what journal_seal writes. */
static void scan_finish(struct scan *scan)
{
    struct scan_report *report = scan->report;

    report->why[0] = '\0';
    report->place = (struct scan_place){.offset = 0};
    report->next_sequence = plus(scan->highest, 1);
    if (report->tail.file[0] != '\0') {
        raise_to(&scan->next, plus(report->end, 2 * FRAME_END_BYTES));
        report->next = plus(scan->next, 7) & ~(uint64_t)7;
        raise_to(&report->next_sequence, plus(report->sequence, 2));
    }
    tell_progress(scan, scan->total_bytes);
}
