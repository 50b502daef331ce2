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

struct ticket *room_held_by(const struct room *room, const struct holder *holder, uint32_t *count)
{
    struct map_owner owner = room_holders(room);

    *count = map_find(&room->by_holder, &owner, holder);
    return *count == MAP_NONE ? NULL : alive_at(room, *count);
}

bool room_has_holder(const struct room *room, const struct holder *holder)
{
    uint32_t count;

    return room_held_by(room, holder, &count) != NULL;
}

static struct ticket *named_by(const struct room *room, const struct place *place, uint32_t *count)
{
    if (place->epoch == 0)
        return room_held_by(room, &place->holder, count);
    uint32_t named = count_of(room, place);
    if (named == LINE_NONE)
        return NULL;
    *count = named;
    struct ticket *ticket = alive_at(room, named);
    if (ticket != NULL)
        return holder_equal(&ticket->holder, &place->holder) ? ticket : NULL;
    ticket = room_held_by(room, &place->holder, count);
    if (ticket == NULL || !ticket->has_alias)
        return NULL;
    /* Another name for it has who was lost, or came again later; not a ticket that was over before. */
    return named > *count || is_lost_place(room, named) ? ticket : NULL;
}

struct ticket *room_find(const struct room *room, const struct place *place, uint32_t *count)
{
    struct ticket *ticket = named_by(room, place, count);

    return ticket != NULL ? ticket : former_find(room, place, count);
}

/* ---- healing ---- */

/*
 * Who came back to a lost place is remembered for as long as the line needs for so many places, half of its ring; then nobody
 * comes back any more. Else one of them would stop the ring some day.
 */
#define HEAL_REACH (1U << 28)

/* Pages that a place and its holder take at most. */
#define HEAL_PAGES 5

/* Whether this is a ticket that a loss took away: its place is free, and never was given back. */
static bool may_heal(const struct room *room, const struct place *place, uint32_t count)
{
    if (count == LINE_NONE || !place->issue.is_known || !is_lost_place(room, count) ||
        room->line.last - count > HEAL_REACH)
        return false;
    const struct ticket *ticket = line_find(&room->line, &room->memory, count);
    return ticket == NULL || ticket->state == TICKET_NONE;
}

bool room_may_return(const struct room *room, const struct place *place)
{
    return may_heal(room, place, count_of(room, place));
}

bool room_forget_far(struct room *room)
{
    uint32_t last = room->line.last;

    if (room->epochs == 1 || last <= HEAL_REACH ||
        !line_forget(&room->line, &room->memory, last - HEAL_REACH))
        return false;
    room_commit(room);
    return true;
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

/* Nobody stands there any more, now or later: who came for it stands elsewhere. */
static bool bury(struct room *room, uint32_t count)
{
    struct ticket *ticket = line_put(&room->line, &room->memory, count);

    if (ticket == NULL)
        return false;
    line_keep_page(&room->line, &room->memory, count);
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    *ticket = (struct ticket){.state = TICKET_DONE, .deadline = LINE_NEVER};
    record_gone(room, count);
    return true;
}

static void give_alias(struct room *room, uint32_t count, struct ticket *ticket)
{
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    ticket->has_alias = true;
    record_ticket(room, count);
}

/* The older place wins, and so does a turn that has come. */
static bool wins(uint32_t count, const struct ticket *ticket, uint32_t lost)
{
    return count < lost || !ticket_life(ticket->state)->is_queueing;
}

/* Gives the place back, or the one that its holder has instead; NULL if there is no memory. */
static struct ticket *bring_back(struct room *room, const struct place *place, uint32_t lost, uint32_t *count)
{
    struct ticket *has = room_held_by(room, &place->holder, count), *ticket;
    uint32_t other = *count;

    if (has != NULL && wins(other, has, lost)) {
        if (!bury(room, lost))
            return NULL;
        give_alias(room, other, has);
        return has;
    }
    if (has != NULL) {
        if (room->memory.spare_count < HEAL_PAGES)
            return NULL; /* or they would be left with nothing */
        ticket_finish(room, other, has);
        room_commit(room);
    }
    *count = lost;
    ticket = heal(room, place, lost);
    if (ticket != NULL && has != NULL)
        give_alias(room, lost, ticket);
    return ticket;
}

enum error room_meet(struct room *room, const struct place *place, uint32_t *count, struct ticket **ticket)
{
    uint32_t lost = count_of(room, place);

    if (!may_heal(room, place, lost)) {
        *ticket = room_find(room, place, count);
        return *ticket == NULL ? ERROR_TOKEN_NOT_FOUND : ERROR_NONE;
    }
    *ticket = bring_back(room, place, lost, count);
    if (*ticket != NULL)
        return ERROR_NONE;
    room_rollback(room);
    return ERROR_ENGINE_UNAVAILABLE;
}

/* ---- epochs ---- */

/* Somebody's place is called by this epoch, which is not the present one. */
static bool epoch_has_people(const struct room *room, uint32_t i)
{
    uint32_t base = room->epoch[i].base, end = room->epoch[i + 1].base, tickets;
    uint32_t first = line_page_from(&room->line, &room->memory, base + 1);

    for (; first != LINE_NONE && first <= end; first = line_page_after(&room->line, &room->memory, first)) {
        const struct ticket *ticket = line_page(&room->line, &room->memory, first, &tickets);
        for (uint32_t j = 0; j < tickets; j++)
            if (ticket_life(ticket[j].state)->is_alive && first + j > base && first + j <= end)
                return true;
    }
    return false;
}

/* Makes room for another: the oldest goes that nobody's place is called by; if there is none, the oldest of all. */
static void forget_epoch(struct room *room)
{
    uint32_t i = 0;

    while (i < room->epochs - 1 && epoch_has_people(room, i))
        i++;
    if (i == room->epochs - 1)
        i = 0;
    memmove(&room->epoch[i], &room->epoch[i + 1], (room->epochs - 1 - i) * sizeof(room->epoch[0]));
}

void room_begin_epoch(struct room *room, uint32_t epoch)
{
    struct memory *memory = &room->memory;
    uint32_t base = room->line.last + EPOCH_DISTANCE;

    must(epoch > room_epoch(room));
    base += LINE_PAGE_COUNT - 1 - base % LINE_PAGE_COUNT; /* the first count begins a page */
    memory_keep(memory, room->epoch, sizeof(room->epoch));
    struct epoch *last = &room->epoch[room->epochs - 1];
    last->lost_from = room->line.last - last->base + 1;
    if (base < room->line.last || !line_skip(&room->line, memory, base)) {
        last->lost_from = 0; /* the oldest and the newest are too far apart already: nobody comes back */
        base = room->line.last;
    }
    if (room->epochs == ROOM_EPOCHS)
        forget_epoch(room);
    else
        memory_set(memory, room->epochs, room->epochs + 1);
    room->epoch[room->epochs - 1] = (struct epoch){epoch, base, 0};
    record_epochs(room);
    room_commit(room);
}
