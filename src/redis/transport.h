/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_TRANSPORT_H
#define WEIR_REDIS_TRANSPORT_H

/*
 * The way to a server, and back. Whoever has connections implements it: nginx in a worker, a blocking socket in a test. Nothing
 * above it knows how many servers there are.
 */

#include "base/span.h"

struct redisReply;

struct redis_command {
    struct span
        room; /* whose keys it is about: decides which server of a cluster gets it. Lives as long as the command */
    char *bytes; /* RESP; the sender's until `done` */
    size_t len;

    /* Called once. NULL: no reply came, and nobody knows whether the command was carried out. The reply is the transport's. */
    void (*done)(struct redis_command *command, const struct redisReply *reply);
};

struct transport {
    /* Takes the command; commands for one room are carried out in the order they were submitted in. */
    void (*submit)(struct transport *transport, struct redis_command *command);
};

#endif
