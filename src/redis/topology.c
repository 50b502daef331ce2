/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round asks everybody who might know, once, beginning with who knew last (in a cluster with anyone, so that many nodes do not
 * all ask the same one). Those who might know are the primaries of the map, if it is a cluster, and then what the operator wrote:
 * a cluster may have moved away from all addresses that were true when it was configured.
 *
 * Doubts come in thousands, with every command that met the wrong server. The first one is heeded at once; while it is being
 * looked after all others say nothing new; and if doubts come again after the look, the next look waits, each time longer, until
 * a look that nobody had to ask for.
 */
#include "redis/topology.h"

#include "base/breaker.h"
#include "base/decimal.h"
#include "base/must.h"

#include <stdlib.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define NEVER     UINT64_MAX

struct topology {
    const struct store_url *url;
    struct question question; /* QUESTION_NONE: resting */
    uint64_t due_ms;
    size_t candidate; /* who is being asked, or will be */
    size_t tried;     /* in this round */
    uint32_t rests;
    bool is_doubted;        /* since the present or coming look began to be due */
    uint64_t follows;       /* slots that were moved in the map one by one: so far, */
    uint64_t asked_follows; /* when the present look asked, */
    uint64_t known_follows; /* and when the one asked that the map is from */
    const char *trouble;

    bool is_cluster;
    uint64_t version;
    struct slot_map map, next;
};

static size_t candidates_count(const struct topology *topology);
static void candidate_ask(struct topology *topology);
static void server_judge(struct topology *topology, const struct peer *peer, uint64_t now_ms,
                         uint32_t random);
static void named_judge(struct topology *topology, const struct peer *peer, uint64_t now_ms, uint32_t random);
static void slots_take(struct topology *topology, const redisReply *reply, uint64_t now_ms, uint32_t random);
static void master_take(struct topology *topology, const redisReply *reply, uint64_t now_ms, uint32_t random);
static bool master_read(const redisReply *reply, struct address *out);
static void one_learn(struct topology *topology, uint64_t now_ms, uint32_t random);
static void map_learn(struct topology *topology, bool is_cluster, uint64_t now_ms, uint32_t random);
static void rest(struct topology *topology, uint64_t due_ms);
static uint32_t rest_ms(struct topology *topology, uint32_t random);

struct topology *topology_new(const struct store_url *url, uint64_t now_ms)
{
    struct topology *topology = calloc(1, sizeof(*topology));
    if (topology == NULL)
        return NULL;
    must(url->address_count > 0);
    topology->url = url;
    topology->due_ms = now_ms;
    slot_map_clear(&topology->map);
    return topology;
}

void topology_free(struct topology *topology)
{
    free(topology);
}

/* ---- asking ---- */

struct question topology_question(struct topology *topology, uint64_t now_ms)
{
    if (topology->question.kind == QUESTION_NONE && now_ms >= topology->due_ms)
        candidate_ask(topology);
    return topology->question;
}

uint64_t topology_due_ms(const struct topology *topology)
{
    return topology->question.kind == QUESTION_NONE ? topology->due_ms : NEVER;
}

static size_t candidates_count(const struct topology *topology)
{
    return (topology->is_cluster ? topology->map.count : 0) + topology->url->address_count;
}

static void candidate_ask(struct topology *topology)
{
    size_t known = topology->is_cluster ? topology->map.count : 0;
    size_t place = topology->candidate % candidates_count(topology);
    topology->question = (struct question){
        .kind = QUESTION_GREET,
        .address =
            place < known ? topology->map.primaries[place].address : topology->url->addresses[place - known],
        .is_of_sentinel = topology->url->is_sentinel,
    };
}

size_t topology_format(const struct topology *topology, char **command)
{
    const struct store_text *name = &topology->url->master_name;
    int len;
    must(topology->question.kind == QUESTION_SLOTS || topology->question.kind == QUESTION_MASTER);
    if (topology->question.kind == QUESTION_SLOTS)
        len = redisFormatCommand(command, "CLUSTER SLOTS");
    else
        len = redisFormatCommand(command, "SENTINEL GET-MASTER-ADDR-BY-NAME %b", name->data, name->len);
    return len > 0 ? (size_t)len : 0;
}

/* ---- answers ---- */

void topology_greeted(struct topology *topology, const struct peer *peer, uint64_t now_ms, uint32_t random)
{
    must(topology->question.kind == QUESTION_GREET);
    topology->asked_follows = topology->follows;
    if (!topology->url->is_sentinel)
        server_judge(topology, peer, now_ms, random);
    else if (!topology->question.is_of_sentinel)
        named_judge(topology, peer, now_ms, random);
    else if (peer->mode == PEER_SENTINEL)
        topology->question.kind = QUESTION_MASTER;
    else
        topology_failed(topology, "An address of the store is no sentinel.", now_ms, random);
}

static void server_judge(struct topology *topology, const struct peer *peer, uint64_t now_ms, uint32_t random)
{
    if (peer->mode == PEER_SENTINEL)
        topology_failed(topology, "An address of the store is a sentinel (redis+sentinel:// is for those).",
                        now_ms, random);
    else if (peer->mode == PEER_CLUSTER && topology->url->database != 0)
        topology_failed(topology, "The store is a cluster, which has no database but 0.", now_ms, random);
    else if (peer->mode == PEER_CLUSTER)
        topology->question.kind = QUESTION_SLOTS;
    else if (peer->is_primary)
        one_learn(topology, now_ms, random);
    else
        topology_failed(topology, "None of the store's addresses is a primary.", now_ms, random);
}

