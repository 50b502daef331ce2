/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_BODY_H
#define WEIR_NGINX_GATE_BODY_H

/* A pass in a field of a JSON body, in locations whose gate names the field. */

#include "base/span.h"
#include "nginx/gate.h"

/* Whether the body has to be read before this gate can judge. */
bool gate_body_is_wanted(ngx_http_request_t *r, const struct gate_conf *conf);

/* Reads it: the gate's handler returns what this returns, and runs again when the body is there. */
ngx_int_t gate_body_read(ngx_http_request_t *r);

/* The text of the gate's field; data NULL: the gate has none, the body is no such object, or it has not been read. */
struct span gate_body_field(ngx_http_request_t *r, const struct gate_conf *conf);

#endif
