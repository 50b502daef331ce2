/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Most calls go straight to the server and back. What is added here is what a worker must do beside that, room by room:
 *
 * Chores. One of a room is under way at a time, and when it is done the next is chosen (room_go_on), in this order: what calls
 * wait for, then what the tick brings. After one that failed nothing is sent before the next call or tick: so a server that is away
 * is asked again ten times a second and not more often, and a transport that ends everything is given nothing new.
 *
 * Making rooms. Everybody who is told that their room is not there waits while it is made, once, and asks again, once. A room that
 * somebody deleted is told from one that the server forgot by the registry, which remembers the former: what is still known here of
 * a deleted room is of no use to anybody. Whoever ticks it finds out first, and makes it while it is remembered: a worker that has
 * only just begun knows nothing of it, and would make another.
 *
 * The registry. A room is registered before it is made and unregistered before it is deleted. In between a list of rooms names one
 * that there is not, or lacks one that is about to go, but a room is never left that nobody can find. Whoever ticks a room
 * registers it again now and then, for in a cluster the registry is on one server and the room on another, and each may be lost.
 */

#include "redis/redis_engine.h"

#include "base/must.h"
#include "redis/census.h"
#include "redis/notebook.h"
#include "redis/rooms.h"
#include "redis/setup.h"

#include <stdlib.h>

#define NOTES_MORE            64 /* about rooms beyond rooms_max: those that there are not, or not yet */
#define ROOMS_FULL_RETRY_SEC  60
#define UNAVAILABLE_RETRY_SEC 5
#define REGISTER_AGAIN_MS     60000
#define REMEMBERED_MS         60000 /* what is known of a room that nobody asks about here is at most so old */
#define HELD_MOST_MS          2000  /* that calls wait at the beginning */
#define HALL_AGAIN_MS         1000 /* between two reports of people who wait in a hall, which hold for some seconds */

struct redis_engine {
    struct engine engine; /* first */
    struct redis_engine_options options;
    struct redis_rooms *rooms;
    struct notebook *notebook;
    uint64_t now_ms; /* as the last tick said */
    uint32_t waiting;
    bool is_set_up;        /* or it was tried */
    struct call_list held; /* until then */
    uint64_t begun_ms;     /* the first tick; 0: there was none */
    struct setup *setup;
    struct census *census;
};

static void redis_engine_submit(struct engine *engine, struct engine_call *call);
static void redis_engine_tick(struct engine *engine, uint64_t now_ms);
static const char *redis_engine_trouble(struct engine *engine);

static void call_begin(struct redis_engine *redis, struct engine_call *call);
static void shop_take(struct redis_engine *redis, struct engine_call *call);
static void settings_ask(struct redis_engine *redis, struct engine_call *call);
static void wait_in(struct redis_engine *redis, struct engine_call *call);
static void call_send(struct redis_engine *redis, struct engine_call *call);
static void call_answered(struct engine_call *call);
static void call_missed(struct redis_engine *redis, struct engine_call *call);
static void call_refuse(struct engine_call *call, enum error error);
static void call_end(struct engine_call *call);

static void room_heard(struct redis_engine *redis, const struct engine_call *call);
static void room_wake(struct note *note);
static void room_forget(struct note *note);
static void room_go_on(struct note *note);
static bool room_do_next(struct note *note);

static void setup_tried(void *context);
static void room_brought(void *context, struct span room);
static bool room_found(void *context, struct span room);
static void room_described(void *context, const struct engine_call *answer);

static struct redis_engine *redis_of(struct engine *engine)
{
    return (struct redis_engine *)engine;
}

struct engine *redis_engine_new(const struct redis_engine_options *options)
{
    struct redis_engine *redis = calloc(1, sizeof(*redis));

    if (redis == NULL)
        return NULL;
    redis->engine = (struct engine){redis_engine_submit, redis_engine_tick, redis_engine_trouble, NULL};
    redis->options = *options;
    redis->rooms = redis_rooms_new(options->transport);
    redis->notebook = notebook_new(options->rooms_max + NOTES_MORE);
    redis->setup = setup_new(redis->rooms, &redis->options, room_brought, setup_tried, redis);
    redis->is_set_up = options->room_count == 0;
    redis->census =
        census_new(redis->rooms, options->rooms_max + NOTES_MORE, room_found, room_described, redis);
    if (redis->rooms != NULL && redis->notebook != NULL && redis->setup != NULL && redis->census != NULL)
        return &redis->engine;
    redis_engine_free(&redis->engine);
    return NULL;
}

