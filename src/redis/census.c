/* SPDX-License-Identifier: BSD-2-Clause */

/* One question at a time, so that it is no burden however many rooms there are; what cannot be had now is asked for next time. */

#include "redis/census.h"

#include <stdlib.h>

struct census {
    struct redis_rooms *rooms;
    bool (*found)(void *context, struct span room);
    void (*described)(void *context, const struct engine_call *answer);
    void *context;

    bool is_busy, has_begun;
    uint64_t begun_ms;
    uint32_t at; /* of the list */
    struct engine_list list;
    struct engine_call call;
    struct texts texts;
    struct room_id ids[];
};

static void ask(struct census *census, enum engine_op op, struct span room,
                void (*done)(struct engine_call *call));
static void listed(struct engine_call *call);
static void look_on(struct census *census);
static void answered(struct engine_call *call);

struct census *census_new(struct redis_rooms *rooms, uint32_t most,
                          bool (*found)(void *context, struct span room),
                          void (*described)(void *context, const struct engine_call *answer), void *context)
{
    struct census *census = calloc(1, sizeof(*census) + most * sizeof(struct room_id));

    if (census == NULL)
        return NULL;
    census->rooms = rooms;
    census->found = found;
    census->described = described;
    census->context = context;
    census->list = (struct engine_list){.ids = census->ids, .size = most};
    return census;
}

void census_free(struct census *census)
{
    free(census);
}

void census_tick(struct census *census, uint64_t now_ms)
{
    if (census->is_busy || (census->has_begun && now_ms - census->begun_ms < CENSUS_MS))
        return;
    census->is_busy = census->has_begun = true;
    census->begun_ms = now_ms;
    ask(census, ENGINE_ROOMS, SPAN(""), listed);
}

static void ask(struct census *census, enum engine_op op, struct span room,
                void (*done)(struct engine_call *call))
{
    census->call = (struct engine_call){.op = op,
                                        .room = room,
                                        .list = census->list,
                                        .texts = &census->texts,
                                        .done = done,
                                        .context = census};
    redis_submit(census->rooms, &census->call);
    redis_flush(census->rooms);
}

static void listed(struct engine_call *call)
{
    struct census *census = call->context;

    census->is_busy = call->error == ERROR_NONE;
    census->list.count = call->list.count;
    census->at = 0;
    if (census->is_busy)
        look_on(census);
}

static struct span name_at(const struct census *census, uint32_t i)
{
    return (struct span){census->ids[i].name, census->ids[i].len};
}

static void look_on(struct census *census)
{
    while (census->at < census->list.count && !census->found(census->context, name_at(census, census->at)))
        census->at++;
    if (census->at < census->list.count)
        ask(census, ENGINE_FIGURES, name_at(census, census->at), answered);
    else
        census->is_busy = false;
}

/* A room that has gone meanwhile is no reason to end. */
static void answered(struct engine_call *call)
{
    struct census *census = call->context;

    if (call->error == ERROR_NONE)
        census->described(census->context, call);
    census->at++;
    if (call->error == ERROR_ENGINE_UNAVAILABLE)
        census->is_busy = false;
    else
        look_on(census);
}
