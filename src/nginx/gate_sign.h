/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_SIGN_H
#define WEIR_NGINX_GATE_SIGN_H

/*
 * weir_shop_key_file: a signature over what the gate tells the shop, for a shop that can be reached by others too.
 *
 *     X-Weir-Signature: t=SECONDS,v1=HEX
 *
 * HEX is HMAC-SHA256, under the characters of the key, over SECONDS, X-Weir-Room, X-Weir-Tier, X-Weir-Session and X-Weir-User in
 * this order, a line feed between each; what was not sent is empty.
 */

#include "base/span.h"
#include "nginx/conf.h"

/* What stands in the headers. */
struct gate_said {
    struct span room, tier, session, user;
};

char *gate_sign_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* The value of the header, in the request's pool. data NULL: there is no key, or it cannot be made. */
struct span gate_sign(ngx_http_request_t *r, const struct gate_said *said);

#endif
