/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_ADMIN_H
#define WEIR_NGINX_ADMIN_H

/*
 * The calls of the operator's API. Each is a chain of steps: a step looks at what the engine answered, and either asks it
 * the next thing or answers the request. What a step returns says which; api_admin.c goes from step to step, so that
 * none knows whether the engine answers at once or later, and ten thousand rooms are a loop and no recursion.
 */

#include "engine/engine.h"
#include "nginx/conf.h"
#include "nginx/request.h"

#include <jansson.h>

enum admin_next {
    ADMIN_ASK,   /* the engine's call is filled in; state->step goes on with the answer */
    ADMIN_PAUSE, /* state->step goes on in the next turn of the event loop: others are served in between */
    ADMIN_WAIT,  /* something else goes on with this request (admin_go_on) or ends it */
    ADMIN_END,   /* the answer is sent; state->rc is what to finalize the request with */
};

struct admin_row;
struct admin_state;
typedef enum admin_next admin_step(ngx_http_request_t *r, struct admin_state *state);

/* Settings to be changed, in their written form. */
struct admin_changes {
    struct setting_change *list;
    size_t count;
    struct span *reset; /* names of settings that go back to their default, or to the preset's value */
    size_t reset_count;
};

/* A room's settings, before or after a change; texts NULL: the change leaves them alone. */
struct admin_settings {
    const struct settings *numbers;
    const struct texts *texts;
};

struct admin_state {
    const struct admin_row *row;
    admin_step *step;
    ngx_int_t rc;
    struct span operator_name;
    struct span room;
    json_t *body; /* what was sent, NULL if no body is wanted; freed with the request */
    ngx_event_t pause;
    ngx_http_request_t *r;

    struct admin_changes changes;
    uint32_t tries;
    struct figures before; /* as the room was before it was changed */
    struct settings settings_before;
    struct texts *texts_before,
        *texts;                  /* and as they are to be; NULL: a call that has nothing to do with them */
    uint32_t people;             /* advance: how many were asked for */
    struct admin_walk *walk;     /* GET rooms, GET stream */
    struct admin_stream *stream; /* GET stream */
    struct admin_ticket *ticket; /* POST ticket */
};

/* Begins the chain of each call. */
admin_step rooms_begin, room_begin, room_put_begin, room_patch_begin, room_delete_begin, room_advance_begin,
    room_clear_begin, room_figures_begin, stream_begin, ticket_look_begin, ticket_revoke_begin,
    journal_status_begin, gate_counts_begin, breakers_begin;

/* Goes on from the present step. */
void admin_go_on(ngx_http_request_t *r);

/* Asks the engine about state->room; `then` goes on. */
enum admin_next admin_ask(ngx_http_request_t *r, struct admin_state *state, enum engine_op op,
                          admin_step *then);

/* The call that was answered. */
struct engine_call *admin_call(ngx_http_request_t *r);

/* A change of settings is tried again each time that somebody else's went through: one of many may lose often. */
#define ADMIN_TRIES_MAX 100000

/* Sends the answer. NULL: out of memory. */
enum admin_next admin_tell(ngx_http_request_t *r, struct admin_state *state, ngx_uint_t status,
                           ngx_buf_t *body);

/* Refuses; with words of its own instead of the error's if there are any. */
enum admin_next admin_refuse(ngx_http_request_t *r, struct admin_state *state, enum error error);
enum admin_next admin_refuse_saying(ngx_http_request_t *r, struct admin_state *state, enum error error,
                                    const char *message);

/* ---- admin_settings.c: settings in JSON ---- */

#define ADMIN_SETTINGS_BYTES (1536 + 2 * sizeof(struct texts)) /* of all settings of a room */

/* Reads the object that was sent. False: out of memory. */
bool admin_changes_read(ngx_pool_t *pool, json_t *object, struct admin_changes *changes);

/* All changes, or none. False: `reason` says in one sentence what is wrong and what is allowed. */
bool admin_changes_apply(const struct admin_changes *changes, struct settings *settings, struct texts *texts,
                         char *reason, size_t reason_size);

/* Writes the settings as one object. */
void admin_settings_add(ngx_buf_t *body, const struct settings *settings, const struct texts *texts);

/* ---- admin_figures.c: figures in JSON ---- */

#define ADMIN_FIGURES_BYTES 1536 /* of a room at most */

void admin_figures_add(ngx_buf_t *body, struct span room, const struct figures *figures,
                       const struct settings *settings);

/* ---- admin_walk.c: the figures of all rooms ---- */

struct admin_walk {
    ngx_pool_t *pool; /* of all that follows: the caller's */
    struct room_id *ids;
    uint32_t count, at;
    ngx_chain_t *out, *last; /* `{"rooms":[…]}` in pieces */
    off_t bytes;
    struct span before, after; /* written around it */
    admin_step *done;
};

/* Walks all rooms and goes on with walk->done, admin_call(r)->error saying how it went. The caller fills in the rest. */
enum admin_next admin_walk(ngx_http_request_t *r, struct admin_state *state);

/* ---- admin_log.c: who did what ---- */

void admin_log_settings(ngx_http_request_t *r, const struct admin_state *state, const char *deed,
                        const struct admin_settings *before, const struct admin_settings *after);

/* `deed` is followed by the room's name, then by `what` and by how many were in line and inside before and after. */
void admin_log_people(ngx_http_request_t *r, const struct admin_state *state, const char *deed,
                      const char *what, const struct figures *after);

/* A ticket that was in this state is over. */
void admin_log_ticket(ngx_http_request_t *r, const struct admin_state *state, uint32_t epoch, uint32_t count,
                      struct span was);

/* People called, entered and active. */
uint64_t admin_inside(const struct figures *figures);

#endif
