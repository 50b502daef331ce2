/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate runs in the precontent phase: after every access and auth module, so that what they found out about the visitor is
 * known, and out of reach of `satisfy any`, which lets one access module speak for all. It runs again wherever nginx sends a
 * request on to another location (error_page, try_files, X-Accel-Redirect), for that location's own gate.
 *
 * A request goes through at most two questions to the engine: the room's settings (mode, tier), then the session that the pass
 * names, which counts as being seen. The signature alone opens nothing: the session may be over.
 *
 * A subrequest of a main request that itself stands before the same room is let by. It happens either before the main
 * request comes to its gate (auth_request), and then delivers nothing, or behind it. Any other subrequest is judged by itself.
 */
#include "nginx/gate.h"

#include "base/room_id.h"
#include "engine/place.h"
#include "nginx/headers.h"
#include "nginx/identity.h"
#include "nginx/pass_cookie.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"
#include "token/pass.h"

#define RETURN_MAX 2048 /* of the address to come back to; a longer one is not worth the header */

enum gate_step {
    GATE_LOOK,    /* ask for the room's settings */
    GATE_JUDGE,   /* they are there: is there a pass? */
    GATE_TOUCH,   /* there is: ask for its session */
    GATE_TOUCHED, /* that is answered */
    GATE_PASSED,  /* go on, with the pass's word for who it is */
    GATE_FREE,    /* go on without */
    GATE_TURNED_AWAY,
};

struct gate_state {
    enum gate_step step;
    enum error error; /* GATE_TURNED_AWAY: why */
    struct span room; /* len 0: the room cannot exist */
    bool is_open;     /* the room lets everybody by */
    struct pass_claims pass;
    char session[PASS_ID_LEN];
    u_char tier[1];
};

static struct gate_state *gate_begin(ngx_http_request_t *r, const struct gate_conf *conf);
static bool gate_does_not_apply(ngx_http_request_t *r, const struct gate_conf *conf);
static bool main_stands_before(ngx_http_request_t *r, const struct gate_conf *conf);
static ngx_int_t gate_walk(ngx_http_request_t *r, struct gate_state *gate);
static bool gate_ask(ngx_http_request_t *r, struct gate_state *gate, enum engine_op op, enum gate_step next);
static void gate_resume(ngx_http_request_t *r);
static void gate_judge(ngx_http_request_t *r, struct gate_state *gate);
static void gate_judge_session(ngx_http_request_t *r, struct gate_state *gate);
static void gate_settle(struct gate_state *gate, enum error error);
static bool pass_choose(ngx_http_request_t *r, struct gate_state *gate, int tier);
static bool pass_read(ngx_http_request_t *r, struct gate_state *gate, int tier, struct span token,
                      struct pass_claims *out);
static bool pass_is_theirs(ngx_http_request_t *r, const struct pass_claims *pass);
static ngx_int_t gate_let_by(ngx_http_request_t *r, struct gate_state *gate);
static ngx_int_t gate_tell_shop(ngx_http_request_t *r, struct gate_state *gate);
static ngx_int_t gate_turn_away(ngx_http_request_t *r, const struct gate_state *gate);
static bool is_navigation(ngx_http_request_t *r);
static struct span page_address(ngx_http_request_t *r, const struct gate_state *gate, bool comes_back);
static ngx_int_t gate_redirect(ngx_http_request_t *r, struct span address);

ngx_int_t gate_on_read(ngx_http_request_t *r)
{
    const struct srv_conf *server = ngx_http_get_module_srv_conf(r, ngx_http_weir_module);
    if (!server->has_gate)
        return NGX_DECLINED;
    return headers_strip(r) == NGX_OK ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}

ngx_int_t gate_on_rewrite(ngx_http_request_t *r)
{
    if (r != r->main || conf_loc(r)->gate == NULL)
        return NGX_DECLINED;
    return headers_strip(r) == NGX_OK ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}

