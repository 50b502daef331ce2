/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate runs in the precontent phase: after every access and auth module, so that what they found out about the visitor is
 * known, and out of reach of `satisfy any`, which lets one access module speak for all. It runs again wherever nginx sends a
 * request on to another location (error_page, try_files, X-Accel-Redirect), for that location's own gate.
 *
 * First the signature of what was presented, then the session that it names, which counts as being seen: the signature alone
 * opens nothing, for the session may be over. Only without any such pass is the line's room itself asked: it may be open, or
 * have a slot for somebody who comes now (gate_admit.c).
 *
 * A subrequest of a main request that itself stands before the same rooms is let by. It happens either before the main
 * request comes to its gate (auth_request), and then delivers nothing, or behind it. Any other subrequest is judged by itself.
 */
#include "nginx/gate.h"

#include "base/room_id.h"
#include "engine/place.h"
#include "nginx/gate_admit.h"
#include "nginx/gate_body.h"
#include "nginx/gate_count.h"
#include "nginx/gate_recent.h"
#include "nginx/gate_refuse.h"
#include "nginx/gate_state.h"
#include "nginx/gate_ticket.h"
#include "nginx/headers.h"
#include "nginx/identity.h"
#include "nginx/request.h"
#include "nginx/verify.h"

static ngx_int_t gate_enter(ngx_http_request_t *r, struct request *request, const struct gate_conf *conf);
static bool is_preflight(ngx_http_request_t *r);
static bool main_stands_before(ngx_http_request_t *r, const struct gate_conf *conf);
static bool rooms_are_equal(ngx_http_request_t *r, const struct gate_conf *ours,
                            const struct gate_conf *theirs);
static bool rooms_evaluate(ngx_http_request_t *r, struct gate *gate);
static ngx_int_t gate_walk(ngx_http_request_t *r, struct gate *gate);
static void gate_resume(ngx_http_request_t *r);
static enum gate_move gate_look(ngx_http_request_t *r, struct gate *gate);
static enum gate_move pass_next(ngx_http_request_t *r, struct gate *gate);
static enum gate_move pass_touch(ngx_http_request_t *r, struct gate *gate);
static enum gate_move pass_touched(ngx_http_request_t *r, struct gate *gate);
static enum gate_move line_judge(ngx_http_request_t *r, struct gate *gate);
static ngx_int_t gate_end(ngx_http_request_t *r, struct gate *gate);
static void gate_note_down(struct gate_note *note, const struct gate *gate);
static ngx_int_t gate_let_by(ngx_http_request_t *r, struct gate *gate);
static ngx_int_t shop_tell(ngx_http_request_t *r, const struct gate_said *said, struct span signature);
static ngx_int_t header_tell(ngx_http_request_t *r, struct span name, struct span lowcase, struct span value);

ngx_int_t gate_on_read(ngx_http_request_t *r)
{
    const struct srv_conf *server = ngx_http_get_module_srv_conf(r, ngx_http_weir_module);
    if (!server->has_gate)
        return NGX_DECLINED;
    return headers_strip(r) == NGX_OK ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}

ngx_int_t gate_on_rewrite(ngx_http_request_t *r)
{
    if (r != r->main || !r->internal || conf_loc(r)->gate == NULL)
        return NGX_DECLINED;
    return headers_strip(r) == NGX_OK ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}

