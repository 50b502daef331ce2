/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_SIM_HOUSE_H
#define WEIR_SIM_HOUSE_H

/*
 * The room under test, with the memory and the time it lives on. Either the bare room, whose tickets can be read in a moment, or
 * the room behind the local engine, which adds the engine's own treatment of clocks that stand still or jump.
 */

#include "engine/engine.h"
#include "room/room.h"

struct local_zone;

struct house {
    unsigned char *memory;
    size_t bytes;
    struct room *room;       /* NULL behind an engine */
    struct engine *engine;   /* NULL for a bare room */
    struct local_zone *zone; /* the engine's */
    uint64_t wall_ms;        /* what the engine is told, and when it last counted */
    uint64_t counted_ms;
};

/* How much memory: so many pages of 4096 bytes for the tickets, at least HOUSE_LEAST_PAGES. */
#define HOUSE_LEAST_PAGES 16
void house_open(struct house *house, bool has_engine, uint32_t pages, const struct settings *settings);
void house_close(struct house *house);

/* One operation of the room, or of the engine on it. */
void house_submit(struct house *house, struct engine_call *call);

/*
 * The wall clock moves on by this much, which may be nothing or less than nothing, and the room is ticked. Returns how much of
 * it may count for the room (DESIGN "Time"), or -1 when this was no tick at all.
 */
int64_t house_tick(struct house *house, int64_t elapsed_ms);

/* In what state a ticket is, without its being noticed. */
enum ticket_state house_state(struct house *house, const struct place *place);

struct figures house_figures(struct house *house);

/* Spare pages of a bare room; behind an engine there are always enough. */
uint32_t house_spare(struct house *house);

/* Everything hangs together and no page is lost. */
void house_check(struct house *house);

#endif
