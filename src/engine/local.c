/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The zone is laid out as: its head with the pool of free pages, a hash table from names to rooms, the rooms, the pages.
 *
 * Every room has a robust lock. Whoever finds that its last owner died rolls that owner's operation back and goes on. Pages
 * move between the pool and a room under the pool's own robust lock, before and after a room's operation but never inside it, and
 * the pool's undo log covers both ends of the move. So the rule for a dead room owner is: first the pool, then the room.
 *
 * Finding a room in the table needs no lock; whether it still is the one that was looked for is seen under its own. A deleted
 * room keeps its entry until its place is needed for another.
 */

#include "engine/local_zone.h"

#include "base/lock.h"
#include "base/must.h"

#include <stdio.h>
#include <string.h>

/* ---- layout ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Twice as many entries as rooms at least, so that a walk soon meets a free one. */
static uint32_t table_entries(uint32_t rooms_max)
{
    uint32_t entries = 16;

    while (entries < 2 * rooms_max)
        entries *= 2;
    return entries;
}

struct layout {
    size_t table, log, slots, pages;
};

static struct layout layout_for(uint32_t rooms_max)
{
    size_t table = rounded(sizeof(struct local_zone));
    size_t log = table + rounded(table_entries(rooms_max) * sizeof(uint32_t));
    size_t slots = log + rounded(log_bytes());

    return (struct layout){table, log, slots, slots + rooms_max * sizeof(struct slot)};
}

size_t local_zone_least_bytes(uint32_t rooms_max)
{
    return layout_for(rooms_max).pages + (size_t)rooms_max * STOCK_FILL * PAGE_BYTES;
}

void local_zone_layout(char *out, size_t size)
{
    snprintf(out, size, "%zu/%zu/%zu/%zu/%d", sizeof(struct local_zone), sizeof(struct slot),
             room_bytes_used(), log_bytes(), PAGE_BYTES);
}

struct local_zone *local_zone_init(void *memory, size_t bytes, const struct local_zone_options *options)
{
    struct layout layout = layout_for(options->rooms_max);
    struct local_zone *zone = memory;
    unsigned char *base = memory;

    must((uintptr_t)memory % PAGE_BYTES == 0 && options->rooms_max > 0);
    must(bytes >= local_zone_least_bytes(options->rooms_max) && bytes / PAGE_BYTES < UINT32_MAX);
    lock_init(&zone->lock);
    lock_init(&zone->snapshot_lock);
    memory_init(&zone->pool, base);
    zone->fresh = (page_ref)(layout.pages / PAGE_BYTES);
    zone->end = (page_ref)(bytes / PAGE_BYTES);
    zone->next_epoch = options->first_epoch == 0 ? 1 : options->first_epoch;
    zone->rooms_max = options->rooms_max;
    zone->options = *options;
    zone->table_mask = table_entries(options->rooms_max) - 1;
    zone->table = (_Atomic uint32_t *)(base + layout.table);
    zone->slots = (struct slot *)(base + layout.slots);
    zone->log = (struct log *)(base + layout.log);
    log_init(zone->log);
    return zone;
}

/* ---- locks ---- */

void zone_lock(struct local_zone *zone)
{
    if (lock_take(&zone->lock))
        memory_rollback(&zone->pool);
}

void zone_unlock(struct local_zone *zone)
{
    memory_commit(&zone->pool);
    lock_release(&zone->lock);
}

struct room *slot_lock(struct local_zone *zone, struct slot *slot)
{
    if (lock_take(&slot->lock)) {
        /* It may have died while moving a page: that is undone under the pool's lock. */
        zone_lock(zone);
        zone_unlock(zone);
        room_rollback(slot_room(slot));
    }
    return slot_room(slot);
}

void slot_unlock(struct slot *slot)
{
    lock_release(&slot->lock);
}

bool slot_is_alive(struct slot *slot)
{
    return slot->is_used && !room_is_over(slot_room(slot));
}

/* ---- pages ---- */

static page_ref pool_take(struct local_zone *zone)
{
    page_ref page = memory_take_back(&zone->pool, &zone->pool);

    if (page == 0 && zone->fresh < zone->end) {
        page = zone->fresh;
        memory_set(&zone->pool, zone->fresh, page + 1);
    }
    return page;
}

