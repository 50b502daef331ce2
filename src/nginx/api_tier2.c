/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signed-in queue, "tier 2". Its clients come with nothing but who they are: the room finds their ticket by that; and a browser
 * keeps the ticket in a cookie, for a room that has lost it. They know no enter: whoever is called when they ask is inside with that
 * answer, which has their pass.
 */
#include "nginx/family.h"

#include "nginx/admin.h"
#include "nginx/pass_cookie.h"
#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/text.h"

#define POLL_OUTSIDE_SEC 3         /* of those who do not stand in line */
#define THRESHOLD_MAX    100000000 /* as max_active; and what a room without a limit is said to have */
#define STATE_BYTES      640       /* of an answer, but for the pass */

static enum error check_ask(ngx_http_request_t *r, struct family *family);
static enum error status_ask_held(ngx_http_request_t *r, struct family *family);
static enum error heartbeat_ask_held(ngx_http_request_t *r, struct family *family);
static enum error leave_ask_held(ngx_http_request_t *r, struct family *family);
static enum error threshold_ask(ngx_http_request_t *r, struct family *family);
static ngx_int_t state_tell(ngx_http_request_t *r, struct family *family);
static struct span title_of(const struct family *family);
static ngx_int_t ticket_keep(ngx_http_request_t *r, const struct family *family);
static void queued_add(ngx_buf_t *body, ngx_http_request_t *r, const struct family *family);
static void active_add(ngx_buf_t *body, ngx_http_request_t *r, const struct family *family);
static void outside_add(ngx_buf_t *body, ngx_http_request_t *r);
static ngx_int_t heartbeat_tell_word(ngx_http_request_t *r, struct family *family);
static ngx_int_t left_tell(ngx_http_request_t *r, struct family *family);
static ngx_int_t admin_tell_room(ngx_http_request_t *r, struct family *family);
static ngx_int_t cleared_tell(ngx_http_request_t *r, struct family *family);
static ngx_int_t threshold_tell(ngx_http_request_t *r, struct family *family);
static void threshold_set(struct settings *settings, const struct family *family);
static uint32_t threshold_of(const struct settings *settings);

static const struct family_deed clear = {.op = ENGINE_CLEAR};
static const struct family_deed threshold = {.op = ENGINE_PUT, .change = threshold_set};

static const struct family_row rows[] = {
    {SPAN("check/"), NAMES_EVENT, FAMILY_POSTS, .has_lobby = true, .keeps_ticket = true, .enters = true,
     .has_figures = true, .has_texts = true, .ask = check_ask, .tell = state_tell},
    {SPAN("status/"), NAMES_EVENT, FAMILY_GETS, .is_forgiving = true, .keeps_ticket = true, .enters = true,
     .has_figures = true, .has_texts = true, .ask = status_ask_held, .tell = state_tell},
    {SPAN("heartbeat/"), NAMES_EVENT, FAMILY_POSTS, .is_forgiving = true, .keeps_ticket = true,
     .ask = heartbeat_ask_held, .tell = heartbeat_tell_word},
    {SPAN("leave/"), NAMES_EVENT, FAMILY_POSTS, .is_forgiving = true, .keeps_ticket = true,
     .ask = leave_ask_held, .tell = left_tell},
    {SPAN("admin/"), NAMES_EVENT, FAMILY_GETS, .is_admin = true, .tell = admin_tell_room},
    {SPAN("admin/clear/"), NAMES_EVENT, FAMILY_POSTS, .is_admin = true, .deed = &clear, .tell = cleared_tell},
    {SPAN("admin/threshold/"), NAMES_EVENT, FAMILY_POSTS, .is_admin = true, .deed = &threshold,
     .ask = threshold_ask, .tell = threshold_tell},
};

const struct family_api tier2_api = {
    .families = FAMILY_TIER2,
    .shape = SHAPE_FLAT,
    .noun = SPAN("/queue/"),
    .is_signed_in = true,
    .rows = rows,
    .count = sizeof(rows) / sizeof(rows[0]),
};

/* ---- visitors ---- */

static enum error check_ask(ngx_http_request_t *r, struct family *family)
{
    return family_join(r, family);
}

static enum error status_ask_held(ngx_http_request_t *r, struct family *family)
{
    return family_ask_held(r, family, ENGINE_STATUS);
}

static enum error heartbeat_ask_held(ngx_http_request_t *r, struct family *family)
{
    return family_ask_held(r, family, ENGINE_HEARTBEAT);
}

static enum error leave_ask_held(ngx_http_request_t *r, struct family *family)
{
    return family_ask_held(r, family, ENGINE_LEAVE);
}

static ngx_int_t state_tell(ngx_http_request_t *r, struct family *family)
{
    struct span title = title_of(family);
    ngx_buf_t *body = reply_buffer(r, STATE_BYTES + 2 * title.len + family->pass.token.len);
    if (body == NULL || (family->is_found && !family->is_kept && ticket_keep(r, family) != NGX_OK))
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (!family->is_found)
        outside_add(body, r);
    else if (family_is_inside(family))
        active_add(body, r, family);
    else
        queued_add(body, r, family);
    text_add_count(body, SPAN(",\"currentUsers\":"), admin_inside(family_figures(r)));
    if (family->is_found) {
        text_add_count(body, SPAN(",\"threshold\":"), threshold_of(family_settings(r)));
        TEXT_ADD(body, ",\"eventInfo\":{\"title\":\"");
        text_add_json(body, title);
        TEXT_ADD(body, "\"}");
    }
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}

