/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder lists its files in any order, and names are all that is needed to put them in theirs. */
#include "journal/listing.h"

#include "journal/frame.h"
#include "journal/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct taking {
    struct listing *listing;
    int error;
};

static void take_name(void *context, const char *name);
static int files_add(struct listing_files *files, uint64_t first);
static void files_sort(struct listing_files *files);

int listing_read(struct listing *listing, struct disk *disk)
{
    struct taking taking = {.listing = listing};

    *listing = (struct listing){0};
    int error = disk->list(disk, take_name, &taking);
    files_sort(&listing->segments);
    files_sort(&listing->snapshots);
    return error < 0 ? error : taking.error;
}

void listing_free(struct listing *listing)
{
    free(listing->segments.firsts);
    free(listing->snapshots.firsts);
    *listing = (struct listing){0};
}

size_t listing_find(const struct listing_files *files, uint64_t position)
{
    size_t behind = 0;

    while (behind < files->count && files->firsts[behind] <= position)
        behind++;
    return behind > 0 ? behind - 1 : files->count;
}

static void take_name(void *context, const char *name)
{
    struct taking *taking = context;
    struct listing *listing = taking->listing;
    bool is_snapshot;
    uint64_t first;

    if (strcmp(name, LOG_FAILED) == 0)
        listing->has_failed = true;
    if (strcmp(name, LOG_LOST) == 0)
        listing->has_lost = true;
    if (taking->error == 0 && frame_name_read(name, &is_snapshot, &first))
        taking->error = files_add(is_snapshot ? &listing->snapshots : &listing->segments, first);
}

static int files_add(struct listing_files *files, uint64_t first)
{
    if (files->count == files->capacity) {
        size_t capacity = files->capacity == 0 ? 16 : 2 * files->capacity;
        uint64_t *firsts = reallocarray(files->firsts, capacity, sizeof(*firsts));
        if (firsts == NULL)
            return -ENOMEM;
        files->firsts = firsts;
        files->capacity = capacity;
    }
    files->firsts[files->count++] = first;
    return 0;
}

static int compare_firsts(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static void files_sort(struct listing_files *files)
{
    if (files->count > 0)
        qsort(files->firsts, files->count, sizeof(*files->firsts), compare_firsts);
}
