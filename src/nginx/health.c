/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alive and ready are two questions: a process that is not ready must not be killed for it. Neither waits for anything, so that
 * a slow engine does not take every node out of service at once.
 */
#include "nginx/health.h"

#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"
#include "nginx/worker.h"

#define READY_BYTES 64

static ngx_int_t health_tell(ngx_http_request_t *r, ngx_uint_t status, struct span json);
static ngx_int_t health_refuse(ngx_http_request_t *r);
static ngx_int_t ready_tell(ngx_http_request_t *r);
static ngx_int_t ready_refuse(ngx_http_request_t *r, const char *trouble);

ngx_int_t health_handler(ngx_http_request_t *r)
{
    struct span name;
    if (request_of(r) == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    if (!request_tail(r, &name) || !(span_equal(name, SPAN("healthz")) || span_equal(name, SPAN("readyz"))))
        return reply_error(r, ERROR_NOT_FOUND, 0);
    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)))
        return health_refuse(r);
    return span_equal(name, SPAN("healthz")) ? health_tell(r, NGX_HTTP_OK, SPAN("{\"status\":\"ok\"}"))
                                             : ready_tell(r);
}

static ngx_int_t health_refuse(ngx_http_request_t *r)
{
    if (reply_header(r, SPAN("Allow"), SPAN("GET, HEAD")) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_error(r, ERROR_METHOD_NOT_ALLOWED, 0);
}

static ngx_int_t ready_tell(ngx_http_request_t *r)
{
    const char *trouble = worker_trouble();
    return trouble == NULL ? health_tell(r, NGX_HTTP_OK, SPAN("{\"status\":\"ready\"}"))
                           : ready_refuse(r, trouble);
}

static ngx_int_t ready_refuse(ngx_http_request_t *r, const char *trouble)
{
    ngx_buf_t *body = reply_buffer(r, READY_BYTES + 2 * ngx_strlen(trouble));
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"status\":\"not ready\",\"missing\":[\"");
    text_add_message(body, span_of(trouble));
    TEXT_ADD(body, "\"]}");
    return reply_json(r, NGX_HTTP_SERVICE_UNAVAILABLE, body);
}

static ngx_int_t health_tell(ngx_http_request_t *r, ngx_uint_t status, struct span json)
{
    ngx_buf_t *body = reply_buffer(r, json.len);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    text_add(body, json);
    return reply_json(r, status, body);
}