static struct span title_of(const struct family *family)
{
    return family->texts != NULL && family->texts->title[0] != '\0' ? span_of(family->texts->title)
                                                                    : family->event;
}

static ngx_int_t ticket_keep(ngx_http_request_t *r, const struct family *family)
{
    char ticket[TICKET_TOKEN_MAX];
    size_t len = queue_ticket_write(r, family->room, &family->standing, ticket);
    return ticket_cookie_set(r, family->room, (struct span){ticket, len});
}

/* The figures are of a moment later than the standing: whoever left meanwhile must not make a negative number. */
static void queued_add(ngx_buf_t *body, ngx_http_request_t *r, const struct family *family)
{
    const struct standing *standing = &family->standing;
    uint64_t waiting = family_figures(r)->in_state[TICKET_WAITING];
    waiting = waiting > standing->position ? waiting : standing->position;
    TEXT_ADD(body, "{\"queued\":true,\"status\":\"queued\"");
    text_add_count(body, SPAN(",\"position\":"), standing->position);
    text_add_count(body, SPAN(",\"peopleAhead\":"), standing->position - 1);
    text_add_count(body, SPAN(",\"peopleBehind\":"), waiting - standing->position);
    text_add_count(body, SPAN(",\"queueSize\":"), waiting);
    text_add_count(body, SPAN(",\"estimatedWait\":"), standing->eta_sec);
    text_add_count(body, SPAN(",\"nextPoll\":"), standing->next_poll_sec);
}

static void active_add(ngx_buf_t *body, ngx_http_request_t *r, const struct family *family)
{
    TEXT_ADD(body, "{\"queued\":false,\"status\":\"active\"");
    text_add_count(body, SPAN(",\"nextPoll\":"), POLL_OUTSIDE_SEC);
    TEXT_ADD(body, ",\"entryToken\":\"");
    text_add(body, family->pass.token);
    TEXT_ADD(body, "\"");
}

static void outside_add(ngx_buf_t *body, ngx_http_request_t *r)
{
    TEXT_ADD(body, "{\"queued\":false,\"status\":\"not_in_queue\",\"message\":\"Not in queue\"");
    text_add_count(body, SPAN(",\"nextPoll\":"), POLL_OUTSIDE_SEC);
}

static ngx_int_t heartbeat_tell_word(ngx_http_request_t *r, struct family *family)
{
    bool is_queued = family->is_found && !family_is_inside(family);
    ngx_buf_t *body = reply_buffer(r, 64);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"status\":\"");
    text_add(body, is_queued ? SPAN("queued") : family->is_found ? SPAN("active") : SPAN("not_in_queue"));
    TEXT_ADD(body, "\",\"queued\":");
    text_add_flag(body, is_queued);
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}

static ngx_int_t left_tell(ngx_http_request_t *r, struct family *family)
{
    return reply_words(r, SPAN("{\"message\":\"Left queue\"}"));
}

/* ---- operators ---- */

static enum error threshold_ask(ngx_http_request_t *r, struct family *family)
{
    enum error error = family_number(r, family, SPAN("threshold"), THRESHOLD_MAX);
    return error == ERROR_NONE && family->number == 0 ? ERROR_INVALID_REQUEST : error;
}

static void threshold_set(struct settings *settings, const struct family *family)
{
    settings->max_active = family->number;
}

static ngx_int_t admin_tell_room(ngx_http_request_t *r, struct family *family)
{
    const struct figures *figures = family_figures(r);
    uint64_t inside = admin_inside(figures), most = threshold_of(family_settings(r));
    ngx_buf_t *body = reply_buffer(r, 256);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"eventId\":\"");
    text_add(body, family->event);
    TEXT_ADD(body, "\"");
    text_add_count(body, SPAN(",\"queueSize\":"), figures->in_state[TICKET_WAITING]);
    text_add_count(body, SPAN(",\"currentUsers\":"), inside);
    text_add_count(body, SPAN(",\"threshold\":"), most);
    text_add_count(body, SPAN(",\"available\":"), inside < most ? most - inside : 0);
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}

static ngx_int_t cleared_tell(ngx_http_request_t *r, struct family *family)
{
    return reply_words(r, SPAN("{\"message\":\"Queue cleared\"}"));
}

static ngx_int_t threshold_tell(ngx_http_request_t *r, struct family *family)
{
    ngx_buf_t *body = reply_buffer(r, 128);
    if (body == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    TEXT_ADD(body, "{\"eventId\":\"");
    text_add(body, family->event);
    TEXT_ADD(body, "\"");
    text_add_count(body, SPAN(",\"threshold\":"), family->number);
    TEXT_ADD(body, "}");
    return reply_json(r, NGX_HTTP_OK, body);
}

static uint32_t threshold_of(const struct settings *settings)
{
    return settings->max_active > 0 ? settings->max_active : THRESHOLD_MAX;
}
