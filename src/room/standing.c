/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What people are told. Telling is an event too: who asks is there, and who was told that it is their turn has been promised
 * that an enter succeeds.
 */

#include "base/must.h"
#include "room/state.h"

#define POLL_MIN_SEC     1
#define POLL_INSIDE_SEC  30
#define RETRY_MIN_SEC    5
#define RETRY_MAX_SEC    3600
#define RETRY_CLOSED_SEC 30
#define PASS_LIFE_SEC    (12 * 60 * 60) /* of a pass whose session has no longest time */

static void look_waiting(const struct room *room, uint32_t count, const struct ticket *ticket,
                         struct standing *standing);
static void look_called(const struct room *room, const struct ticket *ticket, struct standing *standing);
static void look_inside(const struct room *room, const struct ticket *ticket, struct standing *standing);
static void note_waiting(struct room *room, uint32_t count, struct ticket *ticket,
                         const struct standing *standing);
static void note_called(struct room *room, uint32_t count, struct ticket *ticket);
static void begin_claim(struct room *room, uint32_t count, struct ticket *ticket);

void standing_look(const struct room *room, uint32_t count, const struct ticket *ticket,
                   struct standing *standing)
{
    *standing = (struct standing){
        .place = room_place(room, count, &ticket->holder),
        .state = ticket->state,
        .is_trusted = (ticket->flags & TICKET_TRUSTED) != 0,
        .key_id = ticket->key_id,
        .tier = (uint8_t)room->settings.tier,
        .issued_sec = ticket->issued_sec,
        .arrive_ttl_sec = room->settings.arrive_ttl_sec,
    };
    if (ticket->state == TICKET_WAITING || ticket->state == TICKET_AWAY)
        look_waiting(room, count, ticket, standing);
    else if (ticket->state == TICKET_CALLED)
        look_called(room, ticket, standing);
    else
        look_inside(room, ticket, standing);
}

void standing_tell(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing)
{
    standing_see(room, count, ticket, standing);
    if (ticket->state == TICKET_CALLED && (ticket->flags & TICKET_TOLD) == 0)
        begin_claim(room, count, ticket);
}

void standing_see(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing)
{
    if (ticket->state == TICKET_AWAY)
        ticket_return(room, count, ticket);
    standing_look(room, count, ticket, standing);
    if (ticket->state == TICKET_WAITING)
        note_waiting(room, count, ticket, standing);
    else if (ticket->state == TICKET_CALLED)
        note_called(room, count, ticket);
}