void redis_engine_free(struct engine *engine)
{
    struct redis_engine *redis = redis_of(engine);

    must(redis->waiting == 0);
    if (redis->rooms != NULL)
        redis_rooms_free(redis->rooms);
    if (redis->notebook != NULL)
        notebook_free(redis->notebook);
    if (redis->setup != NULL)
        setup_free(redis->setup);
    if (redis->census != NULL)
        census_free(redis->census);
    free(redis);
}

uint32_t redis_engine_waiting(const struct engine *engine)
{
    return ((const struct redis_engine *)engine)->waiting;
}

void redis_engine_flush(struct engine *engine)
{
    redis_gather(redis_of(engine)->rooms);
}

static const char *redis_engine_trouble(struct engine *engine)
{
    const struct redis_engine_options *options = &redis_of(engine)->options;

    return options->trouble == NULL ? NULL : options->trouble(options->context);
}

/* ---- calls ---- */

static void redis_engine_submit(struct engine *engine, struct engine_call *call)
{
    struct redis_engine *redis = redis_of(engine);

    call->error = ERROR_NONE;
    call->retry_after_sec = 0;
    call->is_again = false;
    call->engine = engine;
    call->told = call->done;
    redis->waiting++;
    if (call->op == ENGINE_SHOP)
        shop_take(redis, call);
    else if (redis->is_set_up)
        call_begin(redis, call);
    else {
        call_list_add(&redis->held, call);
        setup_tick(redis->setup, redis->now_ms);
    }
}

/* What the file says holds from the first call on, if the server can be reached. */
static void setup_tried(void *context)
{
    struct redis_engine *redis = context;
    struct engine_call *call;

    redis->is_set_up = true;
    while ((call = call_list_take(&redis->held)) != NULL)
        call_begin(redis, call);
    redis_flush(redis->rooms);
}

static void call_begin(struct redis_engine *redis, struct engine_call *call)
{
    if (call->op == ENGINE_SETTINGS)
        settings_ask(redis, call);
    else if (call->op == ENGINE_HEARTBEAT || call->op == ENGINE_DELETE ||
             (call->op == ENGINE_PUT && call->put.version == 0))
        wait_in(redis, call);
    else
        call_send(redis, call);
}

static struct note *note_open(struct redis_engine *redis, struct span room)
{
    struct note *note = notebook_open(redis->notebook, room);

    if (note != NULL)
        note->engine = redis;
    return note;
}

static void call_send(struct redis_engine *redis, struct engine_call *call)
{
    call->done = call_answered;
    redis_submit(redis->rooms, call);
}

/* Those that something must be done for first, and heartbeats, which have time. */
static void wait_in(struct redis_engine *redis, struct engine_call *call)
{
    struct note *note = note_open(redis, call->room);

    if (note == NULL && call->op == ENGINE_HEARTBEAT)
        call_send(redis, call);
    else if (note == NULL)
        call_refuse(call, ERROR_ENGINE_UNAVAILABLE);
    else if (call->op == ENGINE_HEARTBEAT)
        call_list_add(&note->beating, call);
    else {
        call_list_add(call->op == ENGINE_DELETE ? &note->deleting : &note->putting, call);
        room_go_on(note);
    }
}

static void call_answered(struct engine_call *call)
{
    struct redis_engine *redis = redis_of(call->engine);

    if (call->error == ERROR_ROOM_NOT_FOUND && call->op != ENGINE_ROOMS) {
        call_missed(redis, call);
        return;
    }
    if (call->error != ERROR_ENGINE_UNAVAILABLE && call->op != ENGINE_ROOMS)
        room_heard(redis, call);
    call_end(call);
}

static const struct redis_room_conf *conf_of(const struct redis_engine *redis, struct span room)
{
    for (size_t i = 0; i < redis->options.room_count; i++)
        if (span_equal(redis->options.rooms[i].name, room))
            return &redis->options.rooms[i];
    return NULL;
}

static bool makes_its_room(const struct redis_engine *redis, const struct engine_call *call)
{
    return call->op == ENGINE_JOIN && redis->options.makes_rooms;
}

/* What is known of the room makes it the one that it was. Without its settings it would be another. */
static bool is_remembered(const struct redis_engine *redis, const struct note *note)
{
    return note != NULL && note->epochs.len > 0 && (note->has_settings || redis->options.makes_rooms);
}

