/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_COURIER_H
#define WEIR_REDIS_COURIER_H

/*
 * A transport over a store: gives each command a deadline, waits with it until it is known who will run it, and confirms.
 *
 * A command that is to be confirmed travels on the lane of its own. Those of one turn and one server travel together, and behind
 * them one WAIT for `replicas` replicas: a configured number, never "those there are", for in the partition that this guards
 * against there are none. Their answers are told when it is answered. With 0 replicas there is nothing to wait for.
 */

#include "redis/transport.h"

struct courier_options {
    struct store *store; /* outlives it */
    uint64_t (*now_ms)(void);
    uint32_t timeout_ms; /* a command ends after this at the latest */
    uint32_t replicas;   /* that must know what is to be confirmed */
    uint32_t waiting_max; /* commands that wait for a server; what is beyond ends as COMMAND_UNSENT */
};

/* NULL: no memory. */
struct transport *courier_new(const struct courier_options *options);

/* Everything under way ends as COMMAND_UNSENT or COMMAND_UNKNOWN. Before the store is freed. */
void courier_free(struct transport *courier);

/* After store_turn, before the lines are written: sends what waited, asks for confirmation of what was sent since. */
void courier_turn(struct transport *courier);

/* When it wants a turn though nothing happens; UINT64_MAX: never. */
uint64_t courier_due_ms(const struct transport *courier);

/* Commands that are not done yet. */
uint32_t courier_under_way(const struct transport *courier);

#endif
