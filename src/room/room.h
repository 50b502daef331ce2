/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_ROOM_H
#define WEIR_ROOM_ROOM_H

/*
 * One waiting room as a state machine. It has no clock, no lock, no file and no randomness of its own: time comes in through
 * room_tick, memory as pages the owner puts into it, and everything a visitor is told comes out as a `struct standing`.
 *
 * Each function below is one operation: it takes effect as a whole or, when it returns an error, not at all. The caller
 * serialises operations on one room. If the process dies inside one, the next owner calls room_rollback before anything
 * else and finds the room as it was before that operation.
 *
 * Before each operation the room must own at least ROOM_SPARE_PAGES spare pages or as many as its owner could find
 * (memory_give, memory_take_back): an operation that finds none refuses with ERROR_QUEUE_FULL.
 */

#include "base/error.h"
#include "base/holder.h"
#include "base/span.h"
#include "room/follow.h"
#include "room/settings.h"
#include "room/ticket.h"

#include <stddef.h>
#include <stdint.h>

struct room;
struct memory;

#define ROOM_SPARE_PAGES 8

/* What a ticket says beside its place: with it a place that was lost can be given back. */
struct issue {
    bool is_known;
    bool is_trusted;
    uint8_t key_id;
    uint32_t sec; /* wall clock at join */
};

/* What a pass says beside its place: with it a session that was lost can be made anew. */
struct grant {
    bool is_known;
    uint8_t key_id;
    uint8_t tier;
    uint32_t sec; /* wall clock at enter */
};

/*
 * A place in a line, and whose: what a ticket or a pass names. Epoch 0, which no room has, means the ticket that this holder has:
 * for clients that come with nothing but their identity.
 */
struct place {
    uint32_t epoch;
    uint32_t count; /* from 1, dense within an epoch */
    struct holder holder;
    struct issue issue;
    struct grant grant;
};

/* What a visitor may be told about their ticket after an operation. */
struct standing {
    struct place place;
    enum ticket_state state;
    bool is_trusted;
    bool is_ready;  /* called, or already inside: an enter succeeds */
    bool is_repeat; /* join, enter: nothing new happened, this is what the first try did */
    uint8_t key_id; /* that signed the ticket */
    uint8_t tier;
    uint8_t pass_key_id; /* after enter */
    uint32_t issued_sec; /* wall clock at join, signed into the ticket */
    uint32_t position;   /* 1 = next; 0 after enter */
    uint32_t waited_sec;
    uint32_t eta_sec, eta_low_sec, eta_high_sec;
    uint32_t next_poll_sec;
    uint32_t iat_sec;        /* after enter: wall clock, signed into the pass */
    uint32_t pass_life_sec;  /* after enter: exp - iat */
    uint32_t arrive_ttl_sec; /* how long until the pass must first be seen at the gate */
};

/* An idempotency key: a keyed hash of room, operation, holder scope and key; and a hash of the request it came with. */
struct request_key {
    bool is_set;
    struct holder scope; /* uniform 96 bits */
    uint64_t body;
};

struct join {
    struct holder holder;
    bool is_trusted;
    uint8_t key_id;    /* that will sign the ticket */
    uint32_t wall_sec; /* time of issue */
    struct request_key request;
};

struct enter {
    struct place place;
    uint8_t key_id; /* that will sign the pass */
    uint32_t wall_sec;
    struct request_key request;
    /*
     * The pass takes somebody further: whoever the body of the key stands for. That happens once. They may repeat it for as long as
     * keys are kept; to anybody else, and later, it is ERROR_IDEMPOTENCY_CONFLICT.
     */
    bool spends;
};

