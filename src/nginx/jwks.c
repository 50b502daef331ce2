/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one answer of ours that any cache may keep: it is the same for everybody and has nothing secret in it. Five minutes
 * are what a new key needs to be known everywhere, and so how long it should be `next` before it signs.
 */
#include "nginx/jwks.h"

#include "nginx/reply.h"
#include "nginx/request.h"
#include "token/jwks.h"

#define MAX_AGE_SEC 300

ngx_int_t jwks_handler(ngx_http_request_t *r)
{
    if (request_of(r) == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD))) {
        if (reply_header(r, SPAN("Allow"), SPAN("GET, HEAD")) != NGX_OK)
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        return reply_error(r, ERROR_METHOD_NOT_ALLOWED, 0);
    }
    ngx_buf_t *body = reply_buffer(r, JWKS_MAX);
    if (body != NULL)
        body->last += jwks_write(conf_main(r)->keys, conf_loc(r)->jwks_tier, (char *)body->last);
    return reply_public(r, SPAN("application/jwk-set+json"), MAX_AGE_SEC, body);
}

bool jwks_tier_read(const ngx_str_t *word, int *tier)
{
    ngx_str_t value;
    if (!conf_parameter(word, "tier=", &value) || value.len != 1 || value.data[0] < '1' ||
        value.data[0] > '2')
        return false;
    *tier = value.data[0] - '0';
    return true;
}
