/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_ADMIT_H
#define WEIR_NGINX_GATE_ADMIT_H

/* Below the limit the gate is not seen: whoever comes without a pass joins, is called and enters in the same request. */

#include "nginx/gate_state.h"

/* Whether this is somebody who looks at a page and will keep a cookie. */
bool gate_may_admit(ngx_http_request_t *r, const struct gate *gate);

/* The step that begins it. */
gate_step gate_admit;

#endif
