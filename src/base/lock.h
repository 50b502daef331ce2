/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_LOCK_H
#define WEIR_BASE_LOCK_H

/*
 * A lock in memory that several processes share, and that does not stay behind with the one who died holding it: the next one
 * gets it and is told so.
 */

#include <pthread.h>
#include <stdbool.h>

void lock_init(pthread_mutex_t *lock);

/* Waits for it. True: its last owner died holding it, and what it protects may be half changed. */
bool lock_take(pthread_mutex_t *lock);

/* False: somebody holds it. A dead owner is passed over in silence: for what is whole at every instruction. */
bool lock_try(pthread_mutex_t *lock);

void lock_release(pthread_mutex_t *lock);

#endif
