/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_PEER_H
#define WEIR_REDIS_PEER_H

/*
 * What a server says of itself when it is greeted, in the texts of `INFO server` and `INFO replication`: Redis and Valkey of any
 * age have them. (HELLO says less: not which process this is.)
 *
 * The run id names one life of one server process. A connection reaches the same process for as long as it lives, so who knows
 * the run id of a connection knows who answers on it: another primary, or the same one restarted, has another.
 */

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define PEER_RUN_ID_MAX  40
#define PEER_VERSION_MAX 31

enum peer_mode { PEER_STANDALONE, PEER_CLUSTER, PEER_SENTINEL };

struct peer {
    enum peer_mode mode;
    bool is_primary;   /* never of a sentinel */
    uint32_t replicas; /* of a primary: that are connected now */
    bool is_valkey;
    char run_id[PEER_RUN_ID_MAX + 1];   /* empty: it does not tell */
    char version[PEER_VERSION_MAX + 1]; /* of Valkey, or of Redis; empty: it does not tell */
};

/* NULL, or why nothing can be done with it; `out` is then undefined. A sentinel's text about replication is empty. */
const char *peer_read(struct span server, struct span replication, struct peer *out);

/* The value behind `name:` in a text of INFO; false if there is no such line. */
bool peer_find(struct span info, struct span name, struct span *value);

#endif