struct figures {
    uint32_t epoch;
    uint64_t clock_ms;                /* the room's own time */
    uint64_t in_state[TICKET_STATES]; /* people by state; DONE counts all who ever were */
    uint64_t issued;                  /* tickets ever issued */
    uint64_t calls;
    uint64_t refunds;                    /* calls whose pace was given back: the called never came */
    uint64_t keys_dropped;               /* idempotency keys forgotten early because their table was full */
    uint32_t last_called;                /* highest count of this epoch ever called, 0 = none */
    uint32_t joined_milli, called_milli; /* per second over the last 10 s, in thousandths */
    uint32_t newcomer_eta_sec;           /* what somebody joining now would be told */
    uint64_t eta_checked,
        eta_kept;        /* of a sample: called, and called inside the band they were told at join */
    uint64_t rate_milli; /* the present pace: calls per second, in thousandths */
    enum follow_reason pace_reason;                              /* why it is what it is */
    uint32_t shop_time_ms, shop_target_ms, shop_failed_permille; /* what it follows; 0 = nothing */
    uint32_t settings_version;                                   /* counts changes of the settings */
    bool is_settings_from_api;
};

/* Bytes of a room itself; the owner gives that much zeroed memory, page-aligned, within the memory's zone. */
#define ROOM_BYTES (9 * 4096)

/*
 * Makes a room in `at`. `base` is the start of the zone that all its pages come from. `epoch` must be higher than that of any
 * room of this name before. `texts` may be NULL: there are none.
 */
struct room *room_init(void *at, void *base, struct span name, uint32_t epoch,
                       const struct settings *settings, const struct texts *texts);

/* How many of them this version of the code uses: another number is another layout. */
size_t room_bytes_used(void);

struct span room_name(const struct room *room);
struct memory *room_memory(struct room *room);
const struct settings *room_settings(const struct room *room);
const struct texts *room_texts(const struct room *room);

/*
 * Takes new settings, from the operator's API or from the configuration file; `texts` NULL: those stay. ERROR_INVALID_SETTING when too many different
 * session_max_sec and tier are in use at once.
 * A line that stands when the room is opened is called, as by a tick: operations of their own, after the settings took effect.
 */
enum error room_set_settings(struct room *room, const struct settings *settings, const struct texts *texts,
                             bool is_from_api);

/* What was seen of the shop; a room whose pace is fixed does not care. */
enum error room_shop(struct room *room, const struct shop_report *report);

/*
 * One ticket per holder: joining again returns the same. `retry_after_sec` is more than 0 with QUEUE_FULL, WAIT_TOO_LONG and
 * ROOM_CLOSED, else 0.
 */
enum error room_join(struct room *room, const struct join *join, struct standing *standing,
                     uint32_t *retry_after_sec);

/* Whether they have a ticket, which joining again would return. */
bool room_has_holder(const struct room *room, const struct holder *holder);

/* Tells where the ticket stands; being told counts as being seen. */
enum error room_status(struct room *room, const struct place *place, struct standing *standing);

/* Seen, and told nothing about their turn. */
enum error room_heartbeat(struct room *room, const struct place *place, struct standing *standing);

/*
 * Takes the turn; once inside, says the same again. ERROR_NOT_READY comes with the standing, and as after a status they were
 * seen: that much of it takes effect.
 */
enum error room_enter(struct room *room, const struct enter *enter, struct standing *standing);
enum error room_leave(struct room *room, const struct place *place);

/* Leaves after a grace of ROOM_LEAVE_GRACE_SEC unless the ticket is seen again. */
#define ROOM_LEAVE_GRACE_SEC 10
enum error room_leave_soon(struct room *room, const struct place *place);

/* At the gate: the first request arrives, later ones renew. A session that a loss took away is made anew where a slot is free. */
enum error room_session_touch(struct room *room, const struct place *place);
enum error room_session_end(struct room *room, const struct place *place);

/* It lasts so many seconds from now at least, seen or not; never beyond session_max_sec. */
enum error room_session_extend(struct room *room, const struct place *place, uint32_t seconds);

/* What status would say, without its being noticed. */
enum error room_look(const struct room *room, const struct place *place, struct standing *standing);

/*
 * The operator calls the next `count` people beyond the pace, never beyond max_active. Nothing is kept for those who join
 * later. `called` says how many were called at once; more than one tick's work follows with the next ticks.
 */
enum error room_advance(struct room *room, uint32_t count, uint32_t *called);

/* Everybody in line and inside is gone, as if they had never been; numbering goes on. */
enum error room_clear(struct room *room, uint32_t *cleared);

