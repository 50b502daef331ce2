/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables say all that sets the families apart; what is here is the one way that their calls go. A location may answer several
 * of them, and the queue API too: the words of the path tell them apart, and where two have the same, what the request carries.
 */
#include "nginx/family.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/query.h"
#include "engine/place.h"
#include "nginx/admin_token.h"
#include "nginx/api_queue.h"
#include "nginx/body.h"
#include "nginx/lobby.h"
#include "nginx/pass_cookie.h"
#include "nginx/queue.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/room_texts.h"

#define LABEL_MAX 256

static const struct family_api *const apis[] = {&tier2_api, &lobby_api, &lobby_admin_api, &concert_api};

static bool is_of_queue(ngx_http_request_t *r);
static bool route_find(ngx_http_request_t *r, struct family *family, struct span *allow);
static bool rows_search(ngx_http_request_t *r, const struct family_api *api, struct family *family,
                        struct span *allow);
static struct span path_rest(ngx_http_request_t *r, struct span noun);
static bool path_match(struct span rest, const struct family_row *row, struct family *family);
static ngx_int_t family_begin(ngx_http_request_t *r, struct family *family);
static family_step family_open, visit_begin;
static bool may_ask(ngx_http_request_t *r, struct family *family);
static family_step family_turn_out;
static enum error room_choose(ngx_http_request_t *r, struct family *family);
static bool ticket_is_kept(ngx_http_request_t *r, struct family *family);
static bool standing_take(const struct engine_call *call, struct family *family);
static family_step kept_ask, kept_told, mode_ask, mode_told, visit_let_join, visit_told, visit_entered,
    visit_figures, figures_told, texts_ask, texts_told;

