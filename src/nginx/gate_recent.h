/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_RECENT_H
#define WEIR_NGINX_GATE_RECENT_H

/*
 * Sessions that this worker has asked for a moment ago. Their next requests need not ask again: a page of a hundred objects costs
 * one question, and one renewal. A moment is half a second, or a tenth of what the session lives if that is less; so a session
 * that ends closes the gate of every worker within it, and none ends earlier by more than that.
 */

#include "base/span.h"
#include "nginx/conf.h"
#include "token/pass.h"

#define RECENT_MS 500

bool recent_has(const struct pass_claims *pass);
void recent_add(const struct pass_claims *pass, uint32_t session_ttl_sec);
void recent_forget(const struct pass_claims *pass);

#endif
