/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_MUST_H
#define WEIR_BASE_MUST_H

/*
 * What must hold, always checked, in production too. A broken invariant ends the process with what was expected:
 * a worker that dies is replaced and its half-done operation rolled back; a worker that goes on with a torn room
 * would tell people lies. Operating errors (bad input, no memory, no disk) are returned, never asserted.
 */

_Noreturn void must_fail(const char *expected, const char *file, int line);

#define must(expected)                                \
    do {                                              \
        if (__builtin_expect(!(expected), 0))         \
            must_fail(#expected, __FILE__, __LINE__); \
    } while (0)

#endif
