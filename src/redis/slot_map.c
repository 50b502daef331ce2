/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CLUSTER SLOTS is an array of ranges: first slot, last slot, then the primary, then its replicas, each an array of host, port,
 * node id and more:
 *
 *     [[0, 5460, ["127.0.0.1", 30001, "09db…", []], ["127.0.0.1", 30004, "821d…", []]], …]
 *
 * A host that is nil or empty is the one that was asked; "?" is one that the server does not know. Every number is checked before
 * it is used, and every slot may be claimed once: of a reply that contradicts itself nothing is believed.
 */
#include "redis/slot_map.h"

#include "base/ascii.h"
#include "base/must.h"

#define NO_MAP "The reply to CLUSTER SLOTS makes no sense."

static const char *range_read(struct slot_map *map, const redisReply *range, const struct address *asked);
static bool slots_read(const redisReply *range, uint16_t *first, uint16_t *last);
static bool primary_read(const redisReply *node, const struct address *asked, struct primary *out,
                         bool *is_known);
static bool host_read(const redisReply *host, const struct address *asked, struct span *out);
static void node_id_read(const redisReply *node, struct primary *out);
static uint16_t place_of(struct slot_map *map, const struct primary *primary);
static bool is_number(const redisReply *reply, long long least, long long most);
static bool primary_equal(const struct primary *a, const struct primary *b);

void slot_map_clear(struct slot_map *map)
{
    map->count = 0;
    memset(map->of_slot, 0xff, sizeof(map->of_slot));
    must(map->of_slot[0] == SLOT_MAP_NOBODY);
}

void slot_map_give_all(struct slot_map *map, const struct address *address)
{
    map->primaries[0] = (struct primary){.address = *address};
    map->count = 1;
    memset(map->of_slot, 0, sizeof(map->of_slot));
}

const char *slot_map_read(struct slot_map *map, const redisReply *reply, const struct address *asked)
{
    slot_map_clear(map);
    if (reply->type != REDIS_REPLY_ARRAY)
        return NO_MAP;
    for (size_t i = 0; i < reply->elements; i++) {
        const char *refusal = range_read(map, reply->element[i], asked);
        if (refusal != NULL)
            return refusal;
    }
    return map->count > 0 ? NULL : "The cluster has given its slots to nobody yet.";
}

static const char *range_read(struct slot_map *map, const redisReply *range, const struct address *asked)
{
    struct primary primary = {.node_id = ""};
    uint16_t first, last;
    bool is_known;

    if (!slots_read(range, &first, &last) || !primary_read(range->element[2], asked, &primary, &is_known))
        return NO_MAP;
    if (!is_known)
        return NULL;
    uint16_t place = place_of(map, &primary);
    if (place == SLOT_MAP_NOBODY)
        return "The cluster has more than 256 primaries.";
    for (uint32_t slot = first; slot <= last; slot++) {
        if (map->of_slot[slot] != SLOT_MAP_NOBODY)
            return NO_MAP;
        map->of_slot[slot] = place;
    }
    return NULL;
}

static bool slots_read(const redisReply *range, uint16_t *first, uint16_t *last)
{
    if (range->type != REDIS_REPLY_ARRAY || range->elements < 3 ||
        !is_number(range->element[0], 0, SLOTS - 1) ||
        !is_number(range->element[1], range->element[0]->integer, SLOTS - 1))
        return false;
    *first = (uint16_t)range->element[0]->integer;
    *last = (uint16_t)range->element[1]->integer;
    return true;
}

static bool primary_read(const redisReply *node, const struct address *asked, struct primary *out,
                         bool *is_known)
{
    struct span host;
    if (node->type != REDIS_REPLY_ARRAY || node->elements < 2 || !host_read(node->element[0], asked, &host) ||
        !is_number(node->element[1], 0, UINT16_MAX))
        return false;
    node_id_read(node, out);
    *is_known = !span_equal(host, SPAN("?"));
    return !*is_known || address_make(host, (uint64_t)node->element[1]->integer, &out->address);
}

static bool host_read(const redisReply *host, const struct address *asked, struct span *out)
{
    if (host->type == REDIS_REPLY_NIL || (host->type == REDIS_REPLY_STRING && host->len == 0)) {
        *out = span_of(asked->host);
        return true;
    }
    if (host->type != REDIS_REPLY_STRING)
        return false;
    *out = (struct span){host->str, host->len};
    return true;
}

static void node_id_read(const redisReply *node, struct primary *out)
{
    const redisReply *id = node->elements > 2 ? node->element[2] : NULL;
    size_t len = 0;
    if (id != NULL && id->type == REDIS_REPLY_STRING && id->len <= SLOT_MAP_NODE_ID_MAX &&
        ascii_all_visible((struct span){id->str, id->len}))
        len = id->len;
    if (len > 0)
        memcpy(out->node_id, id->str, len);
    out->node_id[len] = '\0';
}

/* A new place, if it has none. SLOT_MAP_NOBODY: there is none left. */
static uint16_t place_of(struct slot_map *map, const struct primary *primary)
{
    for (uint16_t i = 0; i < map->count; i++)
        if (address_equal(&map->primaries[i].address, &primary->address))
            return i;
    if (map->count == SLOT_MAP_PRIMARIES_MAX)
        return SLOT_MAP_NOBODY;
    map->primaries[map->count] = *primary;
    return map->count++;
}

static bool is_number(const redisReply *reply, long long least, long long most)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer >= least && reply->integer <= most;
}

bool slot_map_move(struct slot_map *map, uint16_t slot, const struct address *address)
{
    must(slot < SLOTS);
    uint16_t place = place_of(map, &(struct primary){.address = *address});
    if (place == SLOT_MAP_NOBODY)
        return false;
    map->of_slot[slot] = place;
    return true;
}

const struct primary *slot_map_find(const struct slot_map *map, uint16_t slot)
{
    must(slot < SLOTS);
    uint16_t place = map->of_slot[slot];
    must(place == SLOT_MAP_NOBODY || place < map->count);
    return place == SLOT_MAP_NOBODY ? NULL : &map->primaries[place];
}

bool slot_map_equal(const struct slot_map *a, const struct slot_map *b)
{
    uint16_t slot = 0;
    while (slot < SLOTS) {
        uint16_t of_a = a->of_slot[slot], of_b = b->of_slot[slot];
        if (!primary_equal(slot_map_find(a, slot), slot_map_find(b, slot)))
            return false;
        while (slot < SLOTS && a->of_slot[slot] == of_a && b->of_slot[slot] == of_b)
            slot++; /* a range has one answer */
    }
    return true;
}

static bool primary_equal(const struct primary *a, const struct primary *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return address_equal(&a->address, &b->address) && strcmp(a->node_id, b->node_id) == 0;
}
