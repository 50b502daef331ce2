/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a process does with the zone: calls and ticks. Each runs under its room's lock and leaves a record in the room's outbox,
 * which goes into the log under the same lock: so records are in the order of effects.
 *
 * With a journal, whoever changed something hears of it when the record is written, and where the change must outlive a power
 * cut, when it is synced. Calls wait in a list of their process; what decides is a position in the log, so it does not matter
 * which process wrote it.
 *
 * When the log is in trouble nothing changes any more: answers that only read go on, and say nothing that is not written.
 */

#include "base/must.h"
#include "engine/local_zone.h"

#include <stdlib.h>

#define CLOCK_JUMP_MS        1000
#define ROOMS_FULL_RETRY_SEC 60
#define TROUBLE_RETRY_SEC    5
#define PREPARE_RETRY_MS     1000

/* Outboxes that one tick of a room may fill: some ten thousand calls. */
#define TICK_OUTBOXES 128

static void local_submit(struct engine *engine, struct engine_call *call);
static void local_tick(struct engine *engine, uint64_t now_ms);
static const char *local_trouble(struct engine *engine);

struct engine *local_engine_new(struct local_zone *zone)
{
    struct local_engine *local = malloc(sizeof(*local));

    if (local == NULL)
        return NULL;
    *local = (struct local_engine){.engine = {local_submit, local_tick, local_trouble, NULL}, .zone = zone};
    local->for_write.end = &local->for_write.first;
    local->for_sync.end = &local->for_sync.first;
    return &local->engine;
}

void local_engine_free(struct engine *engine)
{
    struct local_engine *local = local_of(engine);

    must(local->waiting == 0);
    snapshot_abandon(local);
    if (local->disk != NULL)
        log_writer_close(&local->writer);
    free(local);
}

void local_engine_use_disk(struct engine *engine, struct disk *disk, uint64_t (*wall_ms)(void))
{
    struct local_engine *local = local_of(engine);

    local->disk = disk;
    local->wall_ms = wall_ms;
    log_writer_init(&local->writer, disk);
}

/* ---- records ---- */

bool slot_record(struct local_engine *local, struct slot *slot)
{
    struct room *room = slot_room(slot);
    struct span record = room_outbox(room);

    if (record.len == 0)
        return true;
    must(local->disk != NULL);
    uint64_t position =
        log_append(local->zone->log, &local->writer, RECORD_ROOM, record, local_wall_ms(local));
    if (position == UINT64_MAX)
        return false;
    if (slot->recorded == 0)
        slot->made = position;
    slot->recorded = position;
    room_outbox_taken(room);
    return true;
}

/* Finds and locks a room; NULL if there is none. What an owner who died left behind is done first. */
static struct slot *slot_enter(struct local_engine *local, struct span name)
{
    struct slot *slot = slot_find(local->zone, name);

    if (slot == NULL)
        return NULL;
    struct room *room = slot_lock(local->zone, slot);
    if (slot_record(local, slot) && slot->is_used && room_is_over(room))
        slot_give_up(local->zone, slot);
    if (slot_is_alive(slot) && span_equal(room_name(room), name))
        return slot;
    slot_unlock(slot);
    return NULL;
}

/* Nothing may change: the log is in trouble, or a change of this room is not in it yet. */
static bool is_frozen(const struct local_engine *local, struct slot *slot)
{
    return zone_is_recorded(local->zone) &&
           (log_trouble(local->zone->log) != LOG_FINE || room_outbox(slot_room(slot)).len > 0);
}

/* ---- calls ---- */

/* The others come with a ticket or a pass: where its room is gone, so is what it stands for. */
static bool names_its_room(enum engine_op op)
{
    return op == ENGINE_JOIN || op >= ENGINE_FIGURES;
}

static bool only_reads(enum engine_op op)
{
    return op == ENGINE_LOOK || op == ENGINE_FIGURES || op == ENGINE_SETTINGS;
}

/* What must not come undone by a power cut: a pass was handed out, or somebody was told that it is over. */
static bool must_outlive_power(enum engine_op op)
{
    switch (op) {
    case ENGINE_ENTER:
    case ENGINE_LEAVE:
    case ENGINE_SESSION_END:
    case ENGINE_PUT:
    case ENGINE_DELETE:
    case ENGINE_ADVANCE:
    case ENGINE_CLEAR:
        return true;
    default:
        return false;
    }
}

