/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ticket says where somebody stands and not that they were let in. So, unlike a pass, it never opens by its signature alone: the
 * room must say that its holder is inside, and one that a room has lost is never made anew by it.
 */
#include "nginx/gate_ticket.h"

#include "engine/place.h"
#include "nginx/identity.h"
#include "nginx/queue.h"
#include "nginx/request.h"

static bool ticket_take(ngx_http_request_t *r, struct gate *gate);
static gate_step ticket_touch, ticket_touched;

enum gate_move gate_ticket_look(ngx_http_request_t *r, struct gate *gate)
{
    struct span token = request_of(r)->sent.user_token;
    gate->step = gate_look_at_line;
    gate->ticket_error = token.len > 0 ? ERROR_TOKEN_NOT_FOUND : ERROR_MISSING_TOKEN;
    if (!gate->conf->takes_tickets || token.len == 0 || !ticket_take(r, gate))
        return GATE_ON;
    gate->ticket_error = ERROR_NOT_READY;
    return gate_ask(r, gate, ENGINE_SETTINGS, gate->ticket->claims.room, ticket_touch);
}

static bool ticket_take(ngx_http_request_t *r, struct gate *gate)
{
    struct gate_ticket *ticket = ngx_pcalloc(r->pool, sizeof(*ticket));
    gate->ticket = ticket;
    return ticket != NULL &&
           queue_ticket_read(r, request_of(r)->sent.user_token, &ticket->claims, ticket->room) &&
           gate_has_room(gate, ticket->claims.room);
}

static enum gate_move ticket_touch(ngx_http_request_t *r, struct gate *gate)
{
    struct engine_call *call = &request_of(r)->call.engine;
    struct gate_ticket *ticket = gate->ticket;
    const struct ticket_claims *claims = &ticket->claims;
    struct span identity = identity_of(r);
    gate->step = gate_look_at_line;
    if (call->error == ERROR_ENGINE_UNAVAILABLE)
        return gate_miss_engine(r, gate);
    if (call->error != ERROR_NONE || (int)call->settings.tier < gate->conf->tier)
        return GATE_ON;
    gate->session_ttl_sec = call->settings.session_ttl_sec;
    ticket->pass = (struct pass_claims){
        .key_id = claims->key_id,
        .tier = (int)call->settings.tier,
        .epoch = claims->epoch,
        .count = claims->count,
        .holder = claims->holder,
        .iat_sec = claims->issued_sec,
        .exp_sec = claims->issued_sec,
        .room = claims->room,
        .uid = claims->is_trusted ? identity : identity_anonymous(&claims->holder, ticket->uid),
    };
    call->place = place_of_ticket(claims);
    return gate_ask(r, gate, ENGINE_SESSION_TOUCH, claims->room, ticket_touched);
}

/* From here on it is a session like any other. */
static enum gate_move ticket_touched(ngx_http_request_t *r, struct gate *gate)
{
    enum error error = request_of(r)->call.engine.error;
    gate->step = gate_look_at_line;
    if (error == ERROR_ENGINE_UNAVAILABLE)
        return gate_miss_engine(r, gate);
    if (error != ERROR_NONE)
        return GATE_ON;
    gate->passes = (struct gate_passes){.of = {gate->ticket->pass}, .count = 1};
    gate->at = 0;
    return gate_decide(gate, GATE_PASSED);
}

enum error gate_ticket_error(const struct gate *gate)
{
    if (gate->outcome == GATE_UNAVAILABLE)
        return ERROR_ENGINE_UNAVAILABLE;
    return gate->ticket_error != ERROR_NONE ? gate->ticket_error : ERROR_MISSING_TOKEN;
}
