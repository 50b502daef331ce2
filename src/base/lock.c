/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Robust process-shared mutexes: the kernel itself passes the lock of a dead process on. Whatever else can go wrong with one is
 * a broken invariant.
 */

#include "base/lock.h"

#include "base/must.h"

#include <errno.h>

void lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;

    must(pthread_mutexattr_init(&attributes) == 0);
    must(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
    must(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    must(pthread_mutex_init(lock, &attributes) == 0);
    must(pthread_mutexattr_destroy(&attributes) == 0);
}

/* Whether the lock that is now ours was a dead one's. */
static bool is_inherited(pthread_mutex_t *lock, int error)
{
    must(error == 0 || error == EOWNERDEAD);
    if (error == EOWNERDEAD)
        must(pthread_mutex_consistent(lock) == 0);
    return error == EOWNERDEAD;
}

bool lock_take(pthread_mutex_t *lock)
{
    return is_inherited(lock, pthread_mutex_lock(lock));
}

bool lock_try(pthread_mutex_t *lock)
{
    int error = pthread_mutex_trylock(lock);

    if (error == EBUSY)
        return false;
    (void)is_inherited(lock, error);
    return true;
}

void lock_release(pthread_mutex_t *lock)
{
    must(pthread_mutex_unlock(lock) == 0);
}
