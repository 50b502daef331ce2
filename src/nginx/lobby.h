/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_LOBBY_H
#define WEIR_NGINX_LOBBY_H

/*
 * weir_lobby: a place in a room's line is taken with a living pass of its lobby, the room `lobby:` and its name, and with that pass
 * nobody else takes one. Once it is taken nobody asks for the lobby again: the room's own pass stands for both, however long the line
 * was.
 */

#include "nginx/conf.h"
#include "room/room.h"

char *lobby_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/*
 * The request's call is a join that is about to be submitted. Calls `then`, now or later, with that call as it was, but for the holder
 * of somebody whom only the pass knows, and its error
 * saying whether it may be: ERROR_NONE, ERROR_ADMISSION_REQUIRED or ERROR_ENGINE_UNAVAILABLE.
 */
void lobby_ask(ngx_http_request_t *r, ngx_http_event_handler_pt then);

/*
 * Somebody was told how they stand in this room. As long as anybody waits in it, its lobby need not send more: one with `pace=hall`
 * calls nobody until they were to ask again.
 */
void lobby_note(ngx_http_request_t *r, struct span room, const struct standing *standing);

/* Whether one has to go through a lobby to this room, if it has one. */
bool lobby_stands_before(ngx_http_request_t *r, struct span room);

/* Where the lobby of this room is waited for. Data NULL: out of memory. */
struct span lobby_page(ngx_http_request_t *r, struct span room);

#endif