ngx_int_t gate_handler(ngx_http_request_t *r)
{
    const struct gate_conf *conf = conf_loc(r)->gate;
    if (conf == NULL)
        return NGX_DECLINED;
    struct request *request = request_of(r);
    if (request == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (request->gate == NULL) {
        if (gate_does_not_apply(r, conf))
            return NGX_DECLINED;
        request->gate = gate_begin(r, conf);
    }
    return request->gate != NULL ? gate_walk(r, request->gate) : NGX_HTTP_INTERNAL_SERVER_ERROR;
}

static bool gate_does_not_apply(ngx_http_request_t *r, const struct gate_conf *conf)
{
    const struct sent *sent = &request_of(r)->sent;
    bool is_preflight =
        r->method == NGX_HTTP_OPTIONS && sent->origin.data != NULL && sent->cors_method.data != NULL;
    return is_preflight || (r != r->main && main_stands_before(r, conf));
}

static bool main_stands_before(ngx_http_request_t *r, const struct gate_conf *conf)
{
    struct gate_conf *of_main = conf_loc(r->main)->gate;
    ngx_str_t ours, theirs;
    return of_main != NULL &&
           ngx_http_complex_value(r, (ngx_http_complex_value_t *)&conf->room, &ours) == NGX_OK &&
           ngx_http_complex_value(r->main, &of_main->room, &theirs) == NGX_OK &&
           span_equal(span_of_str(ours), span_of_str(theirs));
}

static struct gate_state *gate_begin(ngx_http_request_t *r, const struct gate_conf *conf)
{
    ngx_str_t room;
    struct gate_state *gate = ngx_pcalloc(r->pool, sizeof(*gate));
    if (gate == NULL || ngx_http_complex_value(r, (ngx_http_complex_value_t *)&conf->room, &room) != NGX_OK)
        return NULL;
    if (room_id_is_valid(span_of_str(room)))
        gate->room = span_of_str(room);
    else
        gate_settle(gate, ERROR_ADMISSION_REQUIRED); /* a path without a room is no way in */
    return gate;
}

static ngx_int_t gate_walk(ngx_http_request_t *r, struct gate_state *gate)
{
    for (;;)
        switch (gate->step) {
        case GATE_LOOK:
            if (!gate_ask(r, gate, ENGINE_SETTINGS, GATE_JUDGE))
                return NGX_AGAIN;
            break;
        case GATE_JUDGE:
            gate_judge(r, gate);
            break;
        case GATE_TOUCH:
            if (!gate_ask(r, gate, ENGINE_SESSION_TOUCH, GATE_TOUCHED))
                return NGX_AGAIN;
            break;
        case GATE_TOUCHED:
            gate_judge_session(r, gate);
            break;
        case GATE_PASSED:
        case GATE_FREE:
            return gate_let_by(r, gate);
        case GATE_TURNED_AWAY:
            return gate_turn_away(r, gate);
        }
}

static bool gate_ask(ngx_http_request_t *r, struct gate_state *gate, enum engine_op op, enum gate_step next)
{
    struct call *call = &request_of(r)->call;
    call->engine.op = op;
    call->engine.room = gate->room;
    if (op == ENGINE_SESSION_TOUCH)
        call->engine.place = place_of_pass(&gate->pass);
    gate->step = next;
    return call_submit(r, call, gate_resume);
}

static void gate_resume(ngx_http_request_t *r)
{
    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}

static void gate_judge(ngx_http_request_t *r, struct gate_state *gate)
{
    const struct engine_call *call = &request_of(r)->call.engine;
    if (call->error != ERROR_NONE) {
        /* A room that nobody has joined yet gives passes to those who do. */
        gate_settle(gate, call->error == ERROR_ROOM_NOT_FOUND ? ERROR_ADMISSION_REQUIRED : call->error);
        return;
    }
    gate->is_open = call->settings.mode == MODE_OPEN;
    if (pass_choose(r, gate, (int)call->settings.tier))
        gate->step = GATE_TOUCH;
    else
        gate_settle(gate, ERROR_ADMISSION_REQUIRED);
}

static void gate_judge_session(ngx_http_request_t *r, struct gate_state *gate)
{
    enum error error = request_of(r)->call.engine.error;
    if (error == ERROR_NONE)
        gate->step = GATE_PASSED;
    else
        gate_settle(gate, error == ERROR_ENGINE_UNAVAILABLE ? error : ERROR_ADMISSION_REQUIRED);
}

static void gate_settle(struct gate_state *gate, enum error error)
{
    gate->step = gate->is_open ? GATE_FREE : GATE_TURNED_AWAY;
    gate->error = error;
}

/* From the header or a cookie. Valid ones of different people are none. */
static bool pass_choose(ngx_http_request_t *r, struct gate_state *gate, int tier)
{
    const struct request *request = request_of(r);
    char memory[PASS_COOKIE_NAME_MAX];
    struct span name = pass_cookie_name(gate->room, memory), cookie;
    struct cookie_walk walk = {0};
    bool has_pass = pass_read(r, gate, tier, request->sent.pass, &gate->pass);
    while (request_cookie_next(request, name, &walk, &cookie)) {
        struct pass_claims other;
        if (!pass_read(r, gate, tier, cookie, &other))
            continue;
        if (has_pass && !holder_equal(&gate->pass.holder, &other.holder))
            return false;
        gate->pass = other;
        has_pass = true;
    }
    return has_pass;
}

static bool pass_read(ngx_http_request_t *r, struct gate_state *gate, int tier, struct span token,
                      struct pass_claims *out)
{
    if (token.len == 0 || token.len > PASS_TOKEN_MAX)
        return false;
    /* Usually a few hundred bytes: room for the longest pass would be a pool block of its own. */
    size_t size = PASS_SCRATCH(token.len);
    char *scratch = ngx_pnalloc(r->pool, size);
    return scratch != NULL &&
           pass_verify(conf_main(r)->keys, tier, token, (uint64_t)ngx_time(), out, scratch, size) &&
           span_equal(out->room, gate->room) && pass_is_theirs(r, out);
}

/* Where somebody is vouched for, the pass must be theirs; where weir_user is on and nobody is, it must be an anonymous one. */
static bool pass_is_theirs(ngx_http_request_t *r, const struct pass_claims *pass)
{
    struct span identity = identity_of(r);
    char memory[ANONYMOUS_LEN];
    if (identity.data != NULL)
        return span_equal(identity, pass->uid);
    return conf_loc(r)->identity == NULL || span_equal(identity_anonymous(&pass->holder, memory), pass->uid);
}

static ngx_int_t gate_let_by(ngx_http_request_t *r, struct gate_state *gate)
{
    static const struct span name = SPAN("X-Weir-Room"), lowcase = SPAN("x-weir-room");
    if (headers_add(r, name, lowcase, gate->room) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (gate->step == GATE_PASSED && gate_tell_shop(r, gate) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    request_of(r)->gate = NULL; /* should the request come to another gate, it is judged anew */
    return NGX_DECLINED;
}

static ngx_int_t gate_tell_shop(ngx_http_request_t *r, struct gate_state *gate)
{
    const struct pass_claims *pass = &gate->pass;
    pass_id_write(pass, gate->session);
    gate->tier[0] = (u_char)('0' + pass->tier);
    if (headers_add(r, SPAN("X-Weir-User"), SPAN("x-weir-user"), pass->uid) != NGX_OK ||
        headers_add(r, SPAN("X-Weir-Session"), SPAN("x-weir-session"),
                    (struct span){gate->session, sizeof(gate->session)}) != NGX_OK)
        return NGX_ERROR;
    return headers_add(r, SPAN("X-Weir-Tier"), SPAN("x-weir-tier"),
                       (struct span){(const char *)gate->tier, 1});
}

static ngx_int_t gate_turn_away(ngx_http_request_t *r, const struct gate_state *gate)
{
    ngx_int_t rc = NGX_HTTP_FORBIDDEN;
    if (r != r->main)
        return rc;
    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    if (gate->error != ERROR_ADMISSION_REQUIRED)
        rc = reply_error(r, gate->error, 0);
    else if (gate->room.len > 0 && is_navigation(r))
        rc = gate_redirect(r, page_address(r, gate, true));
    else
        rc = reply_error_with_redirect(r, gate->error, page_address(r, gate, false));
    ngx_http_finalize_request(r, rc);
    return NGX_DONE;
}

static bool is_navigation(ngx_http_request_t *r)
{
    const struct sent *sent = &request_of(r)->sent;
    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)))
        return false;
    if (sent->fetch_mode.data != NULL)
        return span_equal(sent->fetch_mode, SPAN("navigate"));
    return sent->accept.len > 0 && memmem(sent->accept.data, sent->accept.len, "text/html", 9) != NULL;
}

