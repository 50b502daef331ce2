/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ENGINE_LOCAL_H
#define WEIR_ENGINE_LOCAL_H

/*
 * The local engine: rooms in a block of memory that several processes share, each room under its own robust lock.
 * The block must lie at the same address in all of them (inherited over fork).
 */

#include "engine/engine.h"
#include "journal/log.h"
#include "journal/scan.h"

struct local_zone; /* what lies at the start of the shared block */

struct local_zone_options {
    uint32_t rooms_max;
    bool makes_rooms; /* an unknown room is made by its first join, with these settings */
    struct settings settings;
    struct texts texts;
    uint32_t
        first_epoch; /* of a fresh zone; 0 = 1. With a clock in it no number of a former zone is given again. */
};

/* Bytes that a zone for `rooms_max` rooms needs before it can hold a single ticket in each. */
size_t local_zone_least_bytes(uint32_t rooms_max);

/*
 * What tells one layout of a zone from another, as text: two versions of the code that write the same here can use each
 * other's zone, as far as sizes can tell.
 */
void local_zone_layout(char *out, size_t size);

/* Lays out a fresh zone. The memory must be zeroed and page-aligned (4096). */
struct local_zone *local_zone_init(void *memory, size_t bytes, const struct local_zone_options *options);

/* A zone that lived through a reload: takes the new options (rooms_max stays what it was). */
void local_zone_reconfigure(struct local_zone *zone, const struct local_zone_options *options);

/*
 * A room of the configuration file: makes it, or gives it these settings unless it has others from the operator's API.
 * `texts` NULL: those stay. ERROR_QUEUE_FULL: no room for another room.
 */
enum error local_zone_put_room(struct local_zone *zone, struct span name, const struct settings *settings,
                               const struct texts *texts);

/*
 * The rooms that a fresh zone without a journal begins with may have been there before: passes given before `wall_sec` make their
 * sessions anew (room_had_former).
 */
void local_zone_had_former(struct local_zone *zone, uint32_t wall_sec);

/* Stops everybody, checks every room (room_check) and that no page is lost or in two places; aborts if not. */
void local_zone_check(struct local_zone *zone);

/* One per process. Allocated with malloc; the zone outlives it. */
struct engine *local_engine_new(struct local_zone *zone);
void local_engine_free(struct engine *engine);

/*
 * ---- with a journal ----
 *
 * The zone is recovered from a folder once, by one process, before anybody is served (local_zone_recover), or later, when
 * another nginx has let go of the folder: until then it awaits its journal and every call is answered ERROR_ENGINE_UNAVAILABLE.
 * From then on every process that uses the zone gives its engine a disk.
 *
 * A call that changed something is answered when its record is written, by local_engine_flush, or synced, by local_engine_worked.
 */

struct local_recovery {
    enum scan_result result; /* SCAN_STOPPED: a whole record that could not be taken over */
    bool is_full;            /* for want of memory */
    struct scan_report scan;
    uint64_t rooms, tickets; /* living ones */
    bool has_lost;           /* something acknowledged may be missing: rooms got new epochs, and heal */
    char why[384];           /* when it failed: what is wrong, and how to go on */
};

/* Answers nothing until the zone is recovered. Before any engine uses it. */
void local_zone_await_journal(struct local_zone *zone);
bool local_zone_is_awaiting(const struct local_zone *zone);

/*
 * Rebuilds a fresh zone from the folder and begins to write it on. Blocks. False: `why`; the zone may then be half filled, and
 * is of no use. The folder must be nobody else's (its lock is the caller's business).
 */
bool local_zone_recover(struct local_zone *zone, struct disk *disk, const struct log_options *options,
                        uint64_t wall_ms, struct local_recovery *recovery);

/* A first epoch for a fresh zone by the wall clock: see local_zone_options. */
uint32_t local_first_epoch(uint64_t wall_ms);

/* Only the first half: rebuilds a fresh zone and changes nothing in the folder. `progress` may be NULL. */
bool local_zone_replay(struct local_zone *zone, struct disk *disk,
                       void (*progress)(void *context, uint64_t done, uint64_t total), void *context,
                       struct local_recovery *recovery);

/* Of all that a journal keeps: the same after a replay. Stops everybody for its time. */
uint64_t local_zone_hash(struct local_zone *zone);

/* After a reload: other options for the same journal. May block, to take space. */
void local_zone_set_journal(struct local_zone *zone, struct disk *disk, const struct log_options *options);

/* The last process of an orderly end: everything is written and synced, and the journal says so. 0 or a negative errno. */
int local_zone_close(struct local_zone *zone, struct disk *disk, uint64_t wall_ms);

/* `wall_ms` tells the wall clock in milliseconds. The disk outlives the engine. */
void local_engine_use_disk(struct engine *engine, struct disk *disk, uint64_t (*wall_ms)(void));

/* At the end of each turn of the event loop in which calls were submitted or the engine ticked: writes, and answers calls. */
void local_engine_flush(struct engine *engine);

/*
 * Slow work on the disk: a sync, or taking space for the next segment. When `wants` says so, and no work of this process is
 * under way, the caller has `work` done in a thread (or, without threads, at once), and then calls `worked` in its event loop,
 * which answers the calls that waited for it.
 */
bool local_engine_wants_work(struct engine *engine, uint64_t now_ms);
void local_engine_work(struct engine *engine);
void local_engine_worked(struct engine *engine);

/* Calls that wait for an answer: a process that is told to leave stays until there are none. */
uint32_t local_engine_waiting(const struct engine *engine);

/* How the journal does, for the operator. */
struct local_journal_figures {
    bool is_on, is_short; /* short: the disk is nearly full, joins are refused */
    enum log_trouble trouble;
    struct log_options options;
    uint64_t end, written, synced; /* positions in the log */
    uint64_t snapshot;             /* position of the newest snapshot, 0 = none */
    char text[256];                /* the trouble in one sentence, or empty */
};
struct local_journal_figures local_zone_journal(const struct local_zone *zone);

#endif
