/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_TAPE_H
#define WEIR_TESTS_TAPE_H

/* A journal without a disk: the records of a room in their order, and rooms made from them. */

#include "rig.h"

struct tape {
    unsigned char *bytes;
    size_t used, size;
    size_t *end; /* of each record */
    uint32_t records, records_max;
};

void tape_free(struct tape *tape);
void tape_add(struct tape *tape, struct span body);

/* Takes what is in the room's outbox; false if there is nothing. */
bool tape_take(struct tape *tape, struct room *room);

/* The same until the room has no more: what an owner does after each operation. */
void tape_take_all(struct tape *tape, struct room *room);

struct span tape_record(const struct tape *tape, uint32_t number);

/* A whole snapshot, taken while nothing else happens. */
void tape_snapshot(struct tape *tape, const struct room *room);

/*
 * A room made from records. It begins as a recovery begins: of that name and number, and nothing else known of it. Before each
 * record it has the pages ready that an owner is told to have, and not one more.
 */
struct copy {
    struct rig rig;
    page_ref *pool;
    uint32_t pooled;
};
struct copy copy_new(uint32_t pages);
void copy_free(struct copy *copy);

/* Applies one record, which must be taken; or those of a journal: from..to - 1. */
void copy_apply(struct copy *copy, struct span body, bool is_snapshot);
void copy_replay(struct copy *copy, const struct tape *tape, uint32_t from, uint32_t to);

/* From a snapshot and the records of `tape` from `from` on. */
struct copy copy_recovered(uint32_t pages, const struct tape *snapshot, const struct tape *tape,
                           uint32_t from);

/* The last record is applied: the room gets all pages and goes on, recorded. */
void copy_wake(struct copy *copy);

/* Both are the same in everything that records keep. `where` is said if not. */
void assert_same_room(const struct room *live, const struct room *copy, const char *where);

#endif
