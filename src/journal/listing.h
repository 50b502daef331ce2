/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_JOURNAL_LISTING_H
#define WEIR_JOURNAL_LISTING_H

/* What is in a journal's folder, by name. Files that are none of ours are passed over. */

#include "journal/disk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of their positions. */
struct listing_files {
    uint64_t *firsts;
    size_t count, capacity;
};

struct listing {
    struct listing_files segments, snapshots;
    bool has_failed; /* LOG_FAILED is there */
    bool has_lost;   /* and LOG_LOST */
};

/* 0 or a negative errno. To be freed in either case. */
int listing_read(struct listing *listing, struct disk *disk);
void listing_free(struct listing *listing);

/* Index of the last file that begins at or before `position`, or `count` if there is none. */
size_t listing_find(const struct listing_files *files, uint64_t position);

#endif
