/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nginx would spool a body that does not fit its buffer to a file, chunk framing counted, before anybody could refuse it.
 * So the body is taken as it comes ("unbuffered"): the usual body has arrived with the headers and is used where it lies;
 * pieces are put together in the request's pool, and the first byte over the limit ends the reading.
 */
#include "nginx/body.h"

#include "nginx/request.h"

static void body_begin(ngx_http_request_t *r);
static void body_go_on(ngx_http_request_t *r);
static void body_end(ngx_http_request_t *r, struct body *body);
static ngx_int_t body_take(ngx_http_request_t *r, struct body *body);
static bool body_lies_whole(ngx_http_request_t *r, struct body *body);
static ngx_int_t buffer_append(ngx_http_request_t *r, struct body *body, ngx_buf_t *buffer);

ngx_int_t body_read(ngx_http_request_t *r, ngx_http_event_handler_pt then)
{
    struct body *body = &request_of(r)->body;
    body->then = then;
    if (r->headers_in.content_length_n > BODY_MAX) {
        body->error = ERROR_BODY_TOO_LARGE;
        r->expect_tested = 1; /* do not ask for what is refused */
        return body_skip(r, then);
    }
    r->request_body_no_buffering = 1;
    ngx_int_t rc = ngx_http_read_client_request_body(r, body_begin);
    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}

ngx_int_t body_skip(ngx_http_request_t *r, ngx_http_event_handler_pt then)
{
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    r->main->count++;
    then(r);
    return NGX_DONE;
}

static void body_begin(ngx_http_request_t *r)
{
    struct body *body = &request_of(r)->body;
    if (body_lies_whole(r, body)) {
        body->then(r);
        return;
    }
    bool is_sized = r->headers_in.content_length_n > 0 && !r->headers_in.chunked;
    body->size = is_sized ? (size_t)r->headers_in.content_length_n : BODY_MAX;
    body->memory = ngx_palloc(r->pool, body->size);
    if (body->memory == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }
    body->text.data = body->memory;
    r->read_event_handler = body_go_on;
    body_go_on(r);
}

static bool body_lies_whole(ngx_http_request_t *r, struct body *body)
{
    ngx_chain_t *pieces = r->request_body != NULL ? r->request_body->bufs : NULL;
    if (r->reading_body)
        return false;
    if (pieces == NULL)
        return true;
    ngx_buf_t *only = pieces->buf;
    if (pieces->next != NULL || !ngx_buf_in_memory(only) || only->last - only->pos > BODY_MAX)
        return false;
    body->text = (struct span){(const char *)only->pos, (size_t)(only->last - only->pos)};
    return true;
}

static void body_go_on(ngx_http_request_t *r)
{
    struct body *body = &request_of(r)->body;
    ngx_int_t rc = NGX_OK, taken = body_take(r, body);
    while (taken >= 0 && body->error == ERROR_NONE && r->reading_body) {
        rc = ngx_http_read_unbuffered_request_body(r);
        if (rc >= NGX_HTTP_SPECIAL_RESPONSE)
            break;
        taken = body_take(r, body);
        if (rc == NGX_AGAIN && taken == 0)
            return;
    }
    if (taken < 0 || rc >= NGX_HTTP_SPECIAL_RESPONSE)
        ngx_http_finalize_request(r, taken < 0 ? NGX_HTTP_INTERNAL_SERVER_ERROR : rc);
    else
        body_end(r, body);
}

static void body_end(ngx_http_request_t *r, struct body *body)
{
    r->read_event_handler = ngx_http_block_reading;
    if (r->connection->read->timer_set)
        ngx_del_timer(r->connection->read);
    if (body->error != ERROR_NONE)
        body->text = SPAN_NONE;
    body->then(r);
}

/* Moves what has arrived into our memory. How many buffers that were, or NGX_ERROR. */
static ngx_int_t body_take(ngx_http_request_t *r, struct body *body)
{
    ngx_int_t taken = 0;
    ngx_chain_t *piece = r->request_body->bufs;
    r->request_body->bufs = NULL;
    for (; piece != NULL && body->error == ERROR_NONE; piece = piece->next, taken++)
        if (buffer_append(r, body, piece->buf) != NGX_OK)
            return NGX_ERROR;
    return taken;
}

static ngx_int_t buffer_append(ngx_http_request_t *r, struct body *body, ngx_buf_t *buffer)
{
    off_t size = ngx_buf_size(buffer);
    if (size > (off_t)(body->size - body->text.len)) {
        body->error = ERROR_BODY_TOO_LARGE;
        return NGX_OK;
    }
    char *end = body->memory + body->text.len;
    if (ngx_buf_in_memory(buffer))
        ngx_memcpy(end, buffer->pos, (size_t)size);
    else if (buffer->in_file && /* somebody before us had nginx buffer it */
             ngx_read_file(buffer->file, (u_char *)end, (size_t)size, buffer->file_pos) != (ssize_t)size)
        return NGX_ERROR;
    buffer->pos = buffer->last;
    body->text.len += (size_t)size;
    return NGX_OK;
}
