/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_SLOT_MAP_H
#define WEIR_REDIS_SLOT_MAP_H

/*
 * Which primary keeps which slot. A standalone server keeps them all.
 *
 * Of a cluster it comes from CLUSTER SLOTS and not from CLUSTER SHARDS: all servers of both families answer it in one form, and
 * what SHARDS says beyond it is about replicas, which are never asked for anything.
 */

#include "redis/address.h"
#include "redis/slots.h"

#include <hiredis/hiredis.h>

#define SLOT_MAP_PRIMARIES_MAX 256
#define SLOT_MAP_NODE_ID_MAX   40
#define SLOT_MAP_NOBODY        UINT16_MAX

struct primary {
    struct address address;
    char node_id[SLOT_MAP_NODE_ID_MAX + 1]; /* its name in the cluster; empty: not known */
};

struct slot_map {
    uint16_t count;
    struct primary primaries[SLOT_MAP_PRIMARIES_MAX];
    uint16_t of_slot[SLOTS]; /* place in `primaries`, or SLOT_MAP_NOBODY */
};

/* Nobody keeps anything. */
void slot_map_clear(struct slot_map *map);

/* One server keeps all. */
void slot_map_give_all(struct slot_map *map, const struct address *address);

/*
 * From the reply to CLUSTER SLOTS, `asked` being who sent it. A slot may be nobody's, and so is one whose primary has no address
 * that we could use. NULL, or why it is no such map; `map` is then undefined.
 */
const char *slot_map_read(struct slot_map *map, const redisReply *reply, const struct address *asked);

/* Gives one slot to this primary. False, and nothing changed: there are as many as a map can hold. */
bool slot_map_move(struct slot_map *map, uint16_t slot, const struct address *address);

/* NULL: nobody keeps it. */
const struct primary *slot_map_find(const struct slot_map *map, uint16_t slot);

/* The same nodes at the same addresses keep the same slots. */
bool slot_map_equal(const struct slot_map *a, const struct slot_map *b);

#endif