void stock_fill(struct local_zone *zone, struct room *room, uint32_t pages)
{
    struct memory *memory = room_memory(room);

    if (memory->spare_count >= pages)
        return;
    zone_lock(zone);
    while (memory->spare_count < 2 * pages) {
        page_ref page = pool_take(zone);
        if (page == 0)
            break;
        memory_give(memory, page, &zone->pool);
        memory_commit(&zone->pool);
    }
    zone_unlock(zone);
}

void stock_trim(struct local_zone *zone, struct room *room, uint32_t limit)
{
    struct memory *memory = room_memory(room);

    if (memory->spare_count <= limit)
        return;
    zone_lock(zone);
    while (memory->spare_count > limit / 4) {
        memory_give(&zone->pool, memory_take_back(memory, &zone->pool), &zone->pool);
        memory_commit(&zone->pool);
    }
    zone_unlock(zone);
}

/* ---- rooms ---- */

static uint32_t name_hash(struct span name)
{
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * 16777619U;
    return hash;
}

/* The entry of a room of this name, in use or deleted; NULL if there is none. */
static _Atomic uint32_t *entry_find(struct local_zone *zone, struct span name)
{
    uint32_t at = name_hash(name) & zone->table_mask;

    for (uint32_t steps = 0; steps <= zone->table_mask; steps++, at = (at + 1) & zone->table_mask) {
        uint32_t entry = atomic_load_explicit(&zone->table[at], memory_order_acquire);
        if (entry == 0)
            return NULL;
        if (entry != ENTRY_GONE && span_equal(room_name(slot_room(&zone->slots[entry - 1])), name))
            return &zone->table[at];
    }
    return NULL;
}

struct slot *slot_find(struct local_zone *zone, struct span name)
{
    _Atomic uint32_t *entry = entry_find(zone, name);
    uint32_t index = entry == NULL ? 0 : atomic_load_explicit(entry, memory_order_acquire);

    if (index == 0 || index == ENTRY_GONE)
        return NULL;
    must(zone->slots != NULL);
    return &zone->slots[index - 1];
}

static void slot_publish(struct local_zone *zone, uint32_t index)
{
    uint32_t at = name_hash(room_name(slot_room(&zone->slots[index]))) & zone->table_mask;

    for (uint32_t steps = 0;; steps++, at = (at + 1) & zone->table_mask) {
        uint32_t entry = atomic_load_explicit(&zone->table[at], memory_order_relaxed);
        must(steps <= zone->table_mask);
        if (entry == 0 || entry == ENTRY_GONE)
            break;
    }
    atomic_store_explicit(&zone->table[at], index + 1, memory_order_release);
}

/* It may never have been published, and its name be another room's by now. */
void slot_unpublish(struct local_zone *zone, uint32_t index)
{
    _Atomic uint32_t *entry = entry_find(zone, room_name(slot_room(&zone->slots[index])));

    if (entry != NULL && *entry == index + 1)
        atomic_store_explicit(entry, ENTRY_GONE, memory_order_release);
}

/*
 * The place for a new room: its own from before, one never used, or that of a deleted one. UINT32_MAX if there is none: that
 * is known without a walk, since anybody can ask for rooms.
 */
uint32_t slot_choose(struct local_zone *zone, struct span name)
{
    const struct slot *before = slot_find(zone, name);

    if (before != NULL)
        return (uint32_t)(before - zone->slots);
    if (zone->rooms < zone->rooms_max)
        return zone->rooms;
    for (uint32_t i = 0; zone->gone > 0 && i < zone->rooms; i++)
        if (!zone->slots[i].is_used)
            return i;
    return UINT32_MAX;
}

