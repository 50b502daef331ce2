/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Sessions that were lost. Whoever has a pass was inside: if the room does not know it any more because of a loss, and not
 * because the session is over, they go on where they were, as long as a slot is free. Neither the pace nor the order of the line
 * is asked: both were when they were called.
 *
 * What tells a lost session from one that is over:
 *
 * - A place that a loss took away (places.c) is given back once. A place that the room knows, of an epoch that ended in loss, and
 *   that stands in line or was called: its enter was lost.
 * - A room without a journal knows nothing of the time before. A pass that is older than the room is believed for a few minutes,
 *   once: that it was is remembered among the idempotency keys, which live at least as long as this is allowed. Where one
 *   of those had to be dropped before its time, nobody comes back any more.
 */

#include "base/must.h"
#include "room/state.h"

_Static_assert(ROOM_RETURN_SEC <= KEYS_TTL_SEC, "whoever came back is remembered until nobody does");

void room_freeze_calls(struct room *room)
{
    memory_set(&room->memory, room->calls_from_ms,
               room->clock_ms + (uint64_t)room->settings.arrive_ttl_sec * 1000);
    room_commit(room);
}

void room_had_former(struct room *room, uint32_t wall_sec)
{
    uint32_t ttl_sec = room->settings.session_ttl_sec;
    uint32_t most_sec = ttl_sec < ROOM_RETURN_SEC ? ttl_sec : ROOM_RETURN_SEC;

    memory_set(&room->memory, room->former_sec, wall_sec);
    memory_set(&room->memory, room->returns_until_ms, room->clock_ms + (uint64_t)most_sec * 1000);
    room_commit(room);
}

static bool is_former(const struct room *room, const struct place *place)
{
    return place->grant.is_known && place->grant.sec < room->former_sec;
}

struct ticket *former_find(const struct room *room, const struct place *place, uint32_t *count)
{
    struct ticket *ticket = is_former(room, place) ? room_held_by(room, &place->holder, count) : NULL;

    return ticket != NULL && ticket->has_alias ? ticket : NULL;
}

static bool may_come_back(struct room *room, const struct place *place)
{
    return is_former(room, place) && room->clock_ms < room->returns_until_ms && room->keys.dropped == 0 &&
           room->keys.by_scope.entries < KEYS_MAX &&
           keys_find(&room->keys, &room->memory, &place->holder) == NULL;
}

/* A holder is a keyed hash as the scope of a request is, and never the same. */
static bool remember_return(struct room *room, const struct place *place)
{
    struct key key = {.scope = place->holder, .at = room_now(room)};

    return keys_add(&room->keys, &room->memory, &key);
}

bool former_close(struct room *room, const struct place *place)
{
    return may_come_back(room, place) && remember_return(room, place);
}

static bool has_slot_for(const struct room *room, const struct ticket *ticket)
{
    return (ticket != NULL && ticket_life(ticket->state)->holds_slot) || room->settings.mode == MODE_OPEN ||
           room_has_slot(room);
}

/* The ticket that its holder has by now, or another. */
static enum error former_return(struct room *room, const struct place *place, uint32_t *count,
                                struct ticket **ticket)
{
    struct join join = {.holder = place->holder,
                        .is_trusted = place->issue.is_trusted,
                        .key_id = place->issue.key_id,
                        .wall_sec = place->issue.sec};

    *ticket = room_held_by(room, &place->holder, count);
    if (!has_slot_for(room, *ticket))
        return ERROR_TOKEN_NOT_FOUND;
    enum error error = *ticket == NULL ? ticket_join(room, &join, count) : ERROR_NONE;
    if (error != ERROR_NONE || !remember_return(room, place)) {
        room_rollback(room);
        return ERROR_QUEUE_FULL;
    }
    *ticket = line_find(&room->line, &room->memory, *count);
    memory_keep(&room->memory, *ticket, sizeof(**ticket));
    (*ticket)->has_alias = true;
    record_ticket(room, *count);
    return ERROR_NONE;
}

/* Its place again, or the one that its holder has instead. Without a slot they wait there, and are among the next. */
static enum error lost_return(struct room *room, const struct place *place, uint32_t *count,
                              struct ticket **ticket)
{
    struct standing standing;
    enum error error = room_meet(room, place, count, ticket);

    if (error != ERROR_NONE || has_slot_for(room, *ticket))
        return error;
    standing_see(room, *count, *ticket, &standing);
    room_commit(room);
    return ERROR_TOKEN_NOT_FOUND;
}

enum error session_return(struct room *room, const struct place *place, uint32_t *count,
                          struct ticket **ticket)
{
    enum error error = ERROR_TOKEN_NOT_FOUND;

    /* A room that gives other passes by now would give one of those to whoever enters again. */
    if (!place->grant.is_known || place->grant.tier != room->settings.tier)
        return error;
    if (place->epoch < room_epoch(room) && (room_may_return(room, place) || *ticket != NULL))
        error = lost_return(room, place, count, ticket);
    else if (may_come_back(room, place))
        error = former_return(room, place, count, ticket);
    if (error != ERROR_NONE)
        return error;
    must(*ticket != NULL);
    if (ticket_life((*ticket)->state)->is_queueing || (*ticket)->state == TICKET_CALLED)
        ticket_come_back(room, *count, *ticket, &place->grant);
    return ERROR_NONE;
}
