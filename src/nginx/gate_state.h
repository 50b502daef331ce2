/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_STATE_H
#define WEIR_NGINX_GATE_STATE_H

/*
 * A request before a gate. Its judgement is a chain of steps: each looks at what is there, asks the engine the next thing, or
 * ends it. A step that asks is gone on from when the answer is there, be that at once or many events later.
 */

#include "engine/engine.h"
#include "nginx/gate.h"
#include "nginx/gate_note.h"
#include "nginx/gate_pass.h"
#include "nginx/gate_sign.h"
#include "nginx/identity.h"
#include "token/ticket.h"

struct gate;

enum gate_move {
    GATE_ON,  /* to gate->step */
    GATE_ASK, /* the engine's call is filled in; to gate->step with its answer */
    GATE_END, /* gate->outcome says how */
};

typedef enum gate_move gate_step(ngx_http_request_t *r, struct gate *gate);

/* A ticket that was shown in place of a pass, and the pass that it then counts as. */
struct gate_ticket {
    struct ticket_claims claims;
    struct pass_claims pass;
    char room[ROOM_ID_MAX], uid[ANONYMOUS_LEN];
};

struct gate {
    const struct gate_conf *conf;
    gate_step *step;
    struct span rooms[GATE_ROOMS_MAX]; /* whose passes open it; those that cannot exist are left out */
    size_t room_count;
    struct span line; /* the room that one is sent to; len 0: none */
    struct gate_passes passes;
    struct gate_ticket *ticket;
    enum error ticket_error;  /* what is wrong with it */
    bool is_for_anybody;      /* whoever the pass names */
    size_t at;                /* the pass that is looked at */
    bool is_open;             /* the line's room lets everybody by */
    uint32_t session_ttl_sec; /* of the room that was last asked about; 0: the pass is not to be remembered */
    enum gate_outcome outcome;
    char session[PASS_ID_LEN];
    char tier[1];
};

/* NULL: out of memory. */
struct gate *gate_new(ngx_http_request_t *r, const struct gate_conf *conf);

/* For steps, to return: the engine is asked this about the room, and answers to `then`. */
enum gate_move gate_ask(ngx_http_request_t *r, struct gate *gate, enum engine_op op, struct span room,
                        gate_step *then);
enum gate_move gate_decide(struct gate *gate, enum gate_outcome outcome);

/* The step that asks the line's room, when nothing that was shown has opened. */
gate_step gate_look_at_line;

/* Whether passes of this room open it. */
bool gate_has_room(const struct gate *gate, struct span room);

/* There is no pass; an open room lets by all the same. */
enum gate_move gate_deny(struct gate *gate);

/* The engine could not be asked. */
enum gate_move gate_miss_engine(ngx_http_request_t *r, struct gate *gate);

#endif
