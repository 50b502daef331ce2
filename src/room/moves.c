/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The moves of a ticket from state to state. `move` is the only place that changes a state: it asks the life table, keeps
 * the counts and the line in step, and has the ticket recorded.
 */

#include "base/must.h"
#include "room/state.h"

/* Until an answer told them, a call stands at least this long: browsers wake background tabs once a minute. */
#define UNTOLD_CALL_SEC 120

static void set_deadline(struct room *room, uint32_t count, uint32_t deadline)
{
    line_set_deadline(&room->line, &room->memory, count, deadline);
}

/* The ticket's bytes must be kept already. */
static void move(struct room *room, uint32_t count, struct ticket *ticket, enum ticket_state to)
{
    const struct ticket_life *from_life = ticket_life(ticket->state);
    const struct ticket_life *to_life = ticket_life(to);
    uint32_t *in_state = room->in_state;

    must(ticket_may_become(ticket->state, to));
    if (from_life->is_alive)
        memory_set(&room->memory, in_state[ticket->state], in_state[ticket->state] - 1);
    if (to_life->is_alive)
        memory_set(&room->memory, in_state[to], in_state[to] + 1);
    if (from_life->is_in_line && !to_life->is_in_line)
        line_step_out(&room->line, &room->memory, count);
    if (!from_life->is_in_line && to_life->is_in_line)
        line_stand(&room->line, &room->memory, count);
    ticket->state = to & 63;
    record_ticket(room, count);
}

static void keep(struct room *room, const struct ticket *ticket)
{
    memory_keep(&room->memory, ticket, sizeof(*ticket));
}

uint32_t room_now(const struct room *room)
{
    return (uint32_t)((room->clock_ms + 99) / 100);
}

uint32_t room_past(const struct room *room)
{
    return (uint32_t)(room->clock_ms / 100);
}

uint32_t room_later(const struct room *room, uint32_t seconds)
{
    uint64_t when = (uint64_t)room_now(room) + (uint64_t)seconds * 10;

    return when < LINE_NEVER ? (uint32_t)when : LINE_NEVER - 1;
}

static const struct holder *holder_of_count(const void *owner, uint32_t count)
{
    const struct room *room = owner;
    const struct ticket *ticket = line_find(&room->line, &room->memory, count);

    must(ticket != NULL);
    return &ticket->holder;
}

struct map_owner room_holders(const struct room *room)
{
    struct memory *memory = (struct memory *)(uintptr_t)&room->memory;

    return (struct map_owner){memory, holder_of_count, room};
}

enum error ticket_join(struct room *room, const struct join *join, uint32_t *count)
{
    struct map_owner owner = room_holders(room);
    struct ticket *ticket = line_add(&room->line, &room->memory);

    if (ticket == NULL)
        return ERROR_QUEUE_FULL;
    *count = room->line.last;
    ticket->holder = join->holder;
    ticket->issued_sec = join->wall_sec;
    ticket->key_id = join->key_id;
    ticket->joined = room_now(room);
    ticket->flags = join->is_trusted ? TICKET_TRUSTED : 0;
    ticket_begin(room, *count, ticket);
    estimate_count_join(&room->estimate, &room->memory);
    return map_add(&room->by_holder, &owner, &join->holder, *count) ? ERROR_NONE : ERROR_QUEUE_FULL;
}

void ticket_begin(struct room *room, uint32_t count, struct ticket *ticket)
{
    move(room, count, ticket, TICKET_WAITING);
    memory_set(&room->memory, room->issued, room->issued + 1);
}

void ticket_return(struct room *room, uint32_t count, struct ticket *ticket)
{
    keep(room, ticket);
    move(room, count, ticket, TICKET_WAITING);
    estimate_count_silent(&room->estimate, &room->memory, -1);
}

