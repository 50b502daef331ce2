/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_JWKS_H
#define WEIR_NGINX_JWKS_H

/* weir_api jwks: the public keys of passes, for whoever verifies them. */

#include "nginx/conf.h"

ngx_int_t jwks_handler(ngx_http_request_t *r);

/* tier=N of the directive. */
bool jwks_tier_read(const ngx_str_t *word, int *tier);

#endif
