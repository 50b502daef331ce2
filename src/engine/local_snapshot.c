/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A snapshot is taken while everything goes on: a piece of at most 64 KiB is copied under its room's lock, then written.
 * Pieces are of different moments, and that does no harm: the journal is read on from the position at which the snapshot began,
 * and every change since then is applied over it once more. So it counts only together with the journal up to its end; only
 * then does it get its name, and only then is anything removed that it replaces.
 *
 * One process takes it, a little with each tick. If that process dies, the file without a name is thrown away by the next.
 */

#include "base/little.h"
#include "base/lock.h"
#include "base/must.h"
#include "engine/local_zone.h"

#include <errno.h>
#include <stdlib.h>

#define PIECES_PER_TICK 16
#define RETRY_MS        10000

static int write_bytes(struct local_engine *local, const void *bytes, size_t len)
{
    struct local_snapshot *snapshot = &local->snapshot;
    int error = local->disk->write(local->disk, snapshot->file, bytes, len, snapshot->offset);

    snapshot->offset += len;
    return error;
}

/* The body lies in `piece` behind the room for a record's head. */
static int write_record(struct local_engine *local, enum record_type type, size_t len)
{
    struct local_snapshot *snapshot = &local->snapshot;
    struct span body = {(const char *)snapshot->piece + FRAME_RECORD_BYTES, len};

    frame_write_record(snapshot->piece, type, body, local_wall_ms(local), &snapshot->chain);
    return write_bytes(local, snapshot->piece, frame_record_bytes(len));
}

static int write_zone(struct local_engine *local)
{
    unsigned char *body = local->snapshot.piece + FRAME_RECORD_BYTES;

    zone_lock(local->zone);
    little_put32(body, local->zone->next_epoch);
    little_put32(body + 4, 0);
    zone_unlock(local->zone);
    return write_record(local, RECORD_ZONE, 8);
}

static int write_head(struct local_engine *local)
{
    struct local_snapshot *snapshot = &local->snapshot;
    struct frame_head head = {
        .is_snapshot = true, .version = FRAME_VERSION, .first = snapshot->first, .sequence = 1};
    unsigned char bytes[FRAME_HEAD_BYTES];

    local->disk->boot(local->disk, head.boot);
    frame_write_head(&head, bytes);
    snapshot->chain = (struct frame_chain){head.crc, head.sequence};
    return write_bytes(local, bytes, sizeof(bytes));
}

void snapshot_abandon(struct local_engine *local)
{
    struct local_snapshot *snapshot = &local->snapshot;

    if (!snapshot->is_under_way)
        return;
    if (snapshot->file >= 0)
        local->disk->close(local->disk, snapshot->file);
    local->disk->remove(local->disk, SNAPSHOT_NEW);
    free(snapshot->piece);
    *snapshot = (struct local_snapshot){.file = -1};
    lock_release(&local->zone->snapshot_lock);
}

static int snapshot_begin(struct local_engine *local)
{
    struct local_snapshot *snapshot = &local->snapshot;

    *snapshot = (struct local_snapshot){.is_under_way = true, .file = -1};
    snapshot->piece = malloc(FRAME_RECORD_BYTES + ROOM_PIECE_BYTES);
    if (snapshot->piece == NULL)
        return -ENOMEM;
    local->disk->remove(local->disk, SNAPSHOT_NEW); /* of one who died over it */
    snapshot->file = local->disk->open(local->disk, SNAPSHOT_NEW, DISK_MAKE);
    if (snapshot->file < 0)
        return snapshot->file;
    /* Not the very end: a note of a sync may be behind it, which is not synced itself and not there after a power cut. */
    snapshot->first = log_change(local->zone->log);
    int error = write_head(local);
    return error == 0 ? write_zone(local) : error;
}

/* Copies the next piece of the room under way; 0 if there is none. `is_stuck`: a change of it cannot get into the log. */
static size_t copy_piece(struct local_engine *local, bool *is_stuck)
{
    struct local_snapshot *snapshot = &local->snapshot;
    struct slot *slot = &local->zone->slots[snapshot->slot];
    struct room *room = slot_lock(local->zone, slot);
    size_t len = 0;

    *is_stuck = !slot_record(local, slot);
    if (snapshot->number == 0 && slot_is_alive(slot))
        snapshot->number = room_number(room);
    /* A room that was deleted meanwhile, or replaced by another, is in the journal. */
    if (!*is_stuck && slot_is_alive(slot) && snapshot->number == room_number(room))
        len = room_snapshot(room, &snapshot->cursor, snapshot->piece + FRAME_RECORD_BYTES);
    slot_unlock(slot);
    return len;
}