/* Sentinels know of a failover before or after the server does; only where both agree is a primary. */
static void named_judge(struct topology *topology, const struct peer *peer, uint64_t now_ms, uint32_t random)
{
    if (peer->mode == PEER_STANDALONE && peer->is_primary)
        one_learn(topology, now_ms, random);
    else
        topology_failed(topology, "The server that the sentinels name is not a primary.", now_ms, random);
}

void topology_answered(struct topology *topology, const redisReply *reply, uint64_t now_ms, uint32_t random)
{
    must(topology->question.kind == QUESTION_SLOTS || topology->question.kind == QUESTION_MASTER);
    if (topology->question.kind == QUESTION_SLOTS)
        slots_take(topology, reply, now_ms, random);
    else
        master_take(topology, reply, now_ms, random);
}

static void slots_take(struct topology *topology, const redisReply *reply, uint64_t now_ms, uint32_t random)
{
    const char *refusal = slot_map_read(&topology->next, reply, &topology->question.address);
    if (refusal != NULL)
        topology_failed(topology, refusal, now_ms, random);
    else
        map_learn(topology, true, now_ms, random);
}

static void master_take(struct topology *topology, const redisReply *reply, uint64_t now_ms, uint32_t random)
{
    struct address address;
    if (reply->type == REDIS_REPLY_NIL)
        topology_failed(topology, "The sentinels do not know a master of this name.", now_ms, random);
    else if (!master_read(reply, &address))
        topology_failed(topology, "What a sentinel says about the master makes no sense.", now_ms, random);
    else
        topology->question = (struct question){.kind = QUESTION_GREET, .address = address};
}

/* ["127.0.0.1", "6379"] */
static bool master_read(const redisReply *reply, struct address *out)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING || reply->element[1]->type != REDIS_REPLY_STRING)
        return false;
    const redisReply *host = reply->element[0], *port = reply->element[1];
    uint64_t number;
    return decimal_read((struct span){port->str, port->len}, 0, &number) &&
           address_make((struct span){host->str, host->len}, number, out);
}

/* ---- knowing ---- */

static void one_learn(struct topology *topology, uint64_t now_ms, uint32_t random)
{
    slot_map_give_all(&topology->next, &topology->question.address);
    map_learn(topology, false, now_ms, random);
}

/* Of what `next` says. */
static void map_learn(struct topology *topology, bool is_cluster, uint64_t now_ms, uint32_t random)
{
    if (topology->version == 0 || !slot_map_equal(&topology->map, &topology->next)) {
        topology->map = topology->next;
        topology->version++;
    }
    topology->is_cluster = is_cluster;
    topology->trouble = NULL;
    if (is_cluster)
        topology->candidate = random % candidates_count(topology);
    if (!topology->is_doubted)
        topology->rests = 0;
    topology->is_doubted = false;
    topology->known_follows = topology->asked_follows;
    rest(topology,
         now_ms + (topology_is_whole(topology) ? TOPOLOGY_REFRESH_MS - random % (TOPOLOGY_REFRESH_MS / 2)
                                               : rest_ms(topology, random)));
}

void topology_failed(struct topology *topology, const char *why, uint64_t now_ms, uint32_t random)
{
    must(topology->question.kind != QUESTION_NONE);
    topology->candidate = (topology->candidate + 1) % candidates_count(topology);
    if (++topology->tried < candidates_count(topology)) {
        candidate_ask(topology);
        return;
    }
    topology->trouble = why;
    topology->is_doubted = false;
    rest(topology, now_ms + rest_ms(topology, random));
}

static void rest(struct topology *topology, uint64_t due_ms)
{
    topology->question = (struct question){.kind = QUESTION_NONE};
    topology->tried = 0;
    topology->due_ms = due_ms;
}

static uint32_t rest_ms(struct topology *topology, uint32_t random)
{
    topology->rests = MIN(topology->rests + 1, TOPOLOGY_RESTS_MAX);
    return breaker_backoff_ms(TOPOLOGY_REST_MS, topology->rests, random);
}

/* ---- doubts ---- */

void topology_follow(struct topology *topology, uint16_t slot, const struct address *address, uint64_t now_ms,
                     uint32_t random)
{
    const struct primary *primary = slot_map_find(&topology->map, slot);
    bool is_new = primary == NULL || !address_equal(&primary->address, address);
    if (topology->version > 0 && is_new && slot_map_move(&topology->map, slot, address)) {
        topology->version++;
        topology->follows++;
    }
    topology_doubt(topology, now_ms, random);
}

void topology_doubt(struct topology *topology, uint64_t now_ms, uint32_t random)
{
    if (topology->is_doubted || topology->version == 0)
        return;
    topology->is_doubted = true;
    if (topology->question.kind != QUESTION_NONE)
        return;
    uint64_t soon_ms = topology->rests == 0 ? now_ms : now_ms + rest_ms(topology, random);
    topology->rests += topology->rests == 0;
    topology->due_ms = MIN(topology->due_ms, soon_ms);
}

void topology_hurry(struct topology *topology, uint64_t now_ms)
{
    if (topology->version > 0 && !topology_is_whole(topology))
        topology->due_ms = MIN(topology->due_ms, now_ms);
}

/* ---- telling ---- */

const struct primary *topology_find(const struct topology *topology, uint16_t slot)
{
    return slot_map_find(&topology->map, slot);
}

const struct slot_map *topology_map(const struct topology *topology)
{
    return &topology->map;
}

uint64_t topology_version(const struct topology *topology)
{
    return topology->version;
}

bool topology_is_whole(const struct topology *topology)
{
    return topology->version > 0 && topology->known_follows == topology->follows;
}

bool topology_is_cluster(const struct topology *topology)
{
    return topology->is_cluster;
}

const char *topology_trouble(const struct topology *topology)
{
    return topology->trouble;
}