/* Everybody is gone, and every page becomes spare: the room can be made anew or given up. */
void room_dissolve(struct room *room);

/*
 * Advances the room's clock, ends what is over and calls whom the pace allows. Several bounded operations. To be called about
 * every ROOM_TICK_MS; of a longer pause one second counts at most.
 */
#define ROOM_TICK_MS 100
void room_tick(struct room *room, uint32_t elapsed_ms);

/* Nobody is in the room, its pace has nothing to regain, no key and no page waits to be given up: it need not be ticked. */
bool room_is_at_rest(const struct room *room);

struct figures room_figures(const struct room *room);

/* What a holder of the room's lock does first after its former owner died. */
void room_rollback(struct room *room);

/*
 * ---- what a journal needs ----
 *
 * From room_record on, every change leaves its bytes (record.h) in the room's outbox. After each operation the owner takes them
 * and calls room_outbox_taken; an owner that finds some left by one who died takes those first. An operation that consists of
 * many stops when the outbox is full, and room_has_more says so: room_tick with no time elapsed goes on with it.
 */

/* Begins to record; the outbox then says that the room was made. */
void room_record(struct room *room);

/* The same for a room that was brought back from a journal, which knows it already. */
void room_record_on(struct room *room);

struct span room_outbox(const struct room *room);
void room_outbox_taken(struct room *room);
bool room_has_more(const struct room *room);

/* Not every operation would find room in it: it must be taken first. */
bool room_outbox_is_full(const struct room *room);

/* The room, empty after room_dissolve, is given up: recorded, and known from then on by room_is_over. */
void room_end(struct room *room);
bool room_is_over(const struct room *room);

/* What the journal calls this room. */
uint32_t room_number(const struct room *room);

/*
 * Takes over what a record says (of this room's number), while nothing is recorded. One that the room knows already is
 * passed over, unless it comes from a snapshot. False: it cannot be read, or memory has ended (`is_full`).
 */
bool room_apply(struct room *room, struct span body, bool is_snapshot, bool *is_full);

/*
 * Spare pages that room_apply needs at most (record_pages): a record may hold 74 tickets, and bring back a page and two nodes for
 * each.
 */
#define ROOM_APPLY_PAGES 256

/* After the last record: everybody who is not known to be away or leaving gets a fresh time to be seen. */
void room_resume(struct room *room);

/*
 * A loss: tickets given after the last one known may be missing. Later ones get numbers of this new epoch, and whoever comes with
 * one of the missing gets their place back.
 */
void room_begin_epoch(struct room *room, uint32_t epoch);
uint32_t room_epoch(const struct room *room);

/* Enters may be missing too: nobody is called for arrive_ttl_sec, so that those inside are back before others take their slots. */
void room_freeze_calls(struct room *room);

/*
 * The room has no journal and may have been there before: passes given before `wall_sec` are of that time, and for
 * ROOM_RETURN_SEC, or session_ttl_sec if that is less, each makes its session anew, once.
 */
#define ROOM_RETURN_SEC 300
void room_had_former(struct room *room, uint32_t wall_sec);

/* Whether this is one of the missing: it is nothing until somebody comes with it, and must not be told that it is over. */
bool room_may_return(const struct room *room, const struct place *place);

/*
 * A snapshot, piece by piece, while the room goes on: first the room itself, then its tickets, then its keys. Writes the body of
 * one record into `out` and returns its length; `cursor` begins as {0}, and is done when `is_done` is set. Before the first piece
 * the outbox must have been taken: the change that it names is in it as a whole.
 */
struct room_cursor {
    uint32_t step, place;
    bool is_done;
};
#define ROOM_PIECE_BYTES 65536
size_t room_snapshot(const struct room *room, struct room_cursor *cursor,
                     unsigned char out[ROOM_PIECE_BYTES]);

/* Of everything that records keep; not of touch times and shown values. O(tickets). */
uint64_t room_hash(const struct room *room, uint64_t seed);

/*
 * Walks everything and aborts on any broken invariant. Returns how many pages the room holds, spare ones included.
 * For tests and for the rare recovery: O(tickets).
 */
uint32_t room_check(const struct room *room);

#endif