static uint32_t clamp(uint32_t value, uint32_t lowest, uint32_t highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

static uint32_t at_least(uint64_t seconds, uint32_t least_sec)
{
    seconds = seconds < UINT32_MAX ? seconds : UINT32_MAX;
    return seconds > least_sec ? (uint32_t)seconds : least_sec;
}

/* The line moves on when a freeze is over; but min_wait_sec is over when it is, wherever one stands. */
static struct eta eta_of(const struct room *room, uint32_t position, uint32_t waited_sec)
{
    struct eta eta = estimate_eta(&room->estimate, &room->paced, &room->pace, position);
    uint64_t frozen_sec = (room_frozen_ms(room) + 999) / 1000;
    uint32_t min_wait_sec = room->settings.min_wait_sec;
    uint32_t least_sec = min_wait_sec > waited_sec ? min_wait_sec - waited_sec : 0;

    return (struct eta){
        .sec = at_least(frozen_sec + eta.sec, least_sec),
        .low_sec = at_least(frozen_sec + eta.low_sec, least_sec),
        .high_sec = at_least(frozen_sec + eta.high_sec, least_sec),
    };
}

static void tell_eta(const struct room *room, struct standing *standing)
{
    struct eta eta = eta_of(room, standing->position, standing->waited_sec);

    standing->eta_sec = eta.sec;
    standing->eta_low_sec = eta.low_sec;
    standing->eta_high_sec = eta.high_sec;
}

/*
 * What the clients of halls and lobbies know: by how many stand ahead. It is the room's to say, and not that of whoever
 * translates its answers: who is away follows from it.
 */
static const struct poll_step {
    enum room_preset preset;
    uint32_t most_ahead, sec;
} poll_steps[] = {
    {PRESET_HALL, 999, 1},    {PRESET_HALL, 4999, 5},        {PRESET_HALL, 9999, 10},
    {PRESET_HALL, 99999, 30}, {PRESET_HALL, UINT32_MAX, 60}, {PRESET_LOBBY, 500, 2},
    {PRESET_LOBBY, 2000, 5},  {PRESET_LOBBY, 10000, 10},     {PRESET_LOBBY, UINT32_MAX, 15},
};

/*
 * The nearer the turn the more often. Up to a quarter is taken off by place, so that a crowd that joined together does not ask
 * together; by place and not by chance, so that the same room always gives the same answers.
 */
static uint32_t poll_interval(const struct room *room, const struct standing *standing, uint32_t count)
{
    uint32_t poll_sec = clamp(standing->eta_sec / 5, POLL_MIN_SEC, TICKET_POLL_MAX_SEC);
    uint32_t scattered = count * 2654435761U >> 16;

    for (size_t i = 0; i < sizeof(poll_steps) / sizeof(poll_steps[0]); i++)
        if (poll_steps[i].preset == room->settings.preset &&
            standing->position - 1 <= poll_steps[i].most_ahead)
            return poll_steps[i].sec;
    return poll_sec - scattered % (poll_sec / 4 + 1);
}

static uint32_t seconds_since(const struct room *room, uint32_t then)
{
    return (room_now(room) - then) / 10;
}

/* Someone away would, on coming back, stand behind those who stand at lower places. */
static void look_waiting(const struct room *room, uint32_t count, const struct ticket *ticket,
                         struct standing *standing)
{
    uint32_t rank = line_rank(&room->line, &room->memory, count) + (ticket->state == TICKET_AWAY);

    must(rank > 0);
    standing->position = ticket->shown == 0 || rank < ticket->shown ? rank : ticket->shown;
    standing->waited_sec = seconds_since(room, ticket->joined);
    tell_eta(room, standing);
    standing->next_poll_sec = poll_interval(room, standing, count);
}

static void note_waiting(struct room *room, uint32_t count, struct ticket *ticket,
                         const struct standing *standing)
{
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    ticket->shown = standing->position;
    if ((ticket->flags & TICKET_LEAVING) != 0)
        record_ticket(room, count);
    ticket->flags &= ~TICKET_LEAVING;
    standing_expect(room, count, ticket, standing->next_poll_sec);
}

void standing_expect(struct room *room, uint32_t count, struct ticket *ticket, uint32_t poll_sec)
{
    uint32_t seen_ttl_sec = room->settings.seen_ttl_sec;

    if (seen_ttl_sec < 3 * poll_sec)
        seen_ttl_sec = 3 * poll_sec;
    if (poll_recorded(poll_sec) > poll_recorded(ticket->poll_sec))
        record_ticket(room, count);
    ticket->poll_sec = (uint8_t)poll_sec;
    line_set_deadline(&room->line, &room->memory, count, room_later(room, seen_ttl_sec));
}

static void look_called(const struct room *room, const struct ticket *ticket, struct standing *standing)
{
    standing->is_ready = true;
    standing->position = 1;
    standing->waited_sec = seconds_since(room, ticket->joined);
    standing->next_poll_sec = POLL_MIN_SEC;
}

/* While a called ticket is leaving, `shown` holds the deadline it had: a goodbye must not buy time. */
static void note_called(struct room *room, uint32_t count, struct ticket *ticket)
{
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    if ((ticket->flags & TICKET_LEAVING) != 0) {
        line_set_deadline(&room->line, &room->memory, count, ticket->shown);
        ticket->shown = 1;
        record_ticket(room, count);
    }
    ticket->flags &= ~TICKET_LEAVING;
}

static void begin_claim(struct room *room, uint32_t count, struct ticket *ticket)
{
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    ticket->flags |= TICKET_TOLD;
    record_ticket(room, count);
    line_set_deadline(&room->line, &room->memory, count, room_later(room, room->settings.claim_ttl_sec));
}

static void look_inside(const struct room *room, const struct ticket *ticket, struct standing *standing)
{
    const struct terms *terms = &room->terms[ticket->terms];

    standing->is_ready = true;
    standing->tier = (uint8_t)terms->tier;
    standing->waited_sec = ticket->iat_sec > ticket->issued_sec ? ticket->iat_sec - ticket->issued_sec : 0;
    standing->next_poll_sec = POLL_INSIDE_SEC;
    standing->iat_sec = ticket->iat_sec;
    standing->pass_key_id = ticket->pass_key_id;
    standing->pass_life_sec = terms->session_max_sec == 0 ? PASS_LIFE_SEC : terms->session_max_sec;
}

struct eta standing_eta_of_newcomer(const struct room *room)
{
    return eta_of(room, line_standing(&room->line) + 1, 0);
}

uint32_t standing_retry_after(const struct room *room, enum error error)
{
    uint32_t eta_sec = standing_eta_of_newcomer(room).sec;

    switch (error) {
    case ERROR_WAIT_TOO_LONG: /* when the line has become short enough, if nobody else joins */
        return clamp(eta_sec - room->settings.max_eta_sec, RETRY_MIN_SEC, RETRY_MAX_SEC);
    case ERROR_QUEUE_FULL: /* about when a hundredth of the line has been called */
        return clamp(eta_sec / 100, RETRY_MIN_SEC, RETRY_MAX_SEC);
    case ERROR_ROOM_CLOSED:
        return RETRY_CLOSED_SEC;
    default:
        return 0;
    }
}
