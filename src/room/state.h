/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_STATE_H
#define WEIR_ROOM_STATE_H

/* What a room consists of. Only for the files of this folder. */

#include "base/map.h"
#include "base/memory.h"
#include "base/room_id.h"
#include "room/estimate.h"
#include "room/keys.h"
#include "room/line.h"
#include "room/pace.h"
#include "room/room.h"

/*
 * What was promised to those who entered while a setting had a certain value. A pass says when it ends; repeated, it must say
 * the same although the setting has changed meanwhile.
 */
struct terms {
    uint32_t session_max_sec;
    uint32_t tier;
    uint32_t users; /* sessions that these terms hold for */
};

#define ROOM_TERMS 16

struct room {
    struct memory memory;
    char name[ROOM_ID_MAX];
    uint32_t name_len;
    uint32_t epoch;
    uint64_t clock_ms;
    struct settings settings;
    uint32_t settings_version; /* counts changes, so that nobody overwrites a change they have not seen */
    bool is_settings_from_api;
    struct pace pace;
    struct estimate estimate;
    uint32_t advance;                 /* calls the operator asked for beyond the pace */
    uint32_t last_called;             /* highest count ever called */
    uint32_t in_state[TICKET_STATES]; /* DONE aside: it is what is missing to line.last */
    uint64_t calls, refunds;
    uint32_t terms_now;
    struct terms terms[ROOM_TERMS];
    struct line line;
    struct map by_holder; /* living tickets */
    struct keys keys;

    /* What a clear left behind: freed page by page. */
    struct line dead_line;
    struct map dead_holders;
};

_Static_assert(sizeof(struct room) <= ROOM_BYTES, "a room fits the bytes it is given");

/* ---- moves.c: every change of a ticket's state ---- */

/*
 * Deciseconds of the room's clock. A time that begins now is counted from the one, rounded up; it is over when the other,
 * rounded down, has reached its end: so nobody's time is ever short.
 */
uint32_t room_now(const struct room *room);
uint32_t room_past(const struct room *room);

/* When a time of so many seconds that begins now is over; before LINE_NEVER, however long it is. */
uint32_t room_later(const struct room *room, uint32_t seconds);

/* The living ticket at this place, if it is this holder's. */
struct ticket *room_find(const struct room *room, const struct place *place);

struct map_owner room_holders(struct room *room);

enum error ticket_join(struct room *room, const struct join *join, uint32_t *count);
void ticket_return(struct room *room, uint32_t count, struct ticket *ticket);

/* On what ground somebody may be called now. */
enum call_ground {
    CALL_NOT,
    CALL_BY_PACE,  /* the pace pays for it */
    CALL_BY_ORDER, /* the operator asked for it */
    CALL_BY_OPEN,  /* the room is open */
};
void ticket_call(struct room *room, uint32_t count, struct ticket *ticket, enum call_ground ground);
void ticket_enter(struct room *room, uint32_t count, struct ticket *ticket, const struct enter *enter);
void ticket_arrive(struct room *room, uint32_t count, struct ticket *ticket);
void ticket_finish(struct room *room, uint32_t count, struct ticket *ticket);

/*
 * Everybody overdue on the page of `count`: who waited is away, the others are over. Several operations. Returns how many
 * are over: those cost the most.
 */
uint32_t tickets_expire(struct room *room, uint32_t count);

/* Who is to be called now, and on what ground; LINE_NONE if nobody is. */
uint32_t room_next_call(const struct room *room, enum call_ground *ground);

/* People called, entered and active. */
uint32_t room_slots_used(const struct room *room);

/* When a session that was just seen ends unless it is seen again. */
uint32_t session_deadline(const struct room *room, const struct ticket *ticket, uint32_t ttl_sec);

/* ---- standing.c: what people are told ---- */

/* Fills in everything. */
void standing_look(const struct room *room, uint32_t count, const struct ticket *ticket,
                   struct standing *standing);

/* The same, and notes that the holder was seen. */
void standing_see(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing);

/* The same, for an answer that says whether it is their turn: with the first that does, the time to claim begins. */
void standing_tell(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing);

/* They wait, were seen, and were told to ask again in `poll_sec`. The ticket's bytes must be kept already. */
void standing_expect(struct room *room, uint32_t count, struct ticket *ticket, uint32_t poll_sec);

/* For somebody who would join now. */
struct eta standing_eta_of_newcomer(const struct room *room);

/* When to come back, for those who cannot join now. */
uint32_t standing_retry_after(const struct room *room, enum error error);

#endif
