/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One primary at a time, and none more often than once a second: nobody waits for it. Each of the two orders may end without the
 * other, so the last one judges. A server that refuses the one or the other is judged by the rest.
 */
#include "nginx/store_probe.h"

#include "redis/probe.h"

#define EVERY_MS     1000
#define ASKED_MAX    SLOT_MAP_PRIMARIES_MAX /* primaries that are remembered: all that there can be at once */
#define SYNC_MAX     16                     /* characters of its value */
#define INFO_COMMAND "*1\r\n$4\r\nINFO\r\n"
#define SYNC_COMMAND "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$11\r\nappendfsync\r\n"

static struct {
    uint64_t looked_ms;
    char asked[ASKED_MAX][PEER_RUN_ID_MAX + 1]; /* run ids, the oldest overwritten */
    size_t asked_count;
    unsigned under_way; /* orders */
    uint32_t replicas;  /* that are asked for */
    struct address address;
    struct store_order info, sync;
    char *text; /* of INFO; NULL: not told */
    size_t text_len;
    char synced[SYNC_MAX + 1]; /* what appendfsync is; empty: not told */
} own;

static bool slot_find(const struct store *store, uint16_t primary, uint16_t *slot);
static bool is_asked(const char *run_id);
static void primary_ask(struct store *store, const struct store_conf *conf, uint16_t slot, uint64_t now_ms);
static void info_done(struct store_order *order, enum link_outcome outcome, const redisReply *reply);
static void sync_done(struct store_order *order, enum link_outcome outcome, const redisReply *reply);
static void order_end(void);
static void warnings_log(uint32_t warnings);

void store_probe_look(struct store *store, const struct store_conf *conf, uint64_t now_ms)
{
    const struct slot_map *map = topology_map(store_topology(store));
    uint16_t slot;
    if (own.under_way > 0 || now_ms - own.looked_ms < EVERY_MS)
        return;
    own.looked_ms = now_ms;
    for (uint16_t i = 0; i < map->count; i++) {
        const struct peer *peer = slot_find(store, i, &slot) ? store_peer(store, slot) : NULL;
        if (peer == NULL || peer->run_id[0] == '\0' || is_asked(peer->run_id))
            continue;
        ngx_memcpy(own.asked[own.asked_count++ % ASKED_MAX], peer->run_id, sizeof(peer->run_id));
        own.address = map->primaries[i].address;
        primary_ask(store, conf, slot, now_ms);
        return;
    }
}

static bool slot_find(const struct store *store, uint16_t primary, uint16_t *slot)
{
    const struct slot_map *map = topology_map(store_topology(store));
    for (*slot = 0; *slot < SLOTS; (*slot)++)
        if (map->of_slot[*slot] == primary)
            return true;
    return false;
}

static bool is_asked(const char *run_id)
{
    for (size_t i = 0; i < ngx_min(own.asked_count, ASKED_MAX); i++)
        if (ngx_strcmp(own.asked[i], run_id) == 0)
            return true;
    return false;
}

static void primary_ask(struct store *store, const struct store_conf *conf, uint16_t slot, uint64_t now_ms)
{
    own.under_way = 2;
    own.replicas = conf->replicas;
    own.synced[0] = '\0';
    own.info = (struct store_order){
        .slot = slot,
        .lane = STORE_LANE_MAIN,
        .bytes = SPAN(INFO_COMMAND),
        .deadline_ms = now_ms + conf->timeout_ms,
        .done = info_done,
    };
    own.sync = own.info;
    own.sync.bytes = SPAN(SYNC_COMMAND);
    own.sync.done = sync_done;
    store_send(store, &own.info, now_ms);
    store_send(store, &own.sync, now_ms);
}

static void info_done(struct store_order *order, enum link_outcome outcome, const redisReply *reply)
{
    if (outcome == LINK_ANSWERED && reply->type == REDIS_REPLY_STRING) {
        own.text = ngx_alloc(reply->len + 1, ngx_cycle->log);
        own.text_len = reply->len;
        if (own.text != NULL)
            ngx_memcpy(own.text, reply->str, reply->len);
    }
    order_end();
}

static void sync_done(struct store_order *order, enum link_outcome outcome, const redisReply *reply)
{
    const redisReply *value =
        outcome == LINK_ANSWERED && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2
            ? reply->element[1]
            : NULL;
    if (value != NULL && value->type == REDIS_REPLY_STRING && value->len <= SYNC_MAX) {
        ngx_memcpy(own.synced, value->str, value->len);
        own.synced[value->len] = '\0';
    }
    order_end();
}

static void order_end(void)
{
    if (--own.under_way > 0 || own.text == NULL)
        return;
    struct probe probe = {{own.text, own.text_len}, span_of(own.synced), own.replicas};
    warnings_log(probe_read(&probe));
    ngx_free(own.text);
    own.text = NULL;
}

static void warnings_log(uint32_t warnings)
{
    char text[ADDRESS_TEXT_MAX];
    address_write(&own.address, text);
    for (uint32_t i = 0; i < PROBE_COUNT; i++)
        if (warnings & 1U << i) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0, "weir_store, %s at %s: %s", probe_name(i), text,
                          probe_sentence(i));
        }
}
