/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ENGINE_LOCAL_ZONE_H
#define WEIR_ENGINE_LOCAL_ZONE_H

/*
 * What the local engine consists of. Only for its own files: local.c has the zone, its locks, pages and rooms; local_engine.c
 * what a process does with it; local_recovery.c and local_snapshot.c the ways from and to a folder.
 */

#include "base/memory.h"
#include "engine/local.h"

#include <pthread.h>
#include <stdatomic.h>

struct slot {
    pthread_mutex_t lock;
    _Atomic bool is_used; /* false: deleted, or not made to its end */
    uint64_t ticked_ms;   /* 0 = never */
    uint64_t recorded;    /* position in the log behind the room's last record */
    uint64_t made;        /* and behind its first: without that one the others mean nothing */
    _Alignas(PAGE_BYTES) unsigned char room[ROOM_BYTES];
};

struct local_zone {
    pthread_mutex_t lock; /* of everything in this head but `table` and what is atomic */
    struct memory pool;
    page_ref fresh; /* pages from here on were never used */
    page_ref end;
    uint32_t next_epoch;
    uint32_t rooms_max;
    _Atomic uint32_t rooms;
    _Atomic uint32_t gone; /* of them not in use, or more if somebody died over one */
    struct local_zone_options options;
    struct slot *slots;
    uint32_t table_mask;
    _Atomic uint32_t *table; /* 1 + index of a room; 0 = free; ENTRY_GONE = was one */

    struct log *log;
    _Atomic bool has_journal, is_awaiting;
    pthread_mutex_t snapshot_lock;             /* held by the process that takes one */
    _Atomic uint64_t snapshot, snapshot_bytes; /* position and size of the newest */
    _Atomic uint64_t snapshot_tried_ms;
};

#define ENTRY_GONE UINT32_MAX

/* A snapshot that this process is taking. */
struct local_snapshot {
    bool is_under_way; /* and the zone's snapshot_lock is ours */
    bool is_written;   /* all that is left is to sync and to name it */
    int file;
    uint64_t first;  /* where the journal is to be read on from */
    uint64_t needs;  /* and how far it must reach */
    uint64_t offset; /* in the file */
    struct frame_chain chain;
    uint32_t slot;
    uint32_t number; /* of the room under way; 0 = none yet */
    struct room_cursor cursor;
    unsigned char *piece; /* FRAME_RECORD_BYTES and ROOM_PIECE_BYTES */
};

struct local_engine {
    struct engine engine;
    struct local_zone *zone;

    /* with a journal */
    struct disk *disk;
    struct log_writer writer;
    uint64_t (*wall_ms)(void); /* NULL: it stands still at the other */
    uint64_t still_ms;
    struct waiting {
        struct engine_call *first, **end; /* in the order they came */
        uint64_t position;                /* how far the log must be for all of them */
    } for_write, for_sync;
    uint32_t waiting;
    uint64_t synced;            /* how far it was when those were last looked at */
    uint64_t prepare_failed_ms; /* 0 = it did not */
    struct local_work {         /* decided by `wants`, done in a thread */
        bool sync, prepare, name_snapshot;
        uint64_t now_ms;
        int named; /* what came of it */
    } work;
    struct local_snapshot snapshot;
    char trouble[256];
};

static inline struct local_engine *local_of(struct engine *engine)
{
    return (struct local_engine *)engine;
}

/* ---- local.c ---- */

static inline struct room *slot_room(struct slot *slot)
{
    return (struct room *)slot->room;
}

static inline bool zone_is_recorded(const struct local_zone *zone)
{
    return zone->has_journal && !zone->is_awaiting;
}

void zone_lock(struct local_zone *zone);
void zone_unlock(struct local_zone *zone);
struct room *slot_lock(struct local_zone *zone, struct slot *slot);
void slot_unlock(struct slot *slot);

/* Whether there is a room in it that is not over. Under its lock. */
bool slot_is_alive(struct slot *slot);

/* Fills a room's stock before an operation. A pool that has run dry shows as QUEUE_FULL where pages are needed. */
#define STOCK_FILL  (2 * ROOM_SPARE_PAGES)
#define STOCK_LIMIT (4 * STOCK_FILL)
void stock_fill(struct local_zone *zone, struct room *room, uint32_t pages);

/* Takes pages back after an operation if the room has more than `limit`. */
void stock_trim(struct local_zone *zone, struct room *room, uint32_t limit);

struct slot *slot_find(struct local_zone *zone, struct span name);

/* A place for a room of this name; UINT32_MAX if there is none. Under the zone's lock, like the next. */
uint32_t slot_choose(struct local_zone *zone, struct span name);
void slot_make(struct local_zone *zone, uint32_t index, struct span name, uint32_t epoch,
               const struct settings *settings, const struct texts *texts);
void slot_unpublish(struct local_zone *zone, uint32_t index);

/* The room is over, and its record, if any, in the log: its place may be taken. Under its lock, given up with it. */
void slot_give_up(struct local_zone *zone, struct slot *slot);

/* ERROR_QUEUE_FULL: there are as many rooms as there may be. */
enum error slot_find_or_make(struct local_zone *zone, struct span name, const struct settings *settings,
                             const struct texts *texts);

/* ---- local_engine.c ---- */

static inline uint64_t local_wall_ms(const struct local_engine *local)
{
    return local->wall_ms == NULL ? local->still_ms : local->wall_ms();
}

/*
 * Puts what the room recorded into the log. False: the log is in trouble; it stays in the outbox, and nothing may happen in the
 * room until it could be put. Under the slot's lock.
 */
bool slot_record(struct local_engine *local, struct slot *slot);

/* ---- local_snapshot.c ---- */

/* The journal since the last snapshot has grown to more than what a new one would replace. */
bool snapshot_is_due(const struct local_zone *zone);

/* Goes on with a snapshot, or begins one if it is time: a bounded piece of work, once a tick. */
void snapshot_step(struct local_engine *local, uint64_t now_ms);

/* In a thread: what was written gets its name, and what it replaces is removed. Then, back in the event loop: */
int snapshot_name(struct local_engine *local);
void snapshot_named(struct local_engine *local, int error);
void snapshot_abandon(struct local_engine *local);

/* All of it at once, synced and named, before anybody is served. 0 or a negative errno. */
int snapshot_take_now(struct local_engine *local);

#endif
