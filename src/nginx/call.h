/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_CALL_H
#define WEIR_NGINX_CALL_H

/*
 * A request that asks the engine something. The answer may come at once or after other events; the request, and with it the
 * call, outlives a client that hangs up in between.
 */

#include "engine/engine.h"
#include "nginx/conf.h"

struct call {
    struct engine_call engine; /* op, room and what the op asks, filled in by the caller; then the answer */
    ngx_http_request_t *r;
    ngx_http_event_handler_pt resume;
    bool is_answered;
};

/*
 * True: the answer is there, and `resume` will not be called. False: `resume` will be called with the answer, unless the
 * request has ended by then.
 */
bool call_submit(ngx_http_request_t *r, struct call *call, ngx_http_event_handler_pt resume);

#endif
