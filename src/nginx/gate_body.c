/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The body belongs to the shop: nginx reads it as it would for proxy_pass, and the shop gets it as it came. It is looked at only
 * if its length was announced and is within BODY_MAX; a longer one, or one in chunks, goes by unread, and its sender shows the
 * pass elsewhere.
 *
 * jansson reads it, not our own reader: what a shop's clients put beside the pass (seats, prices) is nothing that we could bound.
 */
#include "nginx/gate_body.h"

#include "nginx/body.h"
#include "nginx/request.h"

#include <jansson.h>

static void body_go_on(ngx_http_request_t *r);
static struct span body_text(ngx_http_request_t *r);
static struct span field_read(ngx_http_request_t *r, struct span text, ngx_str_t field);

bool gate_body_is_wanted(ngx_http_request_t *r, const struct gate_conf *conf)
{
    return conf->field.len > 0 && r == r->main && r->request_body == NULL && !r->discard_body &&
           !r->headers_in.chunked && r->headers_in.content_length_n > 0 &&
           r->headers_in.content_length_n <= BODY_MAX;
}

ngx_int_t gate_body_read(ngx_http_request_t *r)
{
    ngx_int_t rc = ngx_http_read_client_request_body(r, body_go_on);
    if (rc >= NGX_HTTP_SPECIAL_RESPONSE)
        return rc;
    ngx_http_finalize_request(r, NGX_DONE);
    return NGX_DONE;
}

static void body_go_on(ngx_http_request_t *r)
{
    r->preserve_body = 1;
    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}

struct span gate_body_field(ngx_http_request_t *r, const struct gate_conf *conf)
{
    if (conf->field.len == 0 || r->headers_in.content_length_n > BODY_MAX || r->request_body == NULL)
        return SPAN_NONE;
    struct span text = body_text(r);
    return text.len > 0 ? field_read(r, text, conf->field) : SPAN_NONE;
}

/* In one piece; data NULL: there is none, or it cannot be had. */
static struct span body_text(ngx_http_request_t *r)
{
    char *text = ngx_pnalloc(r->pool, BODY_MAX);
    size_t len = 0;
    if (text == NULL)
        return SPAN_NONE;
    for (ngx_chain_t *piece = r->request_body->bufs; piece != NULL; piece = piece->next) {
        ngx_buf_t *buffer = piece->buf;
        off_t size = ngx_buf_size(buffer);
        if (size > (off_t)(BODY_MAX - len))
            return SPAN_NONE;
        if (ngx_buf_in_memory(buffer))
            ngx_memcpy(text + len, buffer->pos, (size_t)size);
        else if (buffer->in_file && ngx_read_file(buffer->file, (u_char *)text + len, (size_t)size,
                                                  buffer->file_pos) != (ssize_t)size)
            return SPAN_NONE;
        len += (size_t)size;
    }
    return (struct span){text, len};
}

static struct span field_read(ngx_http_request_t *r, struct span text, ngx_str_t field)
{
    struct span value = SPAN_NONE;
    json_t *body = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    json_t *member = json_object_getn(body, (const char *)field.data, field.len);
    if (json_is_string(member)) {
        size_t len = json_string_length(member);
        char *copy = ngx_pnalloc(r->pool, len + 1);
        if (copy != NULL) {
            ngx_memcpy(copy, json_string_value(member), len);
            value = (struct span){copy, len};
        }
    }
    json_decref(body);
    return value;
}
