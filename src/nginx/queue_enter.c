/* SPDX-License-Identifier: BSD-2-Clause */
/* Both the body and the cookie carry the pass: a program reads the one, a browser keeps the other. */
#include "engine/place.h"
#include "nginx/idempotency.h"
#include "nginx/pass_cookie.h"
#include "nginx/pass_give.h"
#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"

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
    struct pass_given pass;
    /* A trusted ticket was accepted because it is the asker's. */
    if (!pass_give(r, state->claims.room, standing, state->visitor.identity, &pass))
        return reply_error(r, ERROR_ENGINE_UNAVAILABLE, 0);
    if (state->has_key && standing->is_repeat && idempotency_say_cached(r) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (pass_cookie_set(r, state->claims.room, pass.token, pass.life_sec) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_json(r, NGX_HTTP_OK, enter_body(r, pass.token));
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
