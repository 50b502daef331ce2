/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server-Sent Events: the figures of all rooms, once a second, until the client goes away.
 *
 * A frame has a pool of its own that is destroyed when the frame has left, and the next one is not begun before: a slow client
 * gets fewer frames and costs no more memory than one.
 *
 * The timer is not a cancelable one: a worker that is told to leave would drop the connection in the middle of a chunk.
 * It finds out within a second that the worker wants to leave, and ends the stream as it should end; the client comes again
 * and finds a new worker.
 */
#include "nginx/admin.h"
#include "nginx/reply.h"
#include "nginx/text.h"

#define STREAMS_MAX 16
#define FRAME_MS    1000
#define FRAME_POOL  4096

struct admin_stream {
    ngx_event_t timer;
    ngx_pool_t *frame; /* NULL: nothing is being made or sent */
    bool is_making;    /* the walk is under way */
    ngx_buf_t flush;   /* see frame_free */
};

static ngx_uint_t stream_count; /* of this worker */

static struct admin_stream *stream_new(ngx_http_request_t *r);
static void stream_free(void *data);
static ngx_int_t stream_open(ngx_http_request_t *r);
static void stream_on_timer(ngx_event_t *event);
static void stream_beat(ngx_http_request_t *r, struct admin_stream *stream);
static void stream_close(ngx_http_request_t *r);
static enum admin_next frame_begin(ngx_http_request_t *r, struct admin_state *state);
static enum admin_next frame_send(ngx_http_request_t *r, struct admin_state *state);
static ngx_chain_t *comment_piece(struct admin_walk *walk);
static enum admin_next stream_end(struct admin_state *state, ngx_int_t rc);
static void stream_on_write(ngx_http_request_t *r);
static ngx_int_t frame_push(ngx_http_request_t *r, struct admin_stream *stream);
static ngx_int_t frame_free(ngx_http_request_t *r, struct admin_stream *stream);

enum admin_next stream_begin(ngx_http_request_t *r, struct admin_state *state)
{
    if (r != r->main)
        return admin_refuse(r, state, ERROR_NOT_FOUND);
    if (stream_count == STREAMS_MAX)
        return admin_refuse_saying(r, state, ERROR_RATE_LIMITED, "Too many streams are open");
    state->stream = stream_new(r);
    if (state->stream == NULL)
        return admin_refuse(r, state, ERROR_ENGINE_UNAVAILABLE);
    ngx_int_t rc = stream_open(r);
    if (rc == NGX_ERROR || rc > NGX_OK)
        return stream_end(state, rc);
    ngx_add_timer(&state->stream->timer, FRAME_MS);
    return frame_begin(r, state);
}

static struct admin_stream *stream_new(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(struct admin_stream));
    if (cleanup == NULL)
        return NULL;
    struct admin_stream *stream = cleanup->data;
    *stream = (struct admin_stream){.timer = {.handler = stream_on_timer,
                                              .data = r->connection, /* whose `data` is the request */
                                              .log = r->connection->log}};
    cleanup->handler = stream_free;
    stream_count++;
    return stream;
}

static void stream_free(void *data)
{
    struct admin_stream *stream = data;
    if (stream->timer.timer_set)
        ngx_del_timer(&stream->timer);
    if (stream->frame != NULL)
        ngx_destroy_pool(stream->frame);
    stream_count--;
}

static ngx_int_t stream_open(ngx_http_request_t *r)
{
    if (reply_header(r, SPAN("X-Accel-Buffering"), SPAN("no")) != NGX_OK)
        return NGX_ERROR;
    ngx_str_set(&r->headers_out.content_type, "text/event-stream");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->read_event_handler = ngx_http_test_reading;
    return reply_open(r, NGX_HTTP_OK);
}

static void stream_on_timer(ngx_event_t *event)
{
    ngx_connection_t *c = event->data;
    ngx_http_request_t *r = c->data;
    ngx_http_set_log_request(c->log, r);
    stream_beat(r, request_of(r)->admin->stream);
    ngx_http_run_posted_requests(c);
}

static void stream_beat(ngx_http_request_t *r, struct admin_stream *stream)
{
    struct admin_state *state = request_of(r)->admin;
    ngx_add_timer(&stream->timer, FRAME_MS);
    if (stream->is_making)
        return;
    if (ngx_exiting)
        stream_close(r);
    else if (stream->frame == NULL) {
        state->step = frame_begin;
        admin_go_on(r);
    }
}

