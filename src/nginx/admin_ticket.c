/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ticket or a pass as the server knows it, for whoever answers "I was in line and now I am not". Looking is not noticed:
 * it renews nothing and keeps nobody's place alive. And the end of one, for whoever shares or sells it.
 */
#include "base/room_id.h"
#include "engine/place.h"
#include "nginx/admin.h"
#include "nginx/reply.h"
#include "nginx/text.h"
#include "token/pass.h"
#include "token/ticket.h"

#define TICKET_BYTES 640

struct admin_ticket {
    bool is_pass;
    enum ticket_state was;
    uint64_t exp_sec; /* of a pass */
    char room[ROOM_ID_MAX];
};

static enum admin_next ticket_ask(ngx_http_request_t *r, struct admin_state *state, admin_step *then);
static enum admin_next ticket_tell(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next revoke_do(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next revoke_tell(ngx_http_request_t *r, struct admin_state *state);
static bool ticket_read(ngx_http_request_t *r, struct admin_state *state, struct span token);
static bool pass_read(ngx_http_request_t *r, struct admin_state *state, struct span token);
static void ticket_add(ngx_buf_t *body, const struct admin_state *state, const struct standing *standing);

enum admin_next ticket_look_begin(ngx_http_request_t *r, struct admin_state *state)
{
    return ticket_ask(r, state, ticket_tell);
}

enum admin_next ticket_revoke_begin(ngx_http_request_t *r, struct admin_state *state)
{
    return ticket_ask(r, state, revoke_do);
}

static enum admin_next ticket_ask(ngx_http_request_t *r, struct admin_state *state, admin_step *then)
{
    json_t *sent = json_object_get(state->body, "token");
    if (json_string_length(sent) == 0)
        return admin_refuse_saying(r, state, ERROR_MISSING_TOKEN, "token must be a ticket or a pass");
    struct span token = {json_string_value(sent), json_string_length(sent)};
    state->ticket = ngx_pcalloc(r->pool, sizeof(*state->ticket));
    if (state->ticket == NULL)
        return admin_refuse(r, state, ERROR_ENGINE_UNAVAILABLE);
    if (!ticket_read(r, state, token) && !pass_read(r, state, token))
        return admin_refuse(r, state, ERROR_TOKEN_NOT_FOUND);
    return admin_ask(r, state, ENGINE_LOOK, then);
}

static bool ticket_read(ngx_http_request_t *r, struct admin_state *state, struct span token)
{
    struct ticket_claims claims;
    if (token.len > TICKET_TOKEN_MAX ||
        !ticket_verify(conf_main(r)->keys, token, &claims, state->ticket->room))
        return false;
    state->room = claims.room;
    admin_call(r)->place = place_of_ticket(&claims);
    return true;
}

static bool pass_read(ngx_http_request_t *r, struct admin_state *state, struct span token)
{
    struct pass_claims claims;
    size_t size = PASS_SCRATCH(token.len);
    char *scratch = token.len <= PASS_TOKEN_MAX ? ngx_pnalloc(r->pool, size) : NULL;
    bool is_ours = false;
    for (int tier = 1; tier <= 2 && !is_ours && scratch != NULL; tier++)
        is_ours = pass_verify(conf_main(r)->keys, tier, token, (uint64_t)ngx_time(), &claims, scratch, size);
    if (!is_ours)
        return false;
    state->room = claims.room;
    state->ticket->is_pass = true;
    state->ticket->exp_sec = claims.exp_sec;
    admin_call(r)->place = place_of_pass(&claims);
    return true;
}

static enum admin_next ticket_tell(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    if (call->error != ERROR_NONE)
        return admin_refuse(r, state, call->error);
    ngx_buf_t *body = reply_buffer(r, TICKET_BYTES);
    if (body != NULL)
        ticket_add(body, state, &call->standing);
    return admin_tell(r, state, NGX_HTTP_OK, body);
}

static enum admin_next revoke_do(ngx_http_request_t *r, struct admin_state *state)
{
    struct engine_call *call = admin_call(r);
    if (call->error != ERROR_NONE && call->error != ERROR_TOKEN_NOT_FOUND)
        return admin_refuse(r, state, call->error);
    /* One that is not there may be lost, and come back unless it is left. */
    state->ticket->was = call->error == ERROR_NONE ? call->standing.state : TICKET_NONE;
    return admin_ask(r, state, ENGINE_LEAVE, revoke_tell);
}

static enum admin_next revoke_tell(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    struct span was = span_of(ticket_life(state->ticket->was)->name);
    if (call->error != ERROR_NONE)
        return admin_refuse(r, state, call->error);
    admin_log_ticket(r, state, call->place.epoch, call->place.count, was);
    ngx_buf_t *body = reply_buffer(r, TICKET_BYTES);
    if (body != NULL) {
        TEXT_ADD(body, "{\"room\":\"");
        text_add(body, state->room);
        TEXT_ADD(body, "\",\"was\":\"");
        text_add(body, was);
        TEXT_ADD(body, "\",\"revoked\":true}");
    }
    return admin_tell(r, state, NGX_HTTP_OK, body);
}

static void ticket_add(ngx_buf_t *body, const struct admin_state *state, const struct standing *standing)
{
    TEXT_ADD(body, "{\"kind\":\"");
    text_add(body, state->ticket->is_pass ? SPAN("pass") : SPAN("ticket"));
    TEXT_ADD(body, "\",\"room\":\"");
    text_add(body, state->room);
    TEXT_ADD(body, "\",\"state\":\"");
    text_add(body, span_of(ticket_life(standing->state)->name));
    TEXT_ADD(body, "\"");
    text_add_count(body, SPAN(",\"epoch\":"), standing->place.epoch);
    text_add_count(body, SPAN(",\"count\":"), standing->place.count);
    text_add_count(body, SPAN(",\"position\":"), standing->position);
    text_add_count(body, SPAN(",\"issued_at\":"), standing->issued_sec);
    if (state->ticket->is_pass)
        text_add_count(body, SPAN(",\"expires_at\":"), state->ticket->exp_sec);
    TEXT_ADD(body, ",\"trusted\":");
    text_add_flag(body, standing->is_trusted);
    text_add_count(body, SPAN(",\"waited_sec\":"), standing->waited_sec);
    text_add_count(body, SPAN(",\"eta_sec\":"), standing->eta_sec);
    text_add_count(body, SPAN(",\"eta_low_sec\":"), standing->eta_low_sec);
    text_add_count(body, SPAN(",\"eta_high_sec\":"), standing->eta_high_sec);
    TEXT_ADD(body, ",\"ready_for_entry\":");
    text_add_flag(body, standing->is_ready);
    TEXT_ADD(body, "}");
}
