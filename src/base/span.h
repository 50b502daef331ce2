/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_SPAN_H
#define WEIR_BASE_SPAN_H

/* A run of bytes that somebody else owns. Not NUL-terminated; may hold any byte. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *data;
    size_t len;
};

#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})
#define SPAN_NONE     ((struct span){NULL, 0})

static inline struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#endif
