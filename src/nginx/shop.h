/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_SHOP_H
#define WEIR_NGINX_SHOP_H

/* How the shop answers those who are inside: seen by each worker, told to their rooms, whose pace may follow it. */

#include "nginx/conf.h"

/* Log phase: an answer is over. */
ngx_int_t shop_on_log(ngx_http_request_t *r);

/* Tells the rooms what was seen since the last time. */
void shop_report_all(void);

#endif
