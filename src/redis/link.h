/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_LINK_H
#define WEIR_REDIS_LINK_H

/*
 * The life of one connection to one server, as a state machine that its owner feeds with what happens:
 *
 *     RESTING ──► DIALING ──► GREETING ──► READY
 *        ▲───────────┴────────────┴──────────┘      lost: the next dial waits, each time longer and less up to a half by chance
 *
 * The owner has the socket, the clock and the timer. It dials and hangs up when link_wish says so, tells of each event, and after
 * each looks at link_wish, link_output and link_due_ms again. Commands that are sent in one turn of the owner lie in one buffer
 * and are written at once; replies come in the order of the commands.
 *
 * The greeting logs in (the password is asked for anew each time, so that a changed one is used), selects the database, names the
 * connection and asks who is there, and whether it has its data yet. READONLY is never sent: what a replica knows may be old, and
 * nothing is decided by it.
 *
 * How a command ended is told once, by its `done`. From inside it only link_send, link_forget, link_renew, link_keep_reply and
 * what just looks may be called.
 */

#include "redis/peer.h"
#include "redis/store_url.h"

#include <hiredis/hiredis.h>

#define LINK_NAME_MAX  64
#define LINK_REST_MS   100  /* after the first loss; doubled with each in a row, */
#define LINK_RESTS_MAX 6    /* so often */
#define LINK_SOUND_MS  1000 /* a connection that was ready for so long ends the row */

enum link_state { LINK_RESTING, LINK_DIALING, LINK_GREETING, LINK_READY };

enum link_wish {
    LINK_KEEP,    /* all is as it should be */
    LINK_DIAL,    /* begin to connect, and say so: link_dialing */
    LINK_HANG_UP, /* close the connection, and say so: link_closed */
};

enum link_outcome {
    LINK_ANSWERED, /* `reply` is what the server says, an error perhaps; the link frees it */
    LINK_UNSENT,   /* not a byte of it was given away: it did nothing and may be sent elsewhere; no reply */
    LINK_UNKNOWN, /* no answer in time, or the connection broke: it may have been done, or be done yet; no reply */
};

struct link_command {
    void (*done)(struct link_command *command, enum link_outcome outcome, const redisReply *reply);
    uint64_t deadline_ms;
    uint32_t replies_before; /* that do not count: 1 if ASKING stands before it in the same bytes */
    uint64_t number;         /* the link's own */
};

/* What the links of a server have in common. Must live as long as they do. */
struct link_options {
    const char *user; /* empty: the default user */
    /* Fills in the password: NULL, or a constant sentence why there is none. Nobody logs in if this is NULL itself. */
    const char *(*password)(void *context, struct store_text *out);
    void *context;
    uint32_t database;
    const char *name;   /* for CLIENT LIST: up to LINK_NAME_MAX visible characters */
    bool needs_primary; /* a replica is hung up on */
    uint32_t dial_ms;   /* to connect and greet */
    uint32_t
        silence_ms; /* something is in flight and nothing was heard for so long: the connection is dead */
    uint32_t in_flight_max;
    uint32_t out_bytes_max;
};

/* Counted from the beginning on. */
struct link_counts {
    uint64_t dials, losses;
    uint64_t sent, answered, late, refused; /* commands; those refused were not taken */
};

struct link;

/* `seed` is any number, and another one for each link. NULL: no memory. */
struct link *link_new(const struct link_options *options, uint64_t seed);

/* The connection must be closed (link_closed). Commands that wait for the first dial end. */
void link_free(struct link *link);

/* ---- what the owner does ---- */

enum link_wish link_wish(const struct link *link, uint64_t now_ms);

/* What is to be written: stays, and only grows, until link_sent; it may move (with TLS: SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER). */
struct span link_output(struct link *link);

/* When link_timer is to be called, or link_wish looked at again. */
uint64_t link_due_ms(const struct link *link);

/* ---- what happened ---- */

void link_dialing(struct link *link, uint64_t now_ms);
void link_connected(struct link *link, uint64_t now_ms); /* and TLS agreed on */
void link_sent(struct link *link, size_t bytes);
void link_received(struct link *link, struct span bytes, uint64_t now_ms);
/* By either side, or it could not be made: `why` is a constant sentence. After LINK_HANG_UP it changes nothing more. */
void link_closed(struct link *link, const char *why, uint64_t now_ms);
void link_timer(struct link *link, uint64_t now_ms);

/* ---- commands ---- */

/*
 * `bytes` is a whole command in RESP, or ASKING and one. False, and `done` will not be called: it rests after a loss, or as much is
 * in flight or waits to be written as may be. Until it is ready, commands wait: for their deadline at most.
 */
bool link_send(struct link *link, struct link_command *command, struct span bytes, uint64_t now_ms);

/* A command in flight that nobody waits for any more. Its `done` will not be called. */
void link_forget(struct link *link, struct link_command *command);

/* Inside a `done` with a reply, once: it is the caller's from now on, freed with freeReplyObject. */
redisReply *link_keep_reply(struct link *link);

/*
 * To begin anew (the server wants another password, or has become a replica): the connection is given up as soon as the link is
 * told something or its timer is called.
 */
void link_renew(struct link *link, const char *why);

/* ---- what it knows ---- */

enum link_state link_state(const struct link *link);

/* Whether the owner has a connection, or tries to get one. */
bool link_is_open(const struct link *link);

/* Who is there. Only while it is ready. */
const struct peer *link_peer(const struct link *link);

/* Why it was lost the last time: a constant sentence, never what a server wrote (which may quote a password). NULL: never. */
const char *link_trouble(const struct link *link);

uint32_t link_in_flight(const struct link *link);
struct link_counts link_counts(const struct link *link);

#endif
