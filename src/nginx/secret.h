/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_SECRET_H
#define WEIR_NGINX_SECRET_H

/* weir_secret_file. */

#include "nginx/conf.h"

char *secret_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

#endif
