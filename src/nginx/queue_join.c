/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A join brings a holder: the trusted identity's, the cookie's, or that of a visitor made up for it. With an idempotency key
 * that was used before, the engine answers with the first try's ticket, whose holder then is another than ours; and
 * behind a lobby whoever was nobody is who its pass says.
 */
#include "base/json.h"
#include "base/room_id.h"
#include "nginx/idempotency.h"
#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"

#define LABEL_MAX 256

static enum error join_prepare(ngx_http_request_t *r, struct queue_state *state, struct span room,
                               struct span label);
static ngx_int_t join_headers(ngx_http_request_t *r, struct queue_state *state);
static ngx_buf_t *join_body(ngx_http_request_t *r);

enum error join_ask(ngx_http_request_t *r, struct queue_state *state)
{
    struct json_member members[] = {
        {.name = SPAN("event_id"), .kind = JSON_TEXT, .is_optional = true},
        {.name = SPAN("user_id"), .kind = JSON_TEXT, .is_optional = true},
    };
    enum error error = queue_body(r, members, 2);
    if (error != ERROR_NONE)
        return error;
    struct span room = members[0].is_present ? members[0].text : SPAN_NONE;
    struct span label = members[1].is_present ? members[1].text : SPAN_NONE;
    if (span_equal(label, SPAN("anonymous"))) /* what the reference client calls everybody */
        label = SPAN_NONE;
    if (room.len == 0)
        return ERROR_MISSING_EVENT_ID;
    if (!room_id_is_valid(room))
        return ERROR_INVALID_EVENT_ID;
    if (label.len > LABEL_MAX)
        return ERROR_INVALID_REQUEST;
    return join_prepare(r, state, room, label);
}

static enum error join_prepare(ngx_http_request_t *r, struct queue_state *state, struct span room,
                               struct span label)
{
    struct engine_call *call = &request_of(r)->call.engine;
    struct visitor *visitor = &state->visitor;
    *visitor = visitor_of(r);
    call->op = ENGINE_JOIN;
    call->room = room;
    call->join = (struct join){.is_trusted = visitor->identity.data != NULL,
                               .key_id = keyring_signing_id(conf_main(r)->keys),
                               .wall_sec = (uint32_t)ngx_time()};
    struct idempotency scope = {SPAN("join"), room, visitor, {room, label}};
    enum error error = idempotency_key(r, &scope, &call->join.request);
    state->has_key = call->join.request.is_set;
    if (error != ERROR_NONE)
        return error;
    if (!call->join.is_trusted && !visitor->has_cookie)
        visitor_invent(visitor);
    visitor_holder(r, visitor, &call->join.holder);
    return ERROR_NONE;
}

ngx_int_t join_tell(ngx_http_request_t *r, struct queue_state *state)
{
    if (join_headers(r, state) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_json(r, NGX_HTTP_ACCEPTED, join_body(r));
}

static ngx_int_t join_headers(ngx_http_request_t *r, struct queue_state *state)
{
    const struct standing *standing = queue_standing(r);
    if (state->has_key && standing->is_repeat && idempotency_say_cached(r) != NGX_OK)
        return NGX_ERROR;
    return visitor_keep(r, &state->visitor, &standing->place.holder);
}

static ngx_buf_t *join_body(ngx_http_request_t *r)
{
    const struct standing *standing = queue_standing(r);
    char token[TICKET_TOKEN_MAX];
    size_t len = queue_ticket_write(r, request_of(r)->call.engine.room, standing, token);
    ngx_buf_t *body = reply_buffer(r, len + 160);
    if (body == NULL)
        return NULL;
    TEXT_ADD(body, "{\"waiting_token\":\"");
    text_add(body, (struct span){token, len});
    TEXT_ADD(body, "\",\"position_hint\":");
    text_add_number(body, standing->position);
    TEXT_ADD(body, ",\"status\":\"waiting\",\"ready_for_entry\":");
    text_add_flag(body, standing->is_ready);
    TEXT_ADD(body, ",\"next_poll_sec\":");
    text_add_number(body, standing->next_poll_sec);
    TEXT_ADD(body, "}");
    return body;
}

/* Signed by the key that signed it first, so that a repeat is the same token; by today's key once that one is gone. */
size_t queue_ticket_write(ngx_http_request_t *r, struct span room, const struct standing *standing,
                          char out[TICKET_TOKEN_MAX])
{
    struct keyring *keys = conf_main(r)->keys;
    struct ticket_claims claims = {
        .key_id = keyring_has(keys, standing->key_id) ? standing->key_id : keyring_signing_id(keys),
        .is_trusted = standing->is_trusted,
        .epoch = standing->place.epoch,
        .count = standing->place.count,
        .issued_sec = standing->issued_sec,
        .holder = standing->place.holder,
        .room = room,
    };
    return ticket_sign(keys, &claims, out);
}
