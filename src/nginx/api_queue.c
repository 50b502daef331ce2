/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call goes the same way: find its row, read the body if it wants one, ask the engine, tell the answer. The rows are
 * the API.
 */
#include "nginx/api_queue.h"

#include "nginx/body.h"
#include "nginx/call.h"
#include "nginx/cors.h"
#include "nginx/lobby.h"
#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/request.h"

struct queue_row {
    struct span name;
    ngx_uint_t methods;
    struct span allow; /* of the path: the same in every row of it */
    bool wants_body;
    bool forgives;  /* a token that is not a living ticket is fine */
    bool has_lobby; /* weir_lobby applies */
    enum error (*ask)(ngx_http_request_t *r, struct queue_state *state);
    ngx_int_t (*tell)(ngx_http_request_t *r, struct queue_state *state);
};

/* Leaving with a token that is gone, or never was one, is no error: what was wanted is so already. */
static const struct queue_row rows[] = {
    {SPAN("status"), NGX_HTTP_GET | NGX_HTTP_HEAD, SPAN("GET, HEAD"), false, false, false, status_ask,
     status_tell},
    {SPAN("join"), NGX_HTTP_POST, SPAN("POST"), true, false, true, join_ask, join_tell},
    {SPAN("enter"), NGX_HTTP_POST, SPAN("POST"), true, false, false, enter_ask, enter_tell},
    {SPAN("heartbeat"), NGX_HTTP_POST, SPAN("POST"), true, false, false, heartbeat_ask, heartbeat_tell},
    {SPAN("leave"), NGX_HTTP_DELETE, SPAN("DELETE, POST"), false, true, false, leave_ask, leave_tell},
    {SPAN("leave"), NGX_HTTP_POST, SPAN("DELETE, POST"), true, true, false, beacon_ask, beacon_tell},
};

static const struct queue_row *row_find(ngx_http_request_t *r, struct span *allow);
static ngx_int_t queue_begin(ngx_http_request_t *r, const struct queue_row *row);
static void queue_ask(ngx_http_request_t *r);
static void queue_submit(ngx_http_request_t *r);
static void queue_tell(ngx_http_request_t *r);
static ngx_int_t error_tell(ngx_http_request_t *r, const struct engine_call *call);

ngx_int_t api_queue_handler(ngx_http_request_t *r)
{
    if (request_of(r) == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    struct span allow = SPAN_NONE;
    const struct queue_row *row = row_find(r, &allow);
    return row != NULL ? queue_begin(r, row) : api_turn_away(r, allow);
}

static const struct queue_row *row_find(ngx_http_request_t *r, struct span *allow)
{
    struct span name;
    if (!request_tail(r, &name))
        return NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!span_equal(rows[i].name, name))
            continue;
        if (rows[i].methods & r->method)
            return &rows[i];
        *allow = rows[i].allow;
    }
    return NULL;
}

ngx_int_t api_turn_away(ngx_http_request_t *r, struct span allow)
{
    struct request *request = request_of(r);
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    if (allow.data == NULL)
        return reply_error(r, ERROR_NOT_FOUND, 0);
    if (cors_is_preflight(r, request))
        return cors_answer_preflight(r, request);
    if (reply_header(r, SPAN("Allow"), allow) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_error(r, ERROR_METHOD_NOT_ALLOWED, 0);
}

static ngx_int_t queue_begin(ngx_http_request_t *r, const struct queue_row *row)
{
    struct request *request = request_of(r);
    request->queue = ngx_pcalloc(r->pool, sizeof(*request->queue));
    if (request->queue == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    request->queue->row = row;
    return row->wants_body ? body_read(r, queue_ask) : body_skip(r, queue_ask);
}

static void queue_ask(ngx_http_request_t *r)
{
    struct request *request = request_of(r);
    struct queue_state *state = request->queue;
    enum error error = request->body.error;
    if (error == ERROR_NONE)
        error = state->row->ask(r, state);
    request->call.engine.error = error;
    if (error == ERROR_NONE && state->row->has_lobby)
        lobby_ask(r, queue_submit);
    else
        queue_submit(r);
}

static void queue_submit(ngx_http_request_t *r)
{
    struct call *call = &request_of(r)->call;
    if (call->engine.error != ERROR_NONE || call_submit(r, call, queue_tell))
        queue_tell(r);
}

static void queue_tell(ngx_http_request_t *r)
{
    struct request *request = request_of(r);
    const struct engine_call *call = &request->call.engine;
    const struct queue_row *row = request->queue->row;
    if (call->error == ERROR_NONE && (call->op == ENGINE_JOIN || call->op == ENGINE_STATUS))
        lobby_note(r, call->room, &call->standing);
    bool is_fine = call->error == ERROR_NONE || (call->error == ERROR_TOKEN_NOT_FOUND && row->forgives);
    ngx_http_finalize_request(r, is_fine ? row->tell(r, request->queue) : error_tell(r, call));
}

static ngx_int_t error_tell(ngx_http_request_t *r, const struct engine_call *call)
{
    if (call->error == ERROR_ADMISSION_REQUIRED)
        return reply_error_with_redirect(r, call->error, lobby_page(r, call->room));
    return reply_error(r, call->error, call->retry_after_sec);
}
