/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cookies are added when the answer's head goes out, whoever gives that answer: the shop, an error page, the gate itself.
 *
 * An answer with somebody's pass is theirs alone. Some caches keep a Set-Cookie with a page that says it may be kept, and would
 * hand one session to everybody: so such an answer says that it may not.
 */
#include "nginx/gate_response.h"

#include "nginx/gate_note.h"
#include "nginx/gate_session.h"
#include "nginx/identity.h"
#include "nginx/pass_cookie.h"
#include "nginx/reply.h"

static ngx_http_output_header_filter_pt next_header_filter;

static ngx_int_t gate_header_filter(ngx_http_request_t *r);
static ngx_int_t cookies_add(ngx_http_request_t *r, const struct gate_note *note);
static ngx_int_t storing_forbid(ngx_http_request_t *r);
static void session_word_take(ngx_http_request_t *r, const struct gate_note *note);
static struct span header_remove(ngx_http_request_t *r, struct span name);

ngx_int_t gate_response_init(ngx_conf_t *cf)
{
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = gate_header_filter;
    return NGX_OK;
}

static ngx_int_t gate_header_filter(ngx_http_request_t *r)
{
    const struct srv_conf *server = ngx_http_get_module_srv_conf(r, ngx_http_weir_module);
    if (!server->has_gate || r != r->main)
        return next_header_filter(r);
    const struct gate_note *note = gate_note_peek(r);
    session_word_take(r, note);
    if (note != NULL && (note->has_visitor || note->given_count > 0) &&
        (storing_forbid(r) != NGX_OK || cookies_add(r, note) != NGX_OK))
        return NGX_ERROR;
    return next_header_filter(r);
}

static ngx_int_t cookies_add(ngx_http_request_t *r, const struct gate_note *note)
{
    if (note->has_visitor && visitor_set_cookie(r, &note->visitor) != NGX_OK)
        return NGX_ERROR;
    for (size_t i = 0; i < note->given_count; i++) {
        const struct pass_given *given = &note->given[i];
        if (pass_cookie_set(r, given->claims.room, given->token, given->life_sec) != NGX_OK)
            return NGX_ERROR;
    }
    return NGX_OK;
}

static ngx_int_t storing_forbid(ngx_http_request_t *r)
{
    header_remove(r, SPAN("cache-control"));
    header_remove(r, SPAN("expires"));
    return reply_header(r, SPAN("Cache-Control"), SPAN("no-store"));
}

/* Before it can reach the client. What nginx has of an earlier answer (proxy_cache) was said about somebody else. */
static void session_word_take(ngx_http_request_t *r, const struct gate_note *note)
{
    struct span word = header_remove(r, SPAN(GATE_SESSION_HEADER));
    if (word.data == NULL || note == NULL || !note->has_session)
        return;
#if (NGX_HTTP_CACHE)
    if (r->cached)
        return;
#endif
    gate_session_obey(r, &note->session, word);
}

/* The value of the first that was there, data NULL: none. */
static struct span header_remove(ngx_http_request_t *r, struct span name)
{
    struct span value = SPAN_NONE;
    for (ngx_list_part_t *part = &r->headers_out.headers.part; part != NULL; part = part->next) {
        ngx_table_elt_t *headers = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            if (headers[i].hash == 0 || headers[i].key.len != name.len ||
                ngx_strncasecmp(headers[i].key.data, (u_char *)name.data, name.len) != 0)
                continue;
            headers[i].hash = 0;
            if (value.data == NULL)
                value = span_of_str(headers[i].value);
        }
    }
    return value;
}
