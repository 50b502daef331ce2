/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_STORE_CONF_H
#define WEIR_NGINX_STORE_CONF_H

/* What weir_store says, made ready for workers that have no rights and no environment. */

#include "nginx/conf.h"
#include "redis/store_url.h"

#include <ngx_event.h>

/* A host name of the URL, as it was resolved when the configuration was read. */
struct store_host {
    const char *name;
    ngx_addr_t *addresses; /* with a port, which is anybody's */
    ngx_uint_t count;      /* 0: it could not be resolved */
};

struct store_conf {
    struct store_url url; /* a password of the environment stands in it as if it had been given */
    uint64_t since_ms;    /* when it was read, by the wall clock */
    uint32_t timeout_ms;
    uint32_t replicas;
    struct store_host hosts[STORE_ADDRESSES_MAX];
    size_t host_count;
#if (NGX_SSL)
    ngx_ssl_t *ssl; /* NULL: no TLS */
#endif
};

/* Once everything is read: names are resolved, now or by nginx's resolver later. */
ngx_int_t store_conf_finish(ngx_conf_t *cf, struct store_conf *store);

/* The resolver of the http block; NULL: it has none. */
ngx_resolver_t *store_conf_resolver(const ngx_http_core_loc_conf_t *core);

#endif
