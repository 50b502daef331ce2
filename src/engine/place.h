/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ENGINE_PLACE_H
#define WEIR_ENGINE_PLACE_H

/* The places that tokens name. */

#include "room/room.h"
#include "token/pass.h"
#include "token/ticket.h"

/* With what the ticket says of its issue: it can be given back if it was lost. */
static inline struct place place_of_ticket(const struct ticket_claims *claims)
{
    return (struct place){
        .epoch = claims->epoch,
        .count = claims->count,
        .holder = claims->holder,
        .issue = {true, claims->is_trusted, claims->key_id, claims->issued_sec},
    };
}

static inline struct place place_of_pass(const struct pass_claims *claims)
{
    return (struct place){.epoch = claims->epoch, .count = claims->count, .holder = claims->holder};
}

#endif
