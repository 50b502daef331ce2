/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_REFUSE_H
#define WEIR_NGINX_GATE_REFUSE_H

/* What a gate says to those whom it does not let by. */

#include "nginx/conf.h"
#include "nginx/gate_state.h"

/* Somebody looks at a page: not a script, not a picture. */
bool gate_is_navigation(ngx_http_request_t *r);

/* Answers the request and returns what the gate's handler is to return. */
ngx_int_t gate_refuse(ngx_http_request_t *r, const struct gate *gate);

#endif
