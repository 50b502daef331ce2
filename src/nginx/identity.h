/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_IDENTITY_H
#define WEIR_NGINX_IDENTITY_H

/* Who asks: somebody the operator vouches for (weir_user), else a visitor with or without our cookie. */

#include "base/holder.h"
#include "base/span.h"
#include "nginx/conf.h"
#include "token/pass.h"
#include "token/visitor.h"

char *identity_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* The trusted identity, UTF-8 without control characters, 1 to IDENTITY_MAX bytes; data NULL: nobody is vouched for. */
struct span identity_of(ngx_http_request_t *r);

/* What stands for a name in the pass of somebody nobody vouches for: "v-" and the holder. */
#define ANONYMOUS_LEN (2 + BASE64URL_LEN(sizeof(struct holder)))
struct span identity_anonymous(const struct holder *holder, char memory[ANONYMOUS_LEN]);

/* Whether it is such a pass. */
bool identity_is_anonymous(const struct pass_claims *pass);

struct visitor {
    struct span identity; /* data NULL: not vouched for */
    bool has_cookie;      /* a valid one; `id` is from it */
    uint8_t id[VISITOR_ID_SIZE];
};

/* Reads, makes nothing up: without identity and cookie the id is unset. */
struct visitor visitor_of(ngx_http_request_t *r);

/* Makes a fresh random visitor of somebody who is nobody yet. */
void visitor_invent(struct visitor *visitor);

void visitor_holder(ngx_http_request_t *r, const struct visitor *visitor, struct holder *holder);

/*
 * The cookie of somebody who was nobody before this join, if it is they who hold the place. A key that was used before or a lobby's
 * pass may have given it to another: a cookie would then name somebody who holds nothing.
 */
ngx_int_t visitor_keep(ngx_http_request_t *r, const struct visitor *visitor, const struct holder *holder);

/* The cookie that makes them known next time. */
ngx_int_t visitor_set_cookie(ngx_http_request_t *r, const struct visitor *visitor);

#endif