/* The others come with a ticket or a pass: where its room is gone, so is what it stands for. */
static enum error not_found(const struct engine_call *call)
{
    return call->op == ENGINE_JOIN || call->op >= ENGINE_FIGURES ? ERROR_ROOM_NOT_FOUND
                                                                 : ERROR_TOKEN_NOT_FOUND;
}

static void call_missed(struct redis_engine *redis, struct engine_call *call)
{
    struct note *note = notebook_find(redis->notebook, call->room);
    bool may_be_made =
        makes_its_room(redis, call) || conf_of(redis, call->room) != NULL || is_remembered(redis, note);

    if (call->op == ENGINE_DELETE && note != NULL)
        room_forget(note);
    if (call->op == ENGINE_DELETE || call->is_again || !may_be_made) {
        call_refuse(call, not_found(call));
        return;
    }
    note = note_open(redis, call->room);
    if (note == NULL) {
        call_refuse(call, ERROR_ENGINE_UNAVAILABLE);
        return;
    }
    call_list_add(&note->missing, call);
    room_go_on(note);
}

static void call_refuse(struct engine_call *call, enum error error)
{
    /* A registry that is full is no answer to somebody who does not come to make a room. */
    bool asks_for_room = call->op == ENGINE_JOIN || call->op == ENGINE_PUT;

    call->error = error == ERROR_QUEUE_FULL && !asks_for_room ? ERROR_ENGINE_UNAVAILABLE : error;
    call->retry_after_sec = call->error == ERROR_QUEUE_FULL           ? ROOMS_FULL_RETRY_SEC
                            : call->error == ERROR_ENGINE_UNAVAILABLE ? UNAVAILABLE_RETRY_SEC
                                                                      : 0;
    call_end(call);
}

static void call_end(struct engine_call *call)
{
    struct redis_engine *redis = redis_of(call->engine);

    must(redis->waiting > 0);
    redis->waiting--;
    call->done = call->told;
    call->done(call);
}

/* ---- settings ---- */

static void settings_answered(struct engine_call *call);

/*
 * Whoever asks while somebody is asking waits behind them: in a list that hangs on the call under way. So what a change makes
 * stale can be left to those who asked before it.
 */
static void settings_ask(struct redis_engine *redis, struct engine_call *call)
{
    struct note *note = note_open(redis, call->room);

    call->next = NULL;
    if (note != NULL && note->is_fresh && redis->now_ms - note->heard_ms < REDIS_SETTINGS_MS) {
        call->settings = note->settings;
        call_end(call);
    } else if (note != NULL && note->asker != NULL) {
        call->next = note->asker->next;
        note->asker->next = call;
    } else {
        if (note != NULL)
            note->asker = call;
        call->done = settings_answered;
        redis_submit(redis->rooms, call);
    }
}

static void settings_note(struct redis_engine *redis, struct note *note, const struct settings *settings)
{
    note->settings = *settings;
    note->has_settings = note->is_fresh = true;
    note->heard_ms = redis->now_ms;
}

static void texts_note(struct redis_engine *redis, struct note *note, const struct texts *texts)
{
    note_set_texts(note, texts);
    note->has_texts = true;
    note->texts_ms = redis->now_ms;
}

/* The answer for one of those who waited for it. */
static void settings_tell(struct engine_call *asker, const struct engine_call *answer)
{
    asker->error = answer->error;
    asker->retry_after_sec = answer->retry_after_sec;
    asker->settings = answer->settings;
    if (asker->error == ERROR_ROOM_NOT_FOUND)
        call_missed(redis_of(asker->engine), asker);
    else
        call_end(asker);
}

static void settings_answered(struct engine_call *call)
{
    struct redis_engine *redis = redis_of(call->engine);
    struct note *note = notebook_find(redis->notebook, call->room);
    struct engine_call *behind = call->next, *next;

    if (note != NULL && note->asker == call) {
        note->asker = NULL;
        if (call->error == ERROR_NONE)
            settings_note(redis, note, &call->settings);
    }
    for (; behind != NULL; behind = next) {
        next = behind->next;
        settings_tell(behind, call);
    }
    settings_tell(call, call);
}

/* What is being asked for may be what was before. */
static void settings_doubt(struct note *note)
{
    note->is_fresh = false;
    note->asker = NULL;
}

/* ---- the shop ---- */

/* The gate has asked for the settings of any room whose sessions it sees. */
static bool is_followed(const struct note *note)
{
    return note != NULL && note->has_settings && note->settings.pace == PACE_AUTO;
}

