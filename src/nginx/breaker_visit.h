/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_BREAKER_VISIT_H
#define WEIR_NGINX_BREAKER_VISIT_H

/* A request at an upstream that has a breaker. */

#include "nginx/breaker.h"

enum breaker_next {
    BREAKER_GO_ON,  /* with whatever nginx or the shop answers */
    BREAKER_REFUSE, /* the breaker answers */
    BREAKER_AGAIN,  /* after a while, all over */
};

/* A list of headers, cut back to what it held: nginx only ever adds to it. */
struct breaker_list {
    ngx_list_part_t *last;
    ngx_uint_t count;
};

/* What a request was like before its content handler ran. */
struct breaker_before {
    ngx_http_headers_out_t headers_out;
    struct breaker_list headers, trailers;
    bool header_only, error_page, keepalive;
    ngx_uint_t err_status; /* of an error page that the shop makes */
    size_t limit_rate;
    bool is_limit_rate_set;
};

struct breaker_visit {
    ngx_http_request_t *r;
    const struct breaker_conf *conf;
    ngx_http_upstream_t *upstream;
    void (*finalize)(ngx_http_request_t *r, ngx_int_t rc); /* of whatever speaks to it */
    struct breaker_call call;
    bool is_refused;
    bool is_counted, is_good; /* the shop has answered, or never will; well */
    uint32_t wait_sec;        /* for whoever is refused */
    uint32_t retries;         /* so far */
    bool is_retry;            /* the next to begin is one */
    enum breaker_next next;
    struct breaker_before before;
    ngx_event_t event;
};

/* ---- breaker_aside.c ---- */

/* Remembers what breaker_set_aside goes back to. */
void breaker_keep(struct breaker_visit *visit);

/*
 * For the header filter, in the middle of nginx's own answer for a request that failed: that answer is dropped, and visit->next
 * happens in its place. What it returns is to be returned.
 */
ngx_int_t breaker_set_aside(struct breaker_visit *visit);

/* Of the pool: nothing comes back to a request that is over. By it visits are known among the pool's cleanups. */
void breaker_forget(void *data);

/* The visits of a request and its subrequests, one after the other, from r->pool->cleanup on. NULL: no more. */
struct breaker_visit *breaker_visit_next(ngx_pool_cleanup_t **at);

#endif
