/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that a worker may not be able to do is done here, by the master and by nginx -t: the environment is read, which
 * workers do not have, keys and certificates are, which their user may not read, and names are resolved, which blocks.
 *
 * No message quotes the URL. nginx names the directive, the file and the line; what is wrong says store_url_read.
 */
#include "nginx/store_conf.h"

#include "nginx/store.h"
#include "nginx/store_secret.h"
#include "nginx/store_tls.h"

#define TIMEOUT_MS       2000
#define TIMEOUT_LEAST_MS 100
#define TIMEOUT_MOST_MS  60000
#define REPLICAS_MOST    100

enum part { PART_TIMEOUT = 1, PART_REPLICAS = 2, PART_ROOMS = 4 };

static char *parts_read(ngx_conf_t *cf, struct main_conf *conf);
static char *part_read(const ngx_str_t *word, struct main_conf *conf, unsigned *said);
static char *timeout_read(ngx_str_t value, struct main_conf *conf);
static char *replicas_read(ngx_str_t value, struct main_conf *conf);
static char *rooms_read(ngx_str_t value, struct main_conf *conf);
static char *url_take(ngx_conf_t *cf, struct store_conf *store);
static void url_forget(void *data);
static struct store_host *host_add(struct store_conf *store, const struct address *address);
static ngx_int_t host_resolve(ngx_conf_t *cf, struct store_host *host, const struct address *address);

char *store_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct main_conf *conf = data;
    if (conf->store != NULL)
        return "is duplicate: one store keeps all rooms";
    if (conf->shm != NULL)
        return "cannot stand beside weir_zone: one of them keeps the rooms";
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, sizeof(struct store_conf));
    if (cleanup == NULL)
        return NGX_CONF_ERROR;
    conf->store = cleanup->data;
    ngx_memzero(conf->store, sizeof(*conf->store));
    const ngx_time_t *now = ngx_timeofday();
    conf->store->since_ms = (uint64_t)now->sec * 1000 + now->msec;
    cleanup->handler = url_forget;
    char *answer = parts_read(cf, conf);
    return answer == NGX_CONF_OK ? url_take(cf, conf->store) : answer;
}

static void url_forget(void *data)
{
    struct store_conf *store = data;
    store_url_forget(&store->url);
}

static char *parts_read(ngx_conf_t *cf, struct main_conf *conf)
{
    const ngx_str_t *words = cf->args->elts;
    unsigned said = 0;
    conf->rooms_max = CONF_ROOMS_DEFAULT;
    conf->store->timeout_ms = TIMEOUT_MS;
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        char *answer = part_read(&words[i], conf, &said);
        if (answer != NGX_CONF_OK)
            return answer;
    }
    return NGX_CONF_OK;
}

static char *part_read(const ngx_str_t *word, struct main_conf *conf, unsigned *said)
{
    static const struct {
        const char *prefix;
        enum part part;
        char *(*read)(ngx_str_t value, struct main_conf *conf);
    } parts[] = {{"timeout=", PART_TIMEOUT, timeout_read},
                 {"replicas=", PART_REPLICAS, replicas_read},
                 {"rooms=", PART_ROOMS, rooms_read}};
    ngx_str_t value;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!conf_parameter(word, parts[i].prefix, &value))
            continue;
        if (*said & parts[i].part)
            return "says the same thing twice";
        *said |= parts[i].part;
        return parts[i].read(value, conf);
    }
    return "knows a URL and timeout=, replicas= and rooms=";
}

static char *timeout_read(ngx_str_t value, struct main_conf *conf)
{
    ngx_int_t ms = ngx_parse_time(&value, 0);
    if (ms == NGX_ERROR || ms < TIMEOUT_LEAST_MS || ms > TIMEOUT_MOST_MS)
        return "takes timeout=TIME with a time from 100ms to 60s";
    conf->store->timeout_ms = (uint32_t)ms;
    return NGX_CONF_OK;
}

static char *replicas_read(ngx_str_t value, struct main_conf *conf)
{
    ngx_int_t replicas = ngx_atoi(value.data, value.len);
    if (replicas == NGX_ERROR || replicas > REPLICAS_MOST)
        return "takes replicas=N with N from 0 to 100";
    conf->store->replicas = (uint32_t)replicas;
    return NGX_CONF_OK;
}

static char *rooms_read(ngx_str_t value, struct main_conf *conf)
{
    ngx_int_t rooms = ngx_atoi(value.data, value.len);
    if (rooms < 1 || rooms > CONF_ROOMS_MOST)
        return "takes rooms=N with N from 1 to 100000";
    conf->rooms_max = (uint32_t)rooms;
    return NGX_CONF_OK;
}

static char *url_take(ngx_conf_t *cf, struct store_conf *store)
{
    const ngx_str_t *words = cf->args->elts;
    struct store_url *url = &store->url;
    const char *refusal = store_url_read(span_of_str(words[1]), url);
    if (refusal != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir_store: %s", refusal);
        return NGX_CONF_ERROR;
    }
    if (store_secret_prepare(cf, &url->login) != NGX_OK ||
        store_secret_prepare(cf, &url->sentinel_login) != NGX_OK || store_tls_prepare(cf, store) != NGX_OK)
        return NGX_CONF_ERROR;
    return NGX_CONF_OK;
}

/* ---- names ---- */

ngx_int_t store_conf_finish(ngx_conf_t *cf, struct store_conf *store)
{
    const ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    bool has_resolver = store_conf_resolver(core) != NULL;
    for (size_t i = 0; i < store->url.address_count; i++) {
        const struct address *address = &store->url.addresses[i];
        struct store_host *host = host_add(store, address);
        if (host == NULL || host_resolve(cf, host, address) == NGX_OK || has_resolver)
            continue;
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "weir_store names the host \"%s\", which cannot be resolved",
                      host->name);
        return NGX_ERROR;
    }
    return NGX_OK;
}

/* NULL: it is there already. */
static struct store_host *host_add(struct store_conf *store, const struct address *address)
{
    for (size_t i = 0; i < store->host_count; i++)
        if (strcasecmp(store->hosts[i].name, address->host) == 0)
            return NULL;
    struct store_host *host = &store->hosts[store->host_count++];
    *host = (struct store_host){.name = address->host};
    return host;
}

static ngx_int_t host_resolve(ngx_conf_t *cf, struct store_host *host, const struct address *address)
{
    char text[ADDRESS_TEXT_MAX];
    ngx_str_t told = {address_write(address, text), (u_char *)text};
    ngx_url_t url = {.default_port = address->port};
    url.url.len = told.len;
    url.url.data = ngx_pstrdup(cf->pool, &told);
    if (url.url.data == NULL || ngx_parse_url(cf->pool, &url) != NGX_OK)
        return NGX_ERROR;
    host->addresses = url.addrs;
    host->count = url.naddrs;
    return NGX_OK;
}

/* Where none is written, nginx has one without servers. */
ngx_resolver_t *store_conf_resolver(const ngx_http_core_loc_conf_t *core)
{
    return core->resolver != NULL && core->resolver->connections.nelts > 0 ? core->resolver : NULL;
}