ngx_int_t gate_handler(ngx_http_request_t *r)
{
    /* weir_verify is free for those who ask; a path of its name that they ask about is a path like any other. */
    bool is_question = verify_is_on(r);
    const struct gate_conf *conf = conf_loc(r)->verify == NULL || is_question ? conf_loc(r)->gate : NULL;
    if (conf == NULL)
        return is_question ? verify_allow(r, NULL, SPAN_NONE) : NGX_DECLINED;
    struct request *request = request_of(r);
    if (request == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return request->gate != NULL ? gate_walk(r, request->gate) : gate_enter(r, request, conf);
}

static ngx_int_t gate_enter(ngx_http_request_t *r, struct request *request, const struct gate_conf *conf)
{
    if (r != r->main && main_stands_before(r, conf))
        return NGX_DECLINED;
    if (gate_body_is_wanted(r, conf) && !is_preflight(r))
        return gate_body_read(r);
    request->gate = gate_new(r, conf);
    return request->gate != NULL ? gate_walk(r, request->gate) : NGX_HTTP_INTERNAL_SERVER_ERROR;
}

static bool is_preflight(ngx_http_request_t *r)
{
    const struct sent *sent = &request_of(r)->sent;
    return verify_method(r) == NGX_HTTP_OPTIONS && sent->origin.data != NULL &&
           sent->cors_method.data != NULL;
}

static bool main_stands_before(ngx_http_request_t *r, const struct gate_conf *conf)
{
    const struct gate_conf *of_main = conf_loc(r->main)->gate;
    return of_main != NULL && conf->tier <= of_main->tier && conf->room_count == of_main->room_count &&
           rooms_are_equal(r, conf, of_main);
}

static bool rooms_are_equal(ngx_http_request_t *r, const struct gate_conf *ours,
                            const struct gate_conf *theirs)
{
    for (ngx_uint_t i = 0; i < ours->room_count; i++) {
        ngx_str_t our_room, their_room;
        if (ngx_http_complex_value(r, (ngx_http_complex_value_t *)&ours->rooms[i], &our_room) != NGX_OK ||
            ngx_http_complex_value(r->main, (ngx_http_complex_value_t *)&theirs->rooms[i], &their_room) !=
                NGX_OK ||
            !span_equal(span_of_str(our_room), span_of_str(their_room)))
            return false;
    }
    return true;
}

struct gate *gate_new(ngx_http_request_t *r, const struct gate_conf *conf)
{
    struct gate *gate = ngx_pcalloc(r->pool, sizeof(*gate));
    if (gate == NULL)
        return NULL;
    gate->conf = conf;
    gate->step = gate_look;
    return rooms_evaluate(r, gate) ? gate : NULL;
}

static bool rooms_evaluate(ngx_http_request_t *r, struct gate *gate)
{
    for (ngx_uint_t i = 0; i < gate->conf->room_count; i++) {
        ngx_str_t room;
        if (ngx_http_complex_value(r, (ngx_http_complex_value_t *)&gate->conf->rooms[i], &room) != NGX_OK)
            return false;
        if (!room_id_is_valid(span_of_str(room)))
            continue;
        gate->rooms[gate->room_count++] = span_of_str(room);
        if (i == 0)
            gate->line = span_of_str(room);
    }
    return true;
}

static ngx_int_t gate_walk(ngx_http_request_t *r, struct gate *gate)
{
    for (;;)
        switch (gate->step(r, gate)) {
        case GATE_ON:
            break;
        case GATE_ASK:
            if (!call_submit(r, &request_of(r)->call, gate_resume))
                return NGX_AGAIN;
            break;
        case GATE_END:
            return gate_end(r, gate);
        }
}

static void gate_resume(ngx_http_request_t *r)
{
    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}

/* ---- the steps ---- */

static enum gate_move gate_look(ngx_http_request_t *r, struct gate *gate)
{
    gate_counts_watch(r);
    if (is_preflight(r))
        return gate_decide(gate, GATE_PREFLIGHT);
    if (conf_loc(r)->bypass != NULL && ngx_http_test_predicates(r, conf_loc(r)->bypass) == NGX_DECLINED)
        return gate_decide(gate, GATE_BYPASSED);
    gate_passes_find(r, gate);
    gate->step = pass_next;
    return GATE_ON;
}

static enum gate_move pass_next(ngx_http_request_t *r, struct gate *gate)
{
    const struct pass_claims *pass = &gate->passes.of[gate->at];
    if (gate->at < gate->passes.count)
        return recent_has(pass) ? gate_decide(gate, GATE_PASSED)
                                : gate_ask(r, gate, ENGINE_SETTINGS, pass->room, pass_touch);
    gate->step = gate_ticket_look;
    return GATE_ON;
}

/* Its room is there: does it still give such passes? */
static enum gate_move pass_touch(ngx_http_request_t *r, struct gate *gate)
{
    const struct pass_claims *pass = &gate->passes.of[gate->at];
    struct engine_call *call = &request_of(r)->call.engine;
    if (call->error == ERROR_ENGINE_UNAVAILABLE)
        return gate_miss_engine(r, gate);
    bool is_of_tier = call->error == ERROR_NONE && pass->tier == (int)call->settings.tier;
    if (call->error != ERROR_NONE || (gate->conf->tier == 0 && !is_of_tier)) {
        gate->at++;
        gate->step = pass_next;
        return GATE_ON;
    }
    /* What another gate takes although its room gives other passes by now is remembered for no gate. */
    gate->session_ttl_sec = is_of_tier ? call->settings.session_ttl_sec : 0;
    call->place = place_of_pass(pass);
    call->place.issue.is_trusted = !identity_is_anonymous(pass);
    return gate_ask(r, gate, ENGINE_SESSION_TOUCH, pass->room, pass_touched);
}

static enum gate_move pass_touched(ngx_http_request_t *r, struct gate *gate)
{
    enum error error = request_of(r)->call.engine.error;
    if (error == ERROR_NONE) {
        recent_add(&gate->passes.of[gate->at], gate->session_ttl_sec);
        return gate_decide(gate, GATE_PASSED);
    }
    if (error == ERROR_ENGINE_UNAVAILABLE)
        return gate_miss_engine(r, gate);
    gate->at++;
    gate->step = pass_next;
    return GATE_ON;
}

enum gate_move gate_look_at_line(ngx_http_request_t *r, struct gate *gate)
{
    if (gate->line.len == 0) /* a path without a room is no way in */
        return gate_deny(gate);
    return gate_ask(r, gate, ENGINE_SETTINGS, gate->line, line_judge);
}

static enum gate_move line_judge(ngx_http_request_t *r, struct gate *gate)
{
    const struct engine_call *call = &request_of(r)->call.engine;
    gate->is_open = call->error == ERROR_NONE && call->settings.mode == MODE_OPEN;
    gate->session_ttl_sec = call->error == ERROR_NONE ? call->settings.session_ttl_sec : 0;
    if (call->error == ERROR_ENGINE_UNAVAILABLE)
        return gate_miss_engine(r, gate);
    bool is_too_low = call->error == ERROR_NONE && (int)call->settings.tier < gate->conf->tier;
    if (is_too_low)
        ngx_log_error(
            NGX_LOG_WARN, r->connection->log, 0,
            "weir: no pass of the room \"%*s\" opens its gate: the room gives tier 1, the gate wants tier 2",
            gate->line.len, gate->line.data);
    /* A room that nobody has joined yet gives passes to those who do. */
    if (is_too_low || !gate_may_admit(r, gate))
        return gate_deny(gate);
    gate->step = gate_admit;
    return GATE_ON;
}

enum gate_move gate_ask(ngx_http_request_t *r, struct gate *gate, enum engine_op op, struct span room,
                        gate_step *then)
{
    struct engine_call *call = &request_of(r)->call.engine;
    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, r->connection->log, 0, "weir gate asks %d about \"%*s\"", (int)op,
                   room.len, room.data);
    call->op = op;
    call->room = room;
    gate->step = then;
    return GATE_ASK;
}