/* With its last chunk, if the client takes it at once. */
static void stream_close(ngx_http_request_t *r)
{
    bool is_clear = request_of(r)->admin->stream->frame == NULL;
    ngx_http_finalize_request(r, is_clear ? ngx_http_send_special(r, NGX_HTTP_LAST) : NGX_ERROR);
}

static enum admin_next frame_begin(ngx_http_request_t *r, struct admin_state *state)
{
    struct admin_stream *stream = state->stream;
    stream->frame = ngx_create_pool(FRAME_POOL, r->connection->log);
    state->walk = stream->frame != NULL ? ngx_pcalloc(stream->frame, sizeof(*state->walk)) : NULL;
    if (state->walk == NULL)
        return stream_end(state, NGX_ERROR);
    *state->walk = (struct admin_walk){.pool = stream->frame,
                                       .before = SPAN("event: figures\ndata: "),
                                       .after = SPAN("\n\n"),
                                       .done = frame_send};
    stream->is_making = true;
    return admin_walk(r, state);
}

static enum admin_next frame_send(ngx_http_request_t *r, struct admin_state *state)
{
    struct admin_stream *stream = state->stream;
    struct admin_walk *walk = state->walk;
    stream->is_making = false;
    ngx_chain_t *out = admin_call(r)->error == ERROR_NONE ? walk->out : comment_piece(walk);
    if (out == NULL)
        return stream_end(state, NGX_ERROR);
    ngx_chain_t *last = out;
    while (last->next != NULL)
        last = last->next;
    last->buf->flush = 1;
    r->write_event_handler = stream_on_write;
    if (ngx_http_output_filter(r, out) == NGX_ERROR || frame_push(r, stream) != NGX_OK)
        return stream_end(state, NGX_ERROR);
    return ADMIN_WAIT;
}

/* There are no figures now, but the line is alive: a heartbeat that says so. */
static ngx_chain_t *comment_piece(struct admin_walk *walk)
{
    ngx_chain_t *link = ngx_alloc_chain_link(walk->pool);
    ngx_buf_t *piece = link != NULL ? ngx_create_temp_buf(walk->pool, 64) : NULL;
    if (piece == NULL)
        return NULL;
    TEXT_ADD(piece, ": the engine is unavailable\n\n");
    *link = (ngx_chain_t){piece, NULL};
    return link;
}

static enum admin_next stream_end(struct admin_state *state, ngx_int_t rc)
{
    state->rc = rc;
    return ADMIN_END;
}

static void stream_on_write(ngx_http_request_t *r)
{
    struct admin_state *state = request_of(r)->admin;
    ngx_connection_t *c = r->connection;
    if (state->stream->frame == NULL || state->stream->is_making)
        return;
    if (c->write->timedout) {
        c->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }
    if (ngx_http_output_filter(r, NULL) == NGX_ERROR || frame_push(r, state->stream) != NGX_OK)
        ngx_http_finalize_request(r, NGX_ERROR);
}

/* Is all of the frame away, its memory is free; else the client has send_timeout for the next bytes. */
static ngx_int_t frame_push(ngx_http_request_t *r, struct admin_stream *stream)
{
    ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    ngx_event_t *write = r->connection->write;
    bool is_away = !r->buffered && !r->connection->buffered && r->out == NULL;
    if (is_away && write->timer_set)
        ngx_del_timer(write);
    if (is_away)
        return frame_free(r, stream);
    if (!write->delayed)
        ngx_add_timer(write, core->send_timeout);
    return ngx_handle_write_event(write, core->send_lowat);
}

/*
 * Filters remember the buffers that were on their way when they last saw any, and look at them again with the next ones: they
 * are shown an empty one, so that they forget the frame before its memory goes.
 */
static ngx_int_t frame_free(ngx_http_request_t *r, struct admin_stream *stream)
{
    ngx_chain_t link = {&stream->flush, NULL};
    stream->flush = (ngx_buf_t){.flush = 1};
    if (ngx_http_output_filter(r, &link) == NGX_ERROR)
        return NGX_ERROR;
    ngx_destroy_pool(stream->frame);
    stream->frame = NULL;
    return NGX_OK;
}
