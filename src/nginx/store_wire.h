/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_STORE_WIRE_H
#define WEIR_NGINX_STORE_WIRE_H

/*
 * The socket of a line: found, dialed, secured, read and written with nginx's events. What happens to it is told to the line's link,
 * and `happened` is called: what follows from it is done once, at the end of the turn.
 */

#include "nginx/store_conf.h"
#include "redis/store.h"

/* What the wires of a worker have in common. Outlives them. */
struct wire_common {
    const struct store_conf *conf;
    ngx_resolver_t *resolver; /* NULL: there is none */
    void (*happened)(void);
    bool
        is_over; /* nginx closes all connections of a worker that had time to leave: there will be no other */
};

/* The line wants to be dialed. */
void wire_dial(struct wire_common *common, struct store_line *line);

/* Writes what the line has to say, as far as the socket takes it. */
void wire_write(struct store_line *line);

/* The line wants to be hung up on. */
void wire_hang_up(struct store_line *line);

/* Closes the socket, if there is one, and tells nobody: the process ends. */
void wire_drop(struct store_line *line);

#endif
