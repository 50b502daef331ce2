/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is done to the people of a room: advance, clear, delete. The figures before and after are asked for around it, for the
 * log; people who come and go in between make them a little different from what the deed itself did.
 */
#include "nginx/admin.h"
#include "nginx/reply.h"
#include "nginx/text.h"

static enum admin_next advance_do(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next clear_do(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next delete_do(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next deed_do(ngx_http_request_t *r, struct admin_state *state, enum engine_op op,
                               admin_step *then);
static enum admin_next deed_done(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next advance_tell(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next clear_tell(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next delete_tell(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next deed_tell(ngx_http_request_t *r, struct admin_state *state, struct span name,
                                 uint32_t people);

enum admin_next room_advance_begin(ngx_http_request_t *r, struct admin_state *state)
{
    json_t *count = json_object_get(state->body, "count");
    json_int_t people = json_integer_value(count);
    if (!json_is_integer(count) || people < 1 || people > UINT32_MAX)
        return admin_refuse_saying(r, state, ERROR_INVALID_REQUEST,
                                   "count must be a whole number from 1 to 4294967295");
    state->people = (uint32_t)people;
    return admin_ask(r, state, ENGINE_FIGURES, advance_do);
}

enum admin_next room_clear_begin(ngx_http_request_t *r, struct admin_state *state)
{
    return admin_ask(r, state, ENGINE_FIGURES, clear_do);
}

enum admin_next room_delete_begin(ngx_http_request_t *r, struct admin_state *state)
{
    return admin_ask(r, state, ENGINE_FIGURES, delete_do);
}

static enum admin_next advance_do(ngx_http_request_t *r, struct admin_state *state)
{
    return deed_do(r, state, ENGINE_ADVANCE, deed_done);
}

static enum admin_next clear_do(ngx_http_request_t *r, struct admin_state *state)
{
    return deed_do(r, state, ENGINE_CLEAR, deed_done);
}

static enum admin_next delete_do(ngx_http_request_t *r, struct admin_state *state)
{
    return deed_do(r, state, ENGINE_DELETE, delete_tell);
}

static enum admin_next deed_do(ngx_http_request_t *r, struct admin_state *state, enum engine_op op,
                               admin_step *then)
{
    struct engine_call *call = admin_call(r);
    if (call->error != ERROR_NONE)
        return admin_refuse(r, state, call->error);
    state->before = call->figures;
    call->people = state->people;
    return admin_ask(r, state, op, then);
}

static enum admin_next deed_done(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    bool is_advance = call->op == ENGINE_ADVANCE;
    if (call->error != ERROR_NONE)
        return admin_refuse(r, state, call->error);
    return admin_ask(r, state, ENGINE_FIGURES, is_advance ? advance_tell : clear_tell);
}

static enum admin_next advance_tell(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    u_char what[80];
    *ngx_snprintf(what, sizeof(what) - 1, "asked for %uD, called %uD at once, ", state->people,
                  call->people) = '\0';
    admin_log_people(r, state, "advanced", (const char *)what,
                     call->error == ERROR_NONE ? &call->figures : NULL);
    return deed_tell(r, state, SPAN("called"), call->people);
}

static enum admin_next clear_tell(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    admin_log_people(r, state, "cleared", "", call->error == ERROR_NONE ? &call->figures : NULL);
    return deed_tell(r, state, SPAN("cleared"), call->people);
}

static enum admin_next deed_tell(ngx_http_request_t *r, struct admin_state *state, struct span name,
                                 uint32_t people)
{
    ngx_buf_t *body = reply_buffer(r, 160);
    if (body != NULL) {
        TEXT_ADD(body, "{\"id\":\"");
        text_add(body, state->room);
        TEXT_ADD(body, "\",\"");
        text_add(body, name);
        TEXT_ADD(body, "\":");
        text_add_number(body, people);
        TEXT_ADD(body, "}");
    }
    return admin_tell(r, state, NGX_HTTP_OK, body);
}

static enum admin_next delete_tell(ngx_http_request_t *r, struct admin_state *state)
{
    enum error error = admin_call(r)->error;
    if (error != ERROR_NONE)
        return admin_refuse(r, state, error);
    admin_log_people(r, state, "deleted", "", NULL);
    ngx_buf_t *body = reply_buffer(r, 160);
    if (body != NULL) {
        TEXT_ADD(body, "{\"id\":\"");
        text_add(body, state->room);
        TEXT_ADD(body, "\",\"deleted\":true}");
    }
    return admin_tell(r, state, NGX_HTTP_OK, body);
}
