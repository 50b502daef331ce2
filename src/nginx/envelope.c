/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the API reads JSON; limit_req, a broken header or a method that nginx turns away would hand it an HTML page. The
 * header filter recognises such a page by `err_status`, which only nginx's own error answers set, exchanges the headers, and
 * the body filter exchanges the body. Where an operator's error_page answers, there is nothing to exchange.
 *
 * What is refused before a location is found belongs to no location: in a server that has an API it gets the envelope too.
 */
#include "nginx/envelope.h"

#include "nginx/family.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/shape.h"

#define LIMIT_REQ_REJECTED  3 /* ngx_http_limit_req_module keeps these to itself */
#define LIMIT_CONN_REJECTED 2

static ngx_http_output_header_filter_pt next_header_filter;
static ngx_http_output_body_filter_pt next_body_filter;

static ngx_int_t envelope_header_filter(ngx_http_request_t *r);
static ngx_int_t envelope_body_filter(ngx_http_request_t *r, ngx_chain_t *in);
static bool is_in_api(ngx_http_request_t *r);
static enum error error_of_page(ngx_http_request_t *r);
static ngx_int_t page_exchange(ngx_http_request_t *r, struct request *request, enum error error);

ngx_int_t envelope_init(ngx_conf_t *cf)
{
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = envelope_header_filter;
    next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = envelope_body_filter;
    return NGX_OK;
}

static ngx_int_t envelope_header_filter(ngx_http_request_t *r)
{
    if (r->err_status < NGX_HTTP_BAD_REQUEST || r != r->main || !is_in_api(r))
        return next_header_filter(r);
    enum error error = error_of_page(r);
    struct request *request = error != ERROR_NONE ? request_of(r) : NULL;
    if (request != NULL && !request->is_answered && page_exchange(r, request, error) != NGX_OK)
        return NGX_ERROR;
    return next_header_filter(r);
}

static bool is_in_api(ngx_http_request_t *r)
{
    struct srv_conf *server = ngx_http_get_module_srv_conf(r, ngx_http_weir_module);
    ngx_http_core_srv_conf_t *core = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    return conf_loc(r)->is_api || (server->has_api && r->loc_conf == core->ctx->loc_conf);
}

static enum error error_of_page(ngx_http_request_t *r)
{
    bool is_limited =
        r->limit_req_status == LIMIT_REQ_REJECTED || r->limit_conn_status == LIMIT_CONN_REJECTED;
    switch (r->err_status) {
    case NGX_HTTP_BAD_REQUEST:
    case NGX_HTTP_REQUEST_URI_TOO_LARGE:
        return ERROR_INVALID_REQUEST;
    case NGX_HTTP_NOT_FOUND:
        return ERROR_NOT_FOUND;
    case NGX_HTTP_NOT_ALLOWED:
        return ERROR_METHOD_NOT_ALLOWED;
    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return ERROR_BODY_TOO_LARGE;
    case NGX_HTTP_TOO_MANY_REQUESTS:
        return ERROR_RATE_LIMITED;
    case NGX_HTTP_INTERNAL_SERVER_ERROR:
    case NGX_HTTP_SERVICE_UNAVAILABLE:
        return is_limited ? ERROR_RATE_LIMITED : ERROR_ENGINE_UNAVAILABLE;
    default:
        return ERROR_NONE;
    }
}

static ngx_int_t page_exchange(ngx_http_request_t *r, struct request *request, enum error error)
{
    uint32_t wait_sec = reply_retry_after(error, 0);
    family_recognise(r);
    request->envelope = reply_envelope(r, error, wait_sec, SPAN_NONE);
    if (request->envelope == NULL || reply_common_headers(r) != NGX_OK)
        return NGX_ERROR;
    if (wait_sec > 0 && reply_header_number(r, SPAN("Retry-After"), wait_sec) != NGX_OK)
        return NGX_ERROR;
    if (error == ERROR_METHOD_NOT_ALLOWED &&
        reply_header(r, SPAN("Allow"), SPAN("GET, HEAD, POST, DELETE")) != NGX_OK)
        return NGX_ERROR;
    r->headers_out.status = shape_status(r, error);
    r->headers_out.status_line.len = 0;
    r->headers_out.content_length_n = request->envelope->last - request->envelope->pos;
    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    return NGX_OK;
}

static ngx_int_t envelope_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    struct request *request = request_peek(r);
    if (request == NULL || request->envelope == NULL || in == NULL)
        return next_body_filter(r, in);
    ngx_buf_t *body = request->envelope;
    if (body->last_buf) /* sent already: the rest of nginx's page goes nowhere */
        return next_body_filter(r, NULL);
    body->last_buf = 1;
    body->last_in_chain = 1;
    ngx_chain_t out = {body, NULL};
    return next_body_filter(r, &out);
}