static uint32_t max_of(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Whether what this person was told at join came true. */
static void check_note(struct room *room, uint32_t count)
{
    const struct line_note *note = line_note(&room->line, &room->memory, count);
    uint32_t now = room_now(room);

    if (note == NULL || note->to == 0)
        return;
    memory_set(&room->memory, room->estimate.checked, room->estimate.checked + 1);
    if (note->from <= now && now <= note->to)
        memory_set(&room->memory, room->estimate.kept, room->estimate.kept + 1);
}

static void pay(struct room *room, struct ticket *ticket, enum call_ground ground)
{
    if (ground == CALL_BY_PACE) {
        ticket->flags |= TICKET_PAID;
        memory_keep(&room->memory, &room->pace, sizeof(room->pace));
        pace_spend(&room->pace, &room->paced);
    }
    if (ground == CALL_BY_ORDER)
        memory_set(&room->memory, room->advance, room->advance - 1);
}

void ticket_call(struct room *room, uint32_t count, struct ticket *ticket, enum call_ground ground)
{
    uint32_t stands_sec =
        max_of(room->settings.claim_ttl_sec, max_of(2U * ticket->poll_sec, UNTOLD_CALL_SEC));

    must(ground != CALL_NOT);
    keep(room, ticket);
    ticket->flags &= ~TICKET_TOLD;
    move(room, count, ticket, TICKET_CALLED);
    pay(room, ticket, ground);
    check_note(room, count);
    estimate_count_call(&room->estimate, &room->memory);
    follow_count_call(&room->follow, &room->memory);
    memory_set(&room->memory, room->calls, room->calls + 1);
    if (count > room->last_called)
        memory_set(&room->memory, room->last_called, count);
    /* Being called is not coming back: for someone who said goodbye the grace goes on. */
    if ((ticket->flags & TICKET_LEAVING) != 0)
        ticket->shown = room_later(room, stands_sec);
    else
        set_deadline(room, count, room_later(room, stands_sec));
}

uint32_t session_deadline(const struct room *room, const struct ticket *ticket, uint32_t ttl_sec)
{
    uint32_t deadline = room_later(room, ttl_sec);
    uint32_t max_sec = room->terms[ticket->terms].session_max_sec;

    if (max_sec == 0 || ticket->entered + (uint64_t)max_sec * 10 >= deadline)
        return deadline;
    return ticket->entered + max_sec * 10;
}

uint32_t session_renewed(const struct room *room, const struct ticket *ticket)
{
    uint32_t deadline = session_deadline(room, ticket, room->settings.session_ttl_sec);

    return ticket->is_extended && ticket->deadline > deadline ? ticket->deadline : deadline;
}

void ticket_enter(struct room *room, uint32_t count, struct ticket *ticket, const struct enter *enter)
{
    struct terms *terms = &room->terms[room->terms_now];

    keep(room, ticket);
    move(room, count, ticket, TICKET_ENTERED);
    ticket->iat_sec = enter->wall_sec;
    ticket->entered = room_now(room);
    ticket->pass_key_id = enter->key_id;
    ticket->terms = room->terms_now & (ROOM_TERMS - 1);
    memory_set(&room->memory, terms->users, terms->users + 1);
    set_deadline(room, count, session_deadline(room, ticket, room->settings.arrive_ttl_sec));
}

/* Whoever steps out may be called later than they were told, by their own doing. */
static void forget_note(struct room *room, uint32_t count)
{
    struct line_note *note = line_note(&room->line, &room->memory, count);

    if (note != NULL)
        memory_set(&room->memory, note->to, 0);
}

void ticket_come_back(struct room *room, uint32_t count, struct ticket *ticket, const struct grant *grant)
{
    struct enter enter = {.key_id = grant->key_id, .wall_sec = grant->sec};

    if (ticket->state == TICKET_AWAY)
        ticket_return(room, count, ticket);
    keep(room, ticket);
    ticket->flags &= ~TICKET_LEAVING;
    if (ticket->state == TICKET_WAITING) {
        estimate_count_gone(&room->estimate, &room->memory);
        forget_note(room, count);
        move(room, count, ticket, TICKET_CALLED);
    }
    ticket_enter(room, count, ticket, &enter);
}

void ticket_arrive(struct room *room, uint32_t count, struct ticket *ticket)
{
    keep(room, ticket);
    move(room, count, ticket, TICKET_ACTIVE);
    set_deadline(room, count, session_renewed(room, ticket));
}

/* A turn that was not taken is given back: to the pace, so that the next can have it. */
static void give_back(struct room *room, const struct ticket *ticket)
{
    if ((ticket->flags & TICKET_PAID) == 0)
        return;
    memory_keep(&room->memory, &room->pace, sizeof(room->pace));
    pace_refund(&room->pace, &room->paced);
    memory_set(&room->memory, room->refunds, room->refunds + 1);
}

void ticket_finish(struct room *room, uint32_t count, struct ticket *ticket)
{
    struct map_owner owner = room_holders(room);

    if (ticket->state == TICKET_WAITING)
        estimate_count_gone(&room->estimate, &room->memory);
    if (ticket_life(ticket->state)->holds_slot)
        estimate_count_end(&room->estimate, &room->memory);
    if (ticket->state == TICKET_CALLED)
        give_back(room, ticket);
    if (ticket->state == TICKET_ENTERED || ticket->state == TICKET_ACTIVE) {
        struct terms *terms = &room->terms[ticket->terms];
        must(terms->users > 0);
        memory_set(&room->memory, terms->users, terms->users - 1);
    }
    map_remove(&room->by_holder, &owner, &ticket->holder, count);
    keep(room, ticket);
    move(room, count, ticket, TICKET_DONE);
    line_finish(&room->line, &room->memory, count);
}

static bool is_overdue(const struct room *room, const struct ticket *ticket)
{
    return ticket_life(ticket->state)->is_alive && ticket->deadline <= room_past(room);
}

static bool goes_away(const struct room *room, const struct ticket *ticket)
{
    return ticket->state == TICKET_WAITING && ticket->deadline <= room_past(room) &&
           (ticket->flags & TICKET_LEAVING) == 0;
}

/* All of a page who fell silent, in one operation: a million who vanish together are eight thousand of these. */
static void page_goes_away(struct room *room, uint32_t first)
{
    uint32_t tickets, away = 0;
    struct ticket *ticket = line_page(&room->line, &room->memory, first, &tickets);
    struct line_page_bits who = {{0, 0}};
    uint32_t deadline = room_later(room, room->settings.away_ttl_sec);

    must(ticket_life(TICKET_WAITING)->when_time_over == TICKET_AWAY);
    for (uint32_t i = 0; i < tickets; i++) {
        if (!goes_away(room, &ticket[i]))
            continue;
        if (away++ == 0) /* the whole page at once, which is cheaper than each by itself */
            memory_keep(&room->memory, ticket, tickets * sizeof(*ticket));
        ticket[i].state = TICKET_AWAY;
        ticket[i].deadline = deadline;
        line_page_bits_add(&who, first + i);
        forget_note(room, first + i);
    }
    if (away == 0)
        return;
    line_step_out_page(&room->line, &room->memory, first, who);
    estimate_count_silent(&room->estimate, &room->memory, (int32_t)away);
    memory_set(&room->memory, room->in_state[TICKET_WAITING], room->in_state[TICKET_WAITING] - away);
    memory_set(&room->memory, room->in_state[TICKET_AWAY], room->in_state[TICKET_AWAY] + away);
    struct part_away part = {first, deadline, {who.word[0], who.word[1]}};
    record_part(room, PART_AWAY, (struct span){(const char *)&part, sizeof(part)}, SPAN(""));
    room_commit(room);
}

uint32_t tickets_expire(struct room *room, uint32_t count)
{
    uint32_t tickets, over = 0;

    page_goes_away(room, count);
    struct ticket *ticket = line_page(&room->line, &room->memory, count, &tickets);
    for (uint32_t i = 0; i < tickets; i++) {
        if (!is_overdue(room, &ticket[i]))
            continue;
        if (record_is_full(room))
            return over;
        ticket_finish(room, count + i, &ticket[i]);
        room_commit(room);
        over++;
        if (line_find(&room->line, &room->memory, count) == NULL)
            return over; /* that was the last one alive: the page is gone */
    }
    line_look_again(&room->line, &room->memory, count);
    room_commit(room);
    return over;
}

uint32_t room_slots_used(const struct room *room)
{
    return room->in_state[TICKET_CALLED] + room->in_state[TICKET_ENTERED] + room->in_state[TICKET_ACTIVE];
}

bool room_has_slot(const struct room *room)
{
    return room->settings.max_active == 0 || room_slots_used(room) < room->settings.max_active;
}

uint64_t room_frozen_ms(const struct room *room)
{
    uint64_t loss_ms = room->clock_ms < room->calls_from_ms ? room->calls_from_ms - room->clock_ms : 0;
    uint64_t shop_ms = follow_frozen_ms(&room->follow);

    return loss_ms > shop_ms ? loss_ms : shop_ms;
}

static bool pace_allows(const struct room *room, const struct ticket *first)
{
    const struct settings *settings = &room->settings;

    return room_frozen_ms(room) == 0 &&
           (settings->max_called == 0 || room->in_state[TICKET_CALLED] < settings->max_called) &&
           pace_has_call(&room->pace, &room->paced) &&
           (settings->min_wait_sec == 0 || room_past(room) >= first->joined + settings->min_wait_sec * 10);
}

static enum call_ground ground_for(const struct room *room, const struct ticket *first)
{
    switch ((enum room_mode)room->settings.mode) {
    case MODE_OPEN:
        return CALL_BY_OPEN;
    case MODE_QUEUE:
    case MODE_HOLD:
        if (!room_has_slot(room))
            return CALL_NOT;
        if (room->advance > 0)
            return CALL_BY_ORDER;
        return room->settings.mode == MODE_QUEUE && pace_allows(room, first) ? CALL_BY_PACE : CALL_NOT;
    case MODE_CLOSED:
    case MODE_COUNT:
        break;
    }
    return CALL_NOT;
}

uint32_t room_next_call(const struct room *room, enum call_ground *ground)
{
    uint32_t first = line_first(&room->line, &room->memory);

    *ground = first == LINE_NONE ? CALL_NOT : ground_for(room, line_find(&room->line, &room->memory, first));
    return *ground == CALL_NOT ? LINE_NONE : first;
}
