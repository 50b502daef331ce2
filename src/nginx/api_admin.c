/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who asks is settled before anything else is looked at, the path included: without a valid token every request gets the same
 * 401, and what is wrong with it is not said.
 */
#include "nginx/api_admin.h"

#include "base/room_id.h"
#include "nginx/admin.h"
#include "nginx/admin_token.h"
#include "nginx/body.h"
#include "nginx/reply.h"

struct admin_row {
    struct span noun, verb; /* of the path: NOUN, NOUN/ROOM, NOUN/ROOM/VERB */
    bool names_room, wants_body;
    ngx_uint_t methods;
    struct span allow; /* of the path: the same in every row of it */
    admin_step *begin;
};

#define READ (NGX_HTTP_GET | NGX_HTTP_HEAD)
#define ROOM SPAN("GET, HEAD, PUT, PATCH, DELETE")

static const struct admin_row rows[] = {
    {SPAN("rooms"), SPAN(""), false, false, READ, SPAN("GET, HEAD"), rooms_begin},
    {SPAN("rooms"), SPAN(""), true, false, READ, ROOM, room_begin},
    {SPAN("rooms"), SPAN(""), true, true, NGX_HTTP_PUT, ROOM, room_put_begin},
    {SPAN("rooms"), SPAN(""), true, true, NGX_HTTP_PATCH, ROOM, room_patch_begin},
    {SPAN("rooms"), SPAN(""), true, false, NGX_HTTP_DELETE, ROOM, room_delete_begin},
    {SPAN("rooms"), SPAN("advance"), true, true, NGX_HTTP_POST, SPAN("POST"), room_advance_begin},
    {SPAN("rooms"), SPAN("clear"), true, false, NGX_HTTP_POST, SPAN("POST"), room_clear_begin},
    {SPAN("rooms"), SPAN("figures"), true, false, READ, SPAN("GET, HEAD"), room_figures_begin},
    {SPAN("ticket"), SPAN(""), false, true, NGX_HTTP_POST, SPAN("POST"), ticket_look_begin},
    {SPAN("revoke"), SPAN(""), false, true, NGX_HTTP_POST, SPAN("POST"), ticket_revoke_begin},
    {SPAN("journal"), SPAN(""), false, false, READ, SPAN("GET, HEAD"), journal_status_begin},
    {SPAN("stream"), SPAN(""), false, false, NGX_HTTP_GET, SPAN("GET"), stream_begin},
    {SPAN("gate"), SPAN(""), false, false, READ, SPAN("GET, HEAD"), gate_counts_begin},
    {SPAN("breakers"), SPAN(""), false, false, READ, SPAN("GET, HEAD"), breakers_begin},
};

struct path {
    struct span noun, room, verb;
    bool names_room;
};

static ngx_int_t admin_refuse_early(ngx_http_request_t *r, enum error error, struct span allow);
static bool path_read(ngx_http_request_t *r, struct path *path);
static bool segment_take(struct span *rest, struct span *segment);
static const struct admin_row *row_find(ngx_http_request_t *r, const struct path *path, struct span *allow);
static struct admin_state *state_new(ngx_http_request_t *r, const struct admin_row *row);
static void state_free(void *data);
static void admin_read_body(ngx_http_request_t *r);
static void admin_refuse_body(ngx_http_request_t *r, struct admin_state *state, const json_error_t *error);
static void pause_end(ngx_event_t *event);

ngx_int_t api_admin_handler(ngx_http_request_t *r)
{
    struct span allow = SPAN_NONE;
    struct path path;
    if (request_of(r) == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (conf_main(r)->operators == NULL)
        return admin_refuse_early(r, ERROR_NOT_FOUND, SPAN_NONE);
    struct span name = admin_token_name(r);
    if (name.data == NULL)
        return admin_refuse_early(r, ERROR_UNAUTHORIZED, SPAN_NONE);
    const struct admin_row *row = path_read(r, &path) ? row_find(r, &path, &allow) : NULL;
    if (row == NULL)
        return admin_refuse_early(r, allow.data == NULL ? ERROR_NOT_FOUND : ERROR_METHOD_NOT_ALLOWED, allow);
    struct admin_state *state = state_new(r, row);
    if (state == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    state->operator_name = name;
    state->room = path.room;
    return row->wants_body ? body_read(r, admin_read_body) : body_skip(r, admin_go_on);
}

static ngx_int_t admin_refuse_early(ngx_http_request_t *r, enum error error, struct span allow)
{
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    if (error == ERROR_UNAUTHORIZED && reply_header(r, SPAN("WWW-Authenticate"), SPAN("Bearer")) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (allow.data != NULL && reply_header(r, SPAN("Allow"), allow) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    return reply_error(r, error, 0);
}

static bool path_read(ngx_http_request_t *r, struct path *path)
{
    ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    struct span rest = span_of_str(r->uri);
    if (rest.len < core->name.len) /* a rewrite led here */
        return false;
    rest.data += core->name.len;
    rest.len -= core->name.len;
    path->room = path->verb = SPAN("");
    path->names_room = false;
    bool goes_on = segment_take(&rest, &path->noun);
    if (goes_on) {
        path->names_room = true;
        goes_on = segment_take(&rest, &path->room);
        if (path->room.len == 0)
            return false;
    }
    if (goes_on) {
        goes_on = segment_take(&rest, &path->verb);
        if (path->verb.len == 0)
            return false;
    }
    return !goes_on;
}

/* True: a slash followed. */
static bool segment_take(struct span *rest, struct span *segment)
{
    const char *slash = rest->len > 0 ? memchr(rest->data, '/', rest->len) : NULL;
    *segment = *rest;
    if (slash == NULL)
        return false;
    segment->len = (size_t)(slash - rest->data);
    *rest = (struct span){slash + 1, rest->len - segment->len - 1};
    return true;
}

static const struct admin_row *row_find(ngx_http_request_t *r, const struct path *path, struct span *allow)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct admin_row *row = &rows[i];
        if (row->names_room != path->names_room || !span_equal(row->noun, path->noun) ||
            !span_equal(row->verb, path->verb))
            continue;
        if (row->methods & r->method)
            return row;
        *allow = row->allow;
    }
    return NULL;
}

static struct admin_state *state_new(ngx_http_request_t *r, const struct admin_row *row)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(struct admin_state));
    if (cleanup == NULL)
        return NULL;
    struct admin_state *state = request_of(r)->admin = cleanup->data;
    *state = (struct admin_state){.row = row, .step = row->begin, .r = r};
    state->pause.handler = pause_end;
    state->pause.data = state;
    state->pause.log = r->connection->log;
    cleanup->handler = state_free;
    return state;
}