ngx_int_t family_handler(ngx_http_request_t *r)
{
    struct span allow = SPAN_NONE;
    struct request *request = request_of(r);
    struct family *family = ngx_pcalloc(r->pool, sizeof(*family));
    if (request == NULL || family == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (route_find(r, family, &allow)) {
        request->family = family;
        return family_begin(r, family);
    }
    return allow.data == NULL && is_of_queue(r) ? api_queue_handler(r) : api_turn_away(r, allow);
}

void family_recognise(ngx_http_request_t *r)
{
    struct family family;
    struct span allow;
    if (request_of(r)->shape == SHAPE_OF_LOCATION && conf_loc(r)->handler == family_handler)
        route_find(r, &family, &allow);
}

/* Its calls are one word each. */
static bool is_of_queue(ngx_http_request_t *r)
{
    struct span rest = path_rest(r, tier2_api.noun);
    return conf_loc(r)->families & FAMILY_QUEUE &&
           (rest.len == 0 || memchr(rest.data, '/', rest.len) == NULL);
}

/* ---- routes ---- */

static bool route_find(ngx_http_request_t *r, struct family *family, struct span *allow)
{
    ngx_uint_t families = conf_loc(r)->families;
    for (size_t i = 0; i < sizeof(apis) / sizeof(apis[0]); i++) {
        bool is_on = (families & apis[i]->families) == apis[i]->families &&
                     (families & FAMILY_ADMIN) == (apis[i]->families & FAMILY_ADMIN);
        if (is_on && rows_search(r, apis[i], family, allow))
            return true;
    }
    return false;
}

static bool rows_search(ngx_http_request_t *r, const struct family_api *api, struct family *family,
                        struct span *allow)
{
    bool is_shared = conf_loc(r)->families & FAMILY_QUEUE;
    struct span rest = path_rest(r, api->noun);
    for (size_t i = 0; i < api->count; i++) {
        const struct family_row *row = &api->rows[i];
        if (!path_match(rest, row, family) || (is_shared && api->is_meant != NULL && !api->is_meant(r, row)))
            continue;
        request_of(r)->shape = api->shape;
        family->api = api;
        family->row = row;
        if (row->methods & r->method)
            return true;
        *allow = row->allow;
    }
    return false;
}

/* What follows the location's name; where that is no prefix, what follows the noun, as a pattern may see it. Else it is empty. */
static struct span path_rest(ngx_http_request_t *r, struct span noun)
{
    size_t prefix_len = conf_loc(r)->prefix_len;
    size_t at = prefix_len > 0 ? prefix_len : noun.len;
    while (prefix_len == 0 && at <= r->uri.len &&
           ngx_strncasecmp(r->uri.data + at - noun.len, (u_char *)noun.data, noun.len) != 0)
        at++;
    at = ngx_min(at, r->uri.len); /* past it: a rewrite led here */
    return (struct span){(const char *)r->uri.data + at, r->uri.len - at};
}

static bool path_match(struct span rest, const struct family_row *row, struct family *family)
{
    if (rest.len < row->path.len || memcmp(rest.data, row->path.data, row->path.len) != 0)
        return false;
    rest = (struct span){rest.data + row->path.len, rest.len - row->path.len};
    if (row->names == NAMES_NOTHING)
        return rest.len == 0;
    const char *slash = rest.len > 0 ? memchr(rest.data, '/', rest.len) : NULL;
    family->event = rest;
    family->ticket = SPAN_NONE;
    if (row->names == NAMES_EVENT || slash == NULL)
        return rest.len > 0 && slash == NULL && row->names == NAMES_EVENT;
    family->event.len = (size_t)(slash - rest.data);
    family->ticket = (struct span){slash + 1, rest.len - family->event.len - 1};
    return family->event.len > 0 && family->ticket.len > 0 &&
           memchr(family->ticket.data, '/', family->ticket.len) == NULL;
}

/* ---- steps ---- */

static ngx_int_t family_begin(ngx_http_request_t *r, struct family *family)
{
    family->step = family_open;
    return family->row->wants_body ? body_read(r, family_go_on) : body_skip(r, family_go_on);
}

void family_go_on(ngx_http_request_t *r)
{
    struct family *family = request_of(r)->family;
    for (;;)
        switch (family->step(r, family)) {
        case FAMILY_ASK:
            if (!call_submit(r, &request_of(r)->call, family_go_on))
                return;
            break;
        case FAMILY_WAIT:
            return;
        case FAMILY_END:
            ngx_http_finalize_request(r, family->rc);
            return;
        }
}

static enum family_next family_open(ngx_http_request_t *r, struct family *family)
{
    const struct family_row *row = family->row;
    enum error error = request_of(r)->body.error;
    family->visitor = visitor_of(r);
    if (!may_ask(r, family))
        return family_turn_out(r, family);
    if (error == ERROR_NONE)
        error = room_choose(r, family);
    if (error == ERROR_NONE && row->ask != NULL)
        error = row->ask(r, family);
    if (error != ERROR_NONE)
        return family_refuse(r, family, error);
    if (row->needs_queue)
        return mode_ask(r, family);
    if (row->is_admin)
        return family_ask(r, family, ENGINE_FIGURES, row->deed != NULL ? family_deed : figures_told);
    if (row->keeps_ticket && ticket_is_kept(r, family))
        return kept_ask(r, family);
    return row->ask != NULL ? visit_begin(r, family) : visit_figures(r, family);
}

static bool may_ask(ngx_http_request_t *r, struct family *family)
{
    if (!family->row->is_admin)
        return !family->api->is_signed_in || family->visitor.identity.data != NULL;
    family->operator_name = admin_name(r);
    return family->operator_name.data != NULL;
}

static enum family_next family_turn_out(ngx_http_request_t *r, struct family *family)
{
    bool is_known = family->visitor.identity.data != NULL;
    family->rc = is_known ? reply_error_saying(r, ERROR_ADMISSION_REQUIRED, 0, SPAN("Admin access required"))
                          : reply_error_saying(r, ERROR_UNAUTHORIZED, 0, SPAN("Authentication required"));
    return FAMILY_END;
}

static enum error room_choose(ngx_http_request_t *r, struct family *family)
{
    family->room =
        family->row->names == NAMES_NOTHING ? span_of_str(conf_loc(r)->concert_room) : family->event;
    if (!room_id_is_valid(family->room))
        return ERROR_INVALID_EVENT_ID;
    if (family->api->is_lobby)
        family->room = room_id_lobby(family->event, family->name);
    return family->room.data != NULL ? ERROR_NONE : ERROR_INVALID_EVENT_ID;
}

static bool ticket_is_kept(ngx_http_request_t *r, struct family *family)
{
    char memory[TICKET_COOKIE_NAME_MAX];
    struct span name = ticket_cookie_name(family->room, memory), cookie;
    struct cookie_walk walk = {0};
    while (request_cookie_next(request_of(r), name, &walk, &cookie))
        if (queue_ticket_read(r, cookie, &family->claims, family->claims_room) && family->claims.is_trusted &&
            span_equal(family->claims.room, family->room))
            return true;
    return false;
}

/* First the place that the ticket names: it may be one that the room has lost, and that its holder alone knows of. */
static enum family_next kept_ask(ngx_http_request_t *r, struct family *family)
{
    struct engine_call *call = &request_of(r)->call.engine;
    family->op = call->op;
    if (call->op == ENGINE_JOIN)
        family->join = call->join;
    else
        family->place = call->place;
    call->place = place_of_ticket(&family->claims);
    return family_ask(r, family, call->op == ENGINE_JOIN ? ENGINE_STATUS : call->op, kept_told);
}

static enum family_next kept_told(ngx_http_request_t *r, struct family *family)
{
    struct engine_call *call = &request_of(r)->call.engine;
    family->is_kept = call->error != ERROR_TOKEN_NOT_FOUND;
    if (family->is_kept)
        return visit_told(r, family);
    call->op = family->op;
    if (call->op == ENGINE_JOIN)
        call->join = family->join;
    else
        call->place = family->place;
    return visit_begin(r, family);
}

/* The join waits until the room has said that there is a line. */
static enum family_next mode_ask(ngx_http_request_t *r, struct family *family)
{
    family->join = request_of(r)->call.engine.join;
    return family_ask(r, family, ENGINE_SETTINGS, mode_told);
}

static enum family_next mode_told(ngx_http_request_t *r, struct family *family)
{
    struct engine_call *call = &request_of(r)->call.engine;
    if (call->error == ERROR_NONE && call->settings.mode == MODE_OPEN)
        call->error = ERROR_ROOM_NOT_FOUND;
    if (call->error != ERROR_NONE)
        return family_refuse(r, family, call->error);
    call->join = family->join;
    return family_ask(r, family, ENGINE_JOIN, visit_told);
}

static enum family_next visit_begin(ngx_http_request_t *r, struct family *family)
{
    family->step = visit_told;
    if (!family->row->has_lobby)
        return FAMILY_ASK;
    family->step = visit_let_join;
    lobby_ask(r, family_go_on);
    return FAMILY_WAIT;
}

/* The lobby has been asked; the call is the join again. */
static enum family_next visit_let_join(ngx_http_request_t *r, struct family *family)
{
    const struct engine_call *call = &request_of(r)->call.engine;
    family->step = visit_told;
    return call->error == ERROR_NONE ? FAMILY_ASK : family_refuse(r, family, call->error);
}

static enum family_next visit_told(ngx_http_request_t *r, struct family *family)
{
    struct engine_call *call = &request_of(r)->call.engine;
    if (!standing_take(call, family))
        return family_refuse(r, family, call->error);
    if (family->is_found && call->op != ENGINE_LEAVE)
        lobby_note(r, family->room, &family->standing);
    if (!family->is_found || !family->row->enters || !family->standing.is_ready)
        return visit_figures(r, family);
    call->enter = (struct enter){.place = family->standing.place,
                                 .key_id = keyring_signing_id(conf_main(r)->keys),
                                 .wall_sec = (uint32_t)ngx_time()};
    return family_ask(r, family, ENGINE_ENTER, visit_entered);
}

/* How they stand now, if they do; false: that they do not is to be told as an error. */
static bool standing_take(const struct engine_call *call, struct family *family)
{
    family->is_found = call->error == ERROR_NONE;
    family->standing = call->standing;
    return family->is_found || (call->error == ERROR_TOKEN_NOT_FOUND && family->row->is_forgiving);
}

static enum family_next visit_entered(ngx_http_request_t *r, struct family *family)
{
    const struct engine_call *call = &request_of(r)->call.engine;
    if (!standing_take(call, family))
        return family_refuse(r, family, call->error);
    if (family->is_found &&
        !pass_give(r, family->room, &family->standing, family->visitor.identity, &family->pass))
        return family_refuse(r, family, ERROR_ENGINE_UNAVAILABLE);
    return visit_figures(r, family);
}

static enum family_next visit_figures(ngx_http_request_t *r, struct family *family)
{
    return family->row->has_figures ? family_ask(r, family, ENGINE_FIGURES, figures_told)
                                    : family_tell(r, family);
}

static enum family_next figures_told(ngx_http_request_t *r, struct family *family)
{
    const struct engine_call *call = &request_of(r)->call.engine;
    if (call->error != ERROR_NONE)
        return family_refuse(r, family, call->error);
    if (!family->row->has_texts || !family->is_found)
        return family_tell(r, family);
    family->texts = room_texts_known(family->room, &call->figures);
    return family->texts != NULL ? family_tell(r, family) : texts_ask(r, family);
}

static enum family_next texts_ask(ngx_http_request_t *r, struct family *family)
{
    struct engine_call *call = &request_of(r)->call.engine;
    call->texts = ngx_palloc(r->pool, sizeof(*call->texts));
    return call->texts != NULL ? family_ask(r, family, ENGINE_FIGURES, texts_told)
                               : family_refuse(r, family, ERROR_ENGINE_UNAVAILABLE);
}

static enum family_next texts_told(ngx_http_request_t *r, struct family *family)
{
    const struct engine_call *call = &request_of(r)->call.engine;
    if (call->error != ERROR_NONE)
        return family_refuse(r, family, call->error);
    family->texts = room_texts_keep(family->room, &call->figures, call->texts);
    return family_tell(r, family);
}

enum family_next family_ask(ngx_http_request_t *r, struct family *family, enum engine_op op,
                            family_step *then)
{
    struct engine_call *call = &request_of(r)->call.engine;
    call->op = op;
    call->room = family->room;
    family->step = then;
    return FAMILY_ASK;
}

enum family_next family_tell(ngx_http_request_t *r, struct family *family)
{
    family->rc = family->row->tell(r, family);
    return FAMILY_END;
}

enum family_next family_refuse(ngx_http_request_t *r, struct family *family, enum error error)
{
    family->rc = error == ERROR_ADMISSION_REQUIRED
                     ? reply_error_with_redirect(r, error, lobby_page(r, family->room))
                     : reply_error(r, error, request_of(r)->call.engine.retry_after_sec);
    return FAMILY_END;
}

/* ---- for `ask` ---- */

enum error family_join(ngx_http_request_t *r, struct family *family)
{
    struct engine_call *call = &request_of(r)->call.engine;
    struct visitor *visitor = &family->visitor;
    call->op = ENGINE_JOIN;
    call->room = family->room;
    call->join = (struct join){.is_trusted = visitor->identity.data != NULL,
                               .key_id = keyring_signing_id(conf_main(r)->keys),
                               .wall_sec = (uint32_t)ngx_time()};
    if (!call->join.is_trusted && !visitor->has_cookie)
        visitor_invent(visitor);
    visitor_holder(r, visitor, &call->join.holder);
    return ERROR_NONE;
}

enum error family_ask_held(ngx_http_request_t *r, struct family *family, enum engine_op op)
{
    struct engine_call *call = &request_of(r)->call.engine;
    call->op = op;
    call->room = family->room;
    call->place = (struct place){0};
    visitor_holder(r, &family->visitor, &call->place.holder);
    return ERROR_NONE;
}

enum error family_ask_ticket(ngx_http_request_t *r, struct family *family, struct span token,
                             enum engine_op op)
{
    struct engine_call *call = &request_of(r)->call.engine;
    if (token.len == 0)
        return ERROR_MISSING_TOKEN;
    if (!queue_ticket_read(r, token, &family->claims, family->claims_room) ||
        !span_equal(family->claims.room, family->room))
        return ERROR_TOKEN_NOT_FOUND;
    call->op = op;
    call->room = family->room;
    call->place = place_of_ticket(&family->claims);
    return ERROR_NONE;
}

enum error family_number(ngx_http_request_t *r, struct family *family, struct span name, uint32_t most)
{
    struct span query = request_of(r)->query, text = SPAN_NONE;
    struct json_member member = {.name = name, .kind = JSON_NUMBER, .is_optional = true};
    uint64_t number = 0;
    char digits[16];
    enum error error = query_find(query, name, digits, sizeof(digits), &text);
    if (error == ERROR_NONE && text.data == NULL && request_of(r)->body.text.len > 0)
        error = queue_body(r, &member, 1);
    if (error != ERROR_NONE || (text.data == NULL && !member.is_present))
        return error;
    if (text.data != NULL && !decimal_read(text, 0, &number))
        return ERROR_INVALID_REQUEST;
    if (text.data == NULL)
        number = member.number;
    family->number = (uint32_t)number;
    return number >= 1 && number <= most ? ERROR_NONE : ERROR_INVALID_REQUEST;
}

enum error family_label(ngx_http_request_t *r, struct family *family)
{
    struct json_member label = {.name = SPAN("userId"), .kind = JSON_TEXT, .is_optional = true};
    if (request_of(r)->body.text.len == 0)
        return ERROR_NONE;
    enum error error = queue_body(r, &label, 1);
    if (error == ERROR_NONE && label.is_present)
        family->label = label.text;
    return family->label.len > LABEL_MAX ? ERROR_INVALID_REQUEST : error;
}

/* ---- for `tell` ---- */

const struct figures *family_figures(ngx_http_request_t *r)
{
    return &request_of(r)->call.engine.figures;
}

const struct settings *family_settings(ngx_http_request_t *r)
{
    return &request_of(r)->call.engine.settings;
}

bool family_is_inside(const struct family *family)
{
    return family->standing.state == TICKET_ENTERED || family->standing.state == TICKET_ACTIVE;
}
