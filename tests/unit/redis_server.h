/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_REDIS_SERVER_H
#define WEIR_TESTS_REDIS_SERVER_H

/* The simplest way to a real server: one command at a time, and its answer. */

#include "redis/transport.h"
#include "redis_process.h"

struct redisReply;
struct redisReader;

struct redis_server {
    struct transport transport; /* first */
    struct redis_process process;
    int fd;
    struct redisReader *reader;
    char run_id[PEER_RUN_ID_MAX + 1];
    char neighbour[PEER_RUN_ID_MAX + 1]; /* a primary that is taken to be running, beside this one */
};

/* `options` as redis_process_start takes them. */
void redis_server_start(struct redis_server *server, const char *const *options);
void redis_server_stop(struct redis_server *server);

/* A command as one would type it, formatted like hiredis does. To be freed with freeReplyObject. */
struct redisReply *redis_server_ask(struct redis_server *server, const char *format, ...);

/* The same where the answer is a number. */
long long redis_server_number(struct redis_server *server, const char *format, ...);

#endif
