/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The anonymous lobby, "tier 1", and its operators. `requestId` is the ticket, `position` its count and `servingCounter` the highest
 * count called: a client shows the two beside each other, but who is admitted is asked of the room. A lobby that is not active is one in
 * mode `open`; it goes on counting where it was when it is activated again.
 */
#include "nginx/family.h"

#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"

#define PEOPLE_MAX 100000000 /* that one advance may ask for */

static enum error assign_ask(ngx_http_request_t *r, struct family *family);
static enum error check_ask(ngx_http_request_t *r, struct family *family);
static enum error advance_ask(ngx_http_request_t *r, struct family *family);
static ngx_int_t assign_tell(ngx_http_request_t *r, struct family *family);
static ngx_int_t check_tell(ngx_http_request_t *r, struct family *family);
static ngx_int_t status_tell_room(ngx_http_request_t *r, struct family *family);
static ngx_int_t activated_tell(ngx_http_request_t *r, struct family *family);
static ngx_int_t deactivated_tell(ngx_http_request_t *r, struct family *family);
static ngx_int_t advanced_tell(ngx_http_request_t *r, struct family *family);
static ngx_int_t room_tell(ngx_http_request_t *r, struct family *family, struct span message);
static void admitted_add(ngx_buf_t *body, const struct family *family);
static void waiting_add(ngx_buf_t *body, const struct family *family, const struct figures *figures);
static void serving_add(ngx_buf_t *body, const struct family *family, const struct figures *figures);
static void mode_set_queue(struct settings *settings, const struct family *family);
static void mode_set_open(struct settings *settings, const struct family *family);

static const struct family_deed activate = {.op = ENGINE_PUT, .change = mode_set_queue, .makes_lobby = true};
static const struct family_deed deactivate = {.op = ENGINE_PUT, .change = mode_set_open, .makes_lobby = true};
static const struct family_deed advance = {.op = ENGINE_ADVANCE};

static const struct family_row rows[] = {
    {SPAN("assign/"), NAMES_EVENT, FAMILY_POSTS, .wants_body = true, .needs_queue = true, .has_figures = true,
     .ask = assign_ask, .tell = assign_tell},
    {SPAN("check/"), NAMES_TICKET, FAMILY_GETS, .enters = true, .has_figures = true, .ask = check_ask,
     .tell = check_tell},
    {SPAN("status/"), NAMES_EVENT, FAMILY_GETS, .has_figures = true, .tell = status_tell_room},
};

static const struct family_row admin_rows[] = {
    {SPAN("activate/"), NAMES_EVENT, FAMILY_POSTS, .is_admin = true, .deed = &activate,
     .tell = activated_tell},
    {SPAN("deactivate/"), NAMES_EVENT, FAMILY_POSTS, .is_admin = true, .deed = &deactivate,
     .tell = deactivated_tell},
    {SPAN("advance/"), NAMES_EVENT, FAMILY_POSTS, .wants_body = true, .is_admin = true, .deed = &advance,
     .ask = advance_ask, .tell = advanced_tell},
    {SPAN("status/"), NAMES_EVENT, FAMILY_GETS, .is_admin = true, .tell = status_tell_room},
};

const struct family_api lobby_api = {
    .families = FAMILY_LOBBY,
    .shape = SHAPE_FLAT,
    .noun = SPAN("/vwr/"),
    .is_lobby = true,
    .rows = rows,
    .count = sizeof(rows) / sizeof(rows[0]),
};

const struct family_api lobby_admin_api = {
    .families = FAMILY_LOBBY | FAMILY_ADMIN,
    .shape = SHAPE_FLAT,
    .noun = SPAN("/vwr/"),
    .is_lobby = true,
    .rows = admin_rows,
    .count = sizeof(admin_rows) / sizeof(admin_rows[0]),
};

/* ---- visitors ---- */

static enum error assign_ask(ngx_http_request_t *r, struct family *family)
{
    enum error error = family_label(r, family);
    return error == ERROR_NONE ? family_join(r, family) : error;
}

