/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_STORE_PROBE_H
#define WEIR_NGINX_STORE_PROBE_H

/* Each primary is asked once how it is set up, and the error log is warned of what makes a loss likely (redis/probe.h). */

#include "nginx/store_conf.h"
#include "redis/store.h"

/* Once a turn, in one worker. `conf` must live as long as the store. */
void store_probe_look(struct store *store, const struct store_conf *conf, uint64_t now_ms);

#endif