/*
 * Whether the room may be one that follows its hall. Nobody who waits there asks about the lobby, so what is known of it may be
 * what was before, or nothing: then the room is told, and knows itself whether it cares.
 */
static bool may_follow_hall(const struct redis_engine *redis, const struct note *note)
{
    return !note->has_settings || note->settings.pace == PACE_HALL ||
           redis->now_ms - note->heard_ms >= HALL_AGAIN_MS;
}

static void shop_take(struct redis_engine *redis, struct engine_call *call)
{
    struct note *note = call->shop->left_alone_ms > 0 ? note_open(redis, call->room)
                                                      : notebook_find(redis->notebook, call->room);

    if (is_followed(note) ||
        (note != NULL && call->shop->left_alone_ms > 0 && may_follow_hall(redis, note))) {
        shop_report_add_all(&note->shop, call->shop);
        note->has_shop = true;
    }
    call_end(call);
}

static bool shop_is_due(const struct note *note)
{
    return note->has_shop &&
           (is_followed(note) || note->shop_ms == 0 || note->engine->now_ms - note->shop_ms >= HALL_AGAIN_MS);
}

/* ---- what is known of a room ---- */

static void figures_heard(struct redis_engine *redis, struct note *note, const struct engine_call *call)
{
    const uint64_t *in = call->figures.in_state;

    settings_note(redis, note, &call->settings);
    if (call->texts != NULL)
        texts_note(redis, note, call->texts);
    if (in[TICKET_WAITING] + in[TICKET_AWAY] + in[TICKET_CALLED] + in[TICKET_ENTERED] + in[TICKET_ACTIVE] > 0)
        room_wake(note);
}

static void put_heard(struct redis_engine *redis, struct note *note, const struct engine_call *call)
{
    settings_doubt(note);
    if (call->error == ERROR_NONE) {
        note->settings = call->put.settings;
        note->has_settings = true;
        if (call->put.texts != NULL)
            texts_note(redis, note, call->put.texts);
    }
    room_wake(note);
}

/* The server has such a room, and has answered this call about it. */
static void room_heard(struct redis_engine *redis, const struct engine_call *call)
{
    struct note *note = note_open(redis, call->room);

    if (note == NULL)
        return;
    if (call->op == ENGINE_FIGURES)
        figures_heard(redis, note, call);
    else if (call->op == ENGINE_PUT)
        put_heard(redis, note, call);
    else if (call->op == ENGINE_DELETE)
        room_forget(note);
    else
        room_wake(note);
}

/* By the setup: what is known of its settings may be what was before. */
static void room_brought(void *context, struct span room)
{
    struct note *note = note_open(context, room);

    if (note == NULL)
        return;
    settings_doubt(note);
    room_wake(note);
}

/* By the census: a tick tells its epochs, and finds people whom nobody ticks any more. */
static bool room_found(void *context, struct span room)
{
    const struct redis_engine *redis = context;
    struct note *note = note_open(context, room);

    if (note == NULL)
        return false;
    if (note->epochs.len == 0 || redis->now_ms - note->ticked_ms >= REMEMBERED_MS)
        room_wake(note);
    return !note->has_settings || redis->now_ms - note->heard_ms >= REMEMBERED_MS || !note->has_texts ||
           redis->now_ms - note->texts_ms >= REMEMBERED_MS;
}

static void room_described(void *context, const struct engine_call *answer)
{
    struct note *note = note_open(context, answer->room);

    if (note == NULL)
        return;
    settings_note(context, note, &answer->settings);
    texts_note(context, note, answer->texts);
}

static void room_wake(struct note *note)
{
    note->is_awake = note->was_asked = true;
}

static void room_forget(struct note *note)
{
    settings_doubt(note);
    note->has_settings = note->has_texts = note->is_awake = note->has_shop = false;
    note->epochs.len = 0;
}

/* ---- chores ---- */

static void unregistered(struct redis_chore *chore);
static void registered_for_put(struct redis_chore *chore);
static void registered_for_making(struct redis_chore *chore);
static void made(struct redis_chore *chore);
static void shop_told(struct redis_chore *chore);
static void registered_again(struct redis_chore *chore);
static void ticked(struct redis_chore *chore);

/* A chore may be done before it is submitted: then the one who submitted it goes on. */
static void room_go_on(struct note *note)
{
    if (note->is_going_on)
        return;
    note->is_going_on = true;
    while (!note->is_busy && room_do_next(note))
        ;
    note->is_going_on = false;
}

