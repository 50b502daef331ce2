/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_RESP_H
#define WEIR_REDIS_RESP_H

/*
 * The words of one command, gathered and then written as RESP. One of these serves all commands of a worker, one after the
 * other.
 */

#include "base/holder.h"
#include "base/span.h"

#include <stdint.h>

#define RESP_CALLS_MAX 64 /* that one command may be about */
#define RESP_WORDS_MAX (32 + 10 * RESP_CALLS_MAX)
#define RESP_TEXT_MAX  8192

struct resp {
    uint32_t count, used;
    const char *word[RESP_WORDS_MAX];
    size_t len[RESP_WORDS_MAX];
    char text[RESP_TEXT_MAX];
};

void resp_begin(struct resp *resp);

/* Text that outlives the words. */
void resp_add(struct resp *resp, struct span text);

/* Text that does not. */
void resp_add_copy(struct resp *resp, struct span text);
void resp_add_number(struct resp *resp, uint64_t number);
void resp_add_holder(struct resp *resp, const struct holder *holder);

/* All of them as one command; NULL if there is no memory. To be freed with free. */
char *resp_bytes(const struct resp *resp, size_t *len);

#endif
