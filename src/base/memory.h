/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_MEMORY_H
#define WEIR_BASE_MEMORY_H

/*
 * Memory that several processes share and any of them may die in.
 *
 * A memory is a chain of spare pages that its owner filled, and an undo log. Before a byte is changed its old value goes into
 * the log; memory_commit forgets the log, memory_rollback puts every old value back, last first. So a process that is killed
 * between any two instructions leaves behind either the state before its operation or the state after it, never one between.
 *
 * Fresh pages are the exception that keeps the log small: what is written into a page taken in the same operation is not
 * logged, because a rollback makes the page spare again.
 *
 * Pages are named by their number in the zone (`page_ref`); 0 is no page.
 */

#include "base/must.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PAGE_BYTES 4096

typedef uint32_t page_ref;

/*
 * The most that one operation may change: a page of tickets, a bucket of a map, and some hundred single fields.
 * Exceeding it is a bug and aborts.
 */
#define UNDO_BYTES 12288

struct memory {
    unsigned char *base; /* page 0; the same address in all processes */
    page_ref spare;
    uint32_t spare_count;
    bool has_freed; /* in the operation under way */
    uint32_t undo_used;
    _Alignas(8) unsigned char undo[UNDO_BYTES];
};

void memory_init(struct memory *memory, void *base);

static inline void *memory_page(const struct memory *memory, page_ref page)
{
    return memory->base + (size_t)page * PAGE_BYTES;
}

/*
 * The undo log is a stack of entries, each the old bytes, padded to eight, followed by a word that says where they belong
 * (offset in the zone << 16 | length). The order of stores is what makes it work: old bytes, then the word, then `undo_used`,
 * then (in the caller) the change itself. A killed process has executed a prefix of its instructions, so it is enough to keep
 * the compiler from reordering them.
 */
#define UNDO_LENGTH_BITS      16
#define UNDO_PADDED(len)      (((len) + 7) & ~(size_t)7)
#define memory_order_stores() atomic_signal_fence(memory_order_seq_cst)

/* Keeps the present bytes at `at`, which lies within the zone, for a rollback. To be called before they change. */
static inline void memory_keep(struct memory *memory, const void *at, size_t len)
{
    uint32_t used = memory->undo_used;
    uint64_t offset = (uint64_t)((const unsigned char *)at - memory->base);
    uint64_t where = offset << UNDO_LENGTH_BITS | len;

    must(len > 0 && len < 1 << UNDO_LENGTH_BITS && used + UNDO_PADDED(len) + sizeof(where) <= UNDO_BYTES);
    memcpy(memory->undo + used, at, len);
    memcpy(memory->undo + used + UNDO_PADDED(len), &where, sizeof(where));
    memory_order_stores();
    memory->undo_used = used + (uint32_t)(UNDO_PADDED(len) + sizeof(where));
    memory_order_stores();
}

/* Changes one field of shared memory. */
#define memory_set(memory, field, value)                \
    do {                                                \
        memory_keep((memory), &(field), sizeof(field)); \
        (field) = (value);                              \
    } while (0)

/* A zeroed page, or 0 when none is spare. An operation takes pages before it frees any. */
page_ref memory_take(struct memory *memory);
void memory_free(struct memory *memory, page_ref page);

void memory_commit(struct memory *memory);
void memory_rollback(struct memory *memory);

/*
 * For the owner of the pages, between operations: put one in, or take one out (0 if there is none).
 * `log` is the memory whose undo log covers the move: the owner's own.
 */
void memory_give(struct memory *memory, page_ref page, struct memory *log);
page_ref memory_take_back(struct memory *memory, struct memory *log);

#endif
