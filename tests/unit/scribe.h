/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_SCRIBE_H
#define WEIR_TESTS_SCRIBE_H

/* Writes journals and snapshots by hand, remembers every record, and compares what a scan gives back. */

#include "journal/scan.h"
#include "shelf.h"

#define SCRIBE_RECORDS 8192

/* A record as it was written. The body follows from the number. */
struct written {
    enum record_type type;
    uint64_t sequence, position, value; /* value: the u64 of a body, or the length of one of RECORD_ROOM */
    size_t offset, bytes;
    char file[FRAME_NAME_BYTES];
};

struct scribe {
    struct shelf *shelf;
    struct frame_head head; /* of the file under way; sync and boot hold for the next ones too */
    struct frame_chain chain;
    char file[FRAME_NAME_BYTES];
    size_t at;

    /* of the journal; a snapshot's records are not remembered */
    struct written written[SCRIBE_RECORDS];
    size_t count;
};

/* To be freed with free(). */
struct scribe *scribe_new(struct shelf *shelf);

/* A segment whose file is `bytes` long, in zeros as far as nothing is written. */
void scribe_segment(struct scribe *scribe, uint64_t first, size_t bytes);

/* The next record; `value` as in struct written. */
void scribe_put(struct scribe *scribe, enum record_type type, uint64_t value);

/* RECORD_END, and a segment right behind it. */
void scribe_next_segment(struct scribe *scribe, size_t bytes);

/* A whole snapshot of so many records. The segment under way goes on afterwards. */
void scribe_snapshot(struct scribe *scribe, uint64_t first, unsigned records, uint64_t must_reach);

/* Where the journal ends. */
uint64_t scribe_position(const struct scribe *scribe);

/* What a scan gave. */
struct reading {
    const struct scribe *scribe;
    size_t from;  /* index of the first record that it has to give */
    size_t count; /* journal */
    size_t snapshot_count;
    size_t stop_at; /* says no at this record of the journal; 0 = never */
    uint64_t done, total;
};

/*
 * Scans the shelf. Whatever the result is: what was given are the records that were written, from `reading->from` on, in order
 * and none left out; and every handle is closed again.
 */
enum scan_result reading_scan(struct reading *reading, struct shelf *shelf, struct scan_report *report);

#endif
