/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_ASCII_H
#define WEIR_BASE_ASCII_H

/* Kinds of characters, spelled out: isalnum() and its like follow the locale of whoever started the process. */

#include "base/span.h"

#include <stdbool.h>

static inline bool ascii_is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Printable, and no space. */
static inline bool ascii_is_visible(char c)
{
    return c >= '!' && c <= '~';
}

static inline bool ascii_all_visible(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!ascii_is_visible(text.data[i]))
            return false;
    return true;
}

#endif
