/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_PASS_CONF_H
#define WEIR_NGINX_PASS_CONF_H

/* weir_pass and weir_pass_key: what passes are signed with. */

#include "nginx/conf.h"

char *pass_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);
char *pass_key_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* Once everything is read: gives the keys of weir_secret_file what the directives say. */
ngx_int_t pass_conf_finish(ngx_conf_t *cf);

#endif
