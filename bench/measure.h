/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BENCH_MEASURE_H
#define WEIR_BENCH_MEASURE_H

/* What every benchmark of plain C needs. */

#include <stdint.h>
#include <time.h>

/* The same numbers in every run. */
static inline uint64_t random_next(void)
{
    static uint64_t state = 88172645463325252ULL;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Of the processor, not of the wall: what others do on the machine is not our cost. */
static inline double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

#endif