/* Whatever ended the request, nothing comes back to it. */
static void state_free(void *data)
{
    struct admin_state *state = data;
    json_decref(state->body);
    if (state->pause.posted) {
        ngx_delete_posted_event(&state->pause);
    }
}

static void admin_read_body(ngx_http_request_t *r)
{
    struct admin_state *state = request_of(r)->admin;
    const struct body *body = &request_of(r)->body;
    json_error_t error = {.text = ""};
    if (body->error == ERROR_NONE)
        state->body = json_loadb(body->text.len > 0 ? body->text.data : "", body->text.len,
                                 JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(state->body))
        admin_go_on(r);
    else
        admin_refuse_body(r, state, &error);
}

/* jansson's words name the key that came twice. */
static void admin_refuse_body(ngx_http_request_t *r, struct admin_state *state, const json_error_t *error)
{
    bool sets = state->row->methods & (NGX_HTTP_PUT | NGX_HTTP_PATCH);
    if (request_of(r)->body.error != ERROR_NONE)
        admin_refuse(r, state, request_of(r)->body.error);
    else if (state->body == NULL && json_error_code(error) == json_error_duplicate_key)
        admin_refuse_saying(r, state, sets ? ERROR_INVALID_SETTING : ERROR_INVALID_REQUEST, error->text);
    else
        admin_refuse_saying(r, state, ERROR_INVALID_REQUEST, "The body must be one JSON object");
    ngx_http_finalize_request(r, state->rc);
}

void admin_go_on(ngx_http_request_t *r)
{
    struct admin_state *state = request_of(r)->admin;
    for (;;)
        switch (state->step(r, state)) {
        case ADMIN_ASK:
            if (!call_submit(r, &request_of(r)->call, admin_go_on))
                return;
            break;
        case ADMIN_PAUSE:
            r->write_event_handler = ngx_http_request_empty_handler;
            ngx_post_event(&state->pause, &ngx_posted_next_events);
            return;
        case ADMIN_WAIT:
            return;
        case ADMIN_END:
            ngx_http_finalize_request(r, state->rc);
            return;
        }
}

static void pause_end(ngx_event_t *event)
{
    struct admin_state *state = event->data;
    ngx_connection_t *c = state->r->connection;
    ngx_http_set_log_request(c->log, state->r);
    admin_go_on(state->r);
    ngx_http_run_posted_requests(c);
}

enum admin_next admin_ask(ngx_http_request_t *r, struct admin_state *state, enum engine_op op,
                          admin_step *then)
{
    struct engine_call *call = admin_call(r);
    if (!room_id_is_valid(state->room))
        return admin_refuse(r, state, ERROR_ROOM_NOT_FOUND);
    call->op = op;
    call->room = state->room;
    state->step = then;
    return ADMIN_ASK;
}

struct engine_call *admin_call(ngx_http_request_t *r)
{
    return &request_of(r)->call.engine;
}

enum admin_next admin_tell(ngx_http_request_t *r, struct admin_state *state, ngx_uint_t status,
                           ngx_buf_t *body)
{
    state->rc = reply_json(r, status, body);
    return ADMIN_END;
}

enum admin_next admin_refuse(ngx_http_request_t *r, struct admin_state *state, enum error error)
{
    state->rc = reply_error(r, error, admin_call(r)->retry_after_sec);
    return ADMIN_END;
}

enum admin_next admin_refuse_saying(ngx_http_request_t *r, struct admin_state *state, enum error error,
                                    const char *message)
{
    state->rc = reply_error_saying(r, error, admin_call(r)->retry_after_sec, span_of(message));
    return ADMIN_END;
}
