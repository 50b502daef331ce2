/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ENGINE_ENGINE_H
#define WEIR_ENGINE_ENGINE_H

/*
 * The one interface to rooms. A call is data: the caller fills in what it asks, submits it, and is told through `done`, either
 * before engine_submit returns or later (when a journal has been written, when a Redis has answered). Handlers never know which
 * engine they talk to.
 */

#include "base/room_id.h"
#include "room/room.h"

enum engine_op {
    ENGINE_JOIN,           /* in: join           out: standing, retry_after_sec */
    ENGINE_STATUS,         /* in: place          out: standing */
    ENGINE_HEARTBEAT,      /* in: place          out: standing; seen, but not told whether it is their turn */
    ENGINE_LOOK,           /* in: place          out: standing; nobody notices */
    ENGINE_ENTER,          /* in: enter          out: standing */
    ENGINE_LEAVE,          /* in: place */
    ENGINE_LEAVE_SOON,     /* in: place */
    ENGINE_SESSION_TOUCH,  /* in: place */
    ENGINE_SESSION_END,    /* in: place */
    ENGINE_SESSION_EXTEND, /* in: place, seconds */
    ENGINE_SHOP,           /* in: shop           answered before engine_submit returns */
    ENGINE_FIGURES, /* in: texts          out: figures, settings; into `texts`, unless it is NULL, the texts */
    ENGINE_SETTINGS, /*                    out: settings */
    ENGINE_ROOMS,    /* in: list           out: list.count, sorted by name */
    ENGINE_PUT,      /* in: put            makes the room or changes its settings */
    ENGINE_DELETE,   /*                    the room and all its tickets are gone */
    ENGINE_ADVANCE,  /* in: people         out: people called */
    ENGINE_CLEAR,    /*                    out: people cleared */
};

struct engine_put {
    struct settings settings;
    const struct texts *texts; /* the caller's until the answer; NULL: they stay as they are */
    /* The settings must still have this version (figures.settings_version), else ERROR_CONFLICT; 0 = the room must be new. */
    uint32_t version;
    bool is_from_api; /* else from the configuration file */
};

/* Names of rooms, into memory of the caller. */
struct engine_list {
    struct room_id {
        char name[ROOM_ID_MAX];
        uint32_t len;
    } * ids;
    uint32_t size, count;
};

struct engine_call {
    /* asked */
    enum engine_op op;
    uint32_t seconds;
    struct span room;
    union {
        struct join join;
        struct enter enter;
        struct place place;
        struct engine_put put;
        const struct shop_report *shop;
    };
    void (*done)(struct engine_call *call);
    void *context; /* the caller's own */

    /* the engine's own, until the answer */
    struct engine_call *next;
    uint64_t position;     /* in the journal */
    struct engine *engine; /* that it was submitted to */
    void (*told)(
        struct engine_call *call); /* the caller's `done`, where the engine has its own in its place */

    /* asked and answered */
    struct engine_list list;
    struct texts *texts; /* memory of the caller, or NULL */
    uint32_t people;

    /* answered */
    enum error error;
    uint32_t retry_after_sec; /* with an error after which waiting helps, else 0 */
    bool needs_sync;          /* the engine's own, too */
    bool is_again;            /* likewise: its room had to be made first */
    union {
        struct standing standing;
        struct {
            struct figures figures;
            struct settings settings;
        };
    };
};

struct engine {
    void (*submit)(struct engine *engine, struct engine_call *call);

    /* To be called about every ROOM_TICK_MS in every worker, with a monotonic clock. */
    void (*tick)(struct engine *engine, uint64_t now_ms);

    /* Why the engine cannot serve now, or NULL. */
    const char *(*trouble)(struct engine *engine);

    /*
     * Set by whoever wants to see everything that happens in a room, in its order: called after each operation and each tick,
     * before the next one can begin. NULL, as it is made, costs nothing.
     */
    void (*watch)(struct span room, const struct figures *figures);
};

/* For those who keep rooms: what the call does to its room, which they hold. Any call but ENGINE_ROOMS. */
enum error engine_run(struct room *room, struct engine_call *call);

static inline void engine_submit(struct engine *engine, struct engine_call *call)
{
    engine->submit(engine, call);
}

#endif
