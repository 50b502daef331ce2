/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One room after the other. Where it does not succeed the next is tried with the next tick, for another server may keep that; and
 * when all were tried, those that are left are tried again after a while.
 *
 * One that was deleted before the file was read comes back: somebody has begun anew with a file that names it. One that was deleted
 * since stays so, whichever worker begins when. The server's clock says when that was, so it should not be far from ours.
 */

#include "redis/setup.h"

#include <stdlib.h>

#define AGAIN_MS 1000

struct setup {
    struct redis_rooms *rooms;
    const struct redis_engine_options *options;
    void (*brought)(void *context, struct span room);
    void (*tried)(void *context); /* NULL: it was called */
    void *context;

    size_t left; /* how many are still to be brought */
    size_t at;   /* which one is being brought, or comes next */
    bool is_busy;
    bool has_begun;
    uint64_t begun_ms; /* this round */
    struct redis_chore chore;
    struct engine_call call;
    struct texts texts; /* that the room has */
    bool is_brought[];
};

static void go_on(struct setup *setup);
static void begin(struct setup *setup);
static void registered(struct redis_chore *chore);
static void made(struct redis_chore *chore);
static void looked(struct engine_call *call);
static void put(struct engine_call *call);
static void end(struct setup *setup, enum error error);

struct setup *setup_new(struct redis_rooms *rooms, const struct redis_engine_options *options,
                        void (*brought)(void *context, struct span room), void (*tried)(void *context),
                        void *context)
{
    struct setup *setup = calloc(1, sizeof(*setup) + options->room_count * sizeof(setup->is_brought[0]));

    if (setup == NULL)
        return NULL;
    setup->rooms = rooms;
    setup->options = options;
    setup->brought = brought;
    setup->tried = tried;
    setup->context = context;
    setup->left = setup->at = options->room_count;
    return setup;
}

void setup_free(struct setup *setup)
{
    free(setup);
}

void setup_tick(struct setup *setup, uint64_t now_ms)
{
    bool is_round_over = setup->at == setup->options->room_count;

    if (setup->is_busy || setup->left == 0)
        return;
    if (is_round_over && setup->has_begun && now_ms - setup->begun_ms < AGAIN_MS)
        return;
    if (is_round_over) {
        setup->has_begun = true;
        setup->begun_ms = now_ms;
        setup->at = 0;
    }
    go_on(setup);
}

static void go_on(struct setup *setup)
{
    while (setup->at < setup->options->room_count && setup->is_brought[setup->at])
        setup->at++;
    if (setup->at < setup->options->room_count)
        begin(setup);
}

static const struct redis_room_conf *conf_at(const struct setup *setup)
{
    return &setup->options->rooms[setup->at];
}

static void begin(struct setup *setup)
{
    setup->is_busy = true;
    setup->chore = (struct redis_chore){
        .kind = CHORE_REGISTER,
        .room = conf_at(setup)->name,
        .rooms_max = setup->options->rooms_max,
        .since_ms = setup->options->since_ms,
        .done = registered,
        .context = setup,
    };
    redis_submit_chore(setup->rooms, &setup->chore);
}

static void registered(struct redis_chore *chore)
{
    struct setup *setup = chore->context;
    bool is_deleted = chore->error == ERROR_ROOM_NOT_FOUND;

    if (chore->error != ERROR_NONE) {
        end(setup, is_deleted ? ERROR_NONE : chore->error);
        return;
    }
    chore->kind = CHORE_MAKE;
    chore->settings = &conf_at(setup)->settings;
    chore->texts = conf_at(setup)->texts;
    chore->done = made;
    redis_submit_chore(setup->rooms, chore);
}

static void call_submit(struct setup *setup, void (*done)(struct engine_call *call))
{
    setup->call.done = done;
    redis_submit(setup->rooms, &setup->call);
    redis_flush(setup->rooms);
}

static void made(struct redis_chore *chore)
{
    struct setup *setup = chore->context;

    if (chore->error != ERROR_NONE) {
        end(setup, chore->error);
        return;
    }
    setup->call = (struct engine_call){
        .op = ENGINE_FIGURES, .room = chore->room, .texts = &setup->texts, .context = setup};
    call_submit(setup, looked);
}

static bool has_settings_of(const struct engine_call *call, const struct redis_room_conf *conf)
{
    return memcmp(&call->settings, &conf->settings, sizeof(conf->settings)) == 0 &&
           (conf->texts == NULL || memcmp(call->texts, conf->texts, sizeof(*conf->texts)) == 0);
}

/* What an operator has changed stays, and settings that the room has already are no change. */
static void looked(struct engine_call *call)
{
    struct setup *setup = call->context;
    const struct redis_room_conf *conf = conf_at(setup);
    bool is_right =
        call->error == ERROR_NONE && (call->figures.is_settings_from_api || has_settings_of(call, conf));

    if (call->error != ERROR_NONE || is_right) {
        end(setup, call->error);
        return;
    }
    call->op = ENGINE_PUT;
    call->put = (struct engine_put){
        .settings = conf->settings, .texts = conf->texts, .version = call->figures.settings_version};
    call_submit(setup, put);
}

static void put(struct engine_call *call)
{
    end(call->context, call->error);
}

static void tell_tried(struct setup *setup)
{
    void (*tried)(void *context) = setup->tried;

    setup->tried = NULL;
    if (tried != NULL)
        tried(setup->context);
}

static void end(struct setup *setup, enum error error)
{
    size_t at = setup->at++;

    setup->is_busy = false;
    if (error == ERROR_NONE) {
        setup->is_brought[at] = true;
        setup->left--;
        setup->brought(setup->context, setup->options->rooms[at].name);
        go_on(setup);
    }
    if (error != ERROR_NONE || setup->left == 0)
        tell_tried(setup);
}
