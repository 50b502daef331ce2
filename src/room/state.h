/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_STATE_H
#define WEIR_ROOM_STATE_H

/* What a room consists of. Only for the files of this folder. */

#include "base/map.h"
#include "base/memory.h"
#include "base/room_id.h"
#include "room/estimate.h"
#include "room/follow.h"
#include "room/keys.h"
#include "room/line.h"
#include "room/pace.h"
#include "room/record.h"
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

/*
 * Where the counts of an epoch lie in the line: count c stands at place base + c. Between two epochs places are left free, for
 * those whom a loss took away and who come back.
 */
struct epoch {
    uint32_t epoch;
    uint32_t base;
    uint32_t lost_from; /* counts from here on were lost if the line does not know them; 0 = none were */
};

#define ROOM_EPOCHS    64
#define EPOCH_DISTANCE (1U << 22) /* more tickets than any disk could lose at once */

/*
 * The record of what changed since the outbox was last taken: one record, whose last part is always the room's face. What
 * is written behind `used` counts only when the operation is committed.
 *
 * It holds the settings of a new room twice: as it was made, and as the configuration file then gives them. Longer operations stop
 * long before it is full.
 */
#define OUTBOX_BYTES (9 * 1024)
#define OUTBOX_STOP  4096

struct outbox {
    uint32_t used;
    /* of the operation under way */
    uint32_t at;      /* 0 = nothing written yet */
    uint32_t touched; /* place of the ticket that it changes */
    bool has_face;    /* to be recorded also if nothing else is */
    bool is_cut;      /* a longer operation stopped because the outbox is full */
    _Alignas(8) unsigned char bytes[OUTBOX_BYTES];
};

struct room {
    struct memory memory;
    char name[ROOM_ID_MAX];
    uint32_t name_len;
    uint32_t number; /* what the journal calls it */
    uint32_t epochs;
    struct epoch epoch[ROOM_EPOCHS]; /* the last is the present one */
    uint64_t clock_ms;
    struct settings settings;
    struct texts texts;
    uint32_t settings_version; /* counts changes, so that nobody overwrites a change they have not seen */
    bool is_settings_from_api;
    struct settings
        paced; /* the same, but for the rate if that follows the shop: what pace and estimate go by */
    struct pace pace;
    struct follow follow;
    struct estimate estimate;
    uint32_t advance;                 /* calls the operator asked for beyond the pace */
    uint32_t last_called;             /* highest place ever called */
    uint32_t in_state[TICKET_STATES]; /* DONE aside: it is what is missing to `issued` */
    uint64_t issued, calls, refunds;
    uint32_t terms_now;
    struct terms terms[ROOM_TERMS];
    struct line line;
    struct map by_holder; /* living tickets */
    struct keys keys;

    uint64_t calls_from_ms;    /* of the room's clock: the pace calls nobody before */
    uint64_t returns_until_ms; /* and until then sessions of a former room are made anew */
    uint32_t former_sec;       /* wall clock: passes given before are of a former room; 0 = there was none */

    /* What a clear left behind: freed page by page. */
    struct line dead_line;
    struct map dead_holders;

    bool is_recorded, is_over;
    uint64_t change;      /* number of the last record */
    uint64_t recorded_ms; /* what the room's clock was in it */
    uint32_t expected;    /* tickets, while a snapshot is read */
    struct outbox outbox;
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

/*
 * The living ticket that somebody means who names this place, and where it stands; NULL if there is none. It is another than
 * named if that was lost and its holder has come back to an older place.
 */
struct ticket *room_find(const struct room *room, const struct place *place, uint32_t *count);

/* The same; a place that was lost is given back. ERROR_TOKEN_NOT_FOUND, or ERROR_ENGINE_UNAVAILABLE: no page is spare. */
enum error room_meet(struct room *room, const struct place *place, uint32_t *count, struct ticket **ticket);

/* The living ticket of this holder, or NULL. */
struct ticket *room_held_by(const struct room *room, const struct holder *holder, uint32_t *count);

/* What the place at this count of the line is called. */
struct place room_place(const struct room *room, uint32_t count, const struct holder *holder);

struct map_owner room_holders(const struct room *room);

enum error ticket_join(struct room *room, const struct join *join, uint32_t *count);

/* A place that was just made, whoever stands there: it waits. The ticket's bytes must be kept already. */
void ticket_begin(struct room *room, uint32_t count, struct ticket *ticket);
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

/* Whoever queued or was called is inside, as the pass says: they were before. Neither pace nor order is asked. */
void ticket_come_back(struct room *room, uint32_t count, struct ticket *ticket, const struct grant *grant);

/*
 * Everybody overdue on the page of `count`: who waited is away, the others are over. Several operations. Returns how many
 * are over: those cost the most.
 */
uint32_t tickets_expire(struct room *room, uint32_t count);

/* For how long the pace calls nobody: after a loss, or while a breaker leaves the shop alone. */
uint64_t room_frozen_ms(const struct room *room);

/* Who is to be called now, and on what ground; LINE_NONE if nobody is. */
uint32_t room_next_call(const struct room *room, enum call_ground *ground);

/* What of the pace follows from new settings alone: begins anew. */
void room_begin_pace(struct room *room);

/* People called, entered and active; and whether another may be. */
uint32_t room_slots_used(const struct room *room);
bool room_has_slot(const struct room *room);

/* When a session that was just seen ends unless it is seen again; and so that it keeps what the shop gave it. */
uint32_t session_renewed(const struct room *room, const struct ticket *ticket);
uint32_t session_deadline(const struct room *room, const struct ticket *ticket, uint32_t ttl_sec);

/* ---- record.c: what a journal is told ---- */

/* The ticket there changes in this operation; one an operation. */
void record_ticket(struct room *room, uint32_t count);

/* The place is used up: of another than the ticket that changes. */
void record_gone(struct room *room, uint32_t count);

/* Other parts, written at once. */
void record_part(struct room *room, enum part_kind kind, struct span a, struct span b);
void record_settings(struct room *room);
void record_epochs(struct room *room);

/* The room's own figures change. */
void record_face(struct room *room);

/* Less is left than an operation on one ticket may need: longer ones stop here. */
bool record_is_full(struct room *room);

/* The end of every operation. */
void room_commit(struct room *room);

/* ---- places.c ---- */

/* The epoch whose counts stand at this place. */
const struct epoch *epoch_at(const struct room *room, uint32_t count);

/* Whether a place that the line does not know was lost there. */
bool is_lost_place(const struct room *room, uint32_t count);

/* Frees a page of which nothing needs to be remembered any more; false when there is none. An operation each. */
bool room_forget_far(struct room *room);

/* ---- returns.c: sessions that were lost ---- */

/* The session of a pass that a former room gave, made anew before; NULL if it was not, or is over. */
struct ticket *former_find(const struct room *room, const struct place *place, uint32_t *count);

/* Makes the session of a pass anew, as ENTERED, if a loss took it; ERROR_TOKEN_NOT_FOUND if not, or if no slot is free. */
enum error session_return(struct room *room, const struct place *place, uint32_t *count,
                          struct ticket **ticket);

/* Sees to it that the pass of a former room makes no session. False: it is none, or no page is spare. */
bool former_close(struct room *room, const struct place *place);

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
