/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TOKEN_SECRET_FILE_H
#define WEIR_TOKEN_SECRET_FILE_H

/*
 * The text of a secret file, one key a line; blank lines and lines that begin with '#' do not count:
 *
 *     3 SECRET next     verifies, and does not sign yet
 *     2 SECRET          the first key without that word signs; every key listed verifies
 *     1 SECRET
 *     holder SECRET     optional, see below
 *
 * An id is a number from 1 to 255. A secret is 32 to 256 printable ASCII characters without a space; use at
 * least 128 random bits. At most 8 keys; no id and no secret twice.
 *
 * Rotation. Put the new key first and keep the old line while its tokens live: both verify. Where others verify
 * too (several servers of one secret, a service that keeps a copy of the public keys), list it as `next` first:
 * all of them know it before the first token is signed with it.
 *
 * The holder key names people: a holder is a keyed hash of an identity, and one identity must stay one holder
 * while its tickets live, or a visitor who joins again after a rotation would get a second place. So the
 * holder key does not follow the signing key: it comes from the `holder` line if there is one, else from the
 * *last* key that is not `next`. Adding a new key in front therefore changes no holder. When the old key goes, write
 * the word `holder` over its id instead of deleting the line: it then neither signs nor verifies, and the
 * holders stay as they are. Delete the line for good when nobody waits: every identity gets a new holder.
 */

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_KEYS_MAX   8
#define SECRET_MIN        32 /* characters */
#define SECRET_MAX        256
#define SECRET_REASON_MAX 160
#define SECRET_HOLDER_ID  0 /* stands for the word `holder`; no key has it */

/* One line that holds a key. The spans are parts of the text. */
struct secret_line {
    uint8_t id;
    bool is_next;
    struct span line, secret;
};

struct secret_file {
    struct secret_line list[SECRET_KEYS_MAX + 1]; /* as they stand; one more for the holder line */
    size_t count;
    size_t key_count; /* without the holder line */
};

/*
 * False if the text is refused, with one sentence why in `reason`, which never quotes it. The text stays the
 * caller's to cleanse.
 */
bool secret_file_read(struct span text, struct secret_file *out, char reason[SECRET_REASON_MAX]);

/* The line of the key that signs. There always is one. */
const struct secret_line *secret_file_signing(const struct secret_file *file);

/* The line that the holder key comes from. */
const struct secret_line *secret_file_holder(const struct secret_file *file);

#endif
