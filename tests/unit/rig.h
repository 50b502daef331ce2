/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_RIG_H
#define WEIR_TESTS_RIG_H

/*
 * One room on a block of memory of its own, with everything a test wants to do to it in a line. The block is shared over
 * fork, so that a child can die in it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "base/memory.h"
#include "room/room.h"
#include "room/state.h"

struct rig {
    unsigned char *base; /* page 0, which is never used; the room follows, then its pages */
    size_t bytes;
    struct room *room;
};

/* `settings` NULL: the defaults. All pages are given to the room. */
struct rig rig_new(uint32_t pages, const struct settings *settings);
void rig_free(struct rig *rig);

/* Memory that looks the same to the parent and to its children. */
void *shared_new(size_t bytes);
void shared_free(void *at, size_t bytes);

/*
 * A copy of a block as it counts: without the undo log of the `memory` in it and without what lies on its spare pages.
 * Two images of which one was rolled back to the other are equal byte by byte. Freed with free().
 */
unsigned char *image_of(const unsigned char *base, size_t bytes, const struct memory *memory);

/* The same room elsewhere: `copy` holds the bytes of `rig`. */
struct rig rig_at(const struct rig *rig, unsigned char *copy);

/* The same small generator everywhere: a failure names its seed. */
struct dice {
    uint64_t state;
};
uint64_t dice_roll(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t limit);

/* Every text at its longest, every character of a line of four bytes. */
struct texts texts_longest(void);

/* Texts of a room: none, short ones, the longest; or NULL, which leaves them as they are. They last. */
const struct texts *texts_at_random(struct dice *dice);

/* Somebody; different numbers, different people, spread evenly. */
struct holder holder_of(uint64_t who);

struct request_key key_of(uint64_t key, uint64_t body);

enum error rig_join(struct rig *rig, uint64_t who, struct standing *standing);
enum error rig_join_by_key(struct rig *rig, uint64_t who, uint64_t key, uint64_t body,
                           struct standing *standing);
enum error rig_enter(struct rig *rig, const struct place *place, struct standing *standing);

/* Joins somebody who must be let join. */
struct place rig_place(struct rig *rig, uint64_t who);

/* Polls and expects to be known. */
struct standing rig_poll(struct rig *rig, const struct place *place);

/* The state of a ticket without being seen looking; DONE when its page is gone. */
enum ticket_state rig_state(const struct rig *rig, const struct place *place);

/* Ticks of 100 ms until this much time has passed. */
void rig_pass(struct rig *rig, uint64_t ms);

enum error rig_set(struct rig *rig, const struct settings *settings);

/* A child that can be led step by step: it stands before its first one. 0 in the child, which goes on when it is led. */
pid_t fork_traced(void);

/* Whether `act` ends in a broken invariant. */
bool dies(void (*act)(void));

/* An answer that has nothing in it but what the operation filled in. */
extern const struct standing no_standing;

#endif
