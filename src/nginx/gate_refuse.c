/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A person is sent to the waiting page, which brings them back when it is their turn; a program is told where the line is. The
 * way back goes through the visitor's hands, so it is a path of this site and nothing else.
 */
#include "nginx/gate_refuse.h"

#include "nginx/gate_ticket.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"
#include "nginx/verify.h"

#define RETURN_MAX 2048 /* of the address to come back to; a longer one is not worth the header */

static ngx_int_t refusal_send(ngx_http_request_t *r, const struct gate *gate);
static ngx_int_t question_deny(ngx_http_request_t *r, struct span address);
static struct span page_address(ngx_http_request_t *r, const struct gate *gate, bool comes_back);
static bool is_local(ngx_str_t address);
static ngx_int_t redirect_send(ngx_http_request_t *r, struct span address);

bool gate_is_navigation(ngx_http_request_t *r)
{
    const struct sent *sent = &request_of(r)->sent;
    if (!(verify_method(r) & (NGX_HTTP_GET | NGX_HTTP_HEAD | NGX_HTTP_POST)))
        return false;
    if (sent->fetch_mode.data != NULL)
        return span_equal(sent->fetch_mode, SPAN("navigate"));
    return sent->accept.len > 0 && memmem(sent->accept.data, sent->accept.len, "text/html", 9) != NULL;
}

ngx_int_t gate_refuse(ngx_http_request_t *r, const struct gate *gate)
{
    if (r != r->main)
        return NGX_HTTP_FORBIDDEN;
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    ngx_http_finalize_request(r, refusal_send(r, gate));
    return NGX_DONE;
}

static ngx_int_t refusal_send(ngx_http_request_t *r, const struct gate *gate)
{
    bool is_page = gate->line.len > 0 && gate_is_navigation(r);
    struct span address = page_address(r, gate, is_page);
    if (is_page && address.len > 0 && verify_redirects(r))
        return redirect_send(r, address);
    if (gate->conf->takes_tickets && !verify_is_on(r)) {
        request_of(r)->shape = SHAPE_CONCERT;
        return reply_error(r, gate_ticket_error(gate), 0);
    }
    if (gate->outcome == GATE_UNAVAILABLE)
        return reply_error(r, ERROR_ENGINE_UNAVAILABLE, 0);
    if (verify_is_on(r))
        return question_deny(r, address);
    return reply_error_with_redirect(r, ERROR_ADMISSION_REQUIRED, address);
}

/* What proxies take for "no", and some for "sign in first". */
static ngx_int_t question_deny(ngx_http_request_t *r, struct span address)
{
    if (reply_header(r, SPAN("WWW-Authenticate"), SPAN("Bearer")) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_json(r, NGX_HTTP_UNAUTHORIZED, reply_envelope(r, ERROR_ADMISSION_REQUIRED, 0, address));
}

/* An empty span: there is none, or out of memory. */
static struct span page_address(ngx_http_request_t *r, const struct gate *gate, bool comes_back)
{
    ngx_str_t page;
    bool is_whole = gate->conf->page.lengths != NULL || gate->conf->room_count == 0;
    if (ngx_http_complex_value(r, (ngx_http_complex_value_t *)&gate->conf->page, &page) != NGX_OK ||
        !gate_page_is_safe(page) || (!is_whole && gate->line.len == 0))
        return SPAN_NONE;
    ngx_buf_t *text = reply_buffer(r, page.len + gate->line.len + 16 + 3 * RETURN_MAX);
    if (text == NULL)
        return SPAN_NONE;
    text_add(text, span_of_str(page));
    if (!is_whole)
        text_add(text, gate->line);
    /* What a form was sent to need not be a page: whoever sent it comes back to the site. */
    if (comes_back && verify_method(r) != NGX_HTTP_POST && is_local(r->unparsed_uri)) {
        TEXT_ADD(text, "?return=");
        text->last = (u_char *)ngx_escape_uri(text->last, r->unparsed_uri.data, r->unparsed_uri.len,
                                              NGX_ESCAPE_URI_COMPONENT);
    }
    return (struct span){(const char *)text->pos, (size_t)(text->last - text->pos)};
}

/* Two slashes would be another host to a browser. */
static bool is_local(ngx_str_t address)
{
    return address.len > 0 && address.len <= RETURN_MAX && address.data[0] == '/' &&
           (address.len == 1 || (address.data[1] != '/' && address.data[1] != '\\'));
}

static ngx_int_t redirect_send(ngx_http_request_t *r, struct span address)
{
    if (reply_header(r, SPAN("Location"), address) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_empty(r, NGX_HTTP_MOVED_TEMPORARILY);
}
