/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_PASS_COOKIE_H
#define WEIR_NGINX_PASS_COOKIE_H

/*
 * The cookies that carry a room's pass, and a ticket for it where a client keeps none itself: `weir-pass-` or `weir-ticket-` and the
 * room's name, in which ':' is written '~'.
 */

#include "base/room_id.h"
#include "base/span.h"
#include "nginx/conf.h"

#define PASS_COOKIE_PREFIX   "weir-pass-"
#define PASS_COOKIE_NAME_MAX (sizeof(PASS_COOKIE_PREFIX) - 1 + ROOM_ID_MAX)

#define TICKET_COOKIE_PREFIX   "weir-ticket-"
#define TICKET_COOKIE_NAME_MAX (sizeof(TICKET_COOKIE_PREFIX) - 1 + ROOM_ID_MAX)

struct span pass_cookie_name(struct span room, char memory[PASS_COOKIE_NAME_MAX]);

ngx_int_t pass_cookie_set(ngx_http_request_t *r, struct span room, struct span pass, uint32_t life_sec);

struct span ticket_cookie_name(struct span room, char memory[TICKET_COOKIE_NAME_MAX]);

ngx_int_t ticket_cookie_set(ngx_http_request_t *r, struct span room, struct span ticket);

#endif
