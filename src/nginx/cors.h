/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_CORS_H
#define WEIR_NGINX_CORS_H

/* weir_cors: which pages of other origins may call the API from a browser. */

#include "nginx/conf.h"

struct request;

char *cors_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* Adds what an answer to this request must say; nothing where weir_cors is off. */
ngx_int_t cors_headers(ngx_http_request_t *r, const struct request *request);

/* The request is a browser's question before the request proper, and weir_cors is on here. */
bool cors_is_preflight(ngx_http_request_t *r, const struct request *request);
ngx_int_t cors_answer_preflight(ngx_http_request_t *r, const struct request *request);

#endif
