/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_HEADERS_H
#define WEIR_NGINX_HEADERS_H

/* What the shop is told: the X-Weir-* headers of a request on its way upstream. */

#include "base/span.h"
#include "nginx/conf.h"

/* Takes every header that begins with X-Weir- (in any case, '_' read as '-') out of the request. */
ngx_int_t headers_strip(ngx_http_request_t *r);

/* Before the first is added: a request that shares its headers with others gets its own. */
ngx_int_t headers_begin(ngx_http_request_t *r);

/* Adds one. Name (and its lower-case form) and value must live as long as the request. */
ngx_int_t headers_add(ngx_http_request_t *r, struct span name, struct span lowcase, struct span value);

#endif
