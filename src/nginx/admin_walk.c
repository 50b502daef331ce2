/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of all rooms: their names first, then one room after the other. There may be a hundred thousand: so the text
 * grows in pieces, and after every few rooms the worker turns to others first.
 */
#include "nginx/admin.h"
#include "nginx/reply.h"
#include "nginx/text.h"

#define PIECE_BYTES    (64 * 1024)
#define ROOMS_PER_TURN 128

static enum admin_next walk_listed(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next walk_next(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next walk_room(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next walk_end(ngx_http_request_t *r, struct admin_state *state, enum error error);
static ngx_buf_t *piece_with_place(struct admin_walk *walk);
static enum admin_next rooms_tell(ngx_http_request_t *r, struct admin_state *state);

enum admin_next rooms_begin(ngx_http_request_t *r, struct admin_state *state)
{
    state->walk = ngx_pcalloc(r->pool, sizeof(*state->walk));
    if (state->walk == NULL)
        return admin_refuse(r, state, ERROR_ENGINE_UNAVAILABLE);
    *state->walk =
        (struct admin_walk){.pool = r->pool, .before = SPAN(""), .after = SPAN(""), .done = rooms_tell};
    return admin_walk(r, state);
}

static enum admin_next rooms_tell(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    if (call->error != ERROR_NONE)
        return admin_refuse(r, state, call->error);
    state->rc = reply_json_pieces(r, NGX_HTTP_OK, state->walk->out, state->walk->bytes);
    return ADMIN_END;
}

enum admin_next admin_walk(ngx_http_request_t *r, struct admin_state *state)
{
    struct engine_call *call = admin_call(r);
    uint32_t rooms_max = conf_main(r)->rooms_max;
    state->walk->ids = ngx_palloc(state->walk->pool, rooms_max * sizeof(struct room_id));
    if (state->walk->ids == NULL)
        return walk_end(r, state, ERROR_ENGINE_UNAVAILABLE);
    call->op = ENGINE_ROOMS;
    call->list = (struct engine_list){.ids = state->walk->ids, .size = rooms_max};
    state->step = walk_listed;
    return ADMIN_ASK;
}

static enum admin_next walk_listed(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    struct admin_walk *walk = state->walk;
    ngx_buf_t *piece = call->error == ERROR_NONE ? piece_with_place(walk) : NULL;
    if (piece == NULL)
        return walk_end(r, state, call->error != ERROR_NONE ? call->error : ERROR_ENGINE_UNAVAILABLE);
    walk->count = call->list.count;
    text_add(piece, walk->before);
    TEXT_ADD(piece, "{\"rooms\":[");
    return walk_next(r, state);
}

static enum admin_next walk_next(ngx_http_request_t *r, struct admin_state *state)
{
    struct engine_call *call = admin_call(r);
    struct admin_walk *walk = state->walk;
    if (walk->at == walk->count)
        return walk_end(r, state, ERROR_NONE);
    call->op = ENGINE_FIGURES;
    call->room = (struct span){walk->ids[walk->at].name, walk->ids[walk->at].len};
    state->step = walk_room;
    return ADMIN_ASK;
}

static enum admin_next walk_room(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    struct admin_walk *walk = state->walk;
    ngx_buf_t *piece = piece_with_place(walk);
    if (piece == NULL)
        return walk_end(r, state, ERROR_ENGINE_UNAVAILABLE);
    if (call->error != ERROR_NONE && call->error != ERROR_ROOM_NOT_FOUND)
        return walk_end(r, state, call->error);
    if (call->error == ERROR_NONE) { /* else it was deleted a moment ago */
        if (piece->last[-1] == '}')
            TEXT_ADD(piece, ",");
        admin_figures_add(piece, call->room, &call->figures, &call->settings);
    }
    if (++walk->at % ROOMS_PER_TURN != 0)
        return walk_next(r, state);
    state->step = walk_next;
    return ADMIN_PAUSE;
}

static enum admin_next walk_end(ngx_http_request_t *r, struct admin_state *state, enum error error)
{
    struct admin_walk *walk = state->walk;
    ngx_buf_t *piece = error == ERROR_NONE ? piece_with_place(walk) : NULL;
    admin_call(r)->error = error == ERROR_NONE && piece == NULL ? ERROR_ENGINE_UNAVAILABLE : error;
    if (piece != NULL) {
        TEXT_ADD(piece, "]}");
        text_add(piece, walk->after);
        for (ngx_chain_t *link = walk->out; link != NULL; link = link->next)
            walk->bytes += ngx_buf_size(link->buf);
    }
    return walk->done(r, state);
}

/* The last piece if a room still fits, else a new one. The comma between two rooms is looked for in one piece. */
static ngx_buf_t *piece_with_place(struct admin_walk *walk)
{
    ngx_chain_t *last = walk->last;
    if (last != NULL && last->buf->end - last->buf->last >= ADMIN_FIGURES_BYTES + 64)
        return last->buf;
    ngx_chain_t *link = ngx_alloc_chain_link(walk->pool);
    ngx_buf_t *piece = link != NULL ? ngx_create_temp_buf(walk->pool, PIECE_BYTES) : NULL;
    if (piece == NULL)
        return NULL;
    if (last != NULL) {
        *piece->last++ = *--last->buf->last;
        last->next = link;
    } else
        walk->out = link;
    link->buf = piece;
    link->next = NULL;
    walk->last = link;
    return piece;
}
