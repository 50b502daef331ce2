/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_OPERATORS_H
#define WEIR_TOKEN_OPERATORS_H

/*
 * Who may use the operator's API: names and bearer tokens, from the text of a file with a line `NAME TOKEN` each. Empty
 * lines and lines that begin with # are nothing. The name is what the log says.
 */

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERATORS_MAX          16
#define OPERATORS_NAME_MAX     32 /* of A-Z a-z 0-9 _ . - */
#define OPERATORS_TOKEN_MIN    32 /* printable characters, without spaces */
#define OPERATORS_TOKEN_MAX    256
#define OPERATORS_REASON_MAX   160
#define OPERATORS_DIGEST_BYTES 32

/* No token stays in it, only what tells one. */
struct operators {
    struct operators_row {
        char name[OPERATORS_NAME_MAX];
        size_t name_len;
        uint8_t digest[OPERATORS_DIGEST_BYTES];
    } list[OPERATORS_MAX];
    size_t count;
};

/* False if the text is refused, with one sentence why in `reason`, which never quotes it. It stays the caller's to cleanse. */
bool operators_read(struct operators *operators, struct span text, char reason[OPERATORS_REASON_MAX]);

/* The name behind a token, a part of `operators`, or data NULL. How long it takes says nothing of the tokens in the list. */
struct span operators_find(const struct operators *operators, struct span token);

#endif
