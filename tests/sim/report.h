/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_SIM_REPORT_H
#define WEIR_SIM_REPORT_H

/* Which run is under way, and how it says that something is wrong. */

#include <stdbool.h>
#include <stdint.h>

struct run {
    uint64_t seed;
    uint32_t event; /* the one under way */
    bool is_traced;
};

extern struct run *run;

/* A promise was broken: prints seed, event and what was found, and ends the process with status 1. */
_Noreturn void violated(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line of the story, if it is to be told. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
