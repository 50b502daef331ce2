/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page is part of the module and, within a location, the same bytes for everybody; nothing that a visitor sent is in it. The
 * location says which contract its script speaks, and that one word is all that differs between two locations.
 * Its script and its style are inside it, and the policy allows exactly those two by their hash: nothing else runs, wherever it
 * came from.
 *
 * A room that does not exist has no page, unless a join would make the room.
 */
#include "nginx/page.h"

#include "base/must.h"
#include "base/room_id.h"
#include "nginx/reply.h"
#include "nginx/request.h"

#include <openssl/evp.h>

extern const unsigned char weir_page_waiting[];
extern const size_t weir_page_waiting_len;

#define POLICY_MAX 512

static const struct span mark = SPAN("data-contract=\"");

/* By enum conf_page, as the directive and the page's script call them. */
static const struct span contracts[] = {SPAN("queue"), SPAN("lobby"), SPAN("tier2")};

static struct span policy;
static size_t contract_at; /* in the page: where its script is told which one it speaks */

static struct span element_find(struct span page, struct span open, struct span close);
static u_char *hash_write(u_char *at, struct span text);
static bool room_is_named(ngx_http_request_t *r, struct span *room);
static void page_go_on(ngx_http_request_t *r);
static ngx_int_t page_send(ngx_http_request_t *r);
static ngx_int_t page_body(ngx_http_request_t *r, struct span contract);
static ngx_int_t page_headers(ngx_http_request_t *r);

ngx_int_t page_init(ngx_conf_t *cf)
{
    struct span page = {(const char *)weir_page_waiting, weir_page_waiting_len};
    u_char *text = ngx_pnalloc(cf->pool, POLICY_MAX);
    if (text == NULL)
        return NGX_ERROR;
    u_char *at = ngx_sprintf(text, "default-src 'none'; script-src ");
    at = hash_write(at, element_find(page, SPAN("<script>"), SPAN("</script>")));
    at = ngx_sprintf(at, "; style-src ");
    at = hash_write(at, element_find(page, SPAN("<style>"), SPAN("</style>")));
    at = ngx_sprintf(at, "; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
                         "frame-ancestors 'none'");
    policy = (struct span){(const char *)text, (size_t)(at - text)};
    const char *found = memmem(page.data, page.len, mark.data, mark.len);
    must(found != NULL);
    contract_at = (size_t)(found - page.data) + mark.len;
    return NGX_OK;
}

bool page_contract_find(struct span word, ngx_uint_t *page)
{
    for (*page = 0; *page < sizeof(contracts) / sizeof(contracts[0]); ++*page)
        if (span_equal(word, contracts[*page]))
            return true;
    return false;
}

static struct span element_find(struct span page, struct span open, struct span close)
{
    const char *start = memmem(page.data, page.len, open.data, open.len);
    if (start == NULL)
        return SPAN_NONE;
    start += open.len;
    const char *end = memmem(start, (size_t)(page.data + page.len - start), close.data, close.len);
    return end != NULL ? (struct span){start, (size_t)(end - start)} : SPAN_NONE;
}

static u_char *hash_write(u_char *at, struct span text)
{
    u_char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (text.data == NULL || EVP_Digest(text.data, text.len, digest, &size, EVP_sha256(), NULL) != 1)
        return ngx_sprintf(at, "'none'");
    ngx_str_t raw = {size, digest}, encoded = {0, ngx_sprintf(at, "'sha256-")};
    ngx_encode_base64(&encoded, &raw);
    return ngx_sprintf(encoded.data + encoded.len, "'");
}

ngx_int_t page_handler(ngx_http_request_t *r)
{
    struct span room;
    struct request *request = request_of(r);
    if (request == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)))
        return NGX_HTTP_NOT_ALLOWED;
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    if (!request_tail(r, &room) || !room_is_named(r, &room))
        return NGX_HTTP_NOT_FOUND;
    request->call.engine.op = ENGINE_SETTINGS;
    request->call.engine.room = room;
    r->main->count++;
    if (call_submit(r, &request->call, page_go_on))
        page_go_on(r);
    return NGX_DONE;
}

/* In the page of lobbies the path names the event. */
static bool room_is_named(ngx_http_request_t *r, struct span *room)
{
    if (conf_loc(r)->page == PAGE_LOBBY) {
        char *name = ngx_pnalloc(r->pool, ROOM_ID_MAX);
        if (name == NULL)
            return false;
        *room = room_id_lobby(*room, name);
    }
    return room_id_is_valid(*room);
}

static void page_go_on(ngx_http_request_t *r)
{
    bool is_known = request_of(r)->call.engine.error != ERROR_ROOM_NOT_FOUND || conf_main(r)->makes_rooms;
    ngx_http_finalize_request(r, is_known ? page_send(r) : NGX_HTTP_NOT_FOUND);
}

static ngx_int_t page_send(ngx_http_request_t *r)
{
    const struct span contract = contracts[conf_loc(r)->page];
    if (page_headers(r) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = (off_t)(weir_page_waiting_len + contract.len);
    ngx_str_set(&r->headers_out.content_type, "text/html; charset=utf-8");
    r->headers_out.content_type_len = sizeof("text/html") - 1;
    ngx_int_t rc = ngx_http_send_header(r);
    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
        return rc;
    return page_body(r, contract);
}

static ngx_int_t page_body(ngx_http_request_t *r, struct span contract)
{
    const char *page = (const char *)weir_page_waiting;
    const struct span parts[] = {
        {page, contract_at}, contract, {page + contract_at, weir_page_waiting_len - contract_at}};
    ngx_chain_t chain[3], *last = NULL;
    for (size_t i = 0; i < 3; i++) {
        ngx_buf_t *piece = ngx_calloc_buf(r->pool);
        if (piece == NULL)
            return NGX_ERROR;
        piece->memory = 1;
        piece->pos = (u_char *)parts[i].data;
        piece->last = piece->pos + parts[i].len;
        chain[i] = (ngx_chain_t){piece, NULL};
        if (last != NULL)
            last->next = &chain[i];
        last = &chain[i];
    }
    must(last != NULL && parts[0].len > 0); /* the page begins with its own bytes */
    last->buf->last_buf = r == r->main;
    last->buf->last_in_chain = 1;
    return ngx_http_output_filter(r, chain);
}

static ngx_int_t page_headers(ngx_http_request_t *r)
{
    static const struct span headers[][2] = {
        {SPAN("Cache-Control"), SPAN("no-store")},
        {SPAN("X-Content-Type-Options"), SPAN("nosniff")},
        {SPAN("Referrer-Policy"), SPAN("no-referrer")},
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        if (reply_header(r, headers[i][0], headers[i][1]) != NGX_OK)
            return NGX_ERROR;
    return reply_header(r, SPAN("Content-Security-Policy"), policy);
}
