/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_REDIS_SERVER_H
#define WEIR_TESTS_REDIS_SERVER_H

/*
 * A real redis-server of a test's own, on a socket in a folder of its own, and the simplest way to it: one command at a time, and
 * its answer. It dies with the test, however that ends; nothing is left behind.
 */

#include "redis/transport.h"

#include <stdint.h>
#include <sys/types.h>

struct redisReply;
struct redisReader;

struct redis_server {
    struct transport transport; /* first */
    pid_t pid;
    int fd;
    struct redisReader *reader;
    char run_id[PEER_RUN_ID_MAX + 1];
    uint64_t commands; /* that came through the transport */
};

void redis_server_start(struct redis_server *server);
void redis_server_stop(struct redis_server *server);

/* A command as one would type it, formatted like hiredis does. To be freed with freeReplyObject. */
struct redisReply *redis_server_ask(struct redis_server *server, const char *format, ...);

/* The same where the answer is a number. */
long long redis_server_number(struct redis_server *server, const char *format, ...);

#endif
