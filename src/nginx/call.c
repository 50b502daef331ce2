/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holding a request is nginx's own mechanism for work in a thread: `blocked` keeps the request and its pool from being freed
 * whoever finalizes it meanwhile, and the write handler tells on waking whether somebody did.
 */
#include "nginx/call.h"

#include "nginx/worker.h"

static void call_done(struct engine_call *engine_call);
static void call_wait(ngx_http_request_t *r);
static void call_wake(struct call *call);

bool call_submit(ngx_http_request_t *r, struct call *call, ngx_http_event_handler_pt resume)
{
    call->engine.done = call_done;
    call->engine.context = call;
    call->r = r;
    call->resume = NULL;
    call->is_answered = false;
    if (!worker_is_ready()) {
        call->engine.error = ERROR_ENGINE_UNAVAILABLE;
        call->engine.retry_after_sec = 0;
        return true;
    }
    engine_submit(worker_engine(), &call->engine);
    worker_note_call();
    if (call->is_answered)
        return true;
    call->resume = resume;
    r->main->blocked++;
    r->write_event_handler = call_wait;
    return false;
}

static void call_done(struct engine_call *engine_call)
{
    struct call *call = engine_call->context;
    call->is_answered = true;
    if (call->resume != NULL) /* call_submit has returned */
        call_wake(call);
}

/* Stands for "nobody has finalized this request". */
static void call_wait(ngx_http_request_t *r)
{
}

static void call_wake(struct call *call)
{
    ngx_http_request_t *r = call->r;
    ngx_connection_t *c = r->connection;
    ngx_http_set_log_request(c->log, r);
    r->main->blocked--;
    if (r->write_event_handler == call_wait) {
        r->write_event_handler = ngx_http_request_empty_handler;
        call->resume(r);
    } else
        r->write_event_handler(r);
    ngx_http_run_posted_requests(c);
}
