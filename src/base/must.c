/* SPDX-License-Identifier: BSD-2-Clause */

/* Straight to stderr, which nginx leaves pointed at its log: nothing of the broken process is asked for help. */

#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void must_fail(const char *expected, const char *file, int line)
{
    fprintf(stderr, "weir: broken invariant at %s:%d: expected %s\n", file, line, expected);
    abort();
}
