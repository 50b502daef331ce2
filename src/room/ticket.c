/* SPDX-License-Identifier: BSD-2-Clause */

/* Data and no code, so that a test can walk every step that is allowed and try every one that is not. */

#include "room/ticket.h"

#include "base/must.h"

#define MAY(state) (1U << TICKET_##state)

static const struct ticket_life lives[TICKET_STATES] = {
    [TICKET_NONE] = {"none", false, false, false, false, TICKET_NONE, MAY(WAITING)},
    [TICKET_WAITING] = {"waiting", true, true, false, true, TICKET_AWAY, MAY(AWAY) | MAY(CALLED) | MAY(DONE)},
    [TICKET_AWAY] = {"away", false, true, false, true, TICKET_DONE, MAY(WAITING) | MAY(DONE)},
    [TICKET_CALLED] = {"called", false, false, true, true, TICKET_DONE, MAY(ENTERED) | MAY(DONE)},
    [TICKET_ENTERED] = {"entered", false, false, true, true, TICKET_DONE, MAY(ACTIVE) | MAY(DONE)},
    [TICKET_ACTIVE] = {"active", false, false, true, true, TICKET_DONE, MAY(DONE)},
    [TICKET_DONE] = {"done", false, false, false, false, TICKET_NONE, 0},
};

const struct ticket_life *ticket_life(enum ticket_state state)
{
    must(state < TICKET_STATES);
    return &lives[state];
}

bool ticket_may_become(enum ticket_state from, enum ticket_state to)
{
    must(to < TICKET_STATES);
    return (ticket_life(from)->next & 1U << to) != 0;
}
