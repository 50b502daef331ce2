/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_LOG_READER_H
#define WEIR_TESTS_LOG_READER_H

/*
 * Records that can be known again, and the plainest reader of a log that there can be: from record to record, from segment to
 * segment, as far as it is whole. (What a recovery makes of the rest is the scan's business.)
 */

#include "base/span.h"
#include "journal/disk.h"
#include "journal/frame.h"
#include "journal/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A body of at least eight bytes: the number, and then what follows from it. Valid until the next call. */
struct span body_of(uint64_t number, size_t len);

/* Fails if there is anything else in it. */
uint64_t number_of(struct span body);

struct log_reading {
    uint64_t position, sequence; /* behind the last whole record */
    uint64_t segments;
    uint64_t first;        /* of the last segment */
    uint64_t numbers;      /* records with a number */
    uint64_t noted;        /* by the last RECORD_SYNCED */
    enum record_type last; /* of all but RECORD_END */
    enum sync_mode sync;
};

/* Fails unless the numbers are 1, 2, 3 and so on. */
struct log_reading log_read_back(struct disk *disk, struct log_start start);

/* The same for numbers of any order: `each` is given them. */
struct log_reading log_read_any(struct disk *disk, struct log_start start,
                                void (*each)(void *context, uint64_t number), void *context);

bool disk_has(struct disk *disk, const char *name);
int64_t disk_size_of(struct disk *disk, const char *name);

/* The head of this segment; fails unless it is good, and its file as long as it says. */
struct frame_head log_head_of(struct disk *disk, uint64_t first);

#endif
