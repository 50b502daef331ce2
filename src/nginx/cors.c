/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Origins are compared byte for byte with the list: they come with credentials, and a pattern that matches one host too many
 * would hand those to it. An origin that is not named gets a plain answer without the headers, which the browser keeps from
 * the page.
 */
#include "nginx/cors.h"

#include "nginx/reply.h"
#include "nginx/request.h"

#define HEADERS                                                                                    \
    "Origin, Content-Type, Accept, Authorization, X-Requested-With, Idempotency-Key, X-Trace-Id, " \
    "X-Request-ID, x-queue-entry-token"

static bool origin_is_written_in_full(ngx_str_t origin);
static bool origin_is_named(ngx_http_request_t *r, struct span origin);

char *cors_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->origins != NGX_CONF_UNSET_PTR)
        return "is duplicate";
    conf->origins = NULL;
    if (cf->args->nelts == 2 && span_equal(span_of_str(words[1]), SPAN("off")))
        return NGX_CONF_OK;
    conf->origins = ngx_array_create(cf->pool, cf->args->nelts - 1, sizeof(ngx_str_t));
    if (conf->origins == NULL)
        return NGX_CONF_ERROR;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        if (!origin_is_written_in_full(words[i])) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" is not an origin: write scheme://host or scheme://host:port",
                               &words[i]);
            return NGX_CONF_ERROR;
        }
        *(ngx_str_t *)ngx_array_push(conf->origins) = words[i];
    }
    return NGX_CONF_OK;
}

/* As a browser writes it: lower case, no path, no wildcard. */
static bool origin_is_written_in_full(ngx_str_t origin)
{
    ngx_str_t host;
    if (!conf_parameter(&origin, "https://", &host) && !conf_parameter(&origin, "http://", &host))
        return false;
    for (size_t i = 0; i < host.len; i++) {
        u_char c = host.data[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_word && ngx_strchr("-.:[]", c) == NULL)
            return false;
    }
    return host.len > 0;
}

ngx_int_t cors_headers(ngx_http_request_t *r, const struct request *request)
{
    if (conf_loc(r)->origins == NULL)
        return NGX_OK;
    if (reply_header(r, SPAN("Vary"), SPAN("Origin")) != NGX_OK)
        return NGX_ERROR;
    if (!origin_is_named(r, request->sent.origin))
        return NGX_OK;
    if (reply_header(r, SPAN("Access-Control-Allow-Origin"), request->sent.origin) != NGX_OK ||
        reply_header(r, SPAN("Access-Control-Allow-Credentials"), SPAN("true")) != NGX_OK)
        return NGX_ERROR;
    return reply_header(r, SPAN("Access-Control-Expose-Headers"),
                        SPAN("X-Request-ID, X-Idempotency-Cached, Retry-After"));
}

static bool origin_is_named(ngx_http_request_t *r, struct span origin)
{
    ngx_array_t *list = conf_loc(r)->origins;
    ngx_str_t *origins = list->elts;
    for (ngx_uint_t i = 0; i < list->nelts; i++)
        if (span_equal(span_of_str(origins[i]), origin))
            return true;
    return false;
}

bool cors_is_preflight(ngx_http_request_t *r, const struct request *request)
{
    return r->method == NGX_HTTP_OPTIONS && conf_loc(r)->origins != NULL &&
           request->sent.origin.data != NULL && request->sent.cors_method.data != NULL;
}

ngx_int_t cors_answer_preflight(ngx_http_request_t *r, const struct request *request)
{
    bool takes_user_token = conf_loc(r)->families & FAMILY_CONCERT;
    if (!origin_is_named(r, request->sent.origin))
        return reply_empty(r, NGX_HTTP_NO_CONTENT);
    if (reply_header(r, SPAN("Access-Control-Allow-Methods"), SPAN("GET, POST, DELETE, OPTIONS")) != NGX_OK ||
        reply_header(r, SPAN("Access-Control-Allow-Headers"),
                     takes_user_token ? SPAN(HEADERS ", User-Token") : SPAN(HEADERS)) != NGX_OK ||
        reply_header(r, SPAN("Access-Control-Max-Age"), SPAN("86400")) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_empty(r, NGX_HTTP_NO_CONTENT);
}
