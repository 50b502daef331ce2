/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An answer is a few hundred bytes: one buffer, written once, sent with its length. Everything that goes into the JSON is a
 * number, a token of ours, a room id or a request id, all of alphabets that need no escaping; but for a message that quotes.
 * How an error is worded is shape.c's.
 */
#include "nginx/reply.h"

#include "nginx/cors.h"
#include "nginx/request.h"
#include "nginx/shape.h"

static ngx_int_t reply_send(ngx_http_request_t *r, ngx_uint_t status, ngx_chain_t *body);
static ngx_int_t reply_body(ngx_http_request_t *r, ngx_int_t head, ngx_chain_t *body);
static ngx_int_t reply_begin(ngx_http_request_t *r, ngx_uint_t status, struct span cache_control);
static ngx_int_t reply_headers(ngx_http_request_t *r, struct span cache_control);
static void type_set(ngx_http_request_t *r, struct span type);

ngx_buf_t *reply_buffer(ngx_http_request_t *r, size_t size)
{
    return ngx_create_temp_buf(r->pool, size);
}

ngx_int_t reply_json(ngx_http_request_t *r, ngx_uint_t status, ngx_buf_t *body)
{
    ngx_chain_t piece = {body, NULL};
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_json_pieces(r, status, &piece, body->last - body->pos);
}

ngx_int_t reply_json_pieces(ngx_http_request_t *r, ngx_uint_t status, ngx_chain_t *body, off_t bytes)
{
    type_set(r, SPAN("application/json"));
    r->headers_out.content_length_n = bytes;
    return reply_send(r, status, body);
}

ngx_int_t reply_words(ngx_http_request_t *r, struct span words)
{
    ngx_buf_t *body = reply_buffer(r, words.len);
    if (body != NULL)
        body->last = ngx_cpymem(body->last, words.data, words.len);
    return reply_json(r, NGX_HTTP_OK, body);
}

ngx_int_t reply_public(ngx_http_request_t *r, struct span type, uint32_t max_age_sec, ngx_buf_t *body)
{
    ngx_chain_t piece = {body, NULL};
    u_char *text = ngx_pnalloc(r->pool, sizeof("public, max-age=") + NGX_INT32_LEN);
    if (body == NULL || text == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    u_char *end = ngx_sprintf(text, "public, max-age=%uD", max_age_sec);
    type_set(r, type);
    r->headers_out.content_length_n = body->last - body->pos;
    struct span cache_control = {(const char *)text, (size_t)(end - text)};
    return reply_body(r, reply_begin(r, NGX_HTTP_OK, cache_control), &piece);
}

static void type_set(ngx_http_request_t *r, struct span type)
{
    r->headers_out.content_type = (ngx_str_t){type.len, (u_char *)type.data};
    r->headers_out.content_type_len = type.len;
}

ngx_int_t reply_empty(ngx_http_request_t *r, ngx_uint_t status)
{
    r->header_only = 1;
    if (status != NGX_HTTP_NO_CONTENT)
        r->headers_out.content_length_n = 0;
    return reply_send(r, status, NULL);
}

static ngx_int_t reply_send(ngx_http_request_t *r, ngx_uint_t status, ngx_chain_t *body)
{
    return reply_body(r, reply_open(r, status), body);
}

/* `head` is what sending the header gave. */
static ngx_int_t reply_body(ngx_http_request_t *r, ngx_int_t head, ngx_chain_t *body)
{
    if (head == NGX_ERROR || head > NGX_OK || r->header_only || body == NULL)
        return head;
    ngx_chain_t *last = body;
    while (last->next != NULL)
        last = last->next;
    last->buf->last_buf = r == r->main;
    last->buf->last_in_chain = 1;
    return ngx_http_output_filter(r, body);
}

ngx_int_t reply_open(ngx_http_request_t *r, ngx_uint_t status)
{
    return reply_begin(r, status, SPAN("no-store"));
}

static ngx_int_t reply_begin(ngx_http_request_t *r, ngx_uint_t status, struct span cache_control)
{
    request_of(r)->is_answered = true;
    r->err_status = 0; /* what an error_page on the way here made of the status */
    r->headers_out.status = status;
    if (reply_headers(r, cache_control) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return ngx_http_send_header(r);
}

ngx_int_t reply_common_headers(ngx_http_request_t *r)
{
    return reply_headers(r, SPAN("no-store"));
}

static ngx_int_t reply_headers(ngx_http_request_t *r, struct span cache_control)
{
    struct request *request = request_of(r);
    if (request == NULL || reply_header(r, SPAN("Cache-Control"), cache_control) != NGX_OK)
        return NGX_ERROR;
    if (reply_header(r, SPAN("X-Request-ID"), request->id) != NGX_OK)
        return NGX_ERROR;
    return cors_headers(r, request);
}

ngx_int_t reply_error(ngx_http_request_t *r, enum error error, uint32_t retry_after_sec)
{
    return reply_error_saying(r, error, retry_after_sec, span_of(error_info(error)->message));
}

ngx_int_t reply_error_saying(ngx_http_request_t *r, enum error error, uint32_t retry_after_sec,
                             struct span message)
{
    uint32_t wait_sec = reply_retry_after(error, retry_after_sec);
    if (wait_sec > 0 && reply_header_number(r, SPAN("Retry-After"), wait_sec) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    const struct shape_said said = {error, message, wait_sec, SPAN_NONE};
    return reply_json(r, shape_status(r, error), shape_write(r, &said));
}

ngx_int_t reply_error_with_redirect(ngx_http_request_t *r, enum error error, struct span redirect_to)
{
    return reply_json(r, shape_status(r, error), reply_envelope(r, error, 0, redirect_to));
}

ngx_buf_t *reply_envelope(ngx_http_request_t *r, enum error error, uint32_t retry_after_sec,
                          struct span redirect_to)
{
    const struct shape_said said = {error, span_of(error_info(error)->message), retry_after_sec, redirect_to};
    return shape_write(r, &said);
}

uint32_t reply_retry_after(enum error error, uint32_t retry_after_sec)
{
    if (retry_after_sec > 0)
        return retry_after_sec;
    switch (error) {
    case ERROR_RATE_LIMITED:
        return 1;
    case ERROR_ENGINE_UNAVAILABLE:
        return 2;
    case ERROR_QUEUE_FULL:
    case ERROR_ROOM_CLOSED:
        return 30;
    default:
        return 0;
    }
}

ngx_int_t reply_header(ngx_http_request_t *r, struct span name, struct span value)
{
    ngx_table_elt_t *header = ngx_list_push(&r->headers_out.headers);
    if (header == NULL)
        return NGX_ERROR;
    ngx_memzero(header, sizeof(*header));
    header->hash = 1;
    header->key = (ngx_str_t){name.len, (u_char *)name.data};
    header->value = (ngx_str_t){value.len, (u_char *)value.data};
    return NGX_OK;
}

ngx_int_t reply_header_number(ngx_http_request_t *r, struct span name, uint32_t value)
{
    u_char *text = ngx_pnalloc(r->pool, NGX_INT32_LEN + 1);
    if (text == NULL)
        return NGX_ERROR;
    u_char *end = ngx_sprintf(text, "%uD", value);
    return reply_header(r, name, (struct span){(const char *)text, (size_t)(end - text)});
}