/* Makes the room that a call needs, where it may. */
static enum error make_for(struct local_zone *zone, struct engine_call *call)
{
    bool may_make = (call->op == ENGINE_PUT && call->put.version == 0) ||
                    (call->op == ENGINE_JOIN && zone->options.makes_rooms);

    if (!may_make)
        return names_its_room(call->op) ? ERROR_ROOM_NOT_FOUND : ERROR_TOKEN_NOT_FOUND;
    if (zone_is_recorded(zone) && (log_trouble(zone->log) != LOG_FINE || log_is_short(zone->log)))
        return ERROR_ENGINE_UNAVAILABLE;
    if (call->op == ENGINE_PUT)
        return slot_find_or_make(zone, call->room, &call->put.settings, call->put.texts);
    return slot_find_or_make(zone, call->room, &zone->options.settings, &zone->options.texts);
}

static void show(const struct engine *engine, const struct room *room)
{
    if (engine->watch == NULL)
        return;
    struct figures figures = room_figures(room);
    engine->watch(room_name(room), &figures);
}

/* An answer from what there is, while nothing may change. */
static enum error run_frozen(struct local_engine *local, struct slot *slot, struct engine_call *call)
{
    struct room *room = slot_room(slot);
    struct standing standing;

    if (only_reads(call->op))
        return engine_run(room, call);
    if (call->op != ENGINE_STATUS && call->op != ENGINE_HEARTBEAT && call->op != ENGINE_SESSION_TOUCH)
        return ERROR_ENGINE_UNAVAILABLE;
    enum error error = room_look(room, &call->place, &standing);
    if (error != ERROR_NONE)
        return room_may_return(room, &call->place) ? ERROR_ENGINE_UNAVAILABLE : error;
    /* Who comes with a pass was given it when the enter was safe. */
    if (call->op == ENGINE_SESSION_TOUCH)
        return standing.state == TICKET_ENTERED || standing.state == TICKET_ACTIVE ? ERROR_NONE
                                                                                   : ERROR_TOKEN_NOT_FOUND;
    /* A turn that is in no journal is not told to anybody. */
    const struct log *log = local->zone->log;
    uint64_t durable = log_syncs_all(log) ? log_synced(log) : log_written(log);
    if (standing.is_ready && (room_outbox(room).len > 0 || slot->recorded > durable))
        return ERROR_ENGINE_UNAVAILABLE;
    call->standing = standing;
    return ERROR_NONE;
}

/* Goes on with what stopped because the outbox was full. */
static void run_on(struct local_engine *local, struct slot *slot)
{
    struct room *room = slot_room(slot);

    for (int i = 0; i < TICK_OUTBOXES && room_has_more(room) && slot_record(local, slot); i++) {
        stock_fill(local->zone, room, ROOM_SPARE_PAGES);
        room_tick(room, 0);
    }
}

static enum error run(struct local_engine *local, struct slot *slot, struct engine_call *call)
{
    struct room *room = slot_room(slot);
    uint64_t calls = call->op == ENGINE_ADVANCE ? room_figures(room).calls : 0;

    stock_fill(local->zone, room, ROOM_SPARE_PAGES);
    enum error error = engine_run(room, call);
    run_on(local, slot);
    if (call->op == ENGINE_ADVANCE && error == ERROR_NONE)
        call->people = (uint32_t)(room_figures(room).calls - calls);
    if (call->op == ENGINE_DELETE && slot_record(local, slot))
        room_end(room);
    stock_trim(local->zone, room, STOCK_LIMIT);
    show(&local->engine, room);
    return error;
}

/* Whether it tells how the line stands, and nothing else. */
static bool only_tells(const struct engine_call *call, bool has_changed)
{
    return (call->op == ENGINE_STATUS || call->op == ENGINE_HEARTBEAT) && !has_changed &&
           !(call->error == ERROR_NONE && call->standing.is_ready);
}

/*
 * Whether the answer says something that must be in the log first. What others did may not be: who was told that they are the
 * third because somebody left would be the fourth again if that were lost.
 */
static bool must_wait(const struct engine_call *call, bool has_changed)
{
    switch (call->op) {
    case ENGINE_STATUS:
    case ENGINE_HEARTBEAT:
        return true;
    case ENGINE_SESSION_TOUCH:
        return has_changed;
    case ENGINE_LEAVE:
    case ENGINE_SESSION_END:
        return true; /* also where it is over already: the first who was told may still wait */
    case ENGINE_SHOP:
        return false; /* leaves nothing in the log */
    default:
        return !only_reads(call->op) && (has_changed || call->error == ERROR_NONE);
    }
}

