/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_REDIS_H
#define WEIR_CLI_REDIS_H

/*
 * `weir redis check`: what is found out of each shard and each room, as JSON, and that for people. What a server does not tell, or
 * does not let us ask, is null.
 */

#include "cli/store_loop.h"

#include <jansson.h>

#define REDIS_REPLICAS_UNSAID UINT32_MAX

/* An array: one object a primary. `replicas` is what weir_store waits for, or REDIS_REPLICAS_UNSAID. */
json_t *redis_shards(struct store_loop *loop, uint32_t replicas);

/* An array: one object a room of the registry and of `named` (ids with commas between them, all valid; or NULL), by name. */
json_t *redis_rooms(struct store_loop *loop, const char *named);

void redis_print(const json_t *report);

/* ---- redis_reply.c: what a reply says; null or nothing for anything else ---- */

struct span redis_reply_text(const redisReply *reply);
json_t *redis_reply_number(const redisReply *reply);

/* Whole numbers in decimal, as INFO and hashes have them; null for anything else. */
json_t *redis_number(struct span text);

/* null where it is no UTF-8. */
json_t *redis_word(struct span text);

#endif
