/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a place is called, and who stands there. Visitors know a place as (epoch, count); in the line it is one number, so that
 * order is plain comparison. After a loss a new epoch begins a good distance further on, and the places in between are those of
 * the tickets that were given out and forgotten: whoever comes back with one gets it, once.
 */

#include "base/must.h"
#include "room/state.h"

static const struct epoch *present(const struct room *room)
{
    return &room->epoch[room->epochs - 1];
}

uint32_t room_epoch(const struct room *room)
{
    return present(room)->epoch;
}

const struct epoch *epoch_at(const struct room *room, uint32_t count)
{
    uint32_t i = room->epochs - 1;

    while (i > 0 && room->epoch[i].base >= count)
        i--;
    return &room->epoch[i];
}

struct place room_place(const struct room *room, uint32_t count, const struct holder *holder)
{
    const struct epoch *epoch = epoch_at(room, count);

    return (struct place){.epoch = epoch->epoch, .count = count - epoch->base, .holder = *holder};
}

/* Where a place lies in the line; LINE_NONE if it never was one of this room. */
static uint32_t count_of(const struct room *room, const struct place *place)
{
    for (uint32_t i = room->epochs; i-- > 0;) {
        const struct epoch *epoch = &room->epoch[i];
        uint32_t end = i + 1 < room->epochs ? room->epoch[i + 1].base : UINT32_MAX - 1;
        if (epoch->epoch == place->epoch)
            return place->count == 0 || place->count > end - epoch->base ? LINE_NONE
                                                                         : epoch->base + place->count;
    }
    return LINE_NONE;
}

bool is_lost_place(const struct room *room, uint32_t count)
{
    const struct epoch *epoch = epoch_at(room, count);

    return epoch != present(room) && epoch->lost_from != 0 && count - epoch->base >= epoch->lost_from;
}

static struct ticket *alive_at(const struct room *room, uint32_t count)
{
    struct ticket *ticket = line_find(&room->line, &room->memory, count);

    return ticket == NULL || !ticket_life(ticket->state)->is_alive ? NULL : ticket;
}

static struct ticket *held_by(const struct room *room, const struct holder *holder, uint32_t *count)
{
    struct map_owner owner = room_holders(room);

    *count = map_find(&room->by_holder, &owner, holder);
    return *count == MAP_NONE ? NULL : alive_at(room, *count);
}

struct ticket *room_find(const struct room *room, const struct place *place, uint32_t *count)
{
    *count = count_of(room, place);
    if (*count == LINE_NONE)
        return NULL;
    struct ticket *ticket = alive_at(room, *count);
    if (ticket != NULL)
        return holder_equal(&ticket->holder, &place->holder) ? ticket : NULL;
    ticket = held_by(room, &place->holder, count);
    return ticket != NULL && ticket->has_alias ? ticket : NULL;
}

/* ---- healing ---- */

/* Whether this is a ticket that a loss took away: its place is free, and never was given back. */
static bool may_heal(const struct room *room, const struct place *place, uint32_t count)
{
    if (count == LINE_NONE || !place->issue.is_known || !is_lost_place(room, count))
        return false;
    const struct ticket *ticket = line_find(&room->line, &room->memory, count);
    return ticket == NULL || ticket->state == TICKET_NONE;
}

static struct ticket *heal(struct room *room, const struct place *place, uint32_t count)
{
    struct map_owner owner = room_holders(room);
    struct ticket *ticket = line_put(&room->line, &room->memory, count);

    if (ticket == NULL)
        return NULL;
    line_begin(&room->line, &room->memory, count);
    line_keep_page(&room->line, &room->memory, count);
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    *ticket = (struct ticket){
        .holder = place->holder,
        .issued_sec = place->issue.sec,
        .key_id = place->issue.key_id,
        .joined = room_now(room),
        .deadline = LINE_NEVER,
        .flags = place->issue.is_trusted ? TICKET_TRUSTED : 0,
    };
    ticket_begin(room, count, ticket);
    return map_add(&room->by_holder, &owner, &place->holder, count) ? ticket : NULL;
}

static void give_alias(struct room *room, uint32_t count, struct ticket *ticket)
{
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    ticket->has_alias = true;
    record_ticket(room, count);
}

enum error room_meet(struct room *room, const struct place *place, uint32_t *count, struct ticket **ticket)
{
    *ticket = room_find(room, place, count);
    uint32_t lost = count_of(room, place), other;
    if (*ticket != NULL || !may_heal(room, place, lost))
        return *ticket == NULL ? ERROR_TOKEN_NOT_FOUND : ERROR_NONE;

    struct ticket *has = held_by(room, &place->holder, &other);
    if (has != NULL && (other < lost || !ticket_life(has->state)->is_queueing)) {
        /* The older place wins, and so does a turn that has come. */
        give_alias(room, other, has);
        *count = other;
        *ticket = has;
        return ERROR_NONE;
    }
    if (has != NULL) {
        ticket_finish(room, other, has);
        room_commit(room);
    }
    *count = lost;
    *ticket = heal(room, place, lost);
    if (*ticket == NULL) {
        room_rollback(room);
        return ERROR_ENGINE_UNAVAILABLE;
    }
    if (has != NULL)
        give_alias(room, lost, *ticket);
    return ERROR_NONE;
}

void room_begin_epoch(struct room *room, uint32_t number)
{
    struct memory *memory = &room->memory;
    uint32_t base = room->line.last + EPOCH_DISTANCE;

    must(number > room_epoch(room));
    base += LINE_PAGE_COUNT - 1 - base % LINE_PAGE_COUNT; /* the first count begins a page */
    memory_keep(memory, room->epoch, sizeof(room->epoch));
    struct epoch *last = &room->epoch[room->epochs - 1];
    last->lost_from = room->line.last - last->base + 1;
    if (base < room->line.last || !line_skip(&room->line, memory, base)) {
        last->lost_from = 0; /* the oldest and the newest are too far apart already: nobody comes back */
        base = room->line.last;
    }
    if (room->epochs == ROOM_EPOCHS)
        memmove(&room->epoch[0], &room->epoch[1], (ROOM_EPOCHS - 1) * sizeof(room->epoch[0]));
    else
        memory_set(memory, room->epochs, room->epochs + 1);
    room->epoch[room->epochs - 1] = (struct epoch){number, base, 0};
    record_epochs(room);
    room_commit(room);
}