enum gate_move gate_decide(struct gate *gate, enum gate_outcome outcome)
{
    gate->outcome = outcome;
    return GATE_END;
}

enum gate_move gate_deny(struct gate *gate)
{
    return gate_decide(gate, gate->is_open ? GATE_OPEN : GATE_REFUSED);
}

/* A pass that the engine has said to be over is none, whatever its signature; the others were not asked for yet. */
enum gate_move gate_miss_engine(ngx_http_request_t *r, struct gate *gate)
{
    bool has_pass = gate->at < gate->passes.count;
    ngx_uint_t policy = conf_loc(r)->when_down;
    if (policy != WHEN_DOWN_CLOSED && has_pass)
        return gate_decide(gate, GATE_SIGNED);
    if (gate->is_open)
        return gate_decide(gate, GATE_OPEN);
    return gate_decide(gate, policy == WHEN_DOWN_OPEN ? GATE_UNGUARDED : GATE_UNAVAILABLE);
}

/* ---- the end ---- */

static ngx_int_t gate_end(ngx_http_request_t *r, struct gate *gate)
{
    struct gate_note *note = gate_note_of(r);
    if (note == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (r == r->main)
        gate_note_down(note, gate);
    gate_count(r, gate->outcome);
    if (!gate_goes_on(gate->outcome))
        return gate_refuse(r, gate);
    return gate_let_by(r, gate);
}

static void gate_note_down(struct gate_note *note, const struct gate *gate)
{
    note->outcome = gate->outcome;
    note->has_session = gate_goes_on(gate->outcome) && gate->at < gate->passes.count;
    if (note->has_session)
        note->session = gate->passes.of[gate->at];
}

static ngx_int_t gate_let_by(ngx_http_request_t *r, struct gate *gate)
{
    struct gate_said said = {.room = gate->outcome != GATE_PREFLIGHT ? gate->line : SPAN_NONE};
    if (gate->at < gate->passes.count) {
        const struct pass_claims *pass = &gate->passes.of[gate->at];
        pass_id_write(pass, gate->session);
        gate->tier[0] = (char)('0' + pass->tier);
        said = (struct gate_said){
            pass->room, {gate->tier, sizeof(gate->tier)}, {gate->session, sizeof(gate->session)}, pass->uid};
    }
    struct span signature = gate->outcome != GATE_PREFLIGHT ? gate_sign(r, &said) : SPAN_NONE;
    if (verify_is_on(r))
        return verify_allow(r, &said, signature);
    request_of(r)->gate = NULL; /* should the request come to another gate, it is judged anew */
    return shop_tell(r, &said, signature) == NGX_OK ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}

static ngx_int_t shop_tell(ngx_http_request_t *r, const struct gate_said *said, struct span signature)
{
    if (headers_begin(r) != NGX_OK ||
        header_tell(r, SPAN("X-Weir-Room"), SPAN("x-weir-room"), said->room) != NGX_OK ||
        header_tell(r, SPAN("X-Weir-User"), SPAN("x-weir-user"), said->user) != NGX_OK ||
        header_tell(r, SPAN("X-Weir-Session"), SPAN("x-weir-session"), said->session) != NGX_OK ||
        header_tell(r, SPAN("X-Weir-Tier"), SPAN("x-weir-tier"), said->tier) != NGX_OK)
        return NGX_ERROR;
    return header_tell(r, SPAN("X-Weir-Signature"), SPAN("x-weir-signature"), signature);
}

static ngx_int_t header_tell(ngx_http_request_t *r, struct span name, struct span lowcase, struct span value)
{
    return value.len > 0 ? headers_add(r, name, lowcase, value) : NGX_OK;
}
