/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that come with a ticket. Whatever is not a living ticket gets one answer, TOKEN_NOT_FOUND, so that it tells a
 * forger nothing: a wrong signature, a ticket of another identity and one that is over look the same.
 */
#include "base/json.h"
#include "base/query.h"
#include "engine/place.h"
#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"

static enum error query_ticket(ngx_http_request_t *r, struct queue_state *state);
static enum error ticket_accept(ngx_http_request_t *r, struct queue_state *state, struct span token);
static bool ticket_is_theirs(ngx_http_request_t *r, const struct ticket_claims *claims);
static struct span status_word(const struct standing *standing);

enum error status_ask(ngx_http_request_t *r, struct queue_state *state)
{
    enum error error = query_ticket(r, state);
    if (error == ERROR_NONE)
        queue_ask_about(r, state, ENGINE_STATUS);
    return error;
}

ngx_int_t status_tell(ngx_http_request_t *r, struct queue_state *state)
{
    const struct standing *standing = queue_standing(r);
    ngx_buf_t *body = reply_buffer(r, 320);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"status\":\"");
    text_add(body, status_word(standing));
    TEXT_ADD(body, "\"");
    text_add_count(body, SPAN(",\"position\":"), standing->position);
    text_add_count(body, SPAN(",\"eta_sec\":"), standing->eta_sec);
    text_add_count(body, SPAN(",\"eta_low_sec\":"), standing->eta_low_sec);
    text_add_count(body, SPAN(",\"eta_high_sec\":"), standing->eta_high_sec);
    text_add_count(body, SPAN(",\"waiting_time\":"), standing->waited_sec);
    TEXT_ADD(body, ",\"ready_for_entry\":");
    text_add_flag(body, standing->is_ready);
    text_add_count(body, SPAN(",\"next_poll_sec\":"), standing->next_poll_sec);
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}

enum error heartbeat_ask(ngx_http_request_t *r, struct queue_state *state)
{
    enum error error = queue_body_ticket(r, state);
    if (error == ERROR_NONE)
        queue_ask_about(r, state, ENGINE_HEARTBEAT);
    return error;
}

ngx_int_t heartbeat_tell(ngx_http_request_t *r, struct queue_state *state)
{
    const struct standing *standing = queue_standing(r);
    ngx_buf_t *body = reply_buffer(r, 64);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"status\":\"");
    text_add(body, status_word(standing));
    TEXT_ADD(body, "\"");
    text_add_count(body, SPAN(",\"next_poll_sec\":"), standing->next_poll_sec);
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}

enum error leave_ask(ngx_http_request_t *r, struct queue_state *state)
{
    enum error error = query_ticket(r, state);
    if (error == ERROR_NONE)
        queue_ask_about(r, state, ENGINE_LEAVE);
    return error;
}

ngx_int_t leave_tell(ngx_http_request_t *r, struct queue_state *state)
{
    return reply_words(r, SPAN("{\"status\":\"left\"}"));
}

/* Where the query has the token, the body may be anything: browsers put there what they like. */
enum error beacon_ask(ngx_http_request_t *r, struct queue_state *state)
{
    enum error error = query_ticket(r, state);
    if (error == ERROR_MISSING_TOKEN && request_of(r)->body.text.len > 0)
        error = queue_body_ticket(r, state);
    if (error == ERROR_NONE)
        queue_ask_about(r, state, ENGINE_LEAVE_SOON);
    return error;
}

ngx_int_t beacon_tell(ngx_http_request_t *r, struct queue_state *state)
{
    return reply_empty(r, NGX_HTTP_NO_CONTENT);
}

enum error queue_body(ngx_http_request_t *r, struct json_member *members, size_t count)
{
    struct span text = request_of(r)->body.text;
    char *scratch = NULL;
    size_t cap = text.len > 0 && memchr(text.data, '\\', text.len) != NULL ? text.len : 0;
    if (cap > 0 && (scratch = ngx_pnalloc(r->pool, cap)) == NULL)
        return ERROR_ENGINE_UNAVAILABLE;
    return json_read(text, members, count, scratch, cap);
}

enum error queue_body_ticket(ngx_http_request_t *r, struct queue_state *state)
{
    struct json_member token = {.name = SPAN("waiting_token"), .kind = JSON_TEXT, .is_optional = true};
    enum error error = queue_body(r, &token, 1);
    if (error != ERROR_NONE)
        return error;
    if (!token.is_present || token.text.len == 0)
        return ERROR_MISSING_TOKEN;
    return ticket_accept(r, state, token.text);
}

static enum error query_ticket(ngx_http_request_t *r, struct queue_state *state)
{
    struct span query = request_of(r)->query, token = SPAN_NONE;
    char *memory = ngx_pnalloc(r->pool, query.len + 1); /* decoding makes nothing longer */
    if (memory == NULL)
        return ERROR_ENGINE_UNAVAILABLE;
    enum error error = query_find(query, SPAN("token"), memory, query.len, &token);
    if (error != ERROR_NONE)
        return error;
    return token.len > 0 ? ticket_accept(r, state, token) : ERROR_MISSING_TOKEN;
}

static enum error ticket_accept(ngx_http_request_t *r, struct queue_state *state, struct span token)
{
    state->token = token;
    return queue_ticket_read(r, token, &state->claims, state->room) ? ERROR_NONE : ERROR_TOKEN_NOT_FOUND;
}

bool queue_ticket_read(ngx_http_request_t *r, struct span token, struct ticket_claims *claims,
                       char room[ROOM_ID_MAX])
{
    return token.len <= TICKET_TOKEN_MAX && ticket_verify(conf_main(r)->keys, token, claims, room) &&
           ticket_is_theirs(r, claims);
}

/* An anonymous ticket is a bearer token; that of a trusted identity works for that identity alone. */
static bool ticket_is_theirs(ngx_http_request_t *r, const struct ticket_claims *claims)
{
    struct holder asker;
    if (!claims->is_trusted)
        return true;
    struct span identity = identity_of(r);
    return identity.data != NULL && holder_of_identity(conf_main(r)->keys, identity, &asker) &&
           holder_equal(&asker, &claims->holder);
}

void queue_ask_about(ngx_http_request_t *r, struct queue_state *state, enum engine_op op)
{
    struct engine_call *call = &request_of(r)->call.engine;
    const struct ticket_claims *claims = &state->claims;
    call->op = op;
    call->room = claims->room;
    call->place = place_of_ticket(claims);
}

const struct standing *queue_standing(ngx_http_request_t *r)
{
    return &request_of(r)->call.engine.standing;
}

/* "waiting" until entered, also when called: clients enter on "waiting" together with ready_for_entry. */
static struct span status_word(const struct standing *standing)
{
    bool is_inside = standing->state == TICKET_ENTERED || standing->state == TICKET_ACTIVE;
    return is_inside ? SPAN("ready") : SPAN("waiting");
}
