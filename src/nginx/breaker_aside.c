/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nginx tries the next peer at once or not at all: nothing of an upstream's request can wait. So a retry is a new one. The
 * request that failed is taken out of nginx's hands when nginx is about to send its error page, put back to what it was
 * before its content handler ran, and handed to that same handler again after the wait. No phase runs twice: neither a gate nor
 * a limit sees it again. What the shop answered meanwhile was not sent, and a shop's own 5xx that is not tried again goes to the
 * client untouched, which no error_page would leave it.
 *
 * To be taken out in the middle of sending: the page's header is reported as all there is to send (header_only), and
 * NGX_DONE makes nginx give up its hold on the request, of which we have added one. From then on it is a request that waits
 * for an event, like one under limit_req; its client may go away meanwhile. A refusal takes the same way, without the wait.
 */
#include "nginx/breaker_visit.h"

#include "nginx/reply.h"

static void list_keep(struct breaker_list *list, const ngx_list_t *headers);
static void list_restore(const struct breaker_list *list, ngx_list_t *headers);
static void aside_wait(struct breaker_visit *visit);
static void aside_end(ngx_event_t *event);
static void before_restore(struct breaker_visit *visit);
static ngx_int_t aside_go_on(struct breaker_visit *visit);
static ngx_int_t content_run_again(struct breaker_visit *visit);
static ngx_int_t refusal_send(struct breaker_visit *visit);
static bool has_location(ngx_http_request_t *r, ngx_str_t name);
static bool was_sent_on(const struct breaker_visit *visit);

void breaker_keep(struct breaker_visit *visit)
{
    const ngx_http_request_t *r = visit->r;
    struct breaker_before *before = &visit->before;
    before->headers_out = r->headers_out;
    before->header_only = r->header_only;
    before->error_page = r->error_page;
    before->keepalive = r->keepalive;
    before->err_status = r->err_status;
    before->limit_rate = r->limit_rate;
    before->is_limit_rate_set = r->limit_rate_set;
    list_keep(&before->headers, &r->headers_out.headers);
    list_keep(&before->trailers, &r->headers_out.trailers);
}

static void list_keep(struct breaker_list *list, const ngx_list_t *headers)
{
    *list = (struct breaker_list){headers->last, headers->last->nelts};
}

ngx_int_t breaker_set_aside(struct breaker_visit *visit)
{
    ngx_http_request_t *r = visit->r;
    ngx_connection_t *c = r->connection;
    r->header_only = 1;
    r->main->count++;
    r->write_event_handler = ngx_http_request_empty_handler;
    if (!visit->upstream->conf->ignore_client_abort) {
        r->read_event_handler = ngx_http_test_reading;
        if (c->read->ready) {
            ngx_post_event(c->read, &ngx_posted_events);
        }
    }
    aside_wait(visit);
    return NGX_DONE;
}

static void aside_wait(struct breaker_visit *visit)
{
    visit->event.handler = aside_end;
    visit->event.data = visit->r->connection; /* nginx's debug log asks an event for its descriptor */
    visit->event.log = visit->r->connection->log;
    if (visit->next == BREAKER_AGAIN) {
        visit->retries++;
        ngx_add_timer(&visit->event,
                      breaker_backoff_ms(visit->conf->backoff_ms, visit->retries, (uint32_t)ngx_random()));
    } else
        ngx_post_event(&visit->event, &ngx_posted_events);
}

void breaker_forget(void *data)
{
    struct breaker_visit *visit = data;
    if (visit->event.timer_set)
        ngx_del_timer(&visit->event);
    if (visit->event.posted) {
        ngx_delete_posted_event(&visit->event);
    }
}

struct breaker_visit *breaker_visit_next(ngx_pool_cleanup_t **at)
{
    while (*at != NULL) {
        ngx_pool_cleanup_t *cleanup = *at;
        *at = cleanup->next;
        if (cleanup->handler == breaker_forget)
            return cleanup->data;
    }
    return NULL;
}

static void aside_end(ngx_event_t *event)
{
    struct breaker_visit *visit =
        (struct breaker_visit *)(void *)((u_char *)event - offsetof(struct breaker_visit, event));
    ngx_http_request_t *r = visit->r;
    ngx_connection_t *c = r->connection;
    ngx_http_set_log_request(c->log, r);
    before_restore(visit);
    ngx_http_finalize_request(r, aside_go_on(visit));
    ngx_http_run_posted_requests(c);
}

static void before_restore(struct breaker_visit *visit)
{
    ngx_http_request_t *r = visit->r;
    const struct breaker_before *before = &visit->before;
    r->headers_out = before->headers_out;
    list_restore(&before->headers, &r->headers_out.headers);
    list_restore(&before->trailers, &r->headers_out.trailers);
    r->header_only = before->header_only;
    r->error_page = before->error_page;
    r->keepalive = before->keepalive;
    r->err_status = visit->next == BREAKER_AGAIN ? before->err_status : 0; /* a refusal has its own */
    r->limit_rate = before->limit_rate;
    r->limit_rate_set = before->is_limit_rate_set;
    r->read_event_handler = ngx_http_block_reading;
}

static void list_restore(const struct breaker_list *list, ngx_list_t *headers)
{
    headers->last = list->last;
    headers->last->nelts = list->count;
    headers->last->next = NULL;
}

static ngx_int_t aside_go_on(struct breaker_visit *visit)
{
    visit->is_retry = visit->next == BREAKER_AGAIN;
    visit->next = BREAKER_GO_ON;
    visit->upstream = NULL; /* that one is over */
    return visit->is_retry ? content_run_again(visit) : refusal_send(visit);
}

static ngx_int_t content_run_again(struct breaker_visit *visit)
{
    ngx_http_request_t *r = visit->r;
#if (NGX_HTTP_CACHE)
    r->cache = NULL; /* as in an internal redirect */
#endif
    return r->content_handler(r);
}

static ngx_int_t refusal_send(struct breaker_visit *visit)
{
    ngx_http_request_t *r = visit->r;
    ngx_str_t fallback = visit->conf->fallback;
    if (fallback.len > 0 && has_location(r, fallback) && !was_sent_on(visit) && !r->request_body_no_buffering)
        return ngx_http_named_location(r, &fallback);
    return reply_error(r, ERROR_SERVICE_UNAVAILABLE, visit->wait_sec);
}

/* Some server has it, or else nginx would not have started; not each needs to. */
static bool has_location(ngx_http_request_t *r, ngx_str_t name)
{
    const ngx_http_core_srv_conf_t *server = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    ngx_http_core_loc_conf_t **locations = server->named_locations;
    for (; locations != NULL && *locations != NULL; locations++)
        if (span_equal(span_of_str((*locations)->name), span_of_str(name)))
            return true;
    return false;
}

/* To the same fallback, before: its own upstream has refused since, or another fallback has led back here. */
static bool was_sent_on(const struct breaker_visit *visit)
{
    ngx_pool_cleanup_t *at = visit->r->pool->cleanup;
    const struct breaker_visit *other;
    while ((other = breaker_visit_next(&at)) != NULL)
        if (other != visit && other->r == visit->r && other->is_refused &&
            span_equal(span_of_str(other->conf->fallback), span_of_str(visit->conf->fallback)))
            return true;
    return false;
}
