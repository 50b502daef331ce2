/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_SHELF_H
#define WEIR_TESTS_SHELF_H

/*
 * A disk in memory that keeps what it is given, for tests that lay hands on the bytes themselves. (What a disk does on its own
 * account is disk_sim.h's.)
 */

#include "journal/disk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHELF_FILES 32

struct shelf_file {
    char name[48]; /* "" = none */
    unsigned char *bytes;
    size_t len;
};

struct shelf {
    struct disk disk; /* first: a shelf is a disk */
    struct shelf_file files[SHELF_FILES];
    unsigned char boot[DISK_BOOT_BYTES];
    int opened;                               /* handles that were not closed */
    uint32_t fails_at, calls;                 /* the n-th call that can fail does, with EIO; 0 = none */
    void (*before_read)(struct shelf *shelf); /* NULL = nothing */
};

void shelf_init(struct shelf *shelf);
void shelf_fini(struct shelf *shelf);

/* The same files on another shelf, which is to be freed by itself. */
void shelf_copy(struct shelf *to, const struct shelf *from);

/* A file by name, or NULL. */
struct shelf_file *shelf_find(struct shelf *shelf, const char *name);

/* A file of that many bytes, made if it is not there; what is new in it is zero. */
struct shelf_file *shelf_put(struct shelf *shelf, const char *name, size_t len);

#endif
