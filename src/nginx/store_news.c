/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every worker has connections of its own and sees for itself; what all of them see is said by the first. The others say it too, for
 * those who want to know everything (error_log … info).
 *
 * Sentences come from the links: they are constant, and hold nothing that a server wrote.
 *
 * A server that is there and refuses is no trouble of the store's: it may be about one command. But somebody has to know.
 */
#include "nginx/store_news.h"

#include "nginx/store_secret.h"

#define TROUBLE_EVERY_MS 10000 /* another sentence about the same trouble */

static struct {
    const struct store_conf *conf;
    uint64_t begun_ms;
    bool is_fine;
    uint64_t version;    /* of the servers that were told of */
    const char *trouble; /* that was told of; NULL: none since it was fine */
    uint64_t trouble_ms;
    const char *refusal; /* that was told of last */
    uint64_t refusal_ms;
} told;

static void trouble_tell(const struct store *store, const char *trouble, uint64_t now_ms);
static void servers_tell(const struct store *store);
static const struct peer *peer_find_any(const struct store *store, struct address *address);
static ngx_uint_t level(ngx_uint_t of_first);

/* A worker that cannot read the file says so at once, and not only when the password is needed. */
void store_news_begin(const struct store_conf *conf)
{
    const struct store_login *logins[] = {&conf->url.login, &conf->url.sentinel_login};
    told.conf = conf;
    told.begun_ms = ngx_current_msec;
    for (size_t i = 0; i < sizeof(logins) / sizeof(logins[0]); i++) {
        struct store_text password;
        const char *refusal = store_secret_read(NULL, logins[i], &password);
        ngx_explicit_memzero(&password, sizeof(password));
        if (refusal != NULL)
            ngx_log_error(level(NGX_LOG_ERR), ngx_cycle->log, 0,
                          "weir_store, in a worker, password from the file \"%s\": %s",
                          logins[i]->secret.data, refusal);
    }
}

void store_news_tell(struct store *store, uint64_t now_ms)
{
    const char *trouble = store_trouble(store);
    if (trouble != NULL)
        trouble_tell(store, trouble, now_ms);
    else if (!told.is_fine || told.version != topology_version(store_topology(store)))
        servers_tell(store);
}

void store_news_tell_refusal(const char *refusal, uint64_t now_ms)
{
    bool is_told = told.refusal != NULL && now_ms - told.refusal_ms < TROUBLE_EVERY_MS;
    if (refusal == NULL || is_told)
        return;
    told.refusal = refusal;
    told.refusal_ms = now_ms;
    ngx_log_error(level(NGX_LOG_ERR), ngx_cycle->log, 0, "weir_store is refused: %s", refusal);
}

bool store_news_are_told(void)
{
    return told.is_fine || told.trouble != NULL;
}

/* At the beginning, as long as nobody has been asked in vain, nothing is wrong yet. */
static void trouble_tell(const struct store *store, const char *trouble, uint64_t now_ms)
{
    bool is_beginning = !store_news_are_told();
    bool is_known =
        topology_trouble(store_topology(store)) != NULL || now_ms - told.begun_ms >= STORE_TROUBLE_MS;
    if ((is_beginning && !is_known) || trouble == told.trouble)
        return;
    if (told.trouble != NULL && now_ms - told.trouble_ms < TROUBLE_EVERY_MS)
        return;
    told.is_fine = false;
    told.trouble = trouble;
    told.trouble_ms = now_ms;
    ngx_log_error(level(NGX_LOG_ERR), ngx_cycle->log, 0, "weir_store cannot serve: %s", trouble);
}

static void servers_tell(const struct store *store)
{
    const struct topology *topology = store_topology(store);
    struct address address;
    const struct peer *peer = peer_find_any(store, &address);
    if (peer == NULL)
        return; /* at the next turn, then */
    char text[ADDRESS_TEXT_MAX];
    address_write(&address, text);
    told.is_fine = true;
    told.trouble = NULL;
    told.version = topology_version(topology);
    const char *family = peer->is_valkey ? "Valkey" : "Redis";
    if (topology_is_cluster(topology)) {
        ngx_log_error(level(NGX_LOG_NOTICE), ngx_cycle->log, 0,
                      "weir_store serves: a cluster of %ui primaries, %s %s at %s among them",
                      (ngx_uint_t)topology_map(topology)->count, family, peer->version, text);
        return;
    }
    ngx_log_error(level(NGX_LOG_NOTICE), ngx_cycle->log, 0,
                  "weir_store serves: %s %s at %s, %s, %uD replicas", family, peer->version, text,
                  told.conf->url.is_sentinel ? "named by a sentinel" : "standalone", peer->replicas);
}

static const struct peer *peer_find_any(const struct store *store, struct address *address)
{
    const struct slot_map *map = topology_map(store_topology(store));
    for (uint16_t slot = 0; slot < SLOTS; slot++) {
        const struct peer *peer = map->of_slot[slot] == SLOT_MAP_NOBODY ? NULL : store_peer(store, slot);
        if (peer == NULL)
            continue;
        *address = map->primaries[map->of_slot[slot]].address;
        return peer;
    }
    return NULL;
}

static ngx_uint_t level(ngx_uint_t of_first)
{
    return ngx_worker == 0 ? of_first : NGX_LOG_INFO;
}
