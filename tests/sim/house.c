/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A bare room is looked into directly: after every event everybody's state is read, and an engine asked that often would make
 * the simulator slow. So most runs have a bare room and some an engine.
 */

#include "house.h"

#include "base/memory.h"
#include "base/must.h"
#include "engine/local.h"
#include "room/state.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_PAGE   1
#define FIRST_PAGE  (ROOM_PAGE + ROOM_BYTES / PAGE_BYTES)
#define NAME        SPAN("sale")
#define MOST_ONCE   1000 /* milliseconds that one tick may count */
#define LEAST_ONCE  100  /* fewer than these the engine lets come together first */
#define WORKERS     3
#define JUMPED_BACK 1000 /* a clock this far behind is not just another worker's */

static void open_room(struct house *house, uint32_t pages, const struct settings *settings)
{
    house->room =
        room_init(house->memory + (size_t)ROOM_PAGE * PAGE_BYTES, house->memory, NAME, 7, settings, NULL);
    struct memory *memory = room_memory(house->room);

    for (uint32_t page = 0; page < pages; page++) {
        memory_give(memory, FIRST_PAGE + page, memory);
        memory_commit(memory);
    }
}

static void open_engine(struct house *house, const struct settings *settings)
{
    struct local_zone_options options = {.rooms_max = 1, .settings = *settings};

    house->zone = local_zone_init(house->memory, house->bytes, &options);
    must(local_zone_put_room(house->zone, NAME, settings, NULL) == ERROR_NONE);
    house->engine = local_engine_new(house->zone);
    must(house->engine != NULL);
    house->wall_ms = house->counted_ms = 1U << 30;
    house->engine->tick(house->engine, house->wall_ms);
}

void house_open(struct house *house, bool has_engine, uint32_t pages, const struct settings *settings)
{
    must(pages >= HOUSE_LEAST_PAGES);
    *house = (struct house){.bytes = (size_t)(FIRST_PAGE + pages) * PAGE_BYTES};
    if (has_engine)
        house->bytes = local_zone_least_bytes(1) + (size_t)(pages - HOUSE_LEAST_PAGES) * PAGE_BYTES;
    house->memory = aligned_alloc(PAGE_BYTES, house->bytes);
    must(house->memory != NULL);
    memset(house->memory, 0, house->bytes);
    if (has_engine)
        open_engine(house, settings);
    else
        open_room(house, pages, settings);
}

void house_close(struct house *house)
{
    if (house->engine != NULL)
        local_engine_free(house->engine);
    free(house->memory);
}

static void be_done(struct engine_call *call)
{
    (void)call;
}

void house_submit(struct house *house, struct engine_call *call)
{
    call->room = NAME;
    call->done = be_done;
    if (call->op == ENGINE_PUT)
        call->put.version = house_figures(house).settings_version;
    if (house->engine != NULL) {
        engine_submit(house->engine, call);
        return;
    }
    call->retry_after_sec = 0;
    call->error = engine_run(house->room, call);
}

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

int64_t house_tick(struct house *house, int64_t elapsed_ms)
{
    if (house->engine == NULL) {
        /* Time that goes back never reaches a room: its owner knows no negative time. */
        uint64_t forward_ms = elapsed_ms > 0 ? (uint64_t)elapsed_ms : 0;
        room_tick(house->room, forward_ms < UINT32_MAX ? (uint32_t)forward_ms : UINT32_MAX);
        return at_most((int64_t)forward_ms, MOST_ONCE);
    }
    house->wall_ms += (uint64_t)elapsed_ms;
    int64_t counts_ms = -1;
    /* FAILURES 17: every worker ticks, some a little behind; together they count the time once. */
    for (uint64_t worker = 0; worker < WORKERS; worker++) {
        house->engine->tick(house->engine, house->wall_ms - worker);
        int64_t since_ms = (int64_t)(house->wall_ms - worker - house->counted_ms);
        if (since_ms >= LEAST_ONCE)
            counts_ms = at_most(since_ms, MOST_ONCE);
        if (since_ms >= LEAST_ONCE || since_ms < -JUMPED_BACK)
            house->counted_ms = house->wall_ms - worker;
    }
    return counts_ms;
}

enum ticket_state house_state(struct house *house, const struct place *place)
{
    if (house->engine == NULL) {
        const struct ticket *ticket = line_find(&house->room->line, &house->room->memory, place->count);
        return ticket == NULL ? TICKET_DONE : (enum ticket_state)ticket->state;
    }
    struct engine_call call = {.op = ENGINE_LOOK, .place = *place};
    house_submit(house, &call);
    return call.error == ERROR_NONE ? call.standing.state : TICKET_DONE;
}

struct figures house_figures(struct house *house)
{
    if (house->engine == NULL)
        return room_figures(house->room);
    struct engine_call call = {.op = ENGINE_FIGURES};
    house_submit(house, &call);
    must(call.error == ERROR_NONE);
    return call.figures;
}

uint32_t house_spare(struct house *house)
{
    return house->engine == NULL ? room_memory(house->room)->spare_count : UINT32_MAX;
}

void house_check(struct house *house)
{
    if (house->engine != NULL)
        local_zone_check(house->zone);
    else
        must(room_check(house->room) == house->bytes / PAGE_BYTES - FIRST_PAGE);
}