static bool is_durable(const struct local_engine *local, const struct engine_call *call)
{
    const struct log *log = local->zone->log;

    return call->position <= (call->needs_sync ? log_synced(log) : log_written(log));
}

/* There is nearly no space left, and what makes the log grow is people who were not there before. */
static bool is_too_short(struct local_zone *zone, struct slot *slot, const struct engine_call *call)
{
    return zone_is_recorded(zone) && call->op == ENGINE_JOIN && log_is_short(zone->log) &&
           !room_has_holder(slot_room(slot), &call->join.holder);
}

static enum error submit(struct local_engine *local, struct engine_call *call, bool *waits)
{
    struct local_zone *zone = local->zone;
    struct slot *slot = slot_enter(local, call->room);

    if (slot == NULL) {
        enum error error = make_for(zone, call);
        call->retry_after_sec = error == ERROR_QUEUE_FULL ? ROOMS_FULL_RETRY_SEC : 0;
        if (error != ERROR_NONE)
            return error;
        slot = slot_enter(local, call->room);
        if (slot == NULL)
            return ERROR_CONFLICT; /* deleted again in the meantime */
    }
    uint64_t recorded = slot->recorded;
    bool is_short = is_too_short(zone, slot, call);
    if (is_short || is_frozen(local, slot)) {
        call->error = is_short ? ERROR_ENGINE_UNAVAILABLE : run_frozen(local, slot, call);
        slot_unlock(slot);
        return call->error;
    }
    call->error = run(local, slot, call);
    if (!slot_record(local, slot)) {
        /* Done, and recorded before anything else happens in the room; but nobody knows when that will be. */
        slot_unlock(slot);
        return ERROR_ENGINE_UNAVAILABLE;
    }
    call->position = slot->recorded;
    if (zone_is_recorded(zone)) {
        enum sync_mode sync = log_options(zone->log).sync;
        bool has_changed = call->position != recorded;
        call->needs_sync =
            !only_tells(call, has_changed) &&
            (log_syncs_all(zone->log) ||
             (sync == SYNC_INTERVAL && (must_outlive_power(call->op) || slot->made > log_synced(zone->log))));
        *waits = must_wait(call, has_changed) && !is_durable(local, call);
    }
    if (room_is_over(slot_room(slot)))
        slot_give_up(zone, slot);
    slot_unlock(slot);
    return call->error;
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
        if (slot_is_alive(slot)) {
            struct room_id *id = &list->ids[list->count++];
            id->len = (uint32_t)name.len;
            memcpy(id->name, name.data, name.len);
        }
        slot_unlock(slot);
    }
    qsort(list->ids, list->count, sizeof(list->ids[0]), compare_ids);
}

static void wait_for_log(struct local_engine *local, struct engine_call *call)
{
    struct waiting *waiting = call->needs_sync ? &local->for_sync : &local->for_write;

    call->next = NULL;
    *waiting->end = call;
    waiting->end = &call->next;
    if (call->position > waiting->position)
        waiting->position = call->position;
    local->waiting++;
}

static void answer(struct engine_call *call)
{
    if (call->error == ERROR_ENGINE_UNAVAILABLE)
        call->retry_after_sec = TROUBLE_RETRY_SEC;
    call->done(call);
}

static void local_submit(struct engine *engine, struct engine_call *call)
{
    struct local_engine *local = local_of(engine);
    bool waits = false;

    call->retry_after_sec = 0;
    call->error = ERROR_NONE;
    if (local->zone->is_awaiting)
        call->error = ERROR_ENGINE_UNAVAILABLE;
    else if (call->op == ENGINE_ROOMS)
        list_rooms(local->zone, &call->list);
    else
        call->error = submit(local, call, &waits);
    if (waits)
        wait_for_log(local, call);
    else
        answer(call);
}

/* ---- ticks ---- */

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

    slot_record(local, slot);
    if (elapsed_ms >= ROOM_TICK_MS)
        slot->ticked_ms = now_ms;
    if (elapsed_ms >= ROOM_TICK_MS && slot_is_alive(slot) && !room_is_at_rest(room) &&
        !is_frozen(local, slot)) {
        stock_fill(zone, room, ROOM_SPARE_PAGES);
        room_tick(room, elapsed_ms < UINT32_MAX ? (uint32_t)elapsed_ms : UINT32_MAX);
        run_on(local, slot);
        stock_trim(zone, room, STOCK_LIMIT);
        show(&local->engine, room);
        slot_record(local, slot);
    }
    slot_unlock(slot);
}

