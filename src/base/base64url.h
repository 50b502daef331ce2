/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_BASE64URL_H
#define WEIR_BASE_BASE64URL_H

/*
 * base64url without padding (RFC 4648, section 5). Decoding is strict: each byte string has exactly one text
 * form, so that a token changed in any bit of its text is another token, never a second spelling of it.
 */

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters that `n` bytes take, and the most bytes that `n` characters hold. */
#define BASE64URL_LEN(n)     (((n)*4 + 2) / 3)
#define BASE64URL_DECODED(n) ((n) / 4 * 3 + ((n) % 4 * 3) / 4)

/* Writes BASE64URL_LEN(len) characters, no NUL, and returns how many; `cap` must be at least as much. */
size_t base64url_encode(const void *data, size_t len, char *out, size_t cap);

/*
 * False, with nothing promised about `out`, for a character outside the alphabet, padding, an impossible
 * length, leftover bits that are not zero, or more than `cap` bytes. `out` must not overlap the text.
 */
bool base64url_decode(struct span text, void *out, size_t cap, size_t *len);

#endif