static bool chore_submit(struct note *note, struct redis_chore chore)
{
    note->chore = chore;
    note->chore.room = note_name(note);
    note->chore.context = note;
    note->chore.node = note->engine->options.node;
    note->chore.rooms_max = note->engine->options.rooms_max;
    note->is_busy = true;
    redis_submit_chore(note->engine->rooms, &note->chore);
    return true;
}

/* It should be there, unless somebody deleted it. */
static bool is_expected(const struct note *note)
{
    return !note->is_anew && (note->epochs.len > 0 || conf_of(note->engine, note_name(note)) != NULL);
}

static const struct settings *settings_to_make(const struct note *note)
{
    const struct redis_engine *redis = note->engine;
    const struct redis_room_conf *conf = conf_of(redis, note_name(note));

    if (note->is_anew)
        return &redis->options.made_settings;
    if (note->has_settings)
        return &note->settings;
    return conf != NULL ? &conf->settings : &redis->options.made_settings;
}

/* The same of the texts, of which those that were never heard of may be none. */
static const struct texts *texts_to_make(const struct note *note)
{
    const struct redis_engine *redis = note->engine;
    const struct redis_room_conf *conf = conf_of(redis, note_name(note));

    if (note->is_anew)
        return redis->options.made_texts;
    if (note->has_texts)
        return note->texts;
    return conf != NULL ? conf->texts : redis->options.made_texts;
}

static bool make_next(struct note *note)
{
    if (!note->is_registered)
        return chore_submit(note, (struct redis_chore){
                                      .kind = CHORE_REGISTER,
                                      .since_ms = is_expected(note) ? 0 : CHORE_ANYWAY,
                                      .done = registered_for_making,
                                  });
    return chore_submit(note, (struct redis_chore){
                                  .kind = CHORE_MAKE,
                                  .settings = settings_to_make(note),
                                  .texts = texts_to_make(note),
                                  .epochs = note->epochs.len > 0 ? &note->epochs : NULL,
                                  .done = made,
                              });
}

static bool tick_next(struct note *note)
{
    uint64_t now_ms = note->engine->now_ms;

    if (shop_is_due(note)) {
        note->has_shop = false;
        note->shop_ms = now_ms;
        note->shop_sent = note->shop;
        note->shop = (struct shop_report){0};
        return chore_submit(
            note, (struct redis_chore){.kind = CHORE_SHOP, .shop = &note->shop_sent, .done = shop_told});
    }
    if (!note->is_awake)
        return false;
    if (note->is_ours && now_ms - note->registered_ms >= REGISTER_AGAIN_MS) {
        note->registered_ms = now_ms;
        return chore_submit(note, (struct redis_chore){.kind = CHORE_REGISTER, .done = registered_again});
    }
    note->is_turn = note->was_asked = false;
    note->ticked_ms = now_ms;
    return chore_submit(note,
                        (struct redis_chore){.kind = CHORE_TICK, .epochs = &note->epochs, .done = ticked});
}

/* Whether something was submitted. */
static bool room_do_next(struct note *note)
{
    if (note->deleting.first != NULL)
        return chore_submit(note, (struct redis_chore){.kind = CHORE_UNREGISTER, .done = unregistered});
    if (note->putting.first != NULL)
        return chore_submit(note, (struct redis_chore){.kind = CHORE_REGISTER,
                                                       .since_ms = CHORE_ANYWAY,
                                                       .done = registered_for_put});
    if (note->missing.first != NULL || note->is_missed)
        return make_next(note);
    return note->is_turn && tick_next(note);
}

/* Only now, when all that it brought is done: until then the note is this room's. */
static void chore_end(struct note *note)
{
    note->is_busy = false;
    room_go_on(note);
}

/* Sends all of them, or refuses them if there is an error. Those who come meanwhile are not among them. */
static void release(struct note *note, struct call_list *list, enum error error)
{
    struct redis_engine *redis = note->engine;
    struct call_list calls = *list;
    struct engine_call *call;

    *list = (struct call_list){NULL, NULL};
    while ((call = call_list_take(&calls)) != NULL)
        if (error != ERROR_NONE)
            call_refuse(call, error);
        else if (call->op == ENGINE_SETTINGS)
            settings_ask(redis, call);
        else
            call_send(redis, call);
    redis_flush(redis->rooms);
}

static void unregistered(struct redis_chore *chore)
{
    struct note *note = chore->context;

    release(note, &note->deleting, chore->error);
    chore_end(note);
}

static void registered_for_put(struct redis_chore *chore)
{
    struct note *note = chore->context;

    release(note, &note->putting, chore->error);
    chore_end(note);
}

