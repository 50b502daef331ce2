/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_API_QUEUE_H
#define WEIR_NGINX_API_QUEUE_H

/* The queue API: join, status, enter, leave, heartbeat. */

#include "nginx/conf.h"

ngx_int_t api_queue_handler(ngx_http_request_t *r);

/* For a request that is no call of an API. `allow` has the methods that its path knows; data NULL: there is no such path. */
ngx_int_t api_turn_away(ngx_http_request_t *r, struct span allow);

#endif
