/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_STORE_SECRET_H
#define WEIR_NGINX_STORE_SECRET_H

/* The password of a store: given, from the environment, or from a file that may change while nginx runs. */

#include "nginx/conf.h"
#include "redis/store_url.h"

/* While the configuration is read: takes the variable's value, makes the file's path whole, and says what is wrong with either. */
ngx_int_t store_secret_prepare(ngx_conf_t *cf, struct store_login *login);

/* For each connection anew: NULL, or a constant sentence why there is no password. */
const char *store_secret_read(void *context, const struct store_login *login, struct store_text *out);

#endif
