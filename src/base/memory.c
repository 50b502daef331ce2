/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A spare page is linked to the next by its own first word, so that any number of them need no table; and pages move between
 * two memories by the log of one of them, so that a rollback never finds a page in both or in none.
 */

#include "base/memory.h"

void memory_init(struct memory *memory, void *base)
{
    memory->base = base;
    memory->spare = 0;
    memory->spare_count = 0;
    memory->has_freed = false;
    memory->undo_used = 0;
}

void memory_commit(struct memory *memory)
{
    memory_order_stores();
    memory->undo_used = 0;
    memory->has_freed = false;
    memory_order_stores();
}

void memory_rollback(struct memory *memory)
{
    uint32_t used = memory->undo_used;

    while (used > 0) {
        uint64_t where;

        memcpy(&where, memory->undo + used - sizeof(where), sizeof(where));
        size_t len = where & ((1 << UNDO_LENGTH_BITS) - 1);
        must(used >= UNDO_PADDED(len) + sizeof(where));
        used -= (uint32_t)(UNDO_PADDED(len) + sizeof(where));
        memcpy(memory->base + (where >> UNDO_LENGTH_BITS), memory->undo + used, len);
    }
    memory_commit(memory);
}

/* A spare page's first word names the next one. */
static page_ref *link_of(const struct memory *memory, page_ref page)
{
    return memory_page(memory, page);
}

page_ref memory_take(struct memory *memory)
{
    must(!memory->has_freed);
    page_ref page = memory_take_back(memory, memory);
    if (page != 0)
        memset(memory_page(memory, page), 0, PAGE_BYTES);
    return page;
}

void memory_free(struct memory *memory, page_ref page)
{
    memory->has_freed = true;
    memory_give(memory, page, memory);
}

void memory_give(struct memory *memory, page_ref page, struct memory *log)
{
    must(page != 0);
    memory_set(log, *link_of(memory, page), memory->spare);
    memory_set(log, memory->spare, page);
    memory_set(log, memory->spare_count, memory->spare_count + 1);
}

page_ref memory_take_back(struct memory *memory, struct memory *log)
{
    page_ref page = memory->spare;

    if (page == 0)
        return 0;
    must(memory->spare_count > 0);
    /* The caller overwrites the link; a rollback needs it again. */
    memory_keep(log, link_of(memory, page), sizeof(page_ref));
    memory_set(log, memory->spare, *link_of(memory, page));
    memory_set(log, memory->spare_count, memory->spare_count - 1);
    return page;
}
