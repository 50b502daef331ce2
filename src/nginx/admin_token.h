/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_ADMIN_TOKEN_H
#define WEIR_NGINX_ADMIN_TOKEN_H

/* weir_admin_token_file and weir_admin: who may do an operator's work. */

#include "nginx/conf.h"

char *admin_token_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* The name of the operator whose token the request carries as a bearer token, or data NULL. */
struct span admin_token_name(ngx_http_request_t *r);

char *admin_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/*
 * The same, or, where a variable of weir_admin says that it is one, what to call them in the log. For the APIs of clients' own systems:
 * the operator's API takes a token alone.
 */
struct span admin_name(ngx_http_request_t *r);

/* Makes $weir_admin known: that name, empty for everybody else. */
ngx_int_t admin_token_add_variable(ngx_conf_t *cf);

#endif
