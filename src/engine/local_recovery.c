/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * From a folder to a zone. Records are applied in their order to rooms that nobody else can see yet; when the last is
 * applied, the rooms are woken up, what is torn is cut, and a new segment is begun.
 */

#include "base/little.h"
#include "base/must.h"
#include "engine/local_zone.h"
#include "room/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After a loss nobody knows which epochs were begun: this many are passed over. */
#define EPOCHS_SKIPPED 1024

/* Epochs of a folder without a past begin with the time, so that those of a folder that was thrown away are not given again. */
#define EPOCH_SECONDS 512
#define EPOCH_ZERO    1767225600U /* 2026-01-01 */

struct replay {
    struct local_zone *zone;
    uint32_t *number; /* of the room in each slot; 0 = none */
    uint32_t last;    /* slot of the last record */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
    struct local_recovery *recovery;
};

static uint32_t slot_of(struct replay *replay, uint32_t number)
{
    uint32_t rooms = replay->zone->rooms;

    if (replay->last < rooms && replay->number[replay->last] == number)
        return replay->last;
    for (uint32_t i = 0; i < rooms; i++)
        if (replay->number[i] == number)
            return replay->last = i;
    return UINT32_MAX;
}

/* By number and not by name: a snapshot may hold a room that was deleted and its successor of the same name. */
static uint32_t slot_for_new(const struct replay *replay)
{
    const struct local_zone *zone = replay->zone;

    for (uint32_t i = 0; zone->gone > 0 && i < zone->rooms; i++)
        if (!zone->slots[i].is_used)
            return i;
    return zone->rooms < zone->rooms_max ? zone->rooms : UINT32_MAX;
}

static bool fail(const struct replay *replay, const struct scan_place *place, const char *text)
{
    snprintf(replay->recovery->why, sizeof(replay->recovery->why), "%s at byte %" PRIu64 ": %s", place->file,
             place->offset, text);
    return false;
}

static bool make_room(struct replay *replay, struct span name, uint32_t epoch, const struct scan_place *place)
{
    struct settings settings = settings_default();
    uint32_t slot = slot_for_new(replay);

    if (slot == UINT32_MAX) {
        replay->recovery->is_full = true;
        return fail(replay, place, "the journal holds more rooms than weir_zone has place for: say rooms=N");
    }
    zone_lock(replay->zone);
    slot_make(replay->zone, slot, name, epoch, &settings, NULL);
    zone_unlock(replay->zone);
    replay->number[slot] = epoch;
    replay->last = slot;
    return true;
}

/* Of rooms that are over too: their numbers are not given again. */
static void pass_epochs(struct local_zone *zone, const struct room *room)
{
    if (room_epoch(room) >= zone->next_epoch)
        zone->next_epoch = room_epoch(room) + 1;
}

static void drop_room(struct replay *replay, uint32_t index)
{
    struct local_zone *zone = replay->zone;
    struct slot *slot = &zone->slots[index];

    pass_epochs(zone, slot_room(slot));
    room_dissolve(slot_room(slot));
    room_end(slot_room(slot));
    zone_lock(zone);
    slot_unpublish(zone, index);
    zone_unlock(zone);
    slot_give_up(zone, slot);
    replay->number[index] = 0;
}

/* Where the zone has no more, those come back that other rooms were given and did not need: they fitted in once. */
static void give_pages(struct local_zone *zone, uint32_t index, uint32_t pages)
{
    struct room *room = slot_room(&zone->slots[index]);

    stock_fill(zone, room, pages);
    if (room_memory(room)->spare_count >= pages)
        return;
    for (uint32_t i = 0; i < zone->rooms; i++)
        if (i != index)
            stock_trim(zone, slot_room(&zone->slots[i]), 0);
    stock_fill(zone, room, pages);
}

static bool apply_room(struct replay *replay, struct span body, const struct scan_place *place,
                       bool is_snapshot)
{
    struct record_head head;
    struct span parts, name;
    uint32_t epoch;
    bool *is_full = &replay->recovery->is_full;

    if (!record_read_head(body, &head, &parts))
        return fail(replay, place,
                    "this record cannot be read, though it is whole: another program wrote it");
    uint32_t index = slot_of(replay, head.room);
    if (index == UINT32_MAX && record_makes_room(body, &name, &epoch) && epoch == head.room) {
        if (!make_room(replay, name, epoch, place))
            return false;
        index = replay->last;
    }
    if (index == UINT32_MAX)
        return true; /* of a room that was deleted while the snapshot was taken */
    struct room *room = slot_room(&replay->zone->slots[index]);
    give_pages(replay->zone, index, record_pages(body));
    if (!room_apply(room, body, is_snapshot, is_full))
        return fail(replay, place,
                    *is_full ? "weir_zone is too small for what the journal holds: make it larger"
                             : "this record cannot be read, though it is whole: another program wrote it");
    if (record_ends_room(body))
        drop_room(replay, index);
    return true;
}

