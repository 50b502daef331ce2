/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_SHAPE_H
#define WEIR_NGINX_SHAPE_H

/*
 * How an error is told. Each family of clients reads its own:
 *
 *     envelope   {"error":{"code":"QUEUE_FULL","message":"…","trace_id":"…"}}    the queue API and the operator's
 *     flat       {"error":"…"}                                                   signed-in queue and lobby
 *     concert    {"error":{"code":"queue_not_available","message":"…"}}          concert queue
 *
 * What the request was found to be decides, else its location.
 */

#include "base/error.h"
#include "base/span.h"
#include "nginx/conf.h"

enum shape { SHAPE_OF_LOCATION, SHAPE_ENVELOPE, SHAPE_FLAT, SHAPE_CONCERT };

/* The status of the answer. */
ngx_uint_t shape_status(ngx_http_request_t *r, enum error error);

struct shape_said {
    enum error error;
    struct span message;      /* what cannot stand in a log or on a terminal is replaced by `?` */
    uint32_t retry_after_sec; /* 0: waiting does not help */
    struct span redirect_to;  /* len 0: nowhere */
};

/* The body of the answer. NULL: out of memory. */
ngx_buf_t *shape_write(ngx_http_request_t *r, const struct shape_said *said);

#endif
