/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking up a header in nginx is a walk over the list. We need up to ten, so they are picked in one walk, told apart by
 * their length first.
 *
 * Ids that we make need to be distinct, not secret: a counter under a 64-bit mixer, begun at a random point, costs a fraction
 * of a random number.
 */
#include "nginx/request.h"

#include "base/ascii.h"
#include "base/query.h"

#include <openssl/rand.h>

static void sent_read(struct sent *sent, ngx_list_part_t *part);
static void sent_take(struct sent *sent, const ngx_table_elt_t *header);
static struct span *sent_slot(struct sent *sent, const ngx_table_elt_t *header);
static void id_choose(struct request *request);
static bool id_is_safe(struct span id);
static bool trace_id_find(struct span traceparent, struct span *id);
static void id_make(char out[32]);
static uint64_t mix(uint64_t x);
static bool cookie_next(const struct request *request, struct span name, bool is_whole,
                        struct cookie_walk *walk, struct span *value);
static struct span cookie_find(const char *at, const char *end, struct span name, bool is_whole);
static struct span cookie_match(const char *at, const char *stop, struct span name, bool is_whole);

struct request *request_of(ngx_http_request_t *r)
{
    struct request *request = request_peek(r);
    if (request != NULL)
        return request;
    request = ngx_pcalloc(r->pool, sizeof(*request));
    if (request == NULL)
        return NULL;
    ngx_http_set_ctx(r, request, ngx_http_weir_module);
    sent_read(&request->sent, &r->headers_in.headers.part);
    id_choose(request);
    request->query = span_of_str(r->args);
    return request;
}

static void sent_read(struct sent *sent, ngx_list_part_t *part)
{
    for (; part != NULL; part = part->next) {
        const ngx_table_elt_t *headers = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++)
            sent_take(sent, &headers[i]);
    }
}

static void sent_take(struct sent *sent, const ngx_table_elt_t *header)
{
    struct span *slot = sent_slot(sent, header);
    if (slot == NULL || slot->data != NULL)
        return;
    *slot = span_of_str(header->value);
    if (slot >= sent->cookies && slot < sent->cookies + REQUEST_COOKIES_MAX)
        sent->cookie_count++;
    if (slot >= sent->passes && slot < sent->passes + REQUEST_PASSES_MAX)
        sent->pass_count++;
}

#define IS(literal) (ngx_memcmp(header->lowcase_key, literal, sizeof(literal) - 1) == 0)

static struct span *sent_slot(struct sent *sent, const ngx_table_elt_t *header)
{
    switch (header->key.len) {
    case sizeof("cookie") - 1: /* and accept, origin */
        if (IS("cookie"))
            return sent->cookie_count < REQUEST_COOKIES_MAX ? &sent->cookies[sent->cookie_count] : NULL;
        return IS("accept") ? &sent->accept : IS("origin") ? &sent->origin : NULL;
    case sizeof("user-token") - 1:
        return IS("user-token") ? &sent->user_token : NULL;
    case sizeof("traceparent") - 1:
        return IS("traceparent") ? &sent->traceparent : NULL;
    case sizeof("x-request-id") - 1:
        return IS("x-request-id") ? &sent->request_id : NULL;
    case sizeof("sec-fetch-mode") - 1:
        return IS("sec-fetch-mode") ? &sent->fetch_mode : NULL;
    case sizeof("idempotency-key") - 1:
        return IS("idempotency-key") ? &sent->idempotency_key : NULL;
    case sizeof("x-queue-entry-token") - 1:
        return IS("x-queue-entry-token") && sent->pass_count < REQUEST_PASSES_MAX
                   ? &sent->passes[sent->pass_count]
                   : NULL;
    case sizeof("access-control-request-method") - 1:
        return IS("access-control-request-method") ? &sent->cors_method : NULL;
    default:
        return NULL;
    }
}

static void id_choose(struct request *request)
{
    if (id_is_safe(request->sent.request_id)) {
        request->id = request->sent.request_id;
        return;
    }
    if (trace_id_find(request->sent.traceparent, &request->id))
        return;
    id_make(request->made_id);
    request->id = (struct span){request->made_id, sizeof(request->made_id)};
}

