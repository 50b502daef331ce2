/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_TRANSPORT_H
#define WEIR_REDIS_TRANSPORT_H

/*
 * The way to a server, and back. Whoever has connections implements it: courier.c over a store, a blocking socket in a test.
 * Nothing above it knows how many servers there are.
 *
 * A command is written when it is known who will get it: scripts are told which process runs them, so that a room notices when
 * that is another one than before (lua/lib/room.lua).
 */

#include "base/span.h"
#include "redis/store.h"

struct redisReply;

enum command_end {
    COMMAND_ANSWERED,    /* `reply` is what the server says, an error perhaps; it is the transport's */
    COMMAND_UNSENT,      /* it did nothing, anywhere */
    COMMAND_UNKNOWN,     /* nobody knows whether it was carried out, or will be */
    COMMAND_UNCONFIRMED, /* it was carried out, and too few replicas have said in time that they know */
};

struct redis_command {
    uint16_t slot;     /* of the keys that it is about: decides which server of a cluster gets it */
    bool is_confirmed; /* answered only when so many replicas know it as the operator wants */
    bool needs_map;    /* `write` asks is_running: it is called when it is known who the primaries are */

    /* The command in RESP, for the server process of this run id: to be freed with free. NULL: no memory. */
    char *(*write)(struct redis_command *command, const char *run_id, size_t *len);

    /* Called once, perhaps before submit returns. */
    void (*done)(struct redis_command *command, enum command_end end, const struct redisReply *reply);

    /* the transport's own, until `done` */
    struct redis_command *next;
    char *bytes;
    struct redisReply *reply; /* that is held back */
    void *context;
    struct store_order order;
};

struct transport {
    /* Takes the command; commands of one slot and one kind of confirmation are carried out in the order they were submitted in. */
    void (*submit)(struct transport *transport, struct redis_command *command);

    /* Whether a primary is known to be this process: then it lost nothing, and what it kept has moved elsewhere. */
    bool (*is_running)(struct transport *transport, const char *run_id);
};

#endif
