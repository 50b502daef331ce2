/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ENGINE_ENGINE_H
#define WEIR_ENGINE_ENGINE_H

/*
 * The one interface to rooms. A call is data: the caller fills in what it asks, submits it, and is told through `done`, either
 * before engine_submit returns or later (when a journal has been written, when a Redis has answered). Handlers never know which
 * engine they talk to.
 */

#include "room/room.h"

enum engine_op {
    ENGINE_JOIN,          /* in: join           out: standing, retry_after_sec */
    ENGINE_STATUS,        /* in: place          out: standing */
    ENGINE_ENTER,         /* in: enter          out: standing */
    ENGINE_LEAVE,         /* in: place */
    ENGINE_LEAVE_SOON,    /* in: place */
    ENGINE_SESSION_TOUCH, /* in: place */
    ENGINE_SESSION_END,   /* in: place */
    ENGINE_FIGURES,       /*                    out: figures */
    ENGINE_SETTINGS,      /*                    out: settings */
};

struct engine_call {
    /* asked */
    enum engine_op op;
    struct span room;
    union {
        struct join join;
        struct enter enter;
        struct place place;
    };
    void (*done)(struct engine_call *call);
    void *context; /* the caller's own */

    /* answered */
    enum error error;
    uint32_t retry_after_sec; /* with an error after which waiting helps, else 0 */
    union {
        struct standing standing;
        struct figures figures;
        struct settings settings;
    };
};

struct engine {
    void (*submit)(struct engine *engine, struct engine_call *call);

    /* To be called about every 100 ms in every worker, with a monotonic clock. */
    void (*tick)(struct engine *engine, uint64_t now_ms);

    /* Why the engine cannot serve now, or NULL. */
    const char *(*trouble)(struct engine *engine);
};

static inline void engine_submit(struct engine *engine, struct engine_call *call)
{
    engine->submit(engine, call);
}

#endif
