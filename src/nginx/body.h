/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_BODY_H
#define WEIR_NGINX_BODY_H

/* The request body, in memory, bounded, whatever its framing and content type. */

#include "base/error.h"
#include "base/span.h"
#include "nginx/conf.h"

#define BODY_MAX 16384

struct body {
    struct span text;
    enum error error; /* ERROR_NONE, or ERROR_BODY_TOO_LARGE: the text then is nothing */
    char *memory;     /* where the text is put together, if it came in pieces */
    size_t size;
    ngx_http_event_handler_pt then;
};

/*
 * For a content handler: return what this returns. `then` is called with request_of(r)->body filled, now or later, and must
 * finalize the request. A client that stops in the middle is nginx's to deal with.
 */
ngx_int_t body_read(ngx_http_request_t *r, ngx_http_event_handler_pt then);

/* The same where no body is wanted: what comes is thrown away. */
ngx_int_t body_skip(ngx_http_request_t *r, ngx_http_event_handler_pt then);

#endif
