/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any replies to CLUSTER SLOTS, to a sentinel's question and to INFO. A map that is taken is whole, and whatever servers say, a
 * topology goes on asking and never asks without end in one moment.
 *
 * An input is a row of RESP replies. Errors stand for servers that do not answer, strings for what INFO says, all else for answers.
 */
#include "base/must.h"
#include "redis/reader.h"
#include "redis/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tell(struct topology *topology, const redisReply *reply, uint64_t now_ms);
static void map_check(const struct slot_map *map);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const stores[] = {"redis://a,b:1", "redis+sentinel://a,b/m"};
    static struct store_url url;
    if (size == 0 || size > 65536)
        return 0;
    must(store_url_read(span_of(stores[data[0] % 2]), &url) == NULL);
    struct topology *topology = topology_new(&url, 0);
    struct reader *reader = reader_new();
    redisReply *reply;
    uint64_t now_ms = 0, version = 0;
    reader_feed(reader, (struct span){(const char *)data + 1, size - 1});
    while (reader_next(reader, &reply) == READER_REPLY) {
        if (topology_question(topology, now_ms).kind == QUESTION_NONE)
            now_ms = topology_due_ms(topology);
        tell(topology, reply, now_ms);
        freeReplyObject(reply);
        if (version != topology_version(topology))
            map_check(topology_map(topology));
        version = topology_version(topology);
        must(topology_due_ms(topology) > now_ms);
    }
    reader_free(reader);
    topology_free(topology);
    return 0;
}

static void tell(struct topology *topology, const redisReply *reply, uint64_t now_ms)
{
    struct question question = topology_question(topology, now_ms);
    struct peer peer;
    must(question.kind != QUESTION_NONE && question.address.host[0] != '\0');
    if (question.kind != QUESTION_GREET)
        topology_answered(topology, reply, now_ms, 7);
    else if (reply->type == REDIS_REPLY_STRING &&
             peer_read((struct span){reply->str, reply->len}, (struct span){reply->str, reply->len}, &peer) ==
                 NULL)
        topology_greeted(topology, &peer, now_ms, 7);
    else
        topology_failed(topology, "No.", now_ms, 7);
}

static void map_check(const struct slot_map *map)
{
    must(map->count <= SLOT_MAP_PRIMARIES_MAX);
    for (uint16_t slot = 0; slot < SLOTS; slot++) {
        const struct primary *primary = slot_map_find(map, slot);
        must(primary == NULL || (primary->address.port > 0 && primary->address.host[0] != '\0'));
    }
}
