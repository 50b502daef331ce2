/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

/* Characters of UTF-8, one at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the valid UTF-8 character at `at`, 0 if there is none: overlong forms and surrogates are not (RFC
 * 3629).
 */
static inline size_t utf8_length(const char *at, const char *end)
{
    const uint8_t *byte = (const uint8_t *)at;
    size_t size = byte[0] < 0x80   ? 1
                  : byte[0] < 0xC2 ? 0
                  : byte[0] < 0xE0 ? 2
                  : byte[0] < 0xF0 ? 3
                  : byte[0] < 0xF5 ? 4
                                   : 0;
    if (size == 0 || (size_t)(end - at) < size)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((byte[i] & 0xC0) != 0x80)
            return 0;
    bool is_overlong = (byte[0] == 0xE0 && byte[1] < 0xA0) || (byte[0] == 0xF0 && byte[1] < 0x90);
    bool is_surrogate = byte[0] == 0xED && byte[1] > 0x9F;
    bool is_past_end = byte[0] == 0xF4 && byte[1] > 0x8F;
    return is_overlong || is_surrogate || is_past_end ? 0 : size;
}

/* The character that a valid form of so many bytes stands for. */
static inline uint32_t utf8_decode(const char *at, size_t bytes)
{
    static const uint8_t of_first[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    const uint8_t *byte = (const uint8_t *)at;
    uint32_t character = byte[0] & of_first[bytes];

    for (size_t i = 1; i < bytes; i++)
        character = character << 6 | (byte[i] & 63);
    return character;
}

#endif
