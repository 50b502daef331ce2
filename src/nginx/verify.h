/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_VERIFY_H
#define WEIR_NGINX_VERIFY_H

/*
 * weir_verify: the gate for another proxy, which asks about each request before it forwards it (forward auth). The question is
 * judged by the location that the forwarded address has in this server, exactly as the request itself would be; but nothing is
 * served there.
 */

#include "nginx/conf.h"
#include "nginx/gate_sign.h"

struct gate;
struct gate_note;

char *verify_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* Whether this request is such a question, and has come to the location that judges it. */
bool verify_is_on(ngx_http_request_t *r);

/* The method of the request that is asked about; r's own where nothing is asked. */
ngx_uint_t verify_method(ngx_http_request_t *r);

/* Answers 200 with what the shop is to be told. Both return what the gate's handler is to return. `said` NULL: nothing. */
ngx_int_t verify_allow(ngx_http_request_t *r, const struct gate_said *said, struct span signature);

/* Whether a navigation is to be sent to the waiting page with a redirect. */
bool verify_redirects(ngx_http_request_t *r);

#endif