static bool apply(void *context, const struct frame_record *record, const struct scan_place *place,
                  bool is_snapshot)
{
    struct replay *replay = context;
    struct local_zone *zone = replay->zone;

    if (record->type == RECORD_ROOM)
        return apply_room(replay, record->body, place, is_snapshot);
    if (record->type == RECORD_ZONE && record->body.len >= 4) {
        uint32_t next_epoch = little_get32(record->body.data);
        if (next_epoch > zone->next_epoch)
            zone->next_epoch = next_epoch;
    }
    return true;
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct replay *replay = context;

    if (replay->progress != NULL)
        replay->progress(replay->context, done, total);
}

static void wake(struct local_zone *zone, struct slot *slot, struct local_recovery *recovery)
{
    struct room *room = slot_room(slot);
    struct figures figures;

    room_resume(room);
    stock_trim(zone, room, STOCK_FILL); /* no more than a room that is made anew is given */
    pass_epochs(zone, room);
    figures = room_figures(room);
    for (int state = TICKET_WAITING; state < TICKET_DONE; state++)
        recovery->tickets += figures.in_state[state];
    recovery->rooms++;
}

bool local_zone_replay(struct local_zone *zone, struct disk *disk,
                       void (*progress)(void *context, uint64_t done, uint64_t total), void *context,
                       struct local_recovery *recovery)
{
    *recovery = (struct local_recovery){0};
    struct replay replay = {zone, calloc(zone->rooms_max, sizeof(uint32_t)), 0, progress, context, recovery};
    struct scan_reader reader = {apply, &replay, show_progress};

    if (replay.number == NULL) {
        recovery->result = SCAN_STOPPED;
        recovery->is_full = true;
        snprintf(recovery->why, sizeof(recovery->why), "there is no memory");
        return false;
    }
    recovery->result = journal_scan(disk, &reader, &recovery->scan);
    free(replay.number);
    if (recovery->result != SCAN_GOOD) {
        if (recovery->result != SCAN_STOPPED)
            snprintf(recovery->why, sizeof(recovery->why), "%s", recovery->scan.why);
        return false;
    }
    recovery->has_lost = scan_may_have_lost(&recovery->scan);
    for (uint32_t i = 0; i < zone->rooms; i++)
        if (zone->slots[i].is_used)
            wake(zone, &zone->slots[i], recovery);
    return true;
}

/* ---- going on ---- */

uint32_t local_first_epoch(uint64_t wall_ms)
{
    uint64_t wall_sec = wall_ms / 1000;

    return wall_sec <= EPOCH_ZERO ? 1 : (uint32_t)((wall_sec - EPOCH_ZERO) / EPOCH_SECONDS) + 1;
}

static void skip_epochs(struct local_zone *zone, bool has_lost, uint64_t wall_ms)
{
    if (has_lost)
        zone->next_epoch += EPOCHS_SKIPPED;
    if (zone->next_epoch < local_first_epoch(wall_ms))
        zone->next_epoch = local_first_epoch(wall_ms);
}

/* Where an enter waited for its sync, nobody can be inside whom the rooms do not know. */
static bool may_lack_enters(const struct local_recovery *recovery)
{
    const struct scan_report *scan = &recovery->scan;

    return recovery->has_lost && (scan->sync == SYNC_OFF || scan->is_short || scan->had_lost);
}

static bool record_rooms(struct local_engine *local, bool has_lost, bool lacks_enters)
{
    struct local_zone *zone = local->zone;

    for (uint32_t i = 0; i < zone->rooms; i++) {
        struct room *room = slot_room(&zone->slots[i]);
        if (!zone->slots[i].is_used)
            continue;
        room_record_on(room);
        if (has_lost)
            room_begin_epoch(room, zone->next_epoch++);
        if (lacks_enters)
            room_freeze_calls(room);
        if (!slot_record(local, &zone->slots[i]))
            return false;
    }
    return true;
}

/* What a failed sync left in the cache may never have reached the disk: all of it is written anew before anybody relies on it. */
static int mend_failed(struct local_engine *local)
{
    int error = snapshot_take_now(local);

    if (error == 0)
        error = local->disk->remove(local->disk, LOG_FAILED);
    return error == 0 ? local->disk->sync_folder(local->disk) : error;
}

/*
 * By what something is known to be missing is gone once the journal is sealed and a segment of this boot begun. So it is noted
 * first, until all rooms have their new epochs: whoever dies in between would else leave numbers to be given twice.
 */
static int note_lost(struct disk *disk)
{
    int file = disk->open(disk, LOG_LOST, DISK_MAKE);

    if (file >= 0)
        disk->close(disk, file);
    return file >= 0 || file == -EEXIST ? disk->sync_folder(disk) : file;
}

static int forget_lost(struct disk *disk)
{
    int error = disk->remove(disk, LOG_LOST);

    return error == 0 ? disk->sync_folder(disk) : error;
}

