/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_JOURNAL_FOLDER_H
#define WEIR_JOURNAL_FOLDER_H

/* A disk that is a folder. */

#include "journal/disk.h"

struct folder {
    struct disk disk; /* first: a folder is a disk */
    int fd;
};

/* Opens an existing folder. 0 or a negative errno. */
int folder_open(struct folder *folder, const char *path);

/* The same for a path that is relative to a folder which is open already. */
int folder_open_at(struct folder *folder, int fd, const char *path);

void folder_close(struct folder *folder);

#endif
