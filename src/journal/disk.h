/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_JOURNAL_DISK_H
#define WEIR_JOURNAL_DISK_H

/*
 * Everything the journal asks of a disk: one folder of files. Behind it stands a real folder (folder.h) or a test that decides
 * what becomes of each write.
 *
 * Functions return 0 or more, or a negative errno. Names are plain file names within the folder.
 */

#include <stddef.h>
#include <stdint.h>

#define DISK_BOOT_BYTES 16

enum disk_open {
    DISK_READ,  /* an existing file */
    DISK_WRITE, /* an existing file, to read and write */
    DISK_MAKE,  /* a new empty file, to read and write; one of this name must not exist */
};

struct disk {
    /* A file handle, to be closed. May be called from any thread. */
    int (*open)(struct disk *disk, const char *name, enum disk_open how);
    int (*close)(struct disk *disk, int file);

    /* Reads up to `len` bytes; fewer only at the end of the file. Returns how many. */
    int64_t (*read)(struct disk *disk, int file, void *out, size_t len, uint64_t offset);

    /* Writes all of it or fails. What of a failed write is in the file is unknown. */
    int (*write)(struct disk *disk, int file, const void *data, size_t len, uint64_t offset);

    /* What was written to the file survives a power cut, once this has returned 0. After a failure nobody knows what does. */
    int (*sync)(struct disk *disk, int file);

    /* Makes the file `bytes` long, of zeros where nothing was written, and takes the space now: later writes need none. */
    int (*allocate)(struct disk *disk, int file, uint64_t bytes);
    int64_t (*size)(struct disk *disk, int file);

    int (*rename)(struct disk *disk, const char *from, const char *to);
    int (*remove)(struct disk *disk, const char *name);

    /* The same for the folder: files made, renamed and removed. */
    int (*sync_folder)(struct disk *disk);

    /* Names every file, in any order. */
    int (*list)(struct disk *disk, void (*each)(void *context, const char *name), void *context);

    /* Another value after each start of the machine: whether unsynced writes may be gone. */
    void (*boot)(struct disk *disk, unsigned char id[DISK_BOOT_BYTES]);
};

#endif
