/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_PASS_GIVE_H
#define WEIR_NGINX_PASS_GIVE_H

/* The pass of somebody who has entered, be it by the API or at the gate. */

#include "nginx/conf.h"
#include "room/room.h"
#include "token/pass.h"

struct pass_given {
    struct pass_claims claims;
    struct span token;
    uint32_t life_sec;
};

/*
 * Signs it from what the engine keeps. `identity` is who the holder of a trusted ticket is. What it fills in lies in the request's
 * pool, but for the room and the identity. False: out of memory, or no key signs it.
 */
bool pass_give(ngx_http_request_t *r, struct span room, const struct standing *standing, struct span identity,
               struct pass_given *out);

#endif
