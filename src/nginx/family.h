/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_FAMILY_H
#define WEIR_NGINX_FAMILY_H

/*
 * The other families of clients: the signed-in queue (api_tier2.c), the lobby (api_lobby.c), the concert queue (api_concert.c). Each
 * is a table of routes and a translation of the same calls to the engine; nothing of theirs is kept anywhere.
 *
 * Every call of a visitor goes the same way: `ask` fills in the first question; whoever is called enters at once, where the row
 * says so, for these clients know no enter; then come the room's figures, where the answer has some, and its texts; `tell` answers.
 * A call of an operator's (family_deed.c) is the room as it is, the deed, the room afterwards, and a line in the log.
 */

#include "nginx/conf.h"

#include "base/room_id.h"
#include "engine/engine.h"
#include "nginx/identity.h"
#include "nginx/pass_give.h"
#include "nginx/shape.h"
#include "token/ticket.h"

struct family;
struct json_member;

/* What follows the words of a path. */
enum family_names { NAMES_NOTHING, NAMES_EVENT, NAMES_TICKET /* an event and a ticket of it */ };

/* What an operator does to a room. */
struct family_deed {
    enum engine_op op; /* ENGINE_PUT, _ADVANCE or _CLEAR */
    void (*change)(struct settings *settings, const struct family *family); /* for ENGINE_PUT */
    bool makes_lobby;                                                       /* where there is no such room */
};

#define FAMILY_GETS  .methods = NGX_HTTP_GET | NGX_HTTP_HEAD, .allow = SPAN("GET, HEAD")
#define FAMILY_POSTS .methods = NGX_HTTP_POST, .allow = SPAN("POST")

struct family_row {
    struct span path; /* its words, with a slash behind them if a name follows */
    enum family_names names;
    bool wants_body;
    bool is_forgiving; /* having no ticket is no error */
    bool needs_queue;  /* a room that is open, and so has no line, is none */
    bool has_lobby;    /* weir_lobby applies */
    bool
        keeps_ticket; /* for clients that keep none themselves: in a cookie, which gives a place back that was lost */
    bool enters;
    bool has_figures;
    bool has_texts; /* beside the figures: of those who have a ticket */
    bool is_admin;
    ngx_uint_t methods;
    struct span allow;              /* of the path: the same in every row of it */
    const struct family_deed *deed; /* NULL: it is a visitor's call, or only looks */
    enum error (*ask)(ngx_http_request_t *r,
                      struct family *family); /* NULL: nothing but the figures is asked */
    ngx_int_t (*tell)(ngx_http_request_t *r, struct family *family);
};

struct family_api {
    ngx_uint_t families; /* of enum conf_family, all of them: where it is on */
    enum shape shape;
    struct span noun;  /* stands before the words of a path, in a location that is no prefix */
    bool is_lobby;     /* the path names an event and means its lobby */
    bool is_signed_in; /* its visitors are, or are told to be */
    const struct family_row *rows;
    size_t count;
    /* Whether it is not rather the queue API's, where a location answers both. NULL: it is not. */
    bool (*is_meant)(ngx_http_request_t *r, const struct family_row *row);
};

extern const struct family_api tier2_api, lobby_api, lobby_admin_api, concert_api;

enum family_next {
    FAMILY_ASK,  /* the engine's call is filled in; family->step goes on with the answer */
    FAMILY_WAIT, /* something else goes on with this request */
    FAMILY_END,  /* the answer is sent; family->rc is what to finalize the request with */
};
typedef enum family_next family_step(ngx_http_request_t *r, struct family *family);

struct family {
    const struct family_api *api;
    const struct family_row *row;
    family_step *step;
    ngx_int_t rc;
    struct span event, ticket; /* that the path names */
    struct span room;
    struct visitor visitor;
    struct span label; /* what they call themselves; len 0: nothing */
    enum engine_op op; /* and with it: what waits for something else to be asked first */
    struct join join;
    struct place place;
    bool is_kept;                /* the ticket in their cookie is that of `standing` */
    struct ticket_claims claims; /* of the ticket that was sent */
    bool is_found;               /* there is a ticket, and `standing` says how it stands */
    struct standing standing;
    struct pass_given pass;    /* of somebody who is inside */
    const struct texts *texts; /* where the row has some: while `tell` runs */
    /* an operator's */
    struct span operator_name;
    uint32_t number; /* that was sent; 0: none */
    uint32_t tries;
    struct figures before;
    struct settings settings_before;
    char name[ROOM_ID_MAX], claims_room[ROOM_ID_MAX];
};

/* For a location's content handler. */
ngx_int_t family_handler(ngx_http_request_t *r);

/* Finds out whose request it is, if a family's at all, where nginx refuses it before any handler has seen it. */
void family_recognise(ngx_http_request_t *r);

/* Goes on from the present step. */
void family_go_on(ngx_http_request_t *r);

/* For steps, to return. */
enum family_next family_ask(ngx_http_request_t *r, struct family *family, enum engine_op op,
                            family_step *then);
enum family_next family_tell(ngx_http_request_t *r, struct family *family);
enum family_next family_refuse(ngx_http_request_t *r, struct family *family, enum error error);

/* ---- for `ask` ---- */

/* A place in the room's line, for whoever it is. */
enum error family_join(ngx_http_request_t *r, struct family *family);

/* What this call does to the ticket that the signed-in visitor has. */
enum error family_ask_held(ngx_http_request_t *r, struct family *family, enum engine_op op);

/* The same to the ticket that was sent: of this room, and theirs to use. */
enum error family_ask_ticket(ngx_http_request_t *r, struct family *family, struct span token,
                             enum engine_op op);

/* A whole number, in the query or, where the row wants it, in the body. ERROR_INVALID_REQUEST: it is none from 1 to `most`. */
enum error family_number(ngx_http_request_t *r, struct family *family, struct span name, uint32_t most);

/* Somebody's name for themselves in a JSON body (family->label): there need be none, and it is a label and no more. */
enum error family_label(ngx_http_request_t *r, struct family *family);

/* ---- for `tell` ---- */

const struct figures *family_figures(ngx_http_request_t *r);
const struct settings *family_settings(ngx_http_request_t *r);
bool family_is_inside(const struct family *family);

/* The step that goes on with an operator's call: the room's figures are there. */
family_step family_deed;

#endif
