/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_ASK_H
#define WEIR_REDIS_ASK_H

/* From a call to the words of a script. The head of each file in lua/ says what its arguments are. */

#include "engine/engine.h"
#include "redis/chore.h"
#include "redis/resp.h"
#include "redis/script.h"

/* Whether there is a script for it. */
bool ask_has_script(enum engine_op op);
bool ask_has_chore(enum redis_chore_kind kind);

/* Whether calls of this kind that are about one room can be asked with one command: what people ask, not what an operator does. */
bool ask_may_gather(enum engine_op op);

/*
 * The words for these calls: one, or up to RESP_CALLS_MAX that may be gathered. They begin with the script's name, or with its
 * whole text for a server that does not know it.
 */
void ask_calls(struct resp *resp, const struct script_names *names, const struct engine_call *const *calls,
               uint32_t count, bool is_whole);

/* The same for a chore. */
void ask_chore(struct resp *resp, const struct script_names *names, const struct redis_chore *chore,
               bool is_whole);

#endif
