/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

/*
 * A small strict reader of flat JSON objects, for the hot request bodies and the claims of a pass; and the
 * escape that writes a string. One pass, no allocation. Everything else that speaks JSON uses jansson.
 *
 * It accepts what RFC 8259 and jansson (JSON_REJECT_DUPLICATES) accept as an object, and nothing else: valid
 * UTF-8 only, no byte order mark, no NUL even escaped, no lone surrogate, no trailing bytes, no name twice in
 * any object, no integer outside 64 bits. (One difference: jansson 2.14 overlooks a NUL byte right behind a
 * number or a literal.) Beyond that it has limits of its own, and a body over one of them is refused:
 */
#define JSON_DEPTH_MAX    16 /* objects and arrays open at once, the outermost counted */
#define JSON_MEMBERS_MAX  32 /* members in all, those of nested objects counted */
#define JSON_NUMBER_MAX   64 /* characters of a number */
#define JSON_EXPONENT_MAX 2  /* digits of its exponent */

#include "base/error.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind {
    JSON_TEXT,   /* a string; the answer is `text` */
    JSON_NUMBER, /* from 0 to 2^63 - 1, written without fraction or exponent; the answer is `number` */
};

/* A member that the caller wants: the question above, the answer below. */
struct json_member {
    struct span name; /* plain, compared with the unescaped name */
    enum json_kind kind;
    bool is_optional; /* may be absent, or null, which counts as absent */

    bool is_present;
    struct span text; /* unescaped: a part of the body, or of the scratch buffer if it had escapes */
    uint64_t number;
};

/*
 * Reads `body`, fills the answers of `members`, skips what nobody wants. ERROR_NONE, or ERROR_INVALID_REQUEST
 * for a body that is not such an object, a wanted member of another kind or missing, or strings that do not
 * fit the scratch buffer; the answers are then undefined. `scratch` may be NULL if `cap` is 0. It never needs
 * more than body.len.
 */
enum error json_read(struct span body, struct json_member *members, size_t count, char *scratch, size_t cap);

/*
 * Appends `text` as the inside of a JSON string (without the quotes) at out[*len] and moves *len. False, and
 * *len as it was, if that would pass `cap` or the text is not UTF-8. At most six characters for a byte.
 */
bool json_escape(struct span text, char *out, size_t cap, size_t *len);

#endif
