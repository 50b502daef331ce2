/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_ANSWER_H
#define WEIR_REDIS_ANSWER_H

/*
 * From the reply of a script to the answer of a call. A server is not trusted to reply what the script returns: another version of
 * it may be at work. What does not have the right shape is ERROR_ENGINE_UNAVAILABLE.
 */

#include "engine/engine.h"
#include "redis/chore.h"
#include "redis/follower.h"

struct redisReply;

/* The server does not know the script: it must be given the text. */
bool answer_is_noscript(const struct redisReply *reply);

/*
 * Another process kept the room last: `former`, as lua/lib/room.lua says, if that can be a run id. It is the reply's. The room must
 * be renewed.
 */
bool answer_is_other_primary(const struct redisReply *reply, struct span *former);

/* Whether a room was renewed, or is none any more: what its people asked can be asked again. */
bool answer_is_renewed(const struct redisReply *reply);

/* Fills in `error` and what the calls' kind answers. NULL: no reply came. The calls are those that were asked together. */
void answer_calls(const struct redisReply *reply, struct engine_call *const *calls, uint32_t count);

void answer_chore(const struct redisReply *reply, struct redis_chore *chore);

/* What a tick, which could be read, says of the shop. False: its pace does not follow one, or nothing was done. */
bool answer_follow(const struct redisReply *reply, struct follower *follower);

#endif
