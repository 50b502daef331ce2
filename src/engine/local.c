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

#include "engine/local.h"

#include "base/memory.h"
#include "base/must.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CLOCK_JUMP_MS 1000

/* A room keeps this many spare pages at hand; fewer or more are set right in one go. */
#define STOCK_FILL  (2 * ROOM_SPARE_PAGES)
#define STOCK_LIMIT (4 * STOCK_FILL)

#define ROOMS_FULL_RETRY_SEC 60

struct slot {
    pthread_mutex_t lock;
    _Atomic bool is_used; /* false: deleted, or not made to its end */
    uint64_t ticked_ms;   /* 0 = never */
    _Alignas(PAGE_BYTES) unsigned char room[ROOM_BYTES];
};

struct local_zone {
    pthread_mutex_t lock; /* of everything in this head but `table` */
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
};

#define ENTRY_GONE UINT32_MAX

struct local_engine {
    struct engine engine;
    struct local_zone *zone;
};

static void local_submit(struct engine *engine, struct engine_call *call);
static void local_tick(struct engine *engine, uint64_t now_ms);
static const char *local_trouble(struct engine *engine);

struct engine *local_engine_new(struct local_zone *zone)
{
    struct local_engine *local = malloc(sizeof(*local));

    if (local == NULL)
        return NULL;
    *local = (struct local_engine){{local_submit, local_tick, local_trouble, NULL}, zone};
    return &local->engine;
}

void local_engine_free(struct engine *engine)
{
    free(engine);
}

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
    size_t table, slots, pages;
};

static struct layout layout_for(uint32_t rooms_max)
{
    size_t table = rounded(sizeof(struct local_zone));
    size_t slots = table + rounded(table_entries(rooms_max) * sizeof(uint32_t));

    return (struct layout){table, slots, slots + rooms_max * sizeof(struct slot)};
}

size_t local_zone_least_bytes(uint32_t rooms_max)
{
    return layout_for(rooms_max).pages + (size_t)rooms_max * STOCK_FILL * PAGE_BYTES;
}

void local_zone_layout(char *out, size_t size)
{
    snprintf(out, size, "%zu/%zu/%zu/%d", sizeof(struct local_zone), sizeof(struct slot), room_bytes_used(),
             PAGE_BYTES);
}

