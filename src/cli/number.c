/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole numbers of small units, written by hand rather than with printf's ' flag, which follows the locale; and a double
 * cannot hold 1.15. A planner that shows 43,477 where the paper says 43,478 is not believed.
 */
#include "cli/number.h"

#include "base/decimal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static char *decimal_write(uint64_t number, size_t decimals, char out[NUMBER_TEXT_MAX]);

bool number_read_whole(const char *text, uint64_t *out)
{
    return decimal_read(span_of(text), 0, out);
}

bool number_read_milli(const char *text, uint64_t *out)
{
    return decimal_read(span_of(text), 3, out);
}

bool number_read_share(const char *text, uint64_t *out)
{
    size_t len = strlen(text);

    if (len > 0 && text[len - 1] == '%')
        return decimal_read((struct span){text, len - 1}, 3, out);
    return decimal_read(span_of(text), 5, out) && *out <= SHARE_WHOLE;
}

char *number_group(uint64_t number, char out[NUMBER_TEXT_MAX])
{
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, number), at = 0;

    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

char *number_milli(uint64_t milli, char out[NUMBER_TEXT_MAX])
{
    return decimal_write(milli, 3, out);
}

char *number_share(uint64_t share, char out[NUMBER_TEXT_MAX])
{
    size_t len = strlen(decimal_write(share, 3, out));

    snprintf(out + len, NUMBER_TEXT_MAX - len, "%%");
    return out;
}

char *number_fraction(uint64_t share, char out[NUMBER_TEXT_MAX])
{
    return decimal_write(share, 5, out);
}

char *number_duration(uint64_t seconds, char out[NUMBER_TEXT_MAX])
{
    const uint64_t minute = 60, hour = 3600, day = 86400;

    if (seconds < minute)
        snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 " s", seconds);
    else if (seconds < hour && seconds % minute == 0)
        snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 " min", seconds / minute);
    else if (seconds < hour)
        snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 " min %02" PRIu64 " s", seconds / minute, seconds % minute);
    else if (seconds < day)
        snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 " h %02" PRIu64 " min", seconds / hour,
                 seconds % hour / minute);
    else
        snprintf(out, NUMBER_TEXT_MAX, "%" PRIu64 " d %" PRIu64 " h", seconds / day, seconds % day / hour);
    return out;
}

static char *decimal_write(uint64_t number, size_t decimals, char out[NUMBER_TEXT_MAX])
{
    uint64_t scale = 1;
    size_t len;

    for (size_t i = 0; i < decimals; i++)
        scale *= 10;
    number_group(number / scale, out);
    if (number % scale == 0)
        return out;
    len = strlen(out);
    snprintf(out + len, NUMBER_TEXT_MAX - len, ".%0*" PRIu64, (int)decimals, number % scale);
    for (len = strlen(out); out[len - 1] == '0'; len--)
        out[len - 1] = '\0';
    return out;
}
