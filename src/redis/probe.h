/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_PROBE_H
#define WEIR_REDIS_PROBE_H

/*
 * How a primary is set up, where that makes a loss likely: warnings by name, from what it says of itself in INFO.
 *
 * INFO is all that a managed server is sure to answer. The one thing that it leaves out, how often the AOF is synced, is judged
 * only where CONFIG GET was answered. What a server does not tell brings no warning: a warning is never a guess.
 *
 * The sentences are constant. Nothing that a server wrote comes into a log by way of them.
 *
 * PROBE(name, written, sentence)
 */
#define PROBE_LIST(PROBE)                                                                                    \
    PROBE(OLD_SERVER, "old-server", "The server is older than Redis 6.2: the scripts are not made for it.")  \
    PROBE(NO_REPLICA, "no-replica",                                                                          \
          "The primary has no replica: if it is lost, so is the line, until everybody in it has polled "     \
          "again.")                                                                                          \
    PROBE(TOO_FEW_REPLICAS, "too-few-replicas",                                                              \
          "Fewer replicas are connected than replicas= asks for: until there are more, nobody is given a "   \
          "pass.")                                                                                           \
    PROBE(UNASKED_REPLICAS, "unasked-replicas",                                                              \
          "There are replicas, and replicas=0 waits for none of them: a failover may take back a pass that " \
          "was "                                                                                             \
          "given.")                                                                                          \
    PROBE(                                                                                                   \
        NO_MIN_REPLICAS, "no-min-replicas",                                                                  \
        "min-replicas-to-write is 0: a primary that is cut off from its replicas goes on taking joins that " \
        "will be lost.")                                                                                     \
    PROBE(                                                                                                   \
        NO_AOF, "no-aof",                                                                                    \
        "appendonly is off: a server that is restarted forgets all since its last snapshot, or everything.") \
    PROBE(                                                                                                   \
        AOF_NOT_SYNCED, "aof-not-synced",                                                                    \
        "appendfsync is no: a power cut takes as much as the kernel had not written, often half a minute.")  \
    PROBE(EVICTION, "eviction",                                                                              \
          "maxmemory-policy is not noeviction: when memory is full, the server removes keys by itself, a "   \
          "room's "                                                                                          \
          "among them.")

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum probe_warning {
#define PROBE_ENUM(name, written, sentence) PROBE_##name,
    PROBE_LIST(PROBE_ENUM)
#undef PROBE_ENUM
        PROBE_COUNT
};

struct probe {
    struct span info;        /* the whole text of INFO (the default sections) of a primary */
    struct span appendfsync; /* the value that CONFIG GET appendfsync told; empty: it did not */
    uint32_t replicas;       /* that must know of an enter before a pass is given: replicas= of weir_store */
};

/* Bit 1 << w is set for each warning w. Of a replica or a sentinel, none: nothing is written there. */
uint32_t probe_read(const struct probe *probe);

/* How a warning is called, for lists and searches; and one plain sentence for people. Constant. */
const char *probe_name(enum probe_warning warning);
const char *probe_sentence(enum probe_warning warning);

#endif
