/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_H
#define WEIR_NGINX_GATE_H

/* weir_gate: what stands before the shop and lets only passes of its rooms through. */

#include "nginx/conf.h"

#define GATE_ROOMS_MAX 4

struct gate_conf {
    /* A pass of any of them opens; the first is the line that one is sent to. None: `room=*`, the room that the pass names. */
    ngx_http_complex_value_t rooms[GATE_ROOMS_MAX];
    ngx_uint_t room_count;
    int tier; /* that a pass must have at least; 0: the one that its room gives now */
    /* Stands before the room's name in the address of its waiting page; with a variable in it, or `room=*`, it is all of it. */
    ngx_http_complex_value_t page;
    bool takes_tickets; /* in User-Token */
    ngx_str_t field;    /* of a JSON body in which a pass may come; empty: the body is not read */
};

char *gate_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);
char *gate_bypass_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);
char *gate_when_down_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

ngx_int_t gate_conf_init(ngx_conf_t *cf, struct main_conf *conf);

/* Once everything is read: gates name rooms that exist and that give passes of their tier. */
ngx_int_t gate_conf_check(ngx_conf_t *cf, struct main_conf *conf);

/* A location is read, and stands behind the gate: says in the log where that does not help. */
void gate_conf_look(ngx_conf_t *cf);

/* Whether this path can go into a header and into JSON as it is, and names no other site. */
bool gate_page_is_safe(ngx_str_t page);

ngx_int_t gate_add_variables(ngx_conf_t *cf);

/* Post-read phase, once a request: nobody else may say who passed, in all of a server that has a gate. */
ngx_int_t gate_on_read(ngx_http_request_t *r);

/* Rewrite phase: what an earlier gate said of a request that was sent on to this one's location. */
ngx_int_t gate_on_rewrite(ngx_http_request_t *r);

/* Precontent phase. */
ngx_int_t gate_handler(ngx_http_request_t *r);

#endif
