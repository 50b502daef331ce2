/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_JOURNAL_WINDOW_H
#define WEIR_JOURNAL_WINDOW_H

/* Reads one file after the other, from front to back, in bounded memory: the bytes at a place and enough of what follows. */

#include "base/span.h"
#include "journal/disk.h"
#include "journal/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Any record. */
#define WINDOW_LEAST (FRAME_RECORD_BYTES + FRAME_BODY_MAX)

struct window {
    struct disk *disk;
    int file;       /* -1 = none */
    uint64_t start; /* offset in the file at which `bytes` begins */
    size_t len;
    bool is_end; /* nothing follows in the file */
    unsigned char *bytes;
    uint64_t read; /* so far, in all */
};

/* 0 or a negative errno. */
int window_init(struct window *window, struct disk *disk);
void window_fini(struct window *window);

/* Goes over to this file, and reads it anew if it is the same. 0 or a negative errno. */
int window_open(struct window *window, const char *name);

/*
 * The bytes at `offset`: WINDOW_LEAST at least, fewer only at the end of the file. They stay until the next call, whose offset is
 * not lower. 0 or a negative errno.
 */
int window_at(struct window *window, uint64_t offset, struct span *bytes);

#endif
