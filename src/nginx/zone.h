/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_ZONE_H
#define WEIR_NGINX_ZONE_H

/* weir_zone: the shared memory in which the local engine keeps its rooms. */

#include "nginx/conf.h"

char *zone_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* Once everything is read: a zone that has a journal is not left behind in a reload, with its folder locked for ever. */
ngx_int_t zone_check_kept(ngx_conf_t *cf);

/* What the file says of rooms, those that it names and those that may be made. */
ngx_int_t zone_put_rooms(struct main_conf *conf, ngx_log_t *log);

/* A fresh zone that awaits its journal, in the place of one that nobody may be in. */
void zone_lay_out_again(struct main_conf *conf);

#endif
