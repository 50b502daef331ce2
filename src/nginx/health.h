/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_HEALTH_H
#define WEIR_NGINX_HEALTH_H

/* /healthz: the process serves. /readyz: the engine can answer, or what is missing. */

#include "nginx/conf.h"

ngx_int_t health_handler(ngx_http_request_t *r);

#endif
