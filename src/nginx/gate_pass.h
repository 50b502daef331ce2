/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_PASS_H
#define WEIR_NGINX_GATE_PASS_H

/* The passes that came with a request, and which of them count at a gate. */

#include "nginx/conf.h"
#include "token/pass.h"

#define GATE_PASSES_MAX 4

/* Signatures that are checked for nothing: an Ed25519 one costs a tenth of a millisecond, and anybody can send a hundred. */
#define GATE_WASTED_MAX 4

struct gate;

/* Those that are valid here, the best first: of the higher tier, then the one given last. Whether their sessions live is not said. */
struct gate_passes {
    struct pass_claims of[GATE_PASSES_MAX];
    size_t count;
    size_t wasted;
    bool are_disputed;
};

/*
 * Looks at x-queue-entry-token, at a Bearer, at the cookies of the gate's rooms and those that clients set, at what this very request was given and, where the
 * gate says so, at the body, which must be there by now. Whatever is no pass of ours, for this gate, for now and for this visitor is passed over. Where two that
 * are name different holders for one room, there are none, and they are disputed. After GATE_WASTED_MAX that look like ours and are
 * not good, only those are looked at that this worker knows.
 */
void gate_passes_find(ngx_http_request_t *r, struct gate *gate);

#endif
