/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_SEEN_H
#define WEIR_NGINX_GATE_SEEN_H

/*
 * Passes that this worker has verified, and what they say, by their very bytes: a visitor's hundredth request costs a comparison
 * instead of a signature. It says nothing of time, room, person or session: those are asked each time. A worker has one set of keys
 * for its whole life, so what was verified once stays so.
 */

#include "nginx/conf.h"
#include "token/pass.h"

/* The spans of `claims` lie in the pool. */
bool seen_find(ngx_pool_t *pool, struct span token, struct pass_claims *claims);

/* Only for a pass whose signature was found good. */
void seen_add(struct span token, const struct pass_claims *claims);

#endif
