/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nginx logs the request line as it was read, and modules log errors with it on their own; so the bytes themselves are
 * overwritten, as early as the location is known. In HTTP/1 request line, URI and arguments are one piece of memory; in
 * HTTP/2, or after a rewrite, they are several.
 *
 * A ticket in the path goes the same way; who needs it finds it kept beside the request.
 *
 * A request that is refused before it has a location (a broken header, a method that nginx turns away) is masked just
 * before it is logged. What it asked for was never served, so nothing can miss its arguments or the end of its path.
 */
#include "nginx/mask.h"

#include "base/query.h"
#include "nginx/request.h"

#define PATH_OF_TICKET "/check/"

static ngx_int_t mask_path(ngx_http_request_t *r);
static size_t ticket_at(ngx_str_t path);
static void mask_raw_path(ngx_str_t text);
static void mask_after_question_mark(ngx_str_t text);
static void mask_args(struct span args);
static void mask_named(struct span args, struct span name);
static bool lies_within(ngx_str_t inner, ngx_str_t outer);

ngx_int_t mask_on_rewrite(ngx_http_request_t *r)
{
    if (conf_loc(r)->is_api && mask_query(r) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (conf_loc(r)->families & FAMILY_LOBBY && mask_path(r) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return NGX_DECLINED;
}

ngx_int_t mask_on_log(ngx_http_request_t *r)
{
    struct srv_conf *server = ngx_http_get_module_srv_conf(r, ngx_http_weir_module);
    ngx_http_core_srv_conf_t *core = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
    if (r->loc_conf != core->ctx->loc_conf)
        return NGX_OK;
    if (server->has_api)
        mask_after_question_mark(r->request_line);
    if (server->has_lobby && ticket_at(r->request_line) < r->request_line.len)
        mask_raw_path(r->request_line);
    return NGX_OK;
}

ngx_int_t mask_query(ngx_http_request_t *r)
{
    struct request *request = request_of(r);
    if (request == NULL)
        return NGX_ERROR;
    if (request->is_masked || r->args.len == 0)
        return NGX_OK;
    u_char *copy = ngx_pnalloc(r->pool, r->args.len);
    if (copy == NULL)
        return NGX_ERROR;
    ngx_memcpy(copy, r->args.data, r->args.len);
    request->query = (struct span){(const char *)copy, r->args.len};
    request->is_masked = true;
    mask_after_question_mark(r->request_line);
    if (!lies_within(r->unparsed_uri, r->request_line))
        mask_after_question_mark(r->unparsed_uri);
    if (lies_within(r->args, r->request_line) || lies_within(r->args, r->unparsed_uri))
        return NGX_OK;
    /* A rewrite made them, perhaps from the configuration's own memory. */
    u_char *masked = ngx_pstrdup(r->pool, &r->args);
    if (masked == NULL)
        return NGX_ERROR;
    r->args.data = masked;
    mask_args(span_of_str(r->args));
    return NGX_OK;
}

/* A lobby's clients have their ticket in the path: check/EVENT/TICKET. */
static ngx_int_t mask_path(ngx_http_request_t *r)
{
    struct request *request = request_of(r);
    size_t at = ticket_at(r->uri);
    if (request->path_ticket.data != NULL || at == r->uri.len)
        return NGX_OK;
    u_char *copy = ngx_pstrdup(r->pool, &r->uri), *masked = ngx_pstrdup(r->pool, &r->uri);
    if (copy == NULL || masked == NULL)
        return NGX_ERROR;
    request->path_ticket = (struct span){(const char *)copy + at, r->uri.len - at};
    for (size_t i = at; i < r->uri.len; i++)
        masked[i] = masked[i] == '/' ? '/' : '*';
    mask_raw_path(r->request_line);
    if (!lies_within(r->unparsed_uri, r->request_line))
        mask_raw_path(r->unparsed_uri);
    r->uri.data = masked;
    return NGX_OK;
}

/* Where it begins; the end of the path: there is none. */
static size_t ticket_at(ngx_str_t path)
{
    u_char *end = path.data + path.len;
    u_char *check = memmem(path.data, path.len, PATH_OF_TICKET, sizeof(PATH_OF_TICKET) - 1);
    u_char *slash = check != NULL ? ngx_strlchr(check + sizeof(PATH_OF_TICKET) - 1, end, '/') : NULL;
    return slash != NULL ? (size_t)(slash + 1 - path.data) : path.len;
}

/* All that follows the event; where the path is written in another way than it is read, all of it. */
static void mask_raw_path(ngx_str_t text)
{
    u_char *at = ngx_strlchr(text.data, text.data + text.len, '/');
    if (at == NULL)
        return;
    ngx_str_t path = {(size_t)(text.data + text.len - at), at};
    for (size_t i = 0; i < path.len; i++)
        if (at[i] == '?' || at[i] == ' ')
            path.len = i;
    for (size_t i = ticket_at(path) < path.len ? ticket_at(path) : 0; i < path.len; i++)
        at[i] = at[i] == '/' ? '/' : '*';
}

/* To the end, or to the space before the protocol. */
static void mask_after_question_mark(ngx_str_t text)
{
    const char *start = (const char *)text.data, *end = start + text.len;
    const char *mark = text.len > 0 ? memchr(start, '?', text.len) : NULL;
    if (mark == NULL)
        return;
    const char *space = memchr(mark, ' ', (size_t)(end - mark));
    mask_args((struct span){mark + 1, (size_t)((space != NULL ? space : end) - mark) - 1});
}

static void mask_args(struct span args)
{
    mask_named(args, SPAN("token")); /* first: a token is full of '_' */
    if (args.len > 0 &&
        (memchr(args.data, '_', args.len) != NULL || memchr(args.data, '%', args.len) != NULL)) {
        mask_named(args, SPAN("waiting_token"));
        mask_named(args, SPAN("reservation_token"));
    }
}

static void mask_named(struct span args, struct span name)
{
    struct span raw;
    size_t at = 0;
    while (query_next(args, name, &at, &raw))
        ngx_memset((void *)raw.data, '*', raw.len);
}

static bool lies_within(ngx_str_t inner, ngx_str_t outer)
{
    return inner.len == 0 || (inner.data >= outer.data && inner.data + inner.len <= outer.data + outer.len);
}
