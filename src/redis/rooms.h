/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_ROOMS_H
#define WEIR_REDIS_ROOMS_H

/*
 * Rooms that a Redis keeps, as one worker sees them: calls in, commands out, answers back. It has no socket and no clock of its
 * own. What is submitted is sent with the next flush, in order; calls of a kind that can be asked together and follow one another
 * travel as one command.
 */

#include "engine/engine.h"
#include "redis/answer.h"
#include "redis/transport.h"

struct redis_rooms;

/* NULL: no memory. The transport must outlive it. */
struct redis_rooms *redis_rooms_new(struct transport *transport);

/* Nothing may be unanswered any more. */
void redis_rooms_free(struct redis_rooms *rooms);

/*
 * Any call but ENGINE_SHOP. Its `done` is called in or after the flush. The name of its room must live until
 * then.
 */
void redis_submit(struct redis_rooms *rooms, struct engine_call *call);

/* The same for a chore; the words that it brings must live until then. */
void redis_submit_chore(struct redis_rooms *rooms, struct redis_chore *chore);

/* At the end of each turn of the event loop in which something was asked or answered. */
void redis_gather(struct redis_rooms *rooms);

/* Now and then: nothing that was submitted waits any longer. */
void redis_flush(struct redis_rooms *rooms);

#endif
