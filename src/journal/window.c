/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Big reads, because each costs a call; but not mapped memory, which would end the process where the disk fails and cannot be
 * replaced by a test. What a read left over of a record moves to the front before the next.
 */
#include "journal/window.h"

#include "base/must.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((1 << 18) + WINDOW_LEAST)

static int window_fill(struct window *window, uint64_t offset);

int window_init(struct window *window, struct disk *disk)
{
    *window = (struct window){.disk = disk, .file = -1, .bytes = malloc(WINDOW_BYTES)};
    return window->bytes == NULL ? -ENOMEM : 0;
}

static void window_close(struct window *window)
{
    if (window->file >= 0)
        window->disk->close(window->disk, window->file);
    window->file = -1;
}

void window_fini(struct window *window)
{
    window_close(window);
    free(window->bytes);
    window->bytes = NULL;
}

int window_open(struct window *window, const char *name)
{
    window_close(window);
    window->start = 0;
    window->len = 0;
    window->is_end = false;
    window->file = window->disk->open(window->disk, name, DISK_READ);
    return window->file < 0 ? window->file : 0;
}

int window_at(struct window *window, uint64_t offset, struct span *bytes)
{
    must(offset >= window->start);
    if (offset - window->start + WINDOW_LEAST > window->len && !window->is_end) {
        int error = window_fill(window, offset);
        if (error < 0)
            return error;
    }
    size_t skipped = offset - window->start < window->len ? (size_t)(offset - window->start) : window->len;
    *bytes = (struct span){(const char *)window->bytes + skipped, window->len - skipped};
    return 0;
}

static int window_fill(struct window *window, uint64_t offset)
{
    uint64_t end = window->start + window->len;
    size_t kept = offset < end ? (size_t)(end - offset) : 0;

    memmove(window->bytes, window->bytes + (window->len - kept), kept);
    window->start = offset;
    window->len = kept;
    size_t wanted = WINDOW_BYTES - kept;
    int64_t got = window->disk->read(window->disk, window->file, window->bytes + kept, wanted, offset + kept);
    if (got < 0)
        return (int)got;
    must((uint64_t)got <= wanted);
    window->len += (size_t)got;
    window->read += (uint64_t)got;
    window->is_end = (size_t)got < wanted;
    return 0;
}
