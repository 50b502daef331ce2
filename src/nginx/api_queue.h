/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_API_QUEUE_H
#define WEIR_NGINX_API_QUEUE_H

/* The queue API: join, status, enter, leave, heartbeat. */

#include "nginx/conf.h"

ngx_int_t api_queue_handler(ngx_http_request_t *r);

#endif
