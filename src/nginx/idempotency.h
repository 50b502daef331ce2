/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_IDEMPOTENCY_H
#define WEIR_NGINX_IDEMPOTENCY_H

/* The Idempotency-Key of a request, as the engine wants it. */

#include "base/error.h"
#include "nginx/conf.h"
#include "nginx/identity.h"
#include "room/room.h"

/* What a key is scoped to, and what it must come with again. */
struct idempotency {
    struct span operation;
    struct span room;
    const struct visitor *visitor;
    struct span meaning[2]; /* the parts of the body that matter */
};

/* Fills `out`, unset where no key came and none must. */
enum error idempotency_key(ngx_http_request_t *r, const struct idempotency *scope, struct request_key *out);

/* A key that stands for this pass, used by this holder of a ticket for another room. */
void idempotency_of_pass(ngx_http_request_t *r, const struct pass_claims *pass, const struct holder *user,
                         struct request_key *out);

/* The header that says: this is what the first try was answered. */
ngx_int_t idempotency_say_cached(ngx_http_request_t *r);

#endif
