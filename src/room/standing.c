/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What people are told. Telling is an event too: who asks is there, and who was told that it is their turn has been promised
 * that an enter succeeds.
 */

#include "base/must.h"
#include "room/state.h"

#define POLL_MIN_SEC    1
#define POLL_MAX_SEC    60
#define POLL_INSIDE_SEC 30
#define PASS_LIFE_SEC   (12 * 60 * 60) /* of a pass whose session has no longest time */

static void tell_waiting(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing);
static void tell_called(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing);
static void tell_inside(const struct room *room, const struct ticket *ticket, struct standing *standing);

void standing_tell(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing)
{
    if (ticket->state == TICKET_AWAY)
        ticket_return(room, count, ticket);

    *standing = (struct standing){
        .place = {room->epoch, count, ticket->holder},
        .state = ticket->state,
        .is_trusted = (ticket->flags & TICKET_TRUSTED) != 0,
        .key_id = ticket->key_id,
        .tier = (uint8_t)room->settings.tier,
        .issued_sec = ticket->issued_sec,
        .arrive_ttl_sec = room->settings.arrive_ttl_sec,
    };
    if (ticket->state == TICKET_WAITING)
        tell_waiting(room, count, ticket, standing);
    else if (ticket->state == TICKET_CALLED)
        tell_called(room, count, ticket, standing);
    else
        tell_inside(room, ticket, standing);
}

static uint32_t clamp(uint32_t value, uint32_t lowest, uint32_t highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

/* From the configured pace: as many calls as people up to and including this one. */
static void tell_eta(const struct room *room, uint32_t waited_sec, struct standing *standing)
{
    uint32_t eta_sec = pace_seconds(&room->settings, standing->position);
    uint32_t least_sec =
        room->settings.min_wait_sec > waited_sec ? room->settings.min_wait_sec - waited_sec : 0;

    if (eta_sec < least_sec)
        eta_sec = least_sec;
    standing->eta_sec = eta_sec;
    standing->eta_low_sec = eta_sec - eta_sec / 4;
    standing->eta_high_sec = eta_sec + (eta_sec < UINT32_MAX / 4 ? eta_sec / 2 + 1 : 0);
}

/*
 * The nearer the turn the more often. A little is added by place, so that a crowd that joined together does not ask
 * together; by place and not by chance, so that the same room always gives the same answers.
 */
static uint32_t poll_interval(uint32_t eta_sec, uint32_t count)
{
    uint32_t poll_sec = clamp(eta_sec / 5, POLL_MIN_SEC, POLL_MAX_SEC);
    uint32_t scattered = count * 2654435761U >> 16;

    return clamp(poll_sec + scattered % (poll_sec / 8 + 1), POLL_MIN_SEC, POLL_MAX_SEC);
}

static uint32_t seconds_since(const struct room *room, uint32_t then)
{
    return (room_now(room) - then) / 10;
}

static void tell_waiting(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing)
{
    uint32_t rank = line_rank(&room->line, &room->memory, count);
    uint32_t seen_ttl_sec = room->settings.seen_ttl_sec;

    must(rank > 0);
    standing->position = ticket->shown == 0 || rank < ticket->shown ? rank : ticket->shown;
    standing->waited_sec = seconds_since(room, ticket->joined);
    tell_eta(room, standing->waited_sec, standing);
    standing->next_poll_sec = poll_interval(standing->eta_sec, count);
    if (seen_ttl_sec < 3 * standing->next_poll_sec)
        seen_ttl_sec = 3 * standing->next_poll_sec;

    memory_keep(&room->memory, ticket, sizeof(*ticket));
    ticket->shown = standing->position;
    ticket->poll_sec = (uint8_t)standing->next_poll_sec;
    ticket->flags &= ~TICKET_LEAVING;
    line_set_deadline(&room->line, &room->memory, count, room_now(room) + seen_ttl_sec * 10);
}

/* While a called ticket is leaving, `shown` holds the deadline it had: a goodbye must not buy time. */
static void tell_called(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing)
{
    standing->is_ready = true;
    standing->position = 1;
    standing->waited_sec = seconds_since(room, ticket->joined);
    standing->next_poll_sec = POLL_MIN_SEC;

    memory_keep(&room->memory, ticket, sizeof(*ticket));
    if ((ticket->flags & TICKET_LEAVING) != 0) {
        line_set_deadline(&room->line, &room->memory, count, ticket->shown);
        ticket->shown = 1;
    }
    if ((ticket->flags & TICKET_TOLD) == 0)
        line_set_deadline(&room->line, &room->memory, count,
                          room_now(room) + room->settings.claim_ttl_sec * 10);
    ticket->flags = (ticket->flags & ~TICKET_LEAVING) | TICKET_TOLD;
}

static void tell_inside(const struct room *room, const struct ticket *ticket, struct standing *standing)
{
    uint32_t session_max_sec = room->terms[ticket->terms].session_max_sec;

    standing->is_ready = true;
    standing->waited_sec = ticket->iat_sec > ticket->issued_sec ? ticket->iat_sec - ticket->issued_sec : 0;
    standing->next_poll_sec = POLL_INSIDE_SEC;
    standing->iat_sec = ticket->iat_sec;
    standing->pass_key_id = ticket->pass_key_id;
    standing->pass_life_sec = session_max_sec == 0 ? PASS_LIFE_SEC : session_max_sec;
}

uint32_t standing_retry_after(const struct room *room)
{
    /* About when a hundredth of the line has been called. */
    return clamp(pace_seconds(&room->settings, line_standing(&room->line) / 100 + 1), 5, 120);
}
