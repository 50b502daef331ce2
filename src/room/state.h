/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_STATE_H
#define WEIR_ROOM_STATE_H

/* What a room consists of. Only for the files of this folder. */

#include "base/map.h"
#include "base/memory.h"
#include "room/keys.h"
#include "room/line.h"
#include "room/pace.h"
#include "room/room.h"

#define ROOM_NAME_MAX 64

/*
 * What was promised to those who entered while a setting had a certain value. A pass says when it ends; repeated, it must say
 * the same although the setting has changed meanwhile.
 */
struct terms {
    uint32_t session_max_sec;
    uint32_t users; /* sessions that these terms hold for */
};

#define ROOM_TERMS 16

struct room {
    struct memory memory;
    char name[ROOM_NAME_MAX];
    uint32_t name_len;
    uint32_t epoch;
    uint64_t clock_ms;
    struct settings settings;
    struct pace pace;
    uint32_t in_state[TICKET_STATES]; /* DONE aside: it is what is missing to line.last */
    uint64_t calls, refunds;
    uint32_t terms_now;
    struct terms terms[ROOM_TERMS];
    struct line line;
    struct map by_holder; /* living tickets */
    struct keys keys;
};

_Static_assert(sizeof(struct room) <= ROOM_BYTES, "a room fits the bytes it is given");

/* ---- moves.c: every change of a ticket's state ---- */

/* Deciseconds of the room's clock, rounded up, so that nobody's time is ever short. */
uint32_t room_now(const struct room *room);

/* The living ticket at this place, if it is this holder's. */
struct ticket *room_find(const struct room *room, const struct place *place);

struct map_owner room_holders(struct room *room);

enum error ticket_join(struct room *room, const struct join *join, uint32_t *count);
void ticket_return(struct room *room, uint32_t count, struct ticket *ticket);
void ticket_call(struct room *room, uint32_t count, struct ticket *ticket);
void ticket_enter(struct room *room, uint32_t count, struct ticket *ticket, const struct enter *enter);
void ticket_arrive(struct room *room, uint32_t count, struct ticket *ticket);
void ticket_finish(struct room *room, uint32_t count, struct ticket *ticket);

/*
 * Everybody overdue on the page of `count`: who waited is away, the others are over. Several operations. Returns how many
 * are over: those cost the most.
 */
uint32_t tickets_expire(struct room *room, uint32_t count);

/* Whether the first in line may be called now; LINE_NONE or their count. */
uint32_t room_next_call(const struct room *room);

/* When a session that was just seen ends unless it is seen again. */
uint32_t session_deadline(const struct room *room, const struct ticket *ticket, uint32_t ttl_sec);

/* ---- standing.c: what people are told ---- */

/* Fills in everything, and notes that the holder was seen and told. */
void standing_tell(struct room *room, uint32_t count, struct ticket *ticket, struct standing *standing);

/* When to come back, for those who cannot join now. */
uint32_t standing_retry_after(const struct room *room);

#endif
