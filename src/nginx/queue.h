/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_QUEUE_H
#define WEIR_NGINX_QUEUE_H

/*
 * The calls of the queue API. Each is a pair: `ask` reads the request and fills the engine's call or refuses; `tell` sends the
 * answer and returns what to finalize the request with. The table in api_queue.c puts them together.
 */

#include "base/room_id.h"
#include "engine/engine.h"
#include "nginx/conf.h"
#include "nginx/identity.h"
#include "token/ticket.h"

struct json_member;
struct queue_row;

struct queue_state {
    const struct queue_row *row;
    bool has_key; /* an Idempotency-Key came with it */
    struct visitor visitor;
    struct span token;           /* that was sent, as it was sent */
    struct ticket_claims claims; /* of that token */
    char room[ROOM_ID_MAX];      /* its room */
};

enum error join_ask(ngx_http_request_t *r, struct queue_state *state);
ngx_int_t join_tell(ngx_http_request_t *r, struct queue_state *state);

enum error status_ask(ngx_http_request_t *r, struct queue_state *state);
ngx_int_t status_tell(ngx_http_request_t *r, struct queue_state *state);
enum error heartbeat_ask(ngx_http_request_t *r, struct queue_state *state);
ngx_int_t heartbeat_tell(ngx_http_request_t *r, struct queue_state *state);
enum error leave_ask(ngx_http_request_t *r, struct queue_state *state);
ngx_int_t leave_tell(ngx_http_request_t *r, struct queue_state *state);
enum error beacon_ask(ngx_http_request_t *r, struct queue_state *state);
ngx_int_t beacon_tell(ngx_http_request_t *r, struct queue_state *state);

enum error enter_ask(ngx_http_request_t *r, struct queue_state *state);
ngx_int_t enter_tell(ngx_http_request_t *r, struct queue_state *state);

/* Reads the body as one JSON object. */
enum error queue_body(ngx_http_request_t *r, struct json_member *members, size_t count);

/* The ticket in the body's waiting_token: verified, and the asker's to use. state->token, claims and room are filled. */
enum error queue_body_ticket(ngx_http_request_t *r, struct queue_state *state);

/* Whether this is a ticket, and the asker's to use; claims->room then is the text in `room`. */
bool queue_ticket_read(ngx_http_request_t *r, struct span token, struct ticket_claims *claims,
                       char room[ROOM_ID_MAX]);

/* Writes the ticket of somebody who joined this room. */
size_t queue_ticket_write(ngx_http_request_t *r, struct span room, const struct standing *standing,
                          char out[TICKET_TOKEN_MAX]);

/* Fills the engine's call with the ticket's room and place. */
void queue_ask_about(ngx_http_request_t *r, struct queue_state *state, enum engine_op op);

/* The engine's answer. */
const struct standing *queue_standing(ngx_http_request_t *r);

#endif
