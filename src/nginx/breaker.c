/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A breaker stands where a request asks its upstream for a peer. What it needs to know it learns at two places that nginx has for
 * every module that speaks to an upstream:
 *
 *   - the header filter, when the shop has answered: what it said counts then and there, not when the last byte of a long
 *     download is through;
 *   - the upstream's own finalize_request, which runs once for each request: whatever became of those that got no answer. There an
 *     answer that breaks off is seen too.
 *
 * The status is taken from the upstream's state: the shop's own, or the 502 or 504 that nginx made of its silence. A client that
 * goes away leaves none, and counts for nothing.
 *
 * Whoever is refused gets a peer.get that declines: so nginx serves what its cache may serve of such a moment
 * (proxy_cache_use_stale error), and logs nothing. Otherwise the request is set aside (breaker_aside.c).
 */
#include "nginx/breaker.h"

#include "base/must.h"
#include "nginx/breaker_visit.h"
#include "nginx/request.h"

static ngx_http_output_header_filter_pt next_header_filter;

static struct breaker_visit *visit_begin(ngx_http_request_t *r, const struct breaker_conf *conf);
static struct breaker_visit *visit_make(ngx_http_request_t *r, struct request *request);
static void visit_refuse(struct breaker_visit *visit);
static ngx_int_t peer_decline(ngx_peer_connection_t *pc, void *data);
static void visit_finalize(ngx_http_request_t *r, ngx_int_t rc);
static struct breaker_visit *visit_find(ngx_http_request_t *r);
static void refusal_note(struct breaker_visit *visit, ngx_int_t rc);
static enum breaker_outcome outcome_of(const ngx_http_upstream_t *u, ngx_int_t rc);
static bool is_answered(const ngx_http_upstream_t *u);
static void visit_count(struct breaker_visit *visit, enum breaker_outcome outcome, bool is_ours);
static bool may_retry(const struct breaker_visit *visit);
static bool is_told_when(const ngx_http_upstream_t *u);
static ngx_int_t breaker_header_filter(ngx_http_request_t *r);
static bool is_from_cache(const ngx_http_request_t *r);

ngx_int_t breaker_on_init(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
    const struct srv_conf *server = ngx_http_conf_upstream_srv_conf(us, ngx_http_weir_module);
    const struct breaker_conf *conf = server->breaker;
    struct breaker_visit *visit = visit_begin(r, conf);
    if (visit == NULL)
        return NGX_ERROR;
    bool is_retry = visit->is_retry;
    visit->is_retry = false;
    if (breaker_zone_begin(conf, is_retry, &visit->call, &visit->wait_sec))
        return conf->init(r, us);
    visit_refuse(visit);
    return NGX_OK;
}

static struct breaker_visit *visit_begin(ngx_http_request_t *r, const struct breaker_conf *conf)
{
    struct request *request = request_of(r);
    if (request == NULL || (request->breaker == NULL && visit_make(r, request) == NULL))
        return NULL;
    struct breaker_visit *visit = request->breaker;
    visit->conf = conf;
    visit->upstream = r->upstream;
    visit->is_refused = visit->is_counted = visit->is_good = false;
    visit->finalize = r->upstream->finalize_request;
    r->upstream->finalize_request = visit_finalize;
    breaker_keep(visit);
    return visit;
}

static struct breaker_visit *visit_make(ngx_http_request_t *r, struct request *request)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(struct breaker_visit));
    if (cleanup == NULL)
        return NULL;
    ngx_memzero(cleanup->data, sizeof(struct breaker_visit));
    cleanup->handler = breaker_forget;
    request->breaker = cleanup->data;
    request->breaker->r = r;
    return request->breaker;
}

static void visit_refuse(struct breaker_visit *visit)
{
    visit->is_refused = true;
    visit->upstream->peer.get = peer_decline;
    visit->upstream->peer.data = visit;
    visit->upstream->peer.tries = 0;
}

static ngx_int_t peer_decline(ngx_peer_connection_t *pc, void *data)
{
    const struct breaker_visit *visit = data;
    pc->name = (ngx_str_t *)&visit->conf->upstream;
    return NGX_DECLINED;
}

/* ---- the end ---- */

static void visit_finalize(ngx_http_request_t *r, ngx_int_t rc)
{
    struct breaker_visit *visit = visit_find(r);
    ngx_http_upstream_t *u = visit->upstream;
    visit->finalize(r, rc);
    if (visit->is_refused)
        refusal_note(visit, rc);
    else if (!visit->is_counted)
        visit_count(visit, outcome_of(u, rc), rc >= NGX_HTTP_INTERNAL_SERVER_ERROR);
    else if (visit->is_good && (rc == NGX_HTTP_BAD_GATEWAY || rc == NGX_HTTP_GATEWAY_TIME_OUT))
        breaker_zone_take_back(visit->conf, &visit->call);
    if (visit->next == BREAKER_GO_ON)
        return;
    r->error_page = 1; /* the operator's pages are for what is final */
    u->cacheable = 0;  /* and so are caches */
}

