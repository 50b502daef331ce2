/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_WORKER_H
#define WEIR_NGINX_WORKER_H

/* What each worker process has of its own: its engine and the timer that ticks it. */

#include "engine/engine.h"
#include "nginx/conf.h"

ngx_int_t worker_init(ngx_cycle_t *cycle);
void worker_exit(ngx_cycle_t *cycle);

/* NULL where neither a zone nor a store is configured: no handler of ours runs there. */
struct engine *worker_engine(void);

/* False: nothing may be submitted, for the rooms cannot be asked yet. */
bool worker_is_ready(void);

/* After each submission: what it waits for is done at the end of this turn of the event loop. */
void worker_note_call(void);

/* Why nobody can be served now; NULL: they can. */
const char *worker_trouble(void);

/* The engine's own word that it is lost; NULL: it is not, or this worker has only just begun to look for it. */
const char *worker_loss(void);

/* Whether other workers may see the engine otherwise than this one. */
bool worker_has_own_view(void);

/* A worker that is told to leave stays for as long as this was last called with true. */
void worker_stay(bool stays);

#endif
