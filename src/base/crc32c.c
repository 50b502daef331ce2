/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 has had an instruction for this since 2008, eight bytes at a time; whether it is there is asked at run time, because
 * distributions build for processors without it. Everywhere else eight tables take eight bytes at a time.
 *
 * The tables are constants, so that nothing needs to be prepared before the first use, in any process or thread. A checksum
 * is linear: an entry is the sum (the exclusive or) of the entries of its single bits, and only those are written down.
 */
#include "base/crc32c.h"

#include "base/little.h"

#define ENTRIES1(sum, a)      (sum), (sum) ^ (a)
#define ENTRIES2(sum, b, ...) ENTRIES1(sum, __VA_ARGS__), ENTRIES1((sum) ^ (b), __VA_ARGS__)
#define ENTRIES3(sum, c, ...) ENTRIES2(sum, __VA_ARGS__), ENTRIES2((sum) ^ (c), __VA_ARGS__)
#define ENTRIES4(sum, d, ...) ENTRIES3(sum, __VA_ARGS__), ENTRIES3((sum) ^ (d), __VA_ARGS__)
#define ENTRIES5(sum, e, ...) ENTRIES4(sum, __VA_ARGS__), ENTRIES4((sum) ^ (e), __VA_ARGS__)
#define ENTRIES6(sum, f, ...) ENTRIES5(sum, __VA_ARGS__), ENTRIES5((sum) ^ (f), __VA_ARGS__)
#define ENTRIES7(sum, g, ...) ENTRIES6(sum, __VA_ARGS__), ENTRIES6((sum) ^ (g), __VA_ARGS__)
#define TABLE(h, ...)                                       \
    {                                                       \
        ENTRIES7(0U, __VA_ARGS__), ENTRIES7(h, __VA_ARGS__) \
    }

/* [n][byte]: what a byte becomes with n zero bytes behind it. Each row is that of the bits 7 to 0. */
static const uint32_t tables[8][256] = {
    TABLE(0x82f63b78, 0x417b1dbc, 0x20bd8ede, 0x105ec76f, 0x8ad958cf, 0xc79a971f, 0xe13b70f7, 0xf26b8303),
    TABLE(0xfbc3faf9, 0xff17c604, 0x7f8be302, 0x3fc5f181, 0x9d14c3b8, 0x4e8a61dc, 0x274530ee, 0x13a29877),
    TABLE(0x8b277743, 0xc76580d9, 0xe144fb14, 0x70a27d8a, 0x38513ec5, 0x9edea41a, 0x4f6f520d, 0xa541927e),
    TABLE(0x52a0c93f, 0xaba65fe7, 0xd725148b, 0xe964b13d, 0xf64463e6, 0x7b2231f3, 0xbf672381, 0xdd45aab8),
    TABLE(0x6ea2d55c, 0x37516aae, 0x1ba8b557, 0x8f2261d3, 0xc5670b91, 0xe045beb0, 0x7022df58, 0x38116fac),
    TABLE(0x1c08b7d6, 0x0e045beb, 0x85f4168d, 0xc00c303e, 0x6006181f, 0xb2f53777, 0xdb8ca0c3, 0xef306b19),
    TABLE(0xf56e0ef4, 0x7ab7077a, 0x3d5b83bd, 0x9c5bfaa6, 0x4e2dfd53, 0xa5e0c5d1, 0xd0065990, 0x68032cc8),
    TABLE(0x34019664, 0x1a00cb32, 0x0d006599, 0x847609b4, 0x423b04da, 0x211d826d, 0x9278fa4e, 0x493c7d27),
};

#ifdef __x86_64__
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_instruction(uint32_t seed, const void *data,
                                                                     size_t len)
{
    const unsigned char *in = data;
    uint64_t crc = ~seed;

    for (; len >= 8; len -= 8, in += 8)
        crc = _mm_crc32_u64(crc, little_get64(in));
    for (; len > 0; len--, in++)
        crc = _mm_crc32_u8((uint32_t)crc, *in);
    return ~(uint32_t)crc;
}

uint32_t crc32c(uint32_t seed, const void *data, size_t len)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_instruction(seed, data, len)
                                            : crc32c_portable(seed, data, len);
}

#else

uint32_t crc32c(uint32_t seed, const void *data, size_t len)
{
    return crc32c_portable(seed, data, len);
}

#endif

uint32_t crc32c_portable(uint32_t seed, const void *data, size_t len)
{
    const unsigned char *in = data;
    uint32_t crc = ~seed;

    for (; len >= 8; len -= 8, in += 8) {
        uint32_t low = crc ^ little_get32(in), high = little_get32(in + 4);
        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^
              tables[4][low >> 24] ^ tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^
              tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
    }
    for (; len > 0; len--, in++)
        crc = crc >> 8 ^ tables[0][(crc ^ *in) & 255];
    return ~crc;
}