/* A redirect may have cleared what modules keep with the request; the pool has it all the same. */
static struct breaker_visit *visit_find(ngx_http_request_t *r)
{
    struct request *request = request_peek(r);
    struct breaker_visit *visit = request != NULL ? request->breaker : NULL;
    ngx_pool_cleanup_t *at = r->pool->cleanup;
    while (visit == NULL || visit->upstream != r->upstream) {
        visit = breaker_visit_next(&at);
        must(visit != NULL);
    }
    return visit;
}

static void refusal_note(struct breaker_visit *visit, ngx_int_t rc)
{
    if (visit->upstream->state != NULL)
        visit->upstream->state->status = NGX_HTTP_SERVICE_UNAVAILABLE;
    visit->upstream->cacheable = 0; /* a subrequest's too: it would outlast the breaker */
    if (rc == NGX_HTTP_BAD_GATEWAY && visit->r == visit->r->main)
        visit->next = BREAKER_REFUSE;
}

/* Neither a request that was cut off by its client nor one that nginx itself could not serve says anything of the shop. */
static enum breaker_outcome outcome_of(const ngx_http_upstream_t *u, ngx_int_t rc)
{
    if (rc == NGX_HTTP_CLIENT_CLOSED_REQUEST || u->state == NULL)
        return BREAKER_UNTOLD;
    if (u->state->status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
        return BREAKER_FAILED;
    return is_answered(u) ? BREAKER_GOOD : BREAKER_UNTOLD;
}

/* The whole head of it is here. */
static bool is_answered(const ngx_http_upstream_t *u)
{
    return u->state != NULL && u->state->status > 0 && u->state->header_time != (ngx_msec_t)-1;
}

/* `is_ours` to drop: nothing of the answer is sent yet, nor bound to be. */
static void visit_count(struct breaker_visit *visit, enum breaker_outcome outcome, bool is_ours)
{
    visit->is_counted = true;
    visit->is_good = outcome == BREAKER_GOOD;
    breaker_zone_end(visit->conf, &visit->call, outcome);
    if (outcome == BREAKER_FAILED && is_ours && may_retry(visit) && breaker_zone_grant_retry(visit->conf))
        visit->next = BREAKER_AGAIN;
}

/* ---- again ---- */

static bool may_retry(const struct breaker_visit *visit)
{
    const ngx_http_request_t *r = visit->r;
    if (visit->retries >= visit->conf->retries || (r->method & visit->conf->methods) == 0)
        return false;
    if (r != r->main || r->post_action || r->header_sent || r->connection->error)
        return false;
    if (r->content_handler == NULL || r->request_body_no_buffering)
        return false;
    switch (visit->upstream->state->status) {
    case NGX_HTTP_INTERNAL_SERVER_ERROR:
    case NGX_HTTP_BAD_GATEWAY:
    case NGX_HTTP_SERVICE_UNAVAILABLE:
    case NGX_HTTP_GATEWAY_TIME_OUT:
        return !is_answered(visit->upstream) || !is_told_when(visit->upstream);
    default:
        return false;
    }
}

/* A shop that says when to come back is believed. */
static bool is_told_when(const ngx_http_upstream_t *u)
{
    static const struct span name = SPAN("retry-after");
    for (const ngx_list_part_t *part = &u->headers_in.headers.part; part != NULL; part = part->next) {
        const ngx_table_elt_t *headers = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++)
            if (headers[i].key.len == name.len &&
                ngx_strncasecmp(headers[i].key.data, (u_char *)name.data, name.len) == 0)
                return true;
    }
    return false;
}

/* ---- the answer ---- */

/* A visit is never used again once it was refused: a fallback's is another one. */
uint32_t breaker_refused_sec(const ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *at = r->pool->cleanup;
    const struct breaker_visit *visit;
    while ((visit = breaker_visit_next(&at)) != NULL)
        if (visit->is_refused)
            return ngx_max(visit->wait_sec, 1);
    return 0;
}

ngx_int_t breaker_filter_init(ngx_conf_t *cf)
{
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = breaker_header_filter;
    return NGX_OK;
}

static ngx_int_t breaker_header_filter(ngx_http_request_t *r)
{
    struct request *request = request_peek(r);
    struct breaker_visit *visit = request != NULL ? request->breaker : NULL;
    if (visit == NULL || visit->upstream != r->upstream)
        return next_header_filter(r);
    if (visit->next != BREAKER_GO_ON)
        return breaker_set_aside(visit);
    if (visit->is_refused && r->err_status == NGX_HTTP_BAD_GATEWAY) /* a subrequest's */
        r->headers_out.status = NGX_HTTP_SERVICE_UNAVAILABLE;
    if (visit->is_refused || visit->is_counted || is_from_cache(r) || !is_answered(visit->upstream))
        return next_header_filter(r);
    visit_count(visit, outcome_of(visit->upstream, NGX_OK), true);
    /* nginx then ends the upstream's request with this, and comes here again with a page of its own. */
    return visit->next == BREAKER_AGAIN ? NGX_HTTP_SERVICE_UNAVAILABLE : next_header_filter(r);
}

static bool is_from_cache(const ngx_http_request_t *r)
{
#if (NGX_HTTP_CACHE)
    return r->cached;
#else
    return false;
#endif
}