static ngx_int_t assign_tell(ngx_http_request_t *r, struct family *family)
{
    char ticket[TICKET_TOKEN_MAX];
    size_t len = queue_ticket_write(r, family->room, &family->standing, ticket);
    ngx_buf_t *body = reply_buffer(r, len + 160);
    if (body == NULL || visitor_keep(r, &family->visitor, &family->standing.place.holder) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"requestId\":\"");
    text_add(body, (struct span){ticket, len});
    TEXT_ADD(body, "\"");
    serving_add(body, family, family_figures(r));
    text_add_count(body, SPAN(",\"estimatedWait\":"), family->standing.eta_sec);
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}

/* The log has stars where the ticket was. */
static enum error check_ask(ngx_http_request_t *r, struct family *family)
{
    struct span kept = request_of(r)->path_ticket;
    return family_ask_ticket(r, family, kept.data != NULL ? kept : family->ticket, ENGINE_STATUS);
}

static ngx_int_t check_tell(ngx_http_request_t *r, struct family *family)
{
    ngx_buf_t *body = reply_buffer(r, 256 + family->pass.token.len);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (family_is_inside(family))
        admitted_add(body, family);
    else
        waiting_add(body, family, family_figures(r));
    serving_add(body, family, family_figures(r));
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}

static void admitted_add(ngx_buf_t *body, const struct family *family)
{
    TEXT_ADD(body, "{\"admitted\":true,\"token\":\"");
    text_add(body, family->pass.token);
    TEXT_ADD(body, "\"");
}

static void waiting_add(ngx_buf_t *body, const struct family *family, const struct figures *figures)
{
    TEXT_ADD(body, "{\"admitted\":false");
    text_add_count(body, SPAN(",\"totalInQueue\":"), figures->issued);
    text_add_count(body, SPAN(",\"ahead\":"), family->standing.position - 1);
    text_add_count(body, SPAN(",\"estimatedWait\":"), family->standing.eta_sec);
    text_add_count(body, SPAN(",\"nextPoll\":"), family->standing.next_poll_sec);
}

static void serving_add(ngx_buf_t *body, const struct family *family, const struct figures *figures)
{
    text_add_count(body, SPAN(",\"position\":"), family->standing.place.count);
    text_add_count(body, SPAN(",\"servingCounter\":"), figures->last_called);
}

static ngx_int_t status_tell_room(ngx_http_request_t *r, struct family *family)
{
    return room_tell(r, family, SPAN_NONE);
}

/* ---- operators ---- */

static enum error advance_ask(ngx_http_request_t *r, struct family *family)
{
    return family_number(r, family, SPAN("batchSize"), PEOPLE_MAX);
}

static void mode_set_queue(struct settings *settings, const struct family *family)
{
    settings->mode = MODE_QUEUE;
}

static void mode_set_open(struct settings *settings, const struct family *family)
{
    settings->mode = MODE_OPEN;
}

static ngx_int_t activated_tell(ngx_http_request_t *r, struct family *family)
{
    return room_tell(r, family, SPAN("VWR activated"));
}

static ngx_int_t deactivated_tell(ngx_http_request_t *r, struct family *family)
{
    return room_tell(r, family, SPAN("VWR deactivated"));
}

static ngx_int_t advanced_tell(ngx_http_request_t *r, struct family *family)
{
    return room_tell(r, family, SPAN("Serving counter advanced"));
}

static ngx_int_t room_tell(ngx_http_request_t *r, struct family *family, struct span message)
{
    const struct figures *figures = family_figures(r);
    ngx_buf_t *body = reply_buffer(r, 320);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"eventId\":\"");
    text_add(body, family->event);
    TEXT_ADD(body, "\",\"isActive\":");
    text_add_flag(body, family_settings(r)->mode != MODE_OPEN);
    text_add_count(body, SPAN(",\"totalInQueue\":"), figures->issued);
    text_add_count(body, SPAN(",\"serving\":"), figures->last_called);
    text_add_count(body, SPAN(",\"waitingCount\":"), figures->in_state[TICKET_WAITING]);
    if (message.len > 0) {
        TEXT_ADD(body, ",\"message\":\"");
        text_add(body, message);
        TEXT_ADD(body, "\"");
    }
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}
