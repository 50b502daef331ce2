/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A room's settings. A change is made from the settings as they were read and put back only if nobody changed them meanwhile;
 * else it is made again from the new ones. So two operators who change different settings at the same time lose nothing,
 * and one who names a wrong value changes nothing.
 */
#include "base/room_id.h"
#include "nginx/admin.h"
#include "nginx/reply.h"
#include "nginx/text.h"

#define REASON_BYTES 320

static enum admin_next room_tell(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next figures_ask(ngx_http_request_t *r, struct admin_state *state, admin_step *then);
static enum admin_next room_answer(ngx_http_request_t *r, struct admin_state *state, ngx_uint_t status,
                                   const struct admin_settings *settings, bool is_from_api);
static enum admin_next room_change(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next room_change_from(ngx_http_request_t *r, struct admin_state *state,
                                        const struct admin_settings *start, uint32_t version);
static enum admin_next room_changed(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next room_refuse_change(ngx_http_request_t *r, struct admin_state *state, enum error error);
static bool is_put(ngx_http_request_t *r);

enum admin_next room_begin(ngx_http_request_t *r, struct admin_state *state)
{
    return figures_ask(r, state, room_tell);
}

/* With the texts. */
static enum admin_next figures_ask(ngx_http_request_t *r, struct admin_state *state, admin_step *then)
{
    state->texts_before = ngx_palloc(r->pool, sizeof(*state->texts_before));
    state->texts = ngx_palloc(r->pool, sizeof(*state->texts));
    if (state->texts_before == NULL || state->texts == NULL)
        return admin_refuse(r, state, ERROR_ENGINE_UNAVAILABLE);
    admin_call(r)->texts = state->texts_before;
    return admin_ask(r, state, ENGINE_FIGURES, then);
}

static enum admin_next room_tell(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    if (call->error != ERROR_NONE)
        return admin_refuse(r, state, call->error);
    struct admin_settings settings = {&call->settings, call->texts};
    return room_answer(r, state, NGX_HTTP_OK, &settings, call->figures.is_settings_from_api);
}

static enum admin_next room_answer(ngx_http_request_t *r, struct admin_state *state, ngx_uint_t status,
                                   const struct admin_settings *settings, bool is_from_api)
{
    ngx_buf_t *body = reply_buffer(r, ADMIN_SETTINGS_BYTES);
    if (body != NULL) {
        TEXT_ADD(body, "{\"id\":\"");
        text_add(body, state->room);
        TEXT_ADD(body, "\",\"source\":\"");
        text_add(body, is_from_api ? SPAN("api") : SPAN("file"));
        TEXT_ADD(body, "\",\"settings\":");
        admin_settings_add(body, settings->numbers, settings->texts);
        TEXT_ADD(body, "}");
    }
    return admin_tell(r, state, status, body);
}

enum admin_next room_put_begin(ngx_http_request_t *r, struct admin_state *state)
{
    if (!room_id_is_valid(state->room))
        return admin_refuse_saying(r, state, ERROR_INVALID_EVENT_ID,
                                   "The id of a room must be 1 to 64 characters of A-Z a-z 0-9 _ . : -");
    return room_patch_begin(r, state);
}

enum admin_next room_patch_begin(ngx_http_request_t *r, struct admin_state *state)
{
    if (!admin_changes_read(r->pool, state->body, &state->changes))
        return admin_refuse(r, state, ERROR_ENGINE_UNAVAILABLE);
    return figures_ask(r, state, room_change);
}

static enum admin_next room_change(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    static const struct texts none;
    struct settings plain = settings_default();
    bool is_new = call->error == ERROR_ROOM_NOT_FOUND && is_put(r);
    if (call->error != ERROR_NONE && !is_new)
        return admin_refuse(r, state, call->error);
    state->before = is_new ? (struct figures){0} : call->figures;
    state->settings_before = is_new ? plain : call->settings;
    if (is_new)
        *state->texts_before = none;
    struct admin_settings start = {is_put(r) ? &plain : &state->settings_before,
                                   is_put(r) ? &none : state->texts_before};
    return room_change_from(r, state, &start, state->before.settings_version);
}

static bool is_put(ngx_http_request_t *r)
{
    return r->method == NGX_HTTP_PUT;
}

static enum admin_next room_change_from(ngx_http_request_t *r, struct admin_state *state,
                                        const struct admin_settings *start, uint32_t version)
{
    struct engine_put put = {
        .settings = *start->numbers, .texts = state->texts, .version = version, .is_from_api = true};
    char reason[REASON_BYTES];
    *state->texts = *start->texts;
    if (!admin_changes_apply(&state->changes, &put.settings, state->texts, reason, sizeof(reason)))
        return admin_refuse_saying(r, state, ERROR_INVALID_SETTING, reason);
    admin_call(r)->put = put;
    return admin_ask(r, state, ENGINE_PUT, room_changed);
}

static enum admin_next room_changed(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    bool is_new = state->before.epoch == 0;
    if (call->error == ERROR_CONFLICT && ++state->tries < ADMIN_TRIES_MAX)
        return admin_ask(r, state, ENGINE_FIGURES, room_change);
    if (call->error != ERROR_NONE)
        return room_refuse_change(r, state, call->error);
    struct admin_settings before = {&state->settings_before, state->texts_before},
                          after = {&call->put.settings, state->texts};
    admin_log_settings(r, state, is_new ? "made" : "changed", &before, &after);
    return room_answer(r, state, is_new ? NGX_HTTP_CREATED : NGX_HTTP_OK, &after, true);
}

static enum admin_next room_refuse_change(ngx_http_request_t *r, struct admin_state *state, enum error error)
{
    switch (error) {
    case ERROR_QUEUE_FULL:
        return admin_refuse_saying(r, state, error, "There is no place for another room: see `rooms=`");
    case ERROR_INVALID_SETTING:
        return admin_refuse_saying(
            r, state, error,
            "session_max_sec or tier cannot change again before some of those inside have left");
    default:
        return admin_refuse(r, state, error);
    }
}