/*
 * Every start begins a segment, and a start may fail for other reasons before a worker could take a snapshot: a loop of those
 * must not fill the disk. Where there is no space for one now, a worker tries later.
 */
static int compact_if_due(struct local_engine *local)
{
    int error = snapshot_is_due(local->zone) ? snapshot_take_now(local) : 0;

    return log_trouble(local->zone->log) == LOG_BROKEN ? error : 0;
}

static int go_on(struct local_engine *local, const struct log_options *options, uint64_t wall_ms,
                 const struct local_recovery *recovery)
{
    struct local_zone *zone = local->zone;
    struct log_start start;
    int error = recovery->has_lost ? note_lost(local->disk) : 0;

    if (error == 0 && recovery->scan.had_failed)
        error = local->disk->sync_folder(local->disk); /* LOG_FAILED itself may be in memory only */
    if (error == 0)
        error = journal_seal(local->disk, &recovery->scan, &start);
    if (error == 0)
        error = log_begin(zone->log, local->disk, &start, options);
    if (error != 0)
        return error;
    zone->snapshot = recovery->scan.snapshot_first;
    zone->snapshot_bytes = recovery->scan.snapshot_bytes;
    skip_epochs(zone, recovery->has_lost, wall_ms);
    zone->has_journal = true;
    record_rooms(local, recovery->has_lost, may_lack_enters(recovery));
    error = log_flush(zone->log, &local->writer);
    if (error == 0)
        error = log_sync(zone->log, local->disk, wall_ms);
    if (error == 0 && recovery->scan.had_failed)
        error = mend_failed(local);
    else if (error == 0)
        error = compact_if_due(local);
    return error == 0 && recovery->has_lost ? forget_lost(local->disk) : error;
}

/* An engine for as long as the folder is this process's alone. */
static struct local_engine *engine_for(struct local_zone *zone, struct disk *disk, uint64_t wall_ms)
{
    struct engine *engine = local_engine_new(zone);

    if (engine == NULL)
        return NULL;
    local_engine_use_disk(engine, disk, NULL);
    local_of(engine)->still_ms = wall_ms;
    return local_of(engine);
}

bool local_zone_recover(struct local_zone *zone, struct disk *disk, const struct log_options *options,
                        uint64_t wall_ms, struct local_recovery *recovery)
{
    if (!local_zone_replay(zone, disk, NULL, NULL, recovery))
        return false;
    struct local_engine *local = engine_for(zone, disk, wall_ms);
    int error = local == NULL ? -ENOMEM : go_on(local, options, wall_ms, recovery);
    if (error != 0)
        snprintf(recovery->why, sizeof(recovery->why), "the journal cannot be written: %s", strerror(-error));
    if (local != NULL)
        local_engine_free(&local->engine);
    zone->is_awaiting = error != 0;
    return error == 0;
}

void local_zone_await_journal(struct local_zone *zone)
{
    zone->is_awaiting = true;
    zone->has_journal = true;
}

bool local_zone_is_awaiting(const struct local_zone *zone)
{
    return zone->is_awaiting;
}

/* Another mode begins another segment, and nobody could join before there is space for it: so that is taken first. */
void local_zone_set_journal(struct local_zone *zone, struct disk *disk, const struct log_options *options)
{
    struct log_options first = *options;

    first.sync = log_options(zone->log).sync;
    log_set_options(zone->log, &first);
    log_prepare(zone->log, disk);
    log_set_options(zone->log, options);
}

int local_zone_close(struct local_zone *zone, struct disk *disk, uint64_t wall_ms)
{
    if (!zone_is_recorded(zone))
        return 0;
    struct local_engine *local = engine_for(zone, disk, wall_ms);
    if (local == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < zone->rooms; i++) {
        slot_lock(zone, &zone->slots[i]);
        slot_record(local, &zone->slots[i]);
        slot_unlock(&zone->slots[i]);
    }
    int error = log_close(zone->log, &local->writer, wall_ms);
    local_engine_free(&local->engine);
    return error;
}

/* ---- looking at it ---- */

uint64_t local_zone_hash(struct local_zone *zone)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < zone->rooms; i++) {
        struct room *room = slot_lock(zone, &zone->slots[i]);
        if (slot_is_alive(&zone->slots[i]))
            sum += room_hash(room, 1); /* whichever slot a room lies in */
        slot_unlock(&zone->slots[i]);
    }
    return sum;
}

struct local_journal_figures local_zone_journal(const struct local_zone *zone)
{
    struct local_journal_figures figures = {.is_on = zone_is_recorded(zone)};

    if (!figures.is_on)
        return figures;
    figures.is_short = log_is_short(zone->log);
    figures.trouble = log_trouble(zone->log);
    figures.options = log_options(zone->log);
    figures.end = log_end(zone->log);
    figures.written = log_written(zone->log);
    figures.synced = log_synced(zone->log);
    figures.snapshot = zone->snapshot;
    log_trouble_text(zone->log, figures.text, sizeof(figures.text));
    return figures;
}
