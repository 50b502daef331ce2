/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_STORE_OWNER_H
#define WEIR_TESTS_STORE_OWNER_H

/* The owner of a store's sockets, as simple as can be: it waits where a server would turn to others. */

#include "redis/store.h"

uint64_t owner_clock_ms(void);

/* One turn of its event loop, of up to 100 ms. `after` comes between store_turn and the writing, or is NULL. */
void owner_turn(struct store *store, void (*after)(void));

void owner_close_lines(struct store *store);

#endif
