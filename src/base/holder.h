/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_HOLDER_H
#define WEIR_BASE_HOLDER_H

/*
 * Who holds a ticket: a keyed hash of their identity. Uniform and unforgeable, so that it serves as it is as the key of
 * a hash table, and says nothing about the person. 96 bits: among ten million people two alike happen once in 10^14 rooms.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct holder {
    uint8_t id[12];
};

static inline bool holder_equal(const struct holder *a, const struct holder *b)
{
    return memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

#endif
