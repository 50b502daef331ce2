/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_DISK_SIM_H
#define WEIR_TESTS_DISK_SIM_H

/*
 * A disk in memory that does to the journal what disks do.
 *
 * Every file has two contents: what processes see, and what would be there after a power cut. Between them stand the writes that
 * were not synced; and for the folder the same, with files made, renamed and removed. A power cut is not something that happens
 * to a sim but another sim that is made of it, so that one run of a trace can be cut after each of its calls:
 *
 *     static void cut(void *context, struct disk_sim *sim, enum sim_call call)
 *     {
 *         struct disk_sim *after = disk_sim_power_cut(sim, SIM_REORDER, seed);
 *         ... journal_scan(disk_sim_disk(after), ...) ...
 *         disk_sim_free(after);
 *     }
 *     disk_sim_watch(sim, cut, context);
 *
 * A cut in the middle of a write is one after it, in which it counts as not synced; a cut in the middle of a sync is one before.
 *
 * Pages are shared between a sim and those made of it, and zeros take no memory: a copy of a disk with a few segments of a MiB
 * each costs microseconds. One thread at a time.
 */

#include "journal/disk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk_sim;

enum sim_call {
    SIM_OPEN,
    SIM_CLOSE,
    SIM_READ,
    SIM_WRITE,
    SIM_SYNC,
    SIM_ALLOCATE,
    SIM_SIZE,
    SIM_RENAME,
    SIM_REMOVE,
    SIM_SYNC_FOLDER,
    SIM_LIST,
    SIM_ANY, /* all of them */
};

/* For messages: "write". */
const char *sim_call_name(enum sim_call call);

struct disk_sim *disk_sim_new(void);
void disk_sim_free(struct disk_sim *sim);

struct disk *disk_sim_disk(struct disk_sim *sim);

/* How many calls there were, of this kind or of SIM_ANY. Failed ones count; `boot` does not. */
uint64_t disk_sim_calls(const struct disk_sim *sim, enum sim_call call);

/* Called at the end of every call, with what it was. NULL: no more. What is made of `sim` is not watched. */
void disk_sim_watch(struct disk_sim *sim,
                    void (*after)(void *context, struct disk_sim *sim, enum sim_call call), void *context);

/* ---- faults ---- */

/*
 * The n-th call of this kind from now on (1 = the next) fails with this errno (positive), once or from then on. One fault per
 * kind; SIM_ANY is a kind of its own. n = 0: none.
 * What fails may have been done in part: a write has written some of its bytes, an allocation has taken some of its space, and
 * of a failed sync some sectors are on the disk and the others never will be, whatever is synced later (they can still be read).
 */
void disk_sim_fail(struct disk_sim *sim, enum sim_call call, uint64_t n, int error, bool is_for_good);

/* All faults are over. */
void disk_sim_heal(struct disk_sim *sim);

/* Bytes that all files together may take; UINT64_MAX (as at first): no limit. Allocated space stays taken. */
void disk_sim_set_space(struct disk_sim *sim, uint64_t bytes);
uint64_t disk_sim_space_used(const struct disk_sim *sim);

/* ---- the end of processes and of power ---- */

/* What becomes of writes, sizes, makes, renames and removes that were not synced. A rename is done or not done. */
enum sim_loss {
    SIM_KEEP, /* all are there */
    SIM_DROP, /* none */
    SIM_TEAR, /* those up to some point are there; the one at this point in part, up to any byte or sector */
    SIM_REORDER, /* each change of the folder is there or not; each sector is as it was at some time since its sync */
    SIM_LOSSES,
};

/* The disk as it is found after a power cut now: nothing open, no faults, another boot id. To be freed. */
struct disk_sim *disk_sim_power_cut(const struct disk_sim *sim, enum sim_loss loss, uint64_t seed);

/* The disk as it is found when all processes died now: all is there, the same boot. To be freed. */
struct disk_sim *disk_sim_crash(const struct disk_sim *sim);

#endif
