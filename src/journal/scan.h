/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_JOURNAL_SCAN_H
#define WEIR_JOURNAL_SCAN_H

/*
 * Reads a folder: the newest whole snapshot, then the journal from where the snapshot says, record by record.
 *
 * Where the journal ends in something that is no record, the question is whether that is a tail that was never acknowledged
 * or damage to something that was. It is a torn tail, to be cut, if nothing whole comes after it; or if the machine was
 * started anew since it was written (then unsynced writes may be there in any order), and no RECORD_SYNCED or RECORD_CLOSED behind
 * it says that the place was on the disk; or if a sync had failed, and nobody knows what is. Everything else is damage, and is
 * refused: nothing is ever skipped silently.
 *
 * A RECORD_END at the very end, with no segment after it, only says that the log was about to go on: the journal's end is before
 * it.
 */

#include "journal/frame.h"
#include "journal/log.h"

#define SNAPSHOT_NEW \
    "snapshot-new" /* a snapshot that is being made; it gets its name when it is whole and synced */

struct scan_place {
    char file[FRAME_NAME_BYTES];
    uint64_t offset;
};

enum scan_result {
    SCAN_GOOD,
    SCAN_DAMAGED, /* see `place` and `why` */
    SCAN_NEWER,   /* written by a newer version of the format */
    SCAN_FAILED,  /* the disk could not be read: see `why` */
    SCAN_STOPPED, /* `each` said no */
};

struct scan_report {
    bool has_snapshot;
    uint64_t snapshot_first; /* position from which the journal is read on */
    uint64_t snapshot_records, journal_records;
    uint64_t journal_bytes, snapshot_bytes; /* read */
    uint32_t segments;

    /* the journal's end */
    uint64_t end, sequence, chain; /* position behind the last whole record; number and chain of the next */
    struct scan_place tail;        /* the same as a place; file is "" if there is no journal */
    uint64_t torn_bytes;      /* that lie behind it, to be cut; zeros behind the last of them not counted */
    uint64_t dropped_records; /* whole ones among them: never synced, and something before them is missing */
    uint64_t next;            /* where a new segment may begin: nothing was ever written there or later */
    uint64_t next_sequence;   /* above that of any record seen */
    uint64_t time_ms;         /* of the last record */
    enum sync_mode sync;
    bool is_closed;  /* the last record is RECORD_CLOSED */
    bool is_booted;  /* the machine was started anew since, or it does not say */
    bool is_short;   /* the last segment's file is shorter than it was made: somebody cut it */
    bool had_failed; /* LOG_FAILED is there */
    bool had_lost;   /* LOG_LOST is there */

    /* when it is not good */
    struct scan_place place;
    char why[320]; /* one or two sentences: what is wrong, and how to go on */
};

/* Where a record comes from; false ends the scan with SCAN_STOPPED. */
struct scan_reader {
    bool (*each)(void *context, const struct frame_record *record, const struct scan_place *place,
                 bool is_snapshot);
    void *context;
    void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes; may be NULL */
};

/* Reads only; the folder may be in use by another process (what is being written then looks like a torn tail). */
enum scan_result journal_scan(struct disk *disk, const struct scan_reader *reader,
                              struct scan_report *report);

/*
 * Whether something that was acknowledged may be missing: then rooms need new epochs. Not after a mere crash of processes, not
 * after an orderly end, and not where every answer waited for the sync.
 */
bool scan_may_have_lost(const struct scan_report *report);

/*
 * After a good scan: ends the last segment behind its last whole record (cutting what is torn), syncs what was read, removes
 * segments behind the cut and files that are no use any more (LOG_NEXT, SNAPSHOT_NEW; not LOG_FAILED and LOG_LOST), and says where
 * the log goes on. 0 or a negative errno; it may be done again after a new scan, also where it was interrupted.
 */
int journal_seal(struct disk *disk, const struct scan_report *report, struct log_start *start);

/* Removes every segment that ends at or before `position` and every snapshot older than that of `position`. */
int journal_compact(struct disk *disk, uint64_t position);

#endif