static void local_tick(struct engine *engine, uint64_t now_ms)
{
    struct local_engine *local = local_of(engine);
    uint32_t rooms = local->zone->rooms;

    if (local->zone->is_awaiting)
        return;
    for (uint32_t i = 0; i < rooms; i++)
        slot_tick(local, &local->zone->slots[i], now_ms);
    if (local->disk != NULL)
        snapshot_step(local, now_ms);
}

/* ---- the journal ---- */

/* Takes those out of the list who need not wait any more, then answers them: an answer may lead to the next call. */
static void answer_list(struct local_engine *local, struct waiting *waiting, bool is_broken)
{
    struct engine_call *ready = NULL, **ready_end = &ready, **at = &waiting->first, *call;

    while ((call = *at) != NULL) {
        bool is_done = is_durable(local, call);
        if (!is_done && !is_broken) {
            at = &call->next;
            continue;
        }
        if (!is_done)
            call->error = ERROR_ENGINE_UNAVAILABLE;
        *at = call->next;
        call->next = NULL;
        *ready_end = call;
        ready_end = &call->next;
        local->waiting--;
    }
    waiting->end = at;
    while ((call = ready) != NULL) {
        ready = call->next;
        answer(call);
    }
}

static void answer_waiting(struct local_engine *local)
{
    const struct log *log = local->zone->log;
    bool is_broken = log_trouble(log) != LOG_FINE;
    uint64_t synced = log_synced(log);

    answer_list(local, &local->for_write, is_broken);
    /* In the turns between two syncs there is nothing new for those who wait for one, and they may be many. */
    if (synced != local->synced || is_broken)
        answer_list(local, &local->for_sync, is_broken);
    local->synced = synced;
}

void local_engine_flush(struct engine *engine)
{
    struct local_engine *local = local_of(engine);

    if (local->disk == NULL || !zone_is_recorded(local->zone))
        return;
    log_flush(local->zone->log, &local->writer);
    answer_waiting(local);
}

static bool somebody_waits_for_sync(const struct local_engine *local)
{
    return local->for_sync.first != NULL && local->for_sync.position > log_synced(local->zone->log);
}

bool local_engine_wants_work(struct engine *engine, uint64_t now_ms)
{
    struct local_engine *local = local_of(engine);
    const struct local_snapshot *snapshot = &local->snapshot;
    struct log *log = local->zone->log;

    if (local->disk == NULL || !zone_is_recorded(local->zone))
        return false;
    local->work = (struct local_work){
        .sync =
            log_trouble(log) != LOG_BROKEN && (somebody_waits_for_sync(local) || log_claim_sync(log, now_ms)),
        .prepare = log_needs_prepare(log) &&
                   (local->prepare_failed_ms == 0 || now_ms - local->prepare_failed_ms >= PREPARE_RETRY_MS),
        .now_ms = now_ms,
        .name_snapshot = snapshot->is_written && log_written(log) >= snapshot->needs,
    };
    return local->work.sync || local->work.prepare || local->work.name_snapshot;
}

void local_engine_work(struct engine *engine)
{
    struct local_engine *local = local_of(engine);
    struct log *log = local->zone->log;

    if (local->work.sync)
        log_sync(log, local->disk, local_wall_ms(local));
    if (local->work.prepare)
        local->prepare_failed_ms = log_prepare(log, local->disk) == 0 ? 0 : local->work.now_ms;
    if (local->work.name_snapshot)
        local->work.named = snapshot_name(local);
}

void local_engine_worked(struct engine *engine)
{
    struct local_engine *local = local_of(engine);

    if (local->work.name_snapshot)
        snapshot_named(local, local->work.named);
    local->work = (struct local_work){0};
    answer_waiting(local);
}

uint32_t local_engine_waiting(const struct engine *engine)
{
    return ((const struct local_engine *)engine)->waiting;
}

static const char *local_trouble(struct engine *engine)
{
    struct local_engine *local = local_of(engine);
    const struct local_zone *zone = local->zone;

    if (zone->is_awaiting)
        return "the journal is still in use by another nginx; it is taken over as soon as that is gone";
    if (!zone->has_journal || log_trouble(zone->log) == LOG_FINE)
        return NULL;
    log_trouble_text(zone->log, local->trouble, sizeof(local->trouble));
    return local->trouble;
}
