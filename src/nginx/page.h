/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_PAGE_H
#define WEIR_NGINX_PAGE_H

/* The waiting page, one document for every room: it reads the room from its own address. */

#include "nginx/conf.h"

/* Makes the page's content security policy. */
ngx_int_t page_init(ngx_conf_t *cf);

ngx_int_t page_handler(ngx_http_request_t *r);

#endif
