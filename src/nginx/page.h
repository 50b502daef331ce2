/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_PAGE_H
#define WEIR_NGINX_PAGE_H

/* The waiting page, one document for every room and contract: it reads the room or event from its own address. */

#include "nginx/conf.h"

/* Makes the page's content security policy. */
ngx_int_t page_init(ngx_conf_t *cf);

/* enum conf_page of a word of weir_page; false: there is no such contract. */
bool page_contract_find(struct span word, ngx_uint_t *page);

ngx_int_t page_handler(ngx_http_request_t *r);

#endif
