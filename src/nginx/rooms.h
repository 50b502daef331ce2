/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_ROOMS_H
#define WEIR_NGINX_ROOMS_H

/* weir_room and weir_rooms. */

#include "nginx/conf.h"

/* NGX_CONF_OK, or NGX_CONF_ERROR after having said that this cannot be the name of a room. */
char *rooms_name_check(ngx_conf_t *cf, ngx_str_t name);

/* What a weir_room says of it; NULL: none names it. */
const struct settings *rooms_settings(const struct main_conf *conf, ngx_str_t name);

char *rooms_room_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);
char *rooms_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

#endif