static void lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;

    must(pthread_mutexattr_init(&attributes) == 0);
    must(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
    must(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    must(pthread_mutex_init(lock, &attributes) == 0);
    must(pthread_mutexattr_destroy(&attributes) == 0);
}

struct local_zone *local_zone_init(void *memory, size_t bytes, const struct local_zone_options *options)
{
    struct layout layout = layout_for(options->rooms_max);
    struct local_zone *zone = memory;
    unsigned char *base = memory;

    must((uintptr_t)memory % PAGE_BYTES == 0 && options->rooms_max > 0);
    must(bytes >= local_zone_least_bytes(options->rooms_max) && bytes / PAGE_BYTES < UINT32_MAX);
    lock_init(&zone->lock);
    memory_init(&zone->pool, base);
    zone->fresh = (page_ref)(layout.pages / PAGE_BYTES);
    zone->end = (page_ref)(bytes / PAGE_BYTES);
    zone->next_epoch = 1;
    zone->rooms_max = options->rooms_max;
    zone->options = *options;
    zone->table_mask = table_entries(options->rooms_max) - 1;
    zone->table = (_Atomic uint32_t *)(base + layout.table);
    zone->slots = (struct slot *)(base + layout.slots);
    return zone;
}

/* ---- locks ---- */

static void zone_lock(struct local_zone *zone)
{
    int error = pthread_mutex_lock(&zone->lock);

    if (error == EOWNERDEAD) {
        memory_rollback(&zone->pool);
        error = pthread_mutex_consistent(&zone->lock);
    }
    must(error == 0);
}

static void zone_unlock(struct local_zone *zone)
{
    memory_commit(&zone->pool);
    must(pthread_mutex_unlock(&zone->lock) == 0);
}

static struct room *slot_room(struct slot *slot)
{
    return (struct room *)slot->room;
}

static struct room *slot_lock(struct local_zone *zone, struct slot *slot)
{
    int error = pthread_mutex_lock(&slot->lock);

    if (error == EOWNERDEAD) {
        /* It may have died while moving a page: that is undone under the pool's lock. */
        zone_lock(zone);
        zone_unlock(zone);
        room_rollback(slot_room(slot));
        error = pthread_mutex_consistent(&slot->lock);
    }
    must(error == 0);
    return slot_room(slot);
}

static void slot_unlock(struct slot *slot)
{
    must(pthread_mutex_unlock(&slot->lock) == 0);
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

/* Fills a room's stock before an operation. A pool that has run dry shows as QUEUE_FULL where pages are needed. */
static void stock_fill(struct local_zone *zone, struct room *room)
{
    struct memory *memory = room_memory(room);

    if (memory->spare_count >= ROOM_SPARE_PAGES)
        return;
    zone_lock(zone);
    while (memory->spare_count < STOCK_FILL) {
        page_ref page = pool_take(zone);
        if (page == 0)
            break;
        memory_give(memory, page, &zone->pool);
        memory_commit(&zone->pool);
    }
    zone_unlock(zone);
}

/* Takes pages back after an operation if the room has more than `limit`. */
static void stock_trim(struct local_zone *zone, struct room *room, uint32_t limit)
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

static struct slot *slot_find(struct local_zone *zone, struct span name)
{
    _Atomic uint32_t *entry = entry_find(zone, name);
    uint32_t index = entry == NULL ? 0 : atomic_load_explicit(entry, memory_order_acquire);

    if (index == 0 || index == ENTRY_GONE)
        return NULL;
    must(zone->slots != NULL);
    return &zone->slots[index - 1];
}

/* Finds and locks a room; NULL if there is none. */
static struct slot *slot_enter(struct local_zone *zone, struct span name)
{
    struct slot *slot = slot_find(zone, name);

    if (slot == NULL)
        return NULL;
    struct room *room = slot_lock(zone, slot);
    if (slot->is_used && span_equal(room_name(room), name))
        return slot;
    slot_unlock(slot);
    return NULL;
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
static void slot_unpublish(struct local_zone *zone, uint32_t index)
{
    _Atomic uint32_t *entry = entry_find(zone, room_name(slot_room(&zone->slots[index])));

    if (entry != NULL && *entry == index + 1)
        atomic_store_explicit(entry, ENTRY_GONE, memory_order_release);
}

/*
 * The place for a new room: its own from before, one never used, or that of a deleted one. UINT32_MAX if there is none: that
 * is known without a walk, since anybody can ask for rooms.
 */
static uint32_t slot_choose(struct local_zone *zone, struct span name)
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

static void slot_make(struct local_zone *zone, uint32_t index, struct span name,
                      const struct settings *settings)
{
    struct slot *slot = &zone->slots[index];

    if (index == zone->rooms) {
        lock_init(&slot->lock);
        zone->gone++;
    } else
        slot_unpublish(zone, index);
    memset(slot->room, 0, sizeof(slot->room));
    slot->ticked_ms = 0;
    room_init(slot->room, zone->pool.base, name, zone->next_epoch, settings);
    memory_set(&zone->pool, zone->next_epoch, zone->next_epoch + 1);
    memory_commit(&zone->pool);
    /* One store, and only now: from here on others may lock it, so it must never be initialised again. */
    if (index == zone->rooms)
        zone->rooms = index + 1;
    slot_publish(zone, index);
    slot->is_used = true;
    zone->gone--;
}

/* ERROR_QUEUE_FULL: there are as many rooms as there may be. */
static enum error slot_find_or_make(struct local_zone *zone, struct span name,
                                    const struct settings *settings)
{
    enum error error = ERROR_NONE;

    zone_lock(zone);
    struct slot *slot = slot_find(zone, name);
    if (slot == NULL || !slot->is_used) {
        uint32_t index = slot_choose(zone, name);
        if (index == UINT32_MAX)
            error = ERROR_QUEUE_FULL;
        else
            slot_make(zone, index, name, settings);
    }
    zone_unlock(zone);
    return error;
}

enum error local_zone_put_room(struct local_zone *zone, struct span name, const struct settings *settings)
{
    enum error error = slot_find_or_make(zone, name, settings);
    struct slot *slot = error == ERROR_NONE ? slot_enter(zone, name) : NULL;

    if (slot == NULL)
        return ERROR_QUEUE_FULL;
    if (!room_figures(slot_room(slot)).is_settings_from_api)
        error = room_set_settings(slot_room(slot), settings, false);
    slot_unlock(slot);
    return error;
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

/* ---- calls ---- */

/* The others come with a ticket or a pass: where its room is gone, so is what it stands for. */
static bool names_its_room(enum engine_op op)
{
    return op == ENGINE_JOIN || op >= ENGINE_FIGURES;
}

/* Makes the room that a call needs, where it may. */
static enum error make_for(struct local_zone *zone, struct engine_call *call)
{
    if (call->op == ENGINE_PUT && call->put.version == 0)
        return slot_find_or_make(zone, call->room, &call->put.settings);
    if (call->op == ENGINE_JOIN && zone->options.makes_rooms)
        return slot_find_or_make(zone, call->room, &zone->options.settings);
    return names_its_room(call->op) ? ERROR_ROOM_NOT_FOUND : ERROR_TOKEN_NOT_FOUND;
}

static void show(const struct engine *engine, const struct room *room)
{
    if (engine->watch == NULL)
        return;
    struct figures figures = room_figures(room);
    engine->watch(room_name(room), &figures);
}

static enum error submit(struct local_engine *local, struct engine_call *call)
{
    struct local_zone *zone = local->zone;
    struct slot *slot = slot_enter(zone, call->room);

    if (slot == NULL) {
        enum error error = make_for(zone, call);
        call->retry_after_sec = error == ERROR_QUEUE_FULL ? ROOMS_FULL_RETRY_SEC : 0;
        if (error != ERROR_NONE)
            return error;
        slot = slot_enter(zone, call->room);
        if (slot == NULL)
            return ERROR_CONFLICT; /* deleted again in the meantime */
    }
    struct room *room = slot_room(slot);
    stock_fill(zone, room);
    enum error error = engine_run(room, call);
    stock_trim(zone, room, call->op == ENGINE_DELETE ? 0 : STOCK_LIMIT);
    show(&local->engine, room);
    if (call->op == ENGINE_DELETE) {
        zone->gone++;
        slot->is_used = false; /* last of all: from here on its place may be taken, without its lock */
    }
    slot_unlock(slot);
    return error;
}

static int compare_ids(const void *a, const void *b)
{
    const struct room_id *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);

    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static void list_rooms(struct local_zone *zone, struct engine_list *list)
{
    list->count = 0;
    for (uint32_t i = 0; i < zone->rooms && list->count < list->size; i++) {
        struct slot *slot = &zone->slots[i];
        struct span name = room_name(slot_lock(zone, slot));
        if (slot->is_used) {
            struct room_id *id = &list->ids[list->count++];
            id->len = (uint32_t)name.len;
            memcpy(id->name, name.data, name.len);
        }
        slot_unlock(slot);
    }
    qsort(list->ids, list->count, sizeof(list->ids[0]), compare_ids);
}

static void local_submit(struct engine *engine, struct engine_call *call)
{
    struct local_engine *local = (struct local_engine *)engine;

    call->retry_after_sec = 0;
    call->error = ERROR_NONE;
    if (call->op == ENGINE_ROOMS)
        list_rooms(local->zone, &call->list);
    else
        call->error = submit(local, call);
    call->done(call);
}

/*
 * How much time has passed for a room. Workers do not look at the clock at the same moment: one that is a little behind has
 * nothing to add. A clock that is far behind has jumped, and is gone on with from where it is.
 */
static uint64_t elapsed_since(uint64_t *ticked_ms, uint64_t now_ms)
{
    uint64_t elapsed_ms = now_ms - *ticked_ms;

    if (*ticked_ms == 0 || *ticked_ms > now_ms + CLOCK_JUMP_MS)
        *ticked_ms = now_ms;
    return *ticked_ms >= now_ms ? 0 : elapsed_ms;
}

static void slot_tick(struct local_engine *local, struct slot *slot, uint64_t now_ms)
{
    struct local_zone *zone = local->zone;
    struct room *room = slot_lock(zone, slot);
    uint64_t elapsed_ms = elapsed_since(&slot->ticked_ms, now_ms);

    if (elapsed_ms >= ROOM_TICK_MS)
        slot->ticked_ms = now_ms;
    if (elapsed_ms >= ROOM_TICK_MS && slot->is_used && !room_is_at_rest(room)) {
        stock_fill(zone, room);
        room_tick(room, elapsed_ms < UINT32_MAX ? (uint32_t)elapsed_ms : UINT32_MAX);
        stock_trim(zone, room, STOCK_LIMIT);
        show(&local->engine, room);
    }
    slot_unlock(slot);
}

static void local_tick(struct engine *engine, uint64_t now_ms)
{
    struct local_engine *local = (struct local_engine *)engine;
    uint32_t rooms = local->zone->rooms;

    for (uint32_t i = 0; i < rooms; i++)
        slot_tick(local, &local->zone->slots[i], now_ms);
}

static const char *local_trouble(struct engine *engine)
{
    (void)engine; /* memory is always there */
    return NULL;
}
