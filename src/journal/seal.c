/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealing is done in an order in which it may be interrupted anywhere. Segments behind the cut go first: a RECORD_END that leads
 * past them would make them look like a hole. Only when that is on the disk, and all that was read, is the end written: first a
 * RECORD_SYNCED, which lets any later scan know that everything before it was whole and on the disk, then the RECORD_END.
 */
#include "journal/scan.h"

#include "base/little.h"
#include "base/must.h"
#include "journal/listing.h"

#include <errno.h>

#define SEAL_BYTES (2 * FRAME_END_BYTES)

static int drop_behind(struct disk *disk, const struct listing *listing, size_t kept);
static int sync_read(struct disk *disk, const struct listing *listing, const struct scan_report *report,
                     size_t kept);
static int write_end(struct disk *disk, const struct scan_report *report);
static int write_seal(struct disk *disk, int file, const struct scan_report *report);
static int remove_file(struct disk *disk, const char *name);
static int sync_file(struct disk *disk, const char *name);

/* How many segments are not behind the cut. */
static size_t count_kept(const struct listing *listing, const struct scan_report *report)
{
    bool is_snapshot;
    uint64_t first;

    if (report->tail.file[0] == '\0')
        return 0;
    must(frame_name_read(report->tail.file, &is_snapshot, &first) && !is_snapshot);
    size_t index = listing_find(&listing->segments, first);
    return index < listing->segments.count ? index + 1 : index;
}

int journal_seal(struct disk *disk, const struct scan_report *report, struct log_start *start)
{
    struct listing listing;
    int error = listing_read(&listing, disk);
    size_t kept = count_kept(&listing, report);

    if (error == 0)
        error = drop_behind(disk, &listing, kept);
    if (error == 0)
        error = sync_read(disk, &listing, report, kept);
    listing_free(&listing);
    if (error == 0 && kept > 0)
        error = write_end(disk, report);
    *start = (struct log_start){report->next, report->next_sequence};
    return error;
}

int journal_compact(struct disk *disk, uint64_t position)
{
    char name[FRAME_NAME_BYTES];
    struct listing listing;
    int error = listing_read(&listing, disk);

    /* A segment ends where the next begins, or before that. */
    for (size_t n = 0; error == 0 && n + 1 < listing.segments.count; n++) {
        if (listing.segments.firsts[n + 1] > position)
            break;
        frame_name(false, listing.segments.firsts[n], name);
        error = remove_file(disk, name);
    }
    for (size_t n = 0; error == 0 && n < listing.snapshots.count; n++) {
        if (listing.snapshots.firsts[n] >= position)
            break;
        frame_name(true, listing.snapshots.firsts[n], name);
        error = remove_file(disk, name);
    }
    listing_free(&listing);
    return error == 0 ? disk->sync_folder(disk) : error;
}

/* From the last on: what is left if this is interrupted is still one journal. */
static int drop_behind(struct disk *disk, const struct listing *listing, size_t kept)
{
    int error = remove_file(disk, LOG_NEXT);

    if (error == 0)
        error = remove_file(disk, SNAPSHOT_NEW);
    for (size_t n = listing->segments.count; error == 0 && n > kept; n--) {
        char name[FRAME_NAME_BYTES];
        frame_name(false, listing->segments.firsts[n - 1], name);
        error = remove_file(disk, name);
    }
    return error == 0 ? disk->sync_folder(disk) : error;
}

static int sync_read(struct disk *disk, const struct listing *listing, const struct scan_report *report,
                     size_t kept)
{
    int error = 0;

    for (size_t n = listing_find(&listing->segments, report->snapshot_first); error == 0 && n < kept; n++) {
        char name[FRAME_NAME_BYTES];
        frame_name(false, listing->segments.firsts[n], name);
        error = sync_file(disk, name);
    }
    return error;
}

static int write_end(struct disk *disk, const struct scan_report *report)
{
    int file = disk->open(disk, report->tail.file, DISK_WRITE);

    if (file < 0)
        return file;
    int error = write_seal(disk, file, report);
    if (error == 0)
        error = disk->sync(disk, file);
    disk->close(disk, file);
    return error;
}

/* Only the end, if the file would have to grow: the disk may be full. */
static int write_seal(struct disk *disk, int file, const struct scan_report *report)
{
    struct frame_chain chain = {(uint32_t)report->chain, report->sequence};
    unsigned char seal[SEAL_BYTES], body[8];
    struct span number = {(const char *)body, sizeof(body)};
    int64_t size = disk->size(disk, file);
    size_t len = 0;

    if (size < 0)
        return (int)size;
    if (report->tail.offset + SEAL_BYTES <= (uint64_t)size) {
        little_put64(body, report->end);
        frame_write_record(seal, RECORD_SYNCED, number, report->time_ms, &chain);
        len += FRAME_END_BYTES;
    }
    little_put64(body, report->next);
    frame_write_record(seal + len, RECORD_END, number, report->time_ms, &chain);
    return disk->write(disk, file, seal, len + FRAME_END_BYTES, report->tail.offset);
}

static int remove_file(struct disk *disk, const char *name)
{
    int error = disk->remove(disk, name);

    return error == -ENOENT ? 0 : error;
}

static int sync_file(struct disk *disk, const char *name)
{
    int file = disk->open(disk, name, DISK_WRITE);

    if (file < 0)
        return file;
    int error = disk->sync(disk, file);
    disk->close(disk, file);
    return error;
}
