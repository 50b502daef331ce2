/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_STORE_TLS_H
#define WEIR_NGINX_STORE_TLS_H

/* TLS to the servers of a store, with nginx's own functions: whom to trust, whom to expect, and who we are. */

#include "nginx/store_conf.h"

/* While the configuration is read. Says what is wrong with a file. */
ngx_int_t store_tls_prepare(ngx_conf_t *cf, struct store_conf *store);

#if (NGX_SSL)

/* Over a connection that is there; the handshake is the caller's. `host` is who was dialed. NULL, or a constant sentence. */
const char *store_tls_begin(const struct store_conf *store, ngx_connection_t *connection, const char *host);

/* After the handshake: NULL, or what is wrong with whoever is there, in a constant sentence. */
const char *store_tls_judge(const struct store_conf *store, ngx_connection_t *connection);

#endif

#endif
