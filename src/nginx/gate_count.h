/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_COUNT_H
#define WEIR_NGINX_GATE_COUNT_H

/* How requests fared at the gates of this nginx, and whether its engine is there: all workers together, over reloads. */

#include "nginx/conf.h"
#include "nginx/gate_note.h"

struct gate_counts {
    ngx_atomic_t outcomes; /* GATE_OUTCOME_COUNT of the version that laid this out */
    ngx_atomic_t of[GATE_OUTCOME_COUNT];
    ngx_atomic_t is_away;              /* the engine, when it was last looked at */
    ngx_atomic_t went_away, came_back; /* how often */
};

/* A gate is configured: it needs its counters. */
ngx_int_t gate_counts_need(ngx_conf_t *cf);

void gate_count(ngx_http_request_t *r, enum gate_outcome outcome);

/* Looks whether the engine is in trouble. That it begins or ends is said in the log once, and counted. */
void gate_counts_watch(ngx_http_request_t *r);

/* The same for somebody who asks: this worker's view counts, whatever another one said. */
void gate_counts_look(ngx_http_request_t *r);

#endif
