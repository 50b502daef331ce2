/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenSSL's own base64 knows neither this alphabet nor a text without padding, and it skips white space: two
 * texts would then stand for one token. Hence these few lines. Every character is looked up in one table, and
 * the bad ones are gathered with an OR, so that a long token is refused or taken in one pass without a branch
 * per character.
 */
#include "base/base64url.h"

#include "base/must.h"

static const char alphabet[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#define BAD 0x80

/* The value of each character, BAD where it has none. */
#define XX BAD
/* clang-format off */
static const uint8_t values[256] = {
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, 62, XX, XX,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, XX, XX, XX, XX, XX, XX,
    XX, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, XX, XX, XX, XX, 63,
    XX, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
};
/* clang-format on */
#undef XX

static bool decode_tail(const uint8_t *text, size_t len, uint8_t *out);

size_t base64url_encode(const void *data, size_t len, char *out, size_t cap)
{
    must(len <= SIZE_MAX / 4 - 1);
    must(cap >= BASE64URL_LEN(len));
    const uint8_t *in = data;
    char *at = out;
    for (; len >= 3; len -= 3, in += 3) {
        *at++ = alphabet[in[0] >> 2];
        *at++ = alphabet[(in[0] & 3) << 4 | in[1] >> 4];
        *at++ = alphabet[(in[1] & 15) << 2 | in[2] >> 6];
        *at++ = alphabet[in[2] & 63];
    }
    if (len > 0) {
        uint8_t second = len == 2 ? in[1] : 0;
        *at++ = alphabet[in[0] >> 2];
        *at++ = alphabet[(in[0] & 3) << 4 | second >> 4];
        if (len == 2)
            *at++ = alphabet[(second & 15) << 2];
    }
    return (size_t)(at - out);
}

bool base64url_decode(struct span text, void *out, size_t cap, size_t *len)
{
    if (text.len % 4 == 1 || BASE64URL_DECODED(text.len) > cap)
        return false;
    const uint8_t *in = (const uint8_t *)text.data;
    uint8_t *at = out;
    uint8_t bad = 0;
    size_t left = text.len;
    for (; left >= 4; left -= 4, in += 4) {
        uint8_t a = values[in[0]], b = values[in[1]], c = values[in[2]], d = values[in[3]];
        bad |= a | b | c | d;
        *at++ = (uint8_t)(a << 2 | b >> 4);
        *at++ = (uint8_t)(b << 4 | c >> 2);
        *at++ = (uint8_t)(c << 6 | d);
    }
    *len = BASE64URL_DECODED(text.len);
    return (bad & BAD) == 0 && decode_tail(in, left, at);
}

/*
 * The last two or three characters: their spare bits must be zero, or a second text would stand for the same
 * bytes.
 */
static bool decode_tail(const uint8_t *text, size_t len, uint8_t *out)
{
    if (len == 0)
        return true;
    uint8_t a = values[text[0]], b = values[text[1]], c = len == 3 ? values[text[2]] : 0;
    out[0] = (uint8_t)(a << 2 | b >> 4);
    if (len == 3)
        out[1] = (uint8_t)(b << 4 | c >> 2);
    uint8_t spare = len == 3 ? c & 3 : b & 15;
    return ((a | b | c) & BAD) == 0 && spare == 0;
}
