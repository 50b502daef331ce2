/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_READER_H
#define WEIR_REDIS_READER_H

/*
 * hiredis's reader of RESP, with an end to everything. By itself it allocates what a server announces: nine bytes that say "an
 * array of a thousand million" are eight gigabytes.
 */

#include "base/span.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>

#define READER_BYTES_MAX    (4 << 20) /* of one reply */
#define READER_ELEMENTS_MAX 65536     /* in all arrays of one reply together */

enum reader_result {
    READER_REPLY, /* one, freed with freeReplyObject */
    READER_MORE,  /* what was fed is used up */
    READER_BROKEN /* no RESP, more than the limits, or no memory: for good */
};

struct reader;

/* NULL: no memory. */
struct reader *reader_new(void);
void reader_free(struct reader *reader);

/* Takes a copy of what came. */
void reader_feed(struct reader *reader, struct span bytes);

enum reader_result reader_next(struct reader *reader, redisReply **reply);

#endif
