/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_BREAKER_H
#define WEIR_NGINX_BREAKER_H

/* weir_breaker and weir_retry, of an upstream{}: a failing shop is left alone, and what can be tried again is. */

#include "base/breaker.h"
#include "nginx/conf.h"

struct breaker_shared; /* breaker_zone.c */

struct breaker_conf {
    ngx_str_t upstream; /* its name */
    struct breaker_options options;
    ngx_str_t fallback;  /* the named location that answers while it is open; empty: the envelope does */
    uint32_t retries;    /* of a request at most; 0: no weir_retry */
    uint32_t backoff_ms; /* before the first of them */
    ngx_uint_t methods;  /* that may be tried again */
    struct conf_mention at, retry;       /* of weir_breaker, of weir_retry */
    ngx_http_upstream_init_peer_pt init; /* of whatever shares out the load */
    struct breaker_shared *shared;
};

char *breaker_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);
char *breaker_retry_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* Once everything is read: what is needed is there, and each breaker stands before its upstream. */
ngx_int_t breaker_conf_finish(ngx_conf_t *cf);

/* The upstream's peer.init. */
ngx_int_t breaker_on_init(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us);

/*
 * For how long a breaker that has refused this request, or a part of it, will go on refusing; 0 if none has. Whoever answered it
 * then (our 503, a fallback, a cache), that says nothing about the shop. For any time up to the log phase.
 */
uint32_t breaker_refused_sec(const ngx_http_request_t *r);

/* The filter by which answers of a shop are seen. It belongs above all others of ours. */
ngx_int_t breaker_filter_init(ngx_conf_t *cf);

/* ---- breaker_zone.c: the breaker itself, shared by all workers. Changes of its state are logged. ---- */

ngx_int_t breaker_zone_add(ngx_conf_t *cf, struct breaker_conf *conf);

/* The new configuration holds: so do its options. */
void breaker_zone_settle(const struct main_conf *conf);

/* False: it is refused, and may come back after so many seconds. */
bool breaker_zone_begin(const struct breaker_conf *conf, bool is_retry, struct breaker_call *call,
                        uint32_t *wait_sec);
void breaker_zone_end(const struct breaker_conf *conf, const struct breaker_call *call,
                      enum breaker_outcome outcome);
void breaker_zone_take_back(const struct breaker_conf *conf, const struct breaker_call *call);
bool breaker_zone_grant_retry(const struct breaker_conf *conf);

/* All of it, as it is at this moment. */
struct breaker breaker_zone_look(const struct breaker_conf *conf);

#endif