/* An empty span: the room cannot exist, or out of memory. */
static struct span page_address(ngx_http_request_t *r, const struct gate_state *gate, bool comes_back)
{
    const ngx_str_t *page = &conf_loc(r)->gate->page;
    ngx_str_t from = r->unparsed_uri;
    /* Two slashes would be another host to a browser. */
    bool is_local = from.len > 0 && from.len <= RETURN_MAX && from.data[0] == '/' &&
                    (from.len == 1 || (from.data[1] != '/' && from.data[1] != '\\'));
    ngx_buf_t *text =
        gate->room.len > 0 ? reply_buffer(r, page->len + gate->room.len + 16 + 3 * RETURN_MAX) : NULL;
    if (text == NULL)
        return SPAN_NONE;
    text_add(text, span_of_str(*page));
    text_add(text, gate->room);
    if (comes_back && is_local) {
        TEXT_ADD(text, "?return=");
        text->last = (u_char *)ngx_escape_uri(text->last, from.data, from.len, NGX_ESCAPE_URI_COMPONENT);
    }
    return (struct span){(const char *)text->pos, (size_t)(text->last - text->pos)};
}

static ngx_int_t gate_redirect(ngx_http_request_t *r, struct span address)
{
    if (address.len == 0 || reply_header(r, SPAN("Location"), address) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_empty(r, NGX_HTTP_MOVED_TEMPORARILY);
}
