/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_BYTES_H
#define WEIR_TOKEN_BYTES_H

/* Numbers in network order, as tokens carry them. */

#include <stdint.h>

static inline void bytes_put32(uint8_t *out, uint32_t number)
{
    out[0] = (uint8_t)(number >> 24);
    out[1] = (uint8_t)(number >> 16);
    out[2] = (uint8_t)(number >> 8);
    out[3] = (uint8_t)number;
}

static inline uint32_t bytes_get32(const uint8_t *in)
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
}

#endif
