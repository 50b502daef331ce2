/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_RESPONSE_H
#define WEIR_NGINX_GATE_RESPONSE_H

/* What the gate does to the answer of a request that came to it: a header filter. */

#include "nginx/conf.h"

ngx_int_t gate_response_init(ngx_conf_t *cf);

#endif
