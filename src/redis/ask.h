/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_ASK_H
#define WEIR_REDIS_ASK_H

/* From a call to the words of a script. The head of each file in lua/ says what its arguments are. */

#include "engine/engine.h"
#include "redis/chore.h"
#include "redis/follower.h"
#include "redis/resp.h"
#include "redis/script.h"

/* The keys of a room, which are these and `:{ROOM}` each; NULL behind the last. */
const char *ask_key(size_t place);

/* Whether there is a script for it. */
bool ask_has_script(enum engine_op op);

/* The registry of rooms: the only key that belongs to none, and has a slot of its own. */
#define ASK_REGISTRY "queue:rooms"

/* Rooms that one reply lists: what a reader takes (reader.h) is less than all that there may be. */
#define ASK_ROOMS_MAX 40000

/* The slot of the keys that it is about. */
uint16_t ask_call_slot(const struct engine_call *call);
uint16_t ask_chore_slot(const struct redis_chore *chore);

/* Whether calls of this kind that are about one room can be asked with one command: what people ask, not what an operator does. */
bool ask_may_gather(enum engine_op op);

/* How it is asked. */
struct ask {
    struct resp *resp;
    const struct script_names *names;
    const char *run_id; /* of the process that will run the script */
    bool is_whole;      /* with the script's text, for a server that does not know its name */
};

/* The words for these calls: one, or up to RESP_CALLS_MAX that may be gathered. */
void ask_calls(const struct ask *ask, const struct engine_call *const *calls, uint32_t count);

/* The same for a chore. */
void ask_chore(const struct ask *ask, const struct redis_chore *chore);

/* What a node has worked out of what a tick told. */
void ask_follow(const struct ask *ask, struct span room, const struct follower *follower);

/* The room named `former` as the process that keeps it. `is_moved`: that one keeps others still, and has lost nothing. */
void ask_renew(const struct ask *ask, struct span room, struct span former, bool is_moved);

#endif
