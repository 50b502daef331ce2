/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_SECRET_TEXT_H
#define WEIR_CLI_SECRET_TEXT_H

/*
 * What stands in a file that its owner alone may read, as the server wants such files: weir_secret_file, weir_pass_key. It
 * is never in argv, the environment or a message.
 */

#include "base/span.h"
#include "cli/args.h"
#include "token/keyring.h"

#define SECRET_TEXT_MAX 16384

struct secret_text {
    char bytes[SECRET_TEXT_MAX];
    size_t len;
};

/* Returns 0, or what to end with after having said why. secret_text_wipe() it in either case. */
int secret_text_read(const char *path, struct secret_text *out);
void secret_text_wipe(struct secret_text *text);

static inline struct span secret_text_span(const struct secret_text *text)
{
    return (struct span){text->bytes, text->len};
}

/* Signs the passes of every key with `algorithm`. */
void secret_algorithm_set(struct keyring *ring, enum key_algorithm algorithm);

/* The file as keys, each of whose passes are signed with `algorithm`. Returns 0, or what to end with after having said why. */
int secret_keyring_read(const char *path, enum key_algorithm algorithm, struct keyring **out);

/* --alg, hs256 where it is not given. Returns 0, or what to end with after having said why. */
int secret_algorithm_read(const struct args *args, enum key_algorithm *out);

/* --tier; 0 where it is not given. */
int secret_tier_read(const struct args *args, int *out);

/* --id, which must be one of the ring; 0 where it is not given. */
int secret_id_read(const struct args *args, const struct keyring *ring, uint8_t *out);

#endif
