/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_JOURNAL_LOG_H
#define WEIR_JOURNAL_LOG_H

/*
 * The end of the journal that is being written, in memory that several processes share and any of them may die in.
 *
 * Records go into a ring, in order; log_flush writes what is in the ring to the segment with `write` at an offset that follows
 * from the position alone, so that whoever flushes next after a process died in the middle writes the same bytes again.
 * Three positions tell how far things are: `end` (in the ring) >= `written` (survives any process) >= `synced` (survives a power
 * cut).
 *
 * Space is taken before it is needed: the segment under way and the one after it (LOG_NEXT) are allocated whole. While there is
 * not as much left as `reserve` says, log_is_short says so, and whoever makes the log grow should stop.
 *
 * Trouble is of two kinds. A disk that is full, or too many open files: what is in the ring waits, and the next flush tries again.
 * Any other failed write, and every failed sync: nobody knows what the disk holds, so the log has failed and stays so until it is
 * begun anew; no sync is ever tried again.
 */

#include "journal/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log;

#define LOG_NEXT   "journal-next"   /* the segment that will be used next: allocated, and nothing in it */
#define LOG_ASIDE  "journal-aside"  /* the same, made on the spot, until it has all its space */
#define LOG_FAILED "journal-failed" /* left behind by a failed sync, for the next recovery */
#define LOG_LOST \
    "journal-lost" /* something is missing, and a recovery that noticed it has not come to its end */

#define LOG_SEGMENT_LEAST (1 << 20)

struct log_options {
    enum sync_mode sync;
    uint32_t interval_ms; /* of SYNC_INTERVAL */
    uint64_t segment_bytes, reserve_bytes;
};

/* Where a log goes on: what a scan of the folder found (scan.h). */
struct log_start {
    uint64_t position; /* at which its first segment begins; nothing was ever written at or after it */
    uint64_t sequence;
};

/* Bytes of a log in the zone, page-aligned and zeroed. */
size_t log_bytes(void);

void log_init(struct log *log);

/* Makes the first segment. Nobody else uses the log yet. 0 or a negative errno. */
int log_begin(struct log *log, struct disk *disk, const struct log_start *start,
              const struct log_options *options);

/* Options may change while it runs; `segment_bytes` holds from the next segment on, and another `sync` begins one. */
void log_set_options(struct log *log, const struct log_options *options);
struct log_options log_options(const struct log *log);

/* What a process needs to write: its own, not in the zone. Handles are opened when needed. */
struct log_writer {
    struct disk *disk;
    uint64_t first; /* of the segment that `file` is */
    int file;       /* -1 = none */
};
void log_writer_init(struct log_writer *writer, struct disk *disk);
void log_writer_close(struct log_writer *writer);

/*
 * Adds a record and returns the position behind it. A full ring is flushed first. UINT64_MAX: the log is in trouble and the
 * record is not in it; nobody may be told what it says.
 * The caller may die at any instruction: then the record is in the log as a whole or not at all.
 */
uint64_t log_append(struct log *log, struct log_writer *writer, enum record_type type, struct span body,
                    uint64_t time_ms);

/* Room for that many bytes of records without a flush, unless another process takes it first. */
bool log_has_room(const struct log *log, size_t bytes);

/* Writes what is in the ring. 0, or a negative errno: see log_trouble. Waits while another process does it. */
int log_flush(struct log *log, struct log_writer *writer);

/*
 * Syncs what was written when it began, and adds a RECORD_SYNCED; does nothing where log_is_dirty says so. Blocks, so it runs in a
 * thread; needs no log_writer of the event loop's. 0 or a negative errno, which breaks the log unless no file could be opened for
 * want of descriptors or memory: then it may be called again.
 */
int log_sync(struct log *log, struct disk *disk, uint64_t time_ms);

/* Allocates LOG_NEXT unless it is there or somebody is at it. Blocks like log_sync. 0 or a negative errno, not yet trouble. */
int log_prepare(struct log *log, struct disk *disk);
bool log_needs_prepare(const struct log *log);

/* Flushes, syncs, adds RECORD_CLOSED and syncs that: for the last process at an orderly end. */
int log_close(struct log *log, struct log_writer *writer, uint64_t time_ms);

uint64_t log_end(const struct log *log);
uint64_t log_written(const struct log *log);
uint64_t log_synced(const struct log *log);

/*
 * Whether every answer must wait for a sync: by the mode, or because a recovery would still take that for the mode. (A mode
 * begins with a segment, whose head must be on the disk first.)
 */
bool log_syncs_all(const struct log *log);

/* Behind the last record that is no note of a sync: what comes after it may be missing, and nobody misses anything. */
uint64_t log_change(const struct log *log);

/* Whether a sync would bring anything: not if there is nothing behind `synced` but notes of syncs. */
bool log_is_dirty(const struct log *log);

/* True for one caller at a time, at most once per interval: who is told so should call log_sync. */
bool log_claim_sync(struct log *log, uint64_t now_ms);

enum log_trouble {
    LOG_FINE,
    LOG_FULL,   /* no space; goes on by itself when there is */
    LOG_BROKEN, /* a write or a sync failed; for good */
};
enum log_trouble log_trouble(const struct log *log);

/* One sentence about it for the operator, with what failed and why; empty when fine. */
void log_trouble_text(const struct log *log, char *out, size_t size);

/* Nearly full: joins should be refused, everything else goes on. */
bool log_is_short(const struct log *log);

#endif
