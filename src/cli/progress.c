/* SPDX-License-Identifier: BSD-2-Clause */
/* One line that is written over itself, a few times a second: what is read in a moment shows none at all. */
#include "cli/progress.h"

#include "cli/number.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LARGE_BYTES (32u << 20)
#define EVERY_MS    100
#define CELLS       30

#define TO_THE_LEFT  "\r"
#define REST_OF_LINE "\033[K"

static uint64_t now_ms(void);
static void bar_print(uint64_t done, uint64_t total);

void progress_init(struct progress *progress, bool is_wanted)
{
    *progress = (struct progress){.is_wanted = is_wanted && isatty(STDERR_FILENO) != 0};
}

void progress_tell(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct progress *progress = context;

    if (!progress->is_wanted || total_bytes < LARGE_BYTES)
        return;
    uint64_t now = now_ms();
    if (progress->is_shown && now - progress->told_ms < EVERY_MS)
        return;
    progress->is_shown = true;
    progress->told_ms = now;
    bar_print(done_bytes, total_bytes);
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown)
        fputs(TO_THE_LEFT REST_OF_LINE, stderr);
    progress->is_shown = false;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void bar_print(uint64_t done, uint64_t total)
{
    char bar[CELLS + 1], read[NUMBER_TEXT_MAX], all[NUMBER_TEXT_MAX];
    size_t filled = done >= total ? CELLS : (size_t)((double)done / (double)total * CELLS);

    memset(bar, '.', CELLS);
    memset(bar, '#', filled);
    bar[CELLS] = '\0';
    fprintf(stderr, TO_THE_LEFT "%s %3u%%  %s of %s MB" REST_OF_LINE, bar,
            (unsigned)((double)done / (double)total * 100), number_group(done / 1000000, read),
            number_group(total / 1000000, all));
}
