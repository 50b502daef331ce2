/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_JOURNAL_FRAME_H
#define WEIR_JOURNAL_FRAME_H

/*
 * The bytes of a journal: docs/formats/journal.md says the same for readers in other languages.
 *
 * A position is a byte's place in the whole log, from its first start on; segments are files that hold one stretch of it each,
 * named after the position at which they begin. A segment is a head of FRAME_HEAD_BYTES, then records; the last record of a
 * segment that is over is RECORD_END. A snapshot is a file of the same make.
 *
 * Every record's checksum covers the checksum of the record before it (of the head, for the first): so a record vouches for the
 * whole segment up to it, and can still be recognised by itself where something before it is damaged.
 *
 * Numbers are little-endian. Everything begins at a multiple of 8 bytes.
 */

#include "base/span.h"
#include "journal/disk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_VERSION      1
#define FRAME_HEAD_BYTES   64
#define FRAME_RECORD_BYTES 32 /* before the body */
#define FRAME_BODY_MAX     65536
#define FRAME_PADDED(len)  (((len) + 7) & ~(size_t)7)
#define FRAME_END_BYTES    (FRAME_RECORD_BYTES + 8)

/* RECORD(name, number, what it is for `weir journal show`) */
#define RECORD_LIST(RECORD)                                                                                 \
    RECORD(RECORD_ROOM, 1, "room")     /* one change of a room: see room/record.h */                        \
    RECORD(RECORD_SYNCED, 2, "synced") /* u64: the log up to this position is on the disk */                \
    RECORD(RECORD_END, 3,                                                                                   \
           "end") /* u64; segment: where the next begins; snapshot: position that the journal must reach */ \
    RECORD(RECORD_CLOSED, 4, "closed") /* nothing: nginx was stopped, and all before this was synced */     \
    RECORD(RECORD_ZONE, 5, "zone")     /* u32 next epoch, u32 next room number */

enum record_type {
#define RECORD_ENUM(name, number, word) name = number,
    RECORD_LIST(RECORD_ENUM)
#undef RECORD_ENUM
};

enum sync_mode { SYNC_OFF, SYNC_INTERVAL, SYNC_ALWAYS };

struct frame_head {
    bool is_snapshot;
    uint32_t version;
    uint32_t crc;        /* of the head itself; begins the chain of its records */
    uint64_t first;      /* position of the head; snapshot: where the journal is to be read on from */
    uint64_t end;        /* position at which the segment ends at the latest; snapshot: 0 */
    uint64_t sequence;   /* of its first record */
    enum sync_mode sync; /* how it is written */
    unsigned char boot[DISK_BOOT_BYTES];
};

struct frame_record {
    enum record_type type;
    uint32_t crc;
    uint64_t sequence; /* one more than the record before, over all segments; in a snapshot from 1 */
    uint64_t time_ms;  /* wall clock: for people, decides nothing */
    struct span body;
};

/* What connects a record to the one before it. */
struct frame_chain {
    uint32_t crc;
    uint64_t sequence; /* of the next record */
};

/* Writes FRAME_HEAD_BYTES. Sets head->crc. */
void frame_write_head(struct frame_head *head, unsigned char out[FRAME_HEAD_BYTES]);

enum frame_found {
    FRAME_GOOD,
    FRAME_NOTHING, /* zeros: nothing was written here */
    FRAME_BAD,     /* not what was written, or not whole */
    FRAME_NEWER,   /* a head of a version that this program does not know */
};

enum frame_found frame_read_head(struct span bytes, struct frame_head *head);

/* Bytes that a record with a body of this length takes. */
static inline size_t frame_record_bytes(size_t body_len)
{
    return FRAME_RECORD_BYTES + FRAME_PADDED(body_len);
}

/* Writes frame_record_bytes(body.len) and moves the chain on. */
void frame_write_record(unsigned char *out, enum record_type type, struct span body, uint64_t time_ms,
                        struct frame_chain *chain);

/* The record at the beginning of `bytes`, which follows on from `chain`; moves the chain on if it is good. */
enum frame_found frame_read_record(struct span bytes, struct frame_chain *chain, struct frame_record *record);

/*
 * Whether a whole record that came after `chain` begins here, whatever lies between: its own checksum is right, and its number
 * is higher.
 */
bool frame_is_later_record(struct span bytes, const struct frame_chain *chain, struct frame_record *record);

/* Only for the fuzzer, which would never guess a checksum: takes every checksum for right. */
extern bool frame_trusts_checksums;

/* The name of a segment or a snapshot, and back: false if it is neither. */
#define FRAME_NAME_BYTES 32
void frame_name(bool is_snapshot, uint64_t first, char out[FRAME_NAME_BYTES]);
bool frame_name_read(const char *name, bool *is_snapshot, uint64_t *first);

#endif
