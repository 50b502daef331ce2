/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_SHOP_H
#define WEIR_NGINX_SHOP_H

/* How the shop answers those who are inside: seen by each worker, told to their rooms, whose pace may follow it. */

#include "nginx/conf.h"

/* Log phase: an answer is over. */
ngx_int_t shop_on_log(ngx_http_request_t *r);

/* Tells the rooms what was seen since the last time. */
void shop_report_all(void);

/* Nobody should be called to this room's passes for so long; told with the next tick. */
void shop_leave_alone(struct span room, uint32_t ms);

#endif
