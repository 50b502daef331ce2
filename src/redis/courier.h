/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_COURIER_H
#define WEIR_REDIS_COURIER_H

/*
 * A transport over a store: gives each command a deadline and confirms.
 *
 * A command that is to be confirmed travels on the lane of its own. Those of one turn and one server travel together, and behind
 * them one WAIT for `replicas` replicas: a configured number, never "those there are", for in the partition that this guards
 * against there are none. Their answers are told when it is answered: what then is not known to so many replicas ends as
 * COMMAND_UNCONFIRMED, and may be sent again. It must write each time, also where it finds all done already: a WAIT is for all that
 * the server had done when the client's last write ended (until Redis 7.0: its last command). With 0 replicas there is nothing to
 * wait for.
 */

#include "redis/transport.h"

struct courier_options {
    struct store *store; /* outlives it */
    uint64_t (*now_ms)(void);
    uint32_t timeout_ms; /* a command ends after this at the latest; the store's silence_ms is longer */
    uint32_t replicas;   /* that must know what is to be confirmed */
};

/* NULL: no memory. */
struct transport *courier_new(const struct courier_options *options);

/* All lines of the store must be closed. What still waits ends. Before the store is freed. */
void courier_free(struct transport *transport);

/* After store_turn, before the lines are written: asks for confirmation of what was sent since, looks at deadlines. */
void courier_turn(struct transport *transport);

/* When it wants a turn though nothing happens; UINT64_MAX: never. */
uint64_t courier_due_ms(const struct transport *transport);

/* Why servers refused commands since this was asked last: the latest reason, a constant phrase. NULL: they did not. */
const char *courier_take_refusal(struct transport *transport);

/* Commands that are not done yet. */
uint32_t courier_under_way(const struct transport *transport);

#endif
