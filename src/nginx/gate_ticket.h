/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_TICKET_H
#define WEIR_NGINX_GATE_TICKET_H

/*
 * `weir_gate ticket=on`: a ticket in the header User-Token counts as a pass while its holder is inside. Clients of the concert queue
 * have nothing else.
 */

#include "nginx/gate_state.h"

/* The step that looks for one, when no pass has opened; gate_look_at_line goes on without any. */
gate_step gate_ticket_look;

/* What to say to somebody who was not let by. */
enum error gate_ticket_error(const struct gate *gate);

#endif
