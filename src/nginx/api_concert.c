/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The concert queue: one room for the whole site, and a ticket that its clients call a token and send with everything they do, at
 * the gate too (gate_ticket.c). They know no enter and no pass: whoever is called when they ask is inside.
 */
#include "nginx/family.h"

#include "base/must.h"
#include "base/query.h"
#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"

static enum error token_ask(ngx_http_request_t *r, struct family *family);
static enum error status_ask_sent(ngx_http_request_t *r, struct family *family);
static enum error leave_ask_sent(ngx_http_request_t *r, struct family *family);
static bool names_somebody(ngx_http_request_t *r, const struct family *family);
static ngx_int_t token_tell(ngx_http_request_t *r, struct family *family);
static ngx_int_t status_tell_position(ngx_http_request_t *r, struct family *family);
static ngx_int_t left_tell(ngx_http_request_t *r, struct family *family);
static bool is_meant(ngx_http_request_t *r, const struct family_row *row);
static uint64_t wait_sec(ngx_http_request_t *r, const struct family *family);

#define STATUS SPAN("status")
static const struct family_row rows[] = {
    {SPAN("token"), .methods = NGX_HTTP_POST, .allow = SPAN("POST, DELETE"), .wants_body = true,
     .has_lobby = true, .enters = true, .has_figures = true, .ask = token_ask, .tell = token_tell},
    {SPAN("token"), .methods = NGX_HTTP_DELETE, .allow = SPAN("POST, DELETE"), .is_forgiving = true,
     .ask = leave_ask_sent, .tell = left_tell},
    {STATUS, NAMES_NOTHING, FAMILY_GETS, .enters = true, .has_figures = true, .ask = status_ask_sent,
     .tell = status_tell_position},
};

const struct family_api concert_api = {
    .families = FAMILY_CONCERT,
    .shape = SHAPE_CONCERT,
    .noun = SPAN("/queue/"),
    .rows = rows,
    .count = sizeof(rows) / sizeof(rows[0]),
    .is_meant = is_meant,
};

/* Both have a status: the queue API's has its token in the query. */
static bool is_meant(ngx_http_request_t *r, const struct family_row *row)
{
    struct span token;
    size_t at = 0;
    return !span_equal(row->path, STATUS) || (request_of(r)->sent.user_token.data != NULL &&
                                              !query_next(request_of(r)->query, SPAN("token"), &at, &token));
}

static enum error token_ask(ngx_http_request_t *r, struct family *family)
{
    enum error error = family_label(r, family);
    if (error == ERROR_NONE)
        error = family_join(r, family);
    if (error == ERROR_NONE && names_somebody(r, family))
        must(holder_of_identity(conf_main(r)->keys, family->label, &request_of(r)->call.engine.join.holder));
    return error;
}

/* Where the operator trusts whoever asks, they ask for others: one ticket for each name, which those then carry themselves. */
static bool names_somebody(ngx_http_request_t *r, const struct family *family)
{
    return conf_loc(r)->trusts_user_id && family->label.len > 0 && family->visitor.identity.data == NULL;
}

static enum error status_ask_sent(ngx_http_request_t *r, struct family *family)
{
    return family_ask_ticket(r, family, request_of(r)->sent.user_token, ENGINE_STATUS);
}

static enum error leave_ask_sent(ngx_http_request_t *r, struct family *family)
{
    return family_ask_ticket(r, family, request_of(r)->sent.user_token, ENGINE_LEAVE);
}

static ngx_int_t token_tell(ngx_http_request_t *r, struct family *family)
{
    char ticket[TICKET_TOKEN_MAX];
    size_t len = queue_ticket_write(r, family->room, &family->standing, ticket);
    ngx_buf_t *body = reply_buffer(r, len + 96);
    if (body == NULL || visitor_keep(r, &family->visitor, &family->standing.place.holder) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"data\":{\"token\":\"");
    text_add(body, (struct span){ticket, len});
    TEXT_ADD(body, "\"");
    text_add_count(body, SPAN(",\"estimatedWaitingTime\":"), wait_sec(r, family));
    TEXT_ADD(body, "}}");
    return reply_json(r, NGX_HTTP_OK, body);
}

static ngx_int_t status_tell_position(ngx_http_request_t *r, struct family *family)
{
    ngx_buf_t *body = reply_buffer(r, 96);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    text_add_count(body, SPAN("{\"data\":{\"position\":"),
                   family_is_inside(family) ? 0 : family->standing.position);
    text_add_count(body, SPAN(",\"estimatedWaitingTime\":"), wait_sec(r, family));
    TEXT_ADD(body, "}}");
    return reply_json(r, NGX_HTTP_OK, body);
}

/* So many whole batches; a room with another pace has its own estimate. */
static uint64_t wait_sec(ngx_http_request_t *r, const struct family *family)
{
    const struct settings *settings = family_settings(r);
    uint64_t position = family->standing.position, batch = settings->batch;
    if (family_is_inside(family))
        return 0;
    return batch > 0 ? (position + batch - 1) / batch * settings->interval_sec : family->standing.eta_sec;
}

static ngx_int_t left_tell(ngx_http_request_t *r, struct family *family)
{
    return reply_words(r, SPAN("{\"data\":{\"status\":\"left\"}}"));
}
