/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By hand rather than with strtod: that follows the locale, takes signs, exponents and `inf`, and a double cannot hold 1.15.
 * The digits are few enough that nothing overflows before the caller checks the range.
 */
#include "base/decimal.h"

#include "base/must.h"

static bool digits_read(struct span text, uint64_t *out);

bool decimal_read(struct span text, size_t decimals, uint64_t *out)
{
    const char *dot = text.len == 0 ? NULL : memchr(text.data, '.', text.len);
    struct span whole = {text.data, dot == NULL ? text.len : (size_t)(dot - text.data)};
    struct span rest = dot == NULL ? SPAN_NONE : (struct span){dot + 1, text.len - whole.len - 1};
    uint64_t number, part = 0;

    must(decimals <= 7);
    if (!digits_read(whole, &number))
        return false;
    if (dot != NULL && (rest.len > decimals || !digits_read(rest, &part)))
        return false;
    for (size_t i = 0; i < decimals; i++)
        number *= 10;
    for (size_t i = rest.len; i < decimals; i++)
        part *= 10;
    *out = number + part;
    return true;
}

static bool digits_read(struct span text, uint64_t *out)
{
    uint64_t number = 0;

    if (text.len == 0 || text.len > DECIMAL_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *out = number;
    return true;
}
