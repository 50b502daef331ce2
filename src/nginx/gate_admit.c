/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Only a page that somebody looks at is a visit. A picture or a script's call without a pass belongs to no session yet, and would
 * take a slot each: those get 403, and their page brings them a pass.
 *
 * Where a room has a lobby to go through first (weir_lobby), nobody comes in this way: the page finds out whether they have.
 *
 * Who is not called at once has joined nevertheless. The waiting page that they are sent to joins again, with the cookie that
 * goes out with the redirect, and gets the same ticket: the place in line is that of the first contact.
 */
#include "nginx/gate_admit.h"

#include "nginx/gate_recent.h"
#include "nginx/gate_refuse.h"
#include "nginx/identity.h"
#include "nginx/lobby.h"
#include "nginx/request.h"
#include "nginx/verify.h"

static enum gate_move admit_enter(ngx_http_request_t *r, struct gate *gate);
static enum gate_move admit_touch(ngx_http_request_t *r, struct gate *gate);
static enum gate_move admit_touched(ngx_http_request_t *r, struct gate *gate);
static enum gate_move admit_fail(ngx_http_request_t *r, struct gate *gate, enum error error);
static struct visitor visitor_to_admit(ngx_http_request_t *r, struct gate_note *note);

bool gate_may_admit(ngx_http_request_t *r, const struct gate *gate)
{
    const struct gate_note *note = gate_note_of(r);
    return r == r->main && r->method == NGX_HTTP_GET && !verify_is_on(r) && gate_is_navigation(r) &&
           !gate->passes.are_disputed && !lobby_stands_before(r, gate->line) && note != NULL &&
           note->given_count < GATE_GIVEN_MAX;
}

enum gate_move gate_admit(ngx_http_request_t *r, struct gate *gate)
{
    struct engine_call *call = &request_of(r)->call.engine;
    struct visitor visitor = visitor_to_admit(r, gate_note_of(r));
    call->join = (struct join){.is_trusted = visitor.identity.data != NULL,
                               .key_id = keyring_signing_id(conf_main(r)->keys),
                               .wall_sec = (uint32_t)ngx_time()};
    visitor_holder(r, &visitor, &call->join.holder);
    return gate_ask(r, gate, ENGINE_JOIN, gate->line, admit_enter);
}

/* Nobody's cookie is made twice, though the request may come to several gates. */
static struct visitor visitor_to_admit(ngx_http_request_t *r, struct gate_note *note)
{
    struct visitor visitor = visitor_of(r);
    if (visitor.identity.data != NULL || visitor.has_cookie)
        return visitor;
    if (!note->has_visitor) {
        visitor_invent(&note->visitor);
        note->has_visitor = true;
    }
    return note->visitor;
}

static enum gate_move admit_enter(ngx_http_request_t *r, struct gate *gate)
{
    struct engine_call *call = &request_of(r)->call.engine;
    if (call->error != ERROR_NONE || !call->standing.is_ready)
        return admit_fail(r, gate, call->error);
    call->enter = (struct enter){.place = call->standing.place,
                                 .key_id = keyring_signing_id(conf_main(r)->keys),
                                 .wall_sec = (uint32_t)ngx_time()};
    return gate_ask(r, gate, ENGINE_ENTER, gate->line, admit_touch);
}

static enum gate_move admit_touch(ngx_http_request_t *r, struct gate *gate)
{
    struct gate_note *note = gate_note_of(r);
    struct engine_call *call = &request_of(r)->call.engine;
    if (call->error != ERROR_NONE)
        return admit_fail(r, gate, call->error);
    if (note->given == NULL)
        note->given = ngx_palloc(r->pool, GATE_GIVEN_MAX * sizeof(*note->given));
    struct pass_given *given = note->given + note->given_count;
    if (note->given == NULL || !pass_give(r, gate->line, &call->standing, identity_of(r), given))
        return admit_fail(r, gate, ERROR_ENGINE_UNAVAILABLE);
    if (given->claims.tier < gate->conf->tier)
        return admit_fail(r, gate, ERROR_NONE);
    note->given_count++;
    gate->passes = (struct gate_passes){.of = {given->claims}, .count = 1};
    gate->at = 0;
    call->place = call->standing.place;
    return gate_ask(r, gate, ENGINE_SESSION_TOUCH, gate->line, admit_touched);
}

static enum gate_move admit_touched(ngx_http_request_t *r, struct gate *gate)
{
    enum error error = request_of(r)->call.engine.error;
    if (error != ERROR_NONE)
        return admit_fail(r, gate, error);
    recent_add(&gate->passes.of[gate->at], gate->session_ttl_sec);
    return gate_decide(gate, GATE_ADMITTED);
}

/* Whatever else it was: the line's page says it, and tries again. */
static enum gate_move admit_fail(ngx_http_request_t *r, struct gate *gate, enum error error)
{
    return error == ERROR_ENGINE_UNAVAILABLE ? gate_miss_engine(r, gate) : gate_deny(gate);
}
