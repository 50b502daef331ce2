/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pass is signed from what the engine keeps (time, key, life), never from this request: so a retry, or five at once, are
 * given the same bytes.
 */
#include "engine/place.h"
#include "nginx/idempotency.h"
#include "nginx/pass_cookie.h"
#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"
#include "token/pass.h"

static size_t enter_pass(ngx_http_request_t *r, const struct queue_state *state, char out[PASS_TOKEN_MAX]);
static ngx_buf_t *enter_body(ngx_http_request_t *r, struct span pass);

enum error enter_ask(ngx_http_request_t *r, struct queue_state *state)
{
    enum error error = queue_body_ticket(r, state);
    if (error != ERROR_NONE)
        return error;
    struct engine_call *call = &request_of(r)->call.engine;
    const struct ticket_claims *claims = &state->claims;
    call->op = ENGINE_ENTER;
    call->room = claims->room;
    call->enter = (struct enter){.place = place_of_ticket(claims),
                                 .key_id = keyring_signing_id(conf_main(r)->keys),
                                 .wall_sec = (uint32_t)ngx_time()};
    state->visitor = visitor_of(r);
    struct idempotency scope = {SPAN("enter"), claims->room, &state->visitor, {state->token, SPAN_NONE}};
    error = idempotency_key(r, &scope, &call->enter.request);
    state->has_key = call->enter.request.is_set;
    return error;
}

ngx_int_t enter_tell(ngx_http_request_t *r, struct queue_state *state)
{
    const struct standing *standing = queue_standing(r);
    char *memory = ngx_pnalloc(r->pool, PASS_TOKEN_MAX);
    if (memory == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    struct span pass = {memory, enter_pass(r, state, memory)};
    if (pass.len == 0)
        return reply_error(r, ERROR_ENGINE_UNAVAILABLE, 0);
    if (state->has_key && standing->is_repeat && idempotency_say_cached(r) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (pass_cookie_set(r, state->claims.room, pass, standing->pass_life_sec) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_json(r, NGX_HTTP_OK, enter_body(r, pass));
}

static size_t enter_pass(ngx_http_request_t *r, const struct queue_state *state, char out[PASS_TOKEN_MAX])
{
    const struct standing *standing = queue_standing(r);
    struct keyring *keys = conf_main(r)->keys;
    char memory[ANONYMOUS_LEN];
    struct pass_claims claims = {
        .key_id = keyring_has(keys, standing->pass_key_id) ? standing->pass_key_id : keyring_signing_id(keys),
        .tier = standing->tier,
        .epoch = standing->place.epoch,
        .count = standing->place.count,
        .holder = standing->place.holder,
        .iat_sec = standing->iat_sec,
        .exp_sec = (uint64_t)standing->iat_sec + standing->pass_life_sec,
        .room = state->claims.room,
        /* A trusted ticket was accepted because it is the asker's. */
        .uid = state->claims.is_trusted ? state->visitor.identity
                                        : identity_anonymous(&standing->place.holder, memory),
    };
    return pass_sign(keys, &claims, out, PASS_TOKEN_MAX);
}

static ngx_buf_t *enter_body(ngx_http_request_t *r, struct span pass)
{
    ngx_buf_t *body = reply_buffer(r, pass.len + 96);
    if (body == NULL)
        return NULL;
    TEXT_ADD(body, "{\"admission\":\"granted\",\"reservation_token\":\"");
    text_add(body, pass);
    TEXT_ADD(body, "\",\"ttl_sec\":");
    text_add_number(body, queue_standing(r)->arrive_ttl_sec);
    TEXT_ADD(body, "}");
    return body;
}
