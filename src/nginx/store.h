/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_STORE_H
#define WEIR_NGINX_STORE_H

/*
 * weir_store: the Redis that keeps the rooms, in place of a weir_zone, and a worker's connections to it.
 *
 *     weir_store URL [timeout=2s] [replicas=0] [rooms=64];
 */

#include "engine/engine.h"
#include "nginx/conf.h"

char *store_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* In a worker: the engine over it. NULL: no memory. It serves as soon as the servers are found. */
struct engine *store_begin(struct main_conf *conf, ngx_cycle_t *cycle);
void store_end(void);

/* Whether this process has one. */
bool store_is_begun(void);

/* Neither found nor missed yet. */
bool store_is_awaited(void);

/* Something was submitted to its engine, or the engine ticked: it is sent at the end of this turn of the event loop. */
void store_note_call(void);

#endif
