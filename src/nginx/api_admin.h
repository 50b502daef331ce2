/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_API_ADMIN_H
#define WEIR_NGINX_API_ADMIN_H

/* The operator's API: rooms, their settings and figures, what is done to them, a ticket as the server knows it. */

#include "nginx/conf.h"

ngx_int_t api_admin_handler(ngx_http_request_t *r);

#endif
