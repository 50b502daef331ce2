/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_DECIMAL_H
#define WEIR_BASE_DECIMAL_H

/* Numbers as people write them: digits, and a dot where there are decimals. */

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECIMAL_DIGITS_MAX 12 /* before the dot */

/*
 * The number that the whole text says, in units of its last decimal: "1.5" with three decimals is 1500. False for a sign, an
 * exponent, a separator, a dot without digits on both sides, more decimals than so many (7 at most) or too many digits.
 */
bool decimal_read(struct span text, size_t decimals, uint64_t *out);

#endif