static bool id_is_safe(struct span id)
{
    if (id.len < 1 || id.len > REQUEST_ID_MAX)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        char c = id.data[i];
        if (!ascii_is_alnum(c) && (c == '\0' || strchr("-_.:/+=@,~", c) == NULL))
            return false;
    }
    return true;
}

/* W3C: version "-" 32 hex digits "-" ... */
static bool trace_id_find(struct span traceparent, struct span *id)
{
    if (traceparent.len < 36 || traceparent.data[2] != '-' || traceparent.data[35] != '-')
        return false;
    *id = (struct span){traceparent.data + 3, 32};
    for (size_t i = 0; i < id->len; i++)
        if (strchr("0123456789abcdef", id->data[i]) == NULL || id->data[i] == '\0')
            return false;
    return true;
}

static void id_make(char out[32])
{
    static uint64_t state[2];
    static ngx_pid_t owner;
    if (owner != ngx_pid) {
        RAND_bytes((unsigned char *)state, sizeof(state));
        owner = ngx_pid;
    }
    state[0]++;
    uint64_t words[2] = {mix(state[0]), mix(state[0] ^ state[1])};
    ngx_hex_dump((u_char *)out, (u_char *)words, sizeof(words));
}

/* The finalizer of splitmix64: a bijection, so that distinct counts are distinct ids. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

bool request_cookie_next(const struct request *request, struct span name, struct cookie_walk *walk,
                         struct span *value)
{
    return cookie_next(request, name, true, walk, value);
}

bool request_cookie_next_of(const struct request *request, struct span prefix, struct cookie_walk *walk,
                            struct span *value)
{
    return cookie_next(request, prefix, false, walk, value);
}

static bool cookie_next(const struct request *request, struct span name, bool is_whole,
                        struct cookie_walk *walk, struct span *value)
{
    for (; walk->line < request->sent.cookie_count; walk->line++, walk->at = NULL) {
        struct span cookies = request->sent.cookies[walk->line];
        if (walk->at == NULL)
            walk->at = cookies.data;
        *value = cookie_find(walk->at, cookies.data + cookies.len, name, is_whole);
        if (value->data == NULL)
            continue;
        walk->at = value->data + value->len;
        return walk->tried++ < REQUEST_COOKIES_TRIED;
    }
    return false;
}

static struct span cookie_find(const char *at, const char *end, struct span name, bool is_whole)
{
    while (at < end) {
        while (at < end && (*at == ' ' || *at == ';'))
            at++;
        const char *stop = memchr(at, ';', (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        struct span value = cookie_match(at, stop, name, is_whole);
        if (value.data != NULL)
            return value;
        at = stop;
    }
    return SPAN_NONE;
}

static struct span cookie_match(const char *at, const char *stop, struct span name, bool is_whole)
{
    if ((size_t)(stop - at) <= name.len || memcmp(at, name.data, name.len) != 0)
        return SPAN_NONE;
    const char *equals = is_whole ? at + name.len : memchr(at, '=', (size_t)(stop - at));
    if (equals == NULL || *equals != '=')
        return SPAN_NONE;
    return (struct span){equals + 1, (size_t)(stop - equals - 1)};
}

struct span request_bearer(ngx_http_request_t *r)
{
    static const struct span scheme = SPAN("bearer ");
    if (r->headers_in.authorization == NULL)
        return SPAN_NONE;
    struct span value = span_of_str(r->headers_in.authorization->value);
    if (value.len <= scheme.len ||
        ngx_strncasecmp((u_char *)value.data, (u_char *)scheme.data, scheme.len) != 0)
        return SPAN_NONE;
    return (struct span){value.data + scheme.len, value.len - scheme.len};
}

bool request_tail(ngx_http_request_t *r, struct span *tail)
{
    ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    struct span uri = span_of_str(r->uri), prefix = span_of_str(core->name);
    if (!conf_is_prefix(core)) {
        prefix = uri;
        while (prefix.len > 0 && uri.data[prefix.len - 1] != '/')
            prefix.len--;
    }
    return path_tail(uri, prefix, tail);
}

bool request_is_tls(ngx_http_request_t *r)
{
#if (NGX_HTTP_SSL)
    return r->connection->ssl != NULL;
#else
    return false;
#endif
}
