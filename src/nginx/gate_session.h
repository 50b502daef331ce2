/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_SESSION_H
#define WEIR_NGINX_GATE_SESSION_H

/* What the shop says about the session of the request that it answers: the response header `Weir-Session`. */

#include "base/span.h"
#include "nginx/conf.h"
#include "token/pass.h"

#define GATE_SESSION_HEADER "weir-session"

/* `end`: the visit is over, and its slot is free. What cannot be read is said in the log. */
void gate_session_obey(ngx_http_request_t *r, const struct pass_claims *pass, struct span word);

#endif