static void making_end(struct note *note, enum error error)
{
    if (error == ERROR_QUEUE_FULL)
        note->is_awake = false; /* trying again would not help */
    note->is_registered = note->is_anew = note->is_missed = false;
    for (struct engine_call *call = note->missing.first; call != NULL; call = call->next)
        call->is_again = true;
    release(note, &note->missing, error);
}

/* Somebody deleted it: only those who may make another have something to wait for. */
static void making_begin_anew(struct note *note)
{
    struct call_list calls = note->missing;
    struct engine_call *call;

    room_forget(note);
    note->is_missed = false;
    note->missing = (struct call_list){NULL, NULL};
    while ((call = call_list_take(&calls)) != NULL)
        if (makes_its_room(note->engine, call))
            call_list_add(&note->missing, call);
        else
            call_refuse(call, not_found(call));
    note->is_anew = note->missing.first != NULL;
}

static void registered_for_making(struct redis_chore *chore)
{
    struct note *note = chore->context;

    if (chore->error == ERROR_NONE) {
        note->is_registered = true;
        note->registered_ms = note->engine->now_ms;
    } else if (chore->error == ERROR_ROOM_NOT_FOUND && !note->is_anew)
        making_begin_anew(note);
    else
        making_end(note, chore->error);
    chore_end(note);
}

static void made(struct redis_chore *chore)
{
    struct note *note = chore->context;

    if (chore->error == ERROR_NONE)
        room_wake(note);
    making_end(note, chore->error);
    chore_end(note);
}

/* What did not arrive is not told again: what is seen next says more. A room that calls nobody for a while thaws with its ticks. */
static void shop_told(struct redis_chore *chore)
{
    struct note *note = chore->context;

    if (chore->error == ERROR_NONE && note->shop_sent.left_alone_ms > 0)
        room_wake(note);
    chore_end(note);
}

static void registered_again(struct redis_chore *chore)
{
    chore_end(chore->context);
}

static void ticked(struct redis_chore *chore)
{
    struct note *note = chore->context;

    note->wait_ms = 0;
    note->is_ours = false;
    if (chore->error == ERROR_ROOM_NOT_FOUND)
        note->is_awake = note->is_missed = is_remembered(note->engine, note);
    if (chore->error == ERROR_NONE) {
        /* In a room with nobody in it there is time, and it is enough that one ticks it. */
        bool may_sleep = chore->is_at_rest || (chore->is_empty && chore->wait_ms > 0);
        note->is_awake = !may_sleep || note->was_asked;
        note->is_empty = chore->is_empty;
        note->wait_ms = chore->wait_ms;
        note->is_ours = chore->wait_ms == 0;
        note->is_turn = chore->is_behind && note->is_ours;
    }
    chore_end(note);
}

/* ---- ticks ---- */

/* Timers are not exact: what comes a little early is in time. */
static bool is_due(const struct note *note, uint64_t now_ms)
{
    uint64_t wait_ms = note->wait_ms > ROOM_TICK_MS ? note->wait_ms : ROOM_TICK_MS;

    if (note->is_ours && note->is_empty && !note->was_asked)
        wait_ms = CHORE_LEASE_MS - ROOM_TICK_MS;
    return now_ms - note->ticked_ms >= wait_ms - ROOM_TICK_MS / 2;
}

static void note_tick(struct redis_engine *redis, struct note *note)
{
    struct call_list beating = note->beating;
    struct engine_call *call;

    note->beating = (struct call_list){NULL, NULL};
    while ((call = call_list_take(&beating)) != NULL)
        call_send(redis, call);
    note->is_turn = shop_is_due(note) || (note->is_awake && is_due(note, redis->now_ms));
    if (note->is_turn)
        room_go_on(note);
}

static void redis_engine_tick(struct engine *engine, uint64_t now_ms)
{
    struct redis_engine *redis = redis_of(engine);

    redis->now_ms = now_ms;
    setup_tick(redis->setup, now_ms);
    if (redis->begun_ms == 0)
        redis->begun_ms = now_ms;
    if (!redis->is_set_up && now_ms - redis->begun_ms >= HELD_MOST_MS)
        setup_tried(redis); /* a slow server and many rooms: nobody waits for all of them */
    census_tick(redis->census, now_ms);
    for (uint32_t i = 0; i < notebook_count(redis->notebook); i++)
        note_tick(redis, notebook_at(redis->notebook, i));
    redis_flush(redis->rooms);
}
