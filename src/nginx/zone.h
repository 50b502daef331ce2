/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_ZONE_H
#define WEIR_NGINX_ZONE_H

/* weir_zone: the shared memory in which the local engine keeps its rooms. */

#include "nginx/conf.h"

char *zone_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

#endif
