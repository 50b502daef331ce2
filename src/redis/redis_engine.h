/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_REDIS_ENGINE_H
#define WEIR_REDIS_REDIS_ENGINE_H

/*
 * The engine whose rooms a Redis keeps: one in each worker of each node, and none of them knows of the others but through the
 * server.
 *
 * A room is ticked by whichever worker comes first, which then goes on with it; the others ask once a second whether it still
 * does (CHORE_LEASE_MS). That only saves work: two that tick do no harm. A worker ticks the rooms that somebody asked it about
 * and that are not at rest; so a room with nobody in it costs nothing.
 *
 * A room that a call needs and the server does not know is made, if the configuration names it, if it is a join and joins make
 * rooms, or if this worker still knows it: so also when the server has forgotten everything. It is then made with what this worker
 * still knows of its former epochs, so that tickets find their places again. A room that somebody deleted is not made for those who
 * come with a ticket of it.
 *
 * Settings are remembered for up to REDIS_SETTINGS_MS, for the gate asks for them with each visitor.
 */

#include "engine/engine.h"
#include "redis/transport.h"

#define REDIS_SETTINGS_MS 500

struct redis_room_conf {
    struct span name;
    struct settings settings;
    const struct texts *texts; /* NULL: none */
};

struct redis_engine_options {
    struct transport *transport; /* outlives it */
    /* Why nobody can be served now: a constant sentence, or NULL. */
    const char *(*trouble)(void *context);
    void *context;
    uint64_t node; /* another number in each worker of each node */
    uint64_t
        since_ms; /* wall clock at which the configuration was read: the same in all workers that go by it */
    uint32_t rooms_max;
    bool makes_rooms; /* by joins, with these settings: */
    struct settings made_settings;
    const struct texts *made_texts;      /* NULL: none */
    const struct redis_room_conf *rooms; /* of the configuration; they live as long as the engine */
    size_t room_count;
};

/*
 * NULL: no memory. With its first call or tick it brings the configured rooms and their settings to the server, also those that were
 * deleted before since_ms; calls wait until that is done, has failed or takes too long. It goes on trying until all are there.
 */
struct engine *redis_engine_new(const struct redis_engine_options *options);

/* Calls that wait for an answer: a process that is told to leave stays until there are none. */
uint32_t redis_engine_waiting(const struct engine *engine);

/* Nobody may wait for an answer, and the transport must have ended all that was under way. */
void redis_engine_free(struct engine *engine);

/* At the end of each turn of the event loop in which something was submitted or answered. */
void redis_engine_flush(struct engine *engine);

#endif