static int snapshot_end(struct local_engine *local)
{
    struct local_snapshot *snapshot = &local->snapshot;

    snapshot->needs = log_change(local->zone->log);
    little_put64(snapshot->piece + FRAME_RECORD_BYTES, snapshot->needs);
    snapshot->is_written = true;
    return write_record(local, RECORD_END, 8);
}

static int snapshot_go_on(struct local_engine *local)
{
    struct local_snapshot *snapshot = &local->snapshot;
    bool is_stuck;

    if (snapshot->slot >= local->zone->rooms)
        return snapshot_end(local);
    size_t len = copy_piece(local, &is_stuck);
    if (is_stuck)
        return -EAGAIN;
    if (len == 0 || snapshot->cursor.is_done) {
        snapshot->slot++;
        snapshot->number = 0;
        snapshot->cursor = (struct room_cursor){0};
    }
    return len == 0 ? 0 : write_record(local, RECORD_ROOM, len);
}

bool snapshot_is_due(const struct local_zone *zone)
{
    uint64_t grown = log_end(zone->log) - zone->snapshot;
    uint64_t segment = log_options(zone->log).segment_bytes;

    return grown > 2 * zone->snapshot_bytes && grown > segment && log_trouble(zone->log) == LOG_FINE;
}

static bool may_begin(struct local_engine *local, uint64_t now_ms)
{
    struct local_zone *zone = local->zone;

    if (!zone_is_recorded(zone) || !snapshot_is_due(zone) || now_ms - zone->snapshot_tried_ms < RETRY_MS)
        return false;
    if (!lock_try(&zone->snapshot_lock))
        return false;
    if (snapshot_is_due(zone))
        return true;
    lock_release(&zone->snapshot_lock);
    return false;
}

/* A disk with no space for it is no trouble yet: it is tried again later. */
static void give_up_for_now(struct local_engine *local, uint64_t now_ms)
{
    local->zone->snapshot_tried_ms = now_ms;
    snapshot_abandon(local);
}

void snapshot_step(struct local_engine *local, uint64_t now_ms)
{
    struct local_snapshot *snapshot = &local->snapshot;
    int error = 0;

    if (!snapshot->is_under_way) {
        if (!may_begin(local, now_ms))
            return;
        error = snapshot_begin(local);
    }
    for (int i = 0; i < PIECES_PER_TICK && error == 0 && !snapshot->is_written; i++)
        error = snapshot_go_on(local);
    if (error != 0)
        give_up_for_now(local, now_ms);
}

int snapshot_name(struct local_engine *local)
{
    struct local_snapshot *snapshot = &local->snapshot;
    struct disk *disk = local->disk;
    char name[FRAME_NAME_BYTES];
    int error = log_sync(local->zone->log, disk, local_wall_ms(local));

    frame_name(true, snapshot->first, name);
    if (error == 0)
        error = disk->sync(disk, snapshot->file);
    if (error == 0)
        error = disk->rename(disk, SNAPSHOT_NEW, name);
    if (error == 0)
        error = disk->sync_folder(disk);
    if (error == 0)
        journal_compact(disk, snapshot->first); /* what cannot be removed now is removed with the next one */
    return error;
}

void snapshot_named(struct local_engine *local, int error)
{
    struct local_zone *zone = local->zone;

    if (error == 0) {
        zone->snapshot = local->snapshot.first;
        zone->snapshot_bytes = local->snapshot.offset;
    }
    /* If it has its name already, there is no file of the other to remove. */
    snapshot_abandon(local);
}

int snapshot_take_now(struct local_engine *local)
{
    must(lock_try(&local->zone->snapshot_lock));
    int error = snapshot_begin(local);
    while (error == 0 && !local->snapshot.is_written)
        error = snapshot_go_on(local);
    if (error == 0)
        error = log_flush(local->zone->log, &local->writer);
    if (error == 0)
        error = snapshot_name(local);
    snapshot_named(local, error);
    return error;
}
