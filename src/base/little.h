/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_LITTLE_H
#define WEIR_BASE_LITTLE_H

/* Little-endian numbers at any address, on any machine. Compilers make one instruction of each. */

#include <stdint.h>

static inline uint16_t little_get16(const void *at)
{
    const unsigned char *in = at;
    return (uint16_t)(in[0] | in[1] << 8);
}

static inline uint32_t little_get32(const void *at)
{
    const unsigned char *in = at;
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static inline uint64_t little_get64(const void *at)
{
    const unsigned char *in = at;
    return little_get32(in) | (uint64_t)little_get32(in + 4) << 32;
}

static inline void little_put16(void *at, uint16_t number)
{
    unsigned char *out = at;
    out[0] = (unsigned char)number;
    out[1] = (unsigned char)(number >> 8);
}

static inline void little_put32(void *at, uint32_t number)
{
    unsigned char *out = at;
    out[0] = (unsigned char)number;
    out[1] = (unsigned char)(number >> 8);
    out[2] = (unsigned char)(number >> 16);
    out[3] = (unsigned char)(number >> 24);
}

static inline void little_put64(void *at, uint64_t number)
{
    unsigned char *out = at;
    little_put32(out, (uint32_t)number);
    little_put32(out + 4, (uint32_t)(number >> 32));
}

#endif