void slot_make(struct local_zone *zone, uint32_t index, struct span name, uint32_t epoch,
               const struct settings *settings, const struct texts *texts)
{
    struct slot *slot = &zone->slots[index];

    if (index == zone->rooms) {
        lock_init(&slot->lock);
        zone->gone++;
    } else
        slot_unpublish(zone, index);
    memset(slot->room, 0, sizeof(slot->room));
    slot->ticked_ms = 0;
    slot->recorded = 0;
    slot->made = 0;
    struct room *room = room_init(slot->room, zone->pool.base, name, epoch, settings, texts);
    if (zone_is_recorded(zone))
        room_record(room);
    if (epoch >= zone->next_epoch)
        memory_set(&zone->pool, zone->next_epoch, epoch + 1);
    memory_commit(&zone->pool);
    /* One store, and only now: from here on others may lock it, so it must never be initialised again. */
    if (index == zone->rooms)
        zone->rooms = index + 1;
    slot_publish(zone, index);
    slot->is_used = true;
    zone->gone--;
}

void slot_give_up(struct local_zone *zone, struct slot *slot)
{
    stock_trim(zone, slot_room(slot), 0);
    zone->gone++;
    slot->is_used = false; /* last of all: from here on its place may be taken, without its lock */
}

enum error slot_find_or_make(struct local_zone *zone, struct span name, const struct settings *settings,
                             const struct texts *texts)
{
    enum error error = ERROR_NONE;

    zone_lock(zone);
    struct slot *slot = slot_find(zone, name);
    if (slot == NULL || !slot->is_used) {
        uint32_t index = slot_choose(zone, name);
        if (index == UINT32_MAX)
            error = ERROR_QUEUE_FULL;
        else
            slot_make(zone, index, name, zone->next_epoch, settings, texts);
    }
    zone_unlock(zone);
    return error;
}

/* Settings that the room has already are no change, but for a new room's: they count as its first. */
static enum error give_settings(struct room *room, const struct settings *settings, const struct texts *texts)
{
    struct figures figures = room_figures(room);

    if (figures.is_settings_from_api)
        return ERROR_NONE;
    if (figures.settings_version > 0 && memcmp(room_settings(room), settings, sizeof(*settings)) == 0 &&
        (texts == NULL || memcmp(room_texts(room), texts, sizeof(*texts)) == 0))
        return ERROR_NONE;
    /* This process has no way to the journal: a worker takes the record with its next tick. */
    return room_outbox_is_full(room) ? ERROR_ENGINE_UNAVAILABLE
                                     : room_set_settings(room, settings, texts, false);
}

enum error local_zone_put_room(struct local_zone *zone, struct span name, const struct settings *settings,
                               const struct texts *texts)
{
    enum error error = slot_find_or_make(zone, name, settings, texts);
    struct slot *slot = error == ERROR_NONE ? slot_find(zone, name) : NULL;

    if (slot == NULL)
        return ERROR_QUEUE_FULL;
    struct room *room = slot_lock(zone, slot);
    error = slot_is_alive(slot) && span_equal(room_name(room), name) ? give_settings(room, settings, texts)
                                                                     : ERROR_CONFLICT;
    slot_unlock(slot);
    return error;
}

void local_zone_had_former(struct local_zone *zone, uint32_t wall_sec)
{
    for (uint32_t i = 0; i < zone->rooms; i++) {
        struct slot *slot = &zone->slots[i];
        struct room *room = slot_lock(zone, slot);
        if (slot_is_alive(slot))
            room_had_former(room, wall_sec);
        slot_unlock(slot);
    }
}

void local_zone_reconfigure(struct local_zone *zone, const struct local_zone_options *options)
{
    zone_lock(zone);
    memory_set(&zone->pool, zone->options, *options);
    zone_unlock(zone);
}

void local_zone_check(struct local_zone *zone)
{
    uint32_t pages = 0, rooms = zone->rooms;

    for (uint32_t i = 0; i < rooms; i++)
        slot_lock(zone, &zone->slots[i]);
    zone_lock(zone);
    for (uint32_t i = 0; i < rooms; i++)
        pages += room_check(slot_room(&zone->slots[i]));
    page_ref first = (page_ref)(layout_for(zone->rooms_max).pages / PAGE_BYTES);
    must(pages + zone->pool.spare_count + (zone->end - zone->fresh) == zone->end - first);
    zone_unlock(zone);
    for (uint32_t i = 0; i < rooms; i++)
        slot_unlock(&zone->slots[i]);
}
