/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_ROOMS_H
#define WEIR_NGINX_ROOMS_H

/* weir_room and weir_rooms. */

#include "nginx/conf.h"

/* Whether a weir_room names it. */
bool rooms_have(struct main_conf *conf, ngx_str_t name);

char *rooms_room_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);
char *rooms_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

#endif
