/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_MASK_H
#define WEIR_NGINX_MASK_H

/* Tokens in a query never reach a log. */

#include "nginx/conf.h"

/*
 * Overwrites the value of every token in what nginx keeps of the request's query: $request, $request_uri, $args and what is
 * made of them. The query as it was sent is kept in request_of(r)->query.
 */
ngx_int_t mask_query(ngx_http_request_t *r);

/* Rewrite phase: in locations of the API. */
ngx_int_t mask_on_rewrite(ngx_http_request_t *r);

/* Log phase, first of all: what was refused before it came to a location. */
ngx_int_t mask_on_log(ngx_http_request_t *r);

#endif
