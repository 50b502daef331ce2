/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_CROWD_H
#define WEIR_TESTS_CROWD_H

/*
 * People, operators and clocks at a few rooms of a local engine whose journal is on a simulated disk; what each of them was
 * told; and what the rooms were after each operation. From the three follows what must be there after any accident.
 *
 * A life is one zone with two workers, from a recovery until everything stops at once. A crowd outlives its lives: people keep
 * their tickets, and come back with them.
 *
 * Everything follows from a seed.
 */

#include "disk_sim.h"
#include "rig.h"

#include "engine/local.h"
#include "engine/local_zone.h"

#define CROWD_PEOPLE  100
#define CROWD_NAMES   21 /* of rooms; there is place for one less */
#define CROWD_WORKERS 2
#define CROWD_WALL_MS 1790000000000ULL

#define NEVER UINT32_MAX

/* ---- lives ---- */

struct life {
    struct disk_sim *sim;
    void *memory;
    size_t bytes;
    struct local_zone *zone;
    struct engine *worker[CROWD_WORKERS];
    struct local_recovery recovery;
    uint64_t now_ms;
};

/* A fresh zone, for a replay or a recovery. Memory of this process alone. */
struct life life_new(struct disk_sim *sim);

/* The same with no more pages than that, beside those that every room must have. */
struct life life_new_small(struct disk_sim *sim, uint32_t pages);

/* Recovers it, and has workers begin. False: see recovery.why. */
bool life_begin(struct life *life, const struct log_options *options);

/* Whatever its workers were at. The disk stays. */
void life_end(struct life *life);

/* Submits a call and sees to it until it is answered. */
enum error life_ask(struct life *life, struct engine_call *call, struct span room);

/* As local_zone_hash, also where a room's lock is held. */
uint64_t life_hash(const struct life *life);

/* The room of this name, or NULL if there is none. Nobody else is at it. */
struct room *life_room(const struct life *life, struct span name);

/* ---- the crowd ---- */

/* A ticket. Operations of a life are numbered from 1; 0 is what it found. */
struct slip {
    uint32_t person, room;
    struct place place;  /* and what the ticket says of its issue */
    uint32_t made;       /* by which operation its room was */
    uint32_t born, over; /* by which operation; NEVER: not yet. Told and never born: a loss took it. */
    bool is_told;        /* somebody has it */
    bool is_given_up;    /* and knows that it is over, or that it stands for another of theirs */
    bool has_pass;
    uint32_t entered; /* the operation that was answered with the pass */
    struct standing pass;
};

/* What the rooms were when so many operations were done. One that consists of several has more than one moment. */
struct moment {
    uint64_t hash;
    uint32_t done;
};

struct ask;

struct crowd {
    uint64_t seed;
    struct dice dice;
    struct life *life;
    struct log_options options;
    bool may_be_refused; /* the disk fails: ENGINE_UNAVAILABLE may be answered */
    uint32_t rooms;      /* that they use: so many of the names */
    bool has_operator;   /* who changes settings, calls, clears and deletes */

    struct slip *slips;
    uint32_t slip_count;

    /* of this life */
    struct moment *moments;
    uint32_t moment_count;
    uint32_t ops;           /* begun */
    uint32_t told;          /* the last one that was answered as done */
    uint32_t told_for_good; /* and the last whose answer must outlive a power cut */
    uint32_t flushed, synced;
    uint64_t flushed_until; /* so far in the log */
    uint32_t changed[CROWD_NAMES],
        made[CROWD_NAMES];           /* the last operation that changed a room, that made it */
    uint32_t refused, refused_joins; /* answers ENGINE_UNAVAILABLE */
    struct ask **asks;
    uint32_t ask_count, open_count;
    enum { WORK_NONE, WORK_WANTED, WORK_DONE } work[CROWD_WORKERS];

    /* called with each operation and tick of a room, if set */
    void (*watch)(struct span room, const struct figures *figures);
};

/* Which of the crowds there are has the callbacks of the engine, which carry no context: one at a time. */
void crowd_init(struct crowd *crowd, uint64_t seed, const struct log_options *options);
void crowd_fini(struct crowd *crowd);

/* The crowd is at this life from now on. */
void crowd_enter(struct crowd *crowd, struct life *life);

/* It goes on in another life, which has found what there was when `done` operations of the last one were done. */
void crowd_move(struct crowd *crowd, struct life *life, uint32_t done);

/* A copy of what it knows now, to be looked at and moved on while the original plays on. To be freed like any. */
struct crowd crowd_copy(const struct crowd *crowd);

/* Of rooms that are made by a join. */
struct settings crowd_settings(void);

struct span crowd_room_name(uint32_t room);

/* One turn of an event loop: a few operations, perhaps a tick, a flush, perhaps work on the disk. */
void crowd_turn(struct crowd *crowd);

/* Nobody does anything any more, until everybody is answered. */
void crowd_settle(struct crowd *crowd);

/* One operation of the operator's. */
void crowd_put(struct crowd *crowd, uint32_t worker, uint32_t room);
void crowd_tick(struct crowd *crowd, uint32_t worker, uint32_t elapsed_ms);
void crowd_flush(struct crowd *crowd, uint32_t worker);

/* How many operations were done when the rooms were what this hash says; the most, if several; NEVER if they never were. */
uint32_t crowd_find(const struct crowd *crowd, uint64_t hash);

/* How many must be there after a power cut now. */
uint32_t crowd_must_have(const struct crowd *crowd);

static inline bool slip_is_alive_at(const struct slip *slip, uint32_t done)
{
    return slip->born <= done && done < slip->over;
}

static inline bool slip_is_lost_at(const struct slip *slip, uint32_t done)
{
    return slip->born > done && slip->over > done;
}

/* Whether the ticket is alive at its own place. */
bool slip_stands(const struct life *life, const struct slip *slip, uint32_t *count);

/* The slip of a place, or NULL. */
struct slip *crowd_slip(struct crowd *crowd, uint32_t room, const struct place *place);

/* Whether a repeated enter said what the first did. */
bool pass_is_same(const struct standing *a, const struct standing *b);

#endif
