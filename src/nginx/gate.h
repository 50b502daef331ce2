/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_H
#define WEIR_NGINX_GATE_H

/* weir_gate: what stands before the shop and lets only passes of its room through. */

#include "nginx/conf.h"

struct gate_conf {
    ngx_http_complex_value_t room;
    ngx_str_t page; /* what stands before the room's name in the address of its waiting page */
};

char *gate_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* Post-read phase, once a request: nobody else may say who passed, in all of a server that has a gate. */
ngx_int_t gate_on_read(ngx_http_request_t *r);

/* Rewrite phase: what an earlier gate said of a request that was sent on to this one's location. */
ngx_int_t gate_on_rewrite(ngx_http_request_t *r);

/* Precontent phase. */
ngx_int_t gate_handler(ngx_http_request_t *r);

#endif
