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

/*
 * With what the pass says of its grant: its session can be made anew if it was lost. When its ticket was issued and whether to
 * somebody signed in is not known by it; the caller may know the latter.
 */
static inline struct place place_of_pass(const struct pass_claims *claims)
{
    uint32_t iat_sec = claims->iat_sec < UINT32_MAX ? (uint32_t)claims->iat_sec : UINT32_MAX;
    return (struct place){
        .epoch = claims->epoch,
        .count = claims->count,
        .holder = claims->holder,
        .issue = {true, false, claims->key_id, iat_sec},
        .grant = {true, claims->key_id, (uint8_t)claims->tier, iat_sec},
    };
}

#endif
