/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

/* How far a long reading is: a bar on stderr where that is a terminal and there is much to read, else nothing. */

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool is_wanted, is_shown;
    uint64_t told_ms;
};

/* `is_wanted` false: never shown, as where the output itself goes to the terminal. */
void progress_init(struct progress *progress, bool is_wanted);

/* `context` is the progress: as the readers of a journal call it. */
void progress_tell(void *context, uint64_t done_bytes, uint64_t total_bytes);

/* Takes the bar off the terminal. Before anything else is said. */
void progress_end(struct progress *progress);

#endif
