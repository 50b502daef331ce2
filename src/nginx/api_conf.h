/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_API_CONF_H
#define WEIR_NGINX_API_CONF_H

/* weir_api: what a location answers. */

#include "nginx/conf.h"

char *api_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

#endif
