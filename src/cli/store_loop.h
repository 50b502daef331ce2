/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_STORE_LOOP_H
#define WEIR_CLI_STORE_LOOP_H

/*
 * The servers of a store, asked by a command: the same state machines as in nginx (redis/store.h), with sockets of their own. It
 * waits: a command has nothing else to do. Finding the servers, and each round of questions, ends after STORE_LOOP_MS.
 */

#include "redis/store.h"

#include <stddef.h>

#define STORE_LOOP_MS 10000

struct store_question {
    redisReply *reply; /* NULL: nobody answered */

    /* the loop's own */
    struct store_order order;
    char *bytes;
    struct store_loop *loop;
};

struct store_loop;

/* `url` must live as long. NULL: `why` is then one sentence. */
struct store_loop *store_loop_new(const struct store_url *url, const char **why);
void store_loop_free(struct store_loop *loop);

/* Until it is known who keeps what, and all of them were reached or not. NULL, or why nothing is known: a constant sentence. */
const char *store_loop_find(struct store_loop *loop);

const struct store *store_loop_store(const struct store_loop *loop);

/* The process at this primary; NULL where nobody could be reached, and `why` then says it. */
const struct peer *store_loop_peer(const struct store_loop *loop, const struct address *address,
                                   const char **why);

/* A command as hiredis formats it, for whoever keeps the slot. */
void store_question_write(struct store_question *question, uint16_t slot, const char *format, ...);

/* All of them at once; back when the last is answered, or time is over. Whoever could not be reached is not waited for. */
void store_loop_ask(struct store_loop *loop, struct store_question *questions, size_t count);

/* Frees what they hold. */
void store_questions_free(struct store_question *questions, size_t count);

#endif
