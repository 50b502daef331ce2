/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_WORKER_H
#define WEIR_NGINX_WORKER_H

/* What each worker process has of its own: its engine and the timer that ticks it. */

#include "engine/engine.h"
#include "nginx/conf.h"

ngx_int_t worker_init(ngx_cycle_t *cycle);
void worker_exit(ngx_cycle_t *cycle);

/* NULL where no zone is configured: no handler of ours runs there. */
struct engine *worker_engine(void);

/* A worker that is told to leave stays for as long as this was last called with true. */
void worker_stay(bool stays);

#endif
