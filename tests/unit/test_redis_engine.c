/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker does beside handing calls on, without any server: the test stands where redis/rooms.c does. It keeps what it is
 * given, and answers it when and how it likes.
 */
#include "rig.h"

#include "redis/redis_engine.h"
#include "redis/rooms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENT_MAX  256
#define CALLS_MAX 256

/* ---- the test as the rooms ---- */

struct sent {
    struct engine_call *call; /* or */
    struct redis_chore *chore;
};

static struct redis_rooms {
    struct sent sent[SENT_MAX];
    uint32_t count, taken;
} wire;

/* The rooms that there are; the engine's own question for them is answered at once. */
static const char *registry[4];
static uint32_t registered, listed;

struct redis_rooms *redis_rooms_new(struct transport *transport)
{
    (void)transport;
    registered = listed = 0;
    wire = (struct redis_rooms){0};
    return &wire;
}

void redis_rooms_free(struct redis_rooms *rooms)
{
    assert_int_equal(rooms->taken, rooms->count);
}

static void keep(struct redis_rooms *rooms, struct sent sent)
{
    assert_true(rooms->count < SENT_MAX);
    rooms->sent[rooms->count++] = sent;
}

static void list_rooms(struct engine_call *call)
{
    listed++;
    assert_true(call->list.size >= registered);
    for (uint32_t i = 0; i < registered; i++) {
        call->list.ids[i].len = (uint32_t)strlen(registry[i]);
        memcpy(call->list.ids[i].name, registry[i], strlen(registry[i]));
    }
    call->list.count = registered;
    call->error = ERROR_NONE;
    call->done(call);
}

void redis_submit(struct redis_rooms *rooms, struct engine_call *call)
{
    if (call->op == ENGINE_ROOMS && call->list.size > 0)
        list_rooms(call);
    else
        keep(rooms, (struct sent){call, NULL});
}

void redis_submit_chore(struct redis_rooms *rooms, struct redis_chore *chore)
{
    keep(rooms, (struct sent){NULL, chore});
}

void redis_flush(struct redis_rooms *rooms)
{
    (void)rooms;
}

void redis_gather(struct redis_rooms *rooms)
{
    (void)rooms;
}

static uint32_t sent(void)
{
    return wire.count - wire.taken;
}

static struct sent next_sent(void)
{
    assert_true(sent() > 0);
    return wire.sent[wire.taken++];
}

/* The oldest that was sent must be this. */
static struct engine_call *next_call(enum engine_op op)
{
    struct engine_call *call = next_sent().call;

    assert_non_null(call);
    assert_int_equal(call->op, op);
    return call;
}

static struct redis_chore *next_chore(enum redis_chore_kind kind)
{
    struct redis_chore *chore = next_sent().chore;

    assert_non_null(chore);
    assert_int_equal(chore->kind, kind);
    return chore;
}

static void answer(struct engine_call *call, enum error error)
{
    call->error = error;
    call->done(call);
}

static void chore_done(struct redis_chore *chore, enum error error)
{
    chore->error = error;
    chore->done(chore);
}

/* ---- calls ---- */

#define NODE      77
#define SINCE_MS  5
#define ROOMS_MAX 2

static struct redis_room_conf conf[2];

struct desk {
    struct engine *engine;
    struct engine_call call[CALLS_MAX];
    uint32_t done[CALLS_MAX];
    uint32_t calls;
};

static struct settings with_rate(uint32_t rate_milli)
{
    struct settings settings = settings_default();

    settings.rate_milli = rate_milli;
    return settings;
}

static const char *say_trouble(void *context)
{
    return context;
}

static struct desk *desk_new(size_t configured, bool makes_rooms)
{
    static char trouble[] = "nobody is there";
    struct desk *desk = calloc(1, sizeof(*desk));

    conf[0] = (struct redis_room_conf){SPAN("hall"), with_rate(1000), NULL};
    conf[1] = (struct redis_room_conf){SPAN("lobby"), with_rate(2000), NULL};
    struct redis_engine_options options = {
        .trouble = say_trouble,
        .context = trouble,
        .node = NODE,
        .since_ms = SINCE_MS,
        .rooms_max = ROOMS_MAX,
        .makes_rooms = makes_rooms,
        .made_settings = with_rate(3000),
        .rooms = conf,
        .room_count = configured,
    };
    assert_non_null(desk);
    desk->engine = redis_engine_new(&options);
    assert_non_null(desk->engine);
    return desk;
}

static void desk_free(struct desk *desk)
{
    redis_engine_free(desk->engine);
    free(desk);
}

static void count_done(struct engine_call *call)
{
    (*(uint32_t *)call->context)++;
}

static struct engine_call *ask_with(struct desk *desk, struct engine_call asked, const char *room)
{
    struct engine_call *call = &desk->call[desk->calls];

    assert_true(desk->calls < CALLS_MAX);
    *call = asked;
    call->room = span_of(room);
    call->done = count_done;
    call->context = &desk->done[desk->calls++];
    engine_submit(desk->engine, call);
    return call;
}

static struct engine_call *ask(struct desk *desk, enum engine_op op, const char *room)
{
    return ask_with(desk, (struct engine_call){.op = op}, room);
}

static bool is_done(const struct engine_call *call)
{
    uint32_t done = *(uint32_t *)call->context;

    assert_true(done <= 1);
    assert_ptr_equal(call->done, done == 1 ? count_done : call->done);
    return done == 1;
}

static void tick(struct desk *desk, uint64_t now_ms)
{
    desk->engine->tick(desk->engine, now_ms);
}

/* The server has the room with these settings. */
static void answer_figures(uint32_t rate_milli, bool is_from_api)
{
    struct engine_call *call = next_call(ENGINE_FIGURES);

    call->figures = (struct figures){.settings_version = 4, .is_settings_from_api = is_from_api};
    call->settings = with_rate(rate_milli);
    if (call->texts != NULL)
        *call->texts = (struct texts){0};
    answer(call, ERROR_NONE);
}

/* To the one who asks for texts, too. */
static void answer_texts(uint32_t rate_milli, const char *title)
{
    struct engine_call *call = next_call(ENGINE_FIGURES);

    call->figures = (struct figures){.settings_version = 4};
    call->settings = with_rate(rate_milli);
    *call->texts = (struct texts){0};
    snprintf(call->texts->title, sizeof(call->texts->title), "%s", title);
    answer(call, ERROR_NONE);
}

static void bring(const char *room, uint32_t rate_milli)
{
    struct redis_chore *chore = next_chore(CHORE_REGISTER);

    assert_true(span_equal(chore->room, span_of(room)));
    assert_true(chore->since_ms == SINCE_MS);
    assert_int_equal(chore->rooms_max, ROOMS_MAX);
    chore_done(chore, ERROR_NONE);
    chore = next_chore(CHORE_MAKE);
    assert_int_equal(chore->settings->rate_milli, rate_milli);
    chore_done(chore, ERROR_NONE);
}

/* One whose configured rooms are there. */
static struct desk *desk_set_up(size_t configured, bool makes_rooms)
{
    struct desk *desk = desk_new(configured, makes_rooms);

    tick(desk, 0);
    for (size_t i = 0; i < configured; i++) {
        bring(i == 0 ? "hall" : "lobby", conf[i].settings.rate_milli);
        answer_figures(conf[i].settings.rate_milli, false);
    }
    return desk;
}

/* A room that the server knows, and that is to be ticked. */
static void wake(struct desk *desk, const char *room)
{
    ask(desk, ENGINE_JOIN, room);
    answer(next_call(ENGINE_JOIN), ERROR_NONE);
}

/* Ticks it once: it is at rest, and its epochs are these. */
static void rest(struct redis_chore *chore, const char *epochs)
{
    chore->epochs->len = (uint32_t)strlen(epochs);
    memcpy(chore->epochs->bytes, epochs, strlen(epochs));
    chore->is_at_rest = true;
    chore_done(chore, ERROR_NONE);
}

static void calls_are_handed_on_and_answered(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    struct engine_call *join = ask(desk, ENGINE_JOIN, "a"), *rooms = ask(desk, ENGINE_ROOMS, "");
    assert_int_equal(redis_engine_waiting(desk->engine), 2);
    answer(next_call(ENGINE_JOIN), ERROR_WAIT_TOO_LONG);
    assert_true(is_done(join) && !is_done(rooms));
    assert_int_equal(join->error, ERROR_WAIT_TOO_LONG);
    answer(next_call(ENGINE_ROOMS), ERROR_NONE);
    assert_true(is_done(rooms));
    assert_int_equal(redis_engine_waiting(desk->engine), 0);
    assert_string_equal(desk->engine->trouble(desk->engine), "nobody is there");
    desk_free(desk);
}

/* ---- settings ---- */

static void answer_settings(uint32_t rate_milli)
{
    struct engine_call *call = next_call(ENGINE_SETTINGS);

    call->settings = with_rate(rate_milli);
    answer(call, ERROR_NONE);
}

static void settings_are_asked_for_once_and_remembered_for_a_moment(void **state)
{
    struct desk *desk = desk_new(0, false);
    struct engine_call *call[4];
    (void)state;

    tick(desk, 1000);
    for (int i = 0; i < 3; i++)
        call[i] = ask(desk, ENGINE_SETTINGS, "a");
    call[3] = ask(desk, ENGINE_SETTINGS, "b");
    assert_int_equal(sent(), 2);
    answer_settings(5);
    for (int i = 0; i < 3; i++) {
        assert_true(is_done(call[i]));
        assert_int_equal(call[i]->settings.rate_milli, 5);
    }
    answer_settings(6);
    assert_int_equal(call[3]->settings.rate_milli, 6);
    tick(desk, 1000 + REDIS_SETTINGS_MS - 1);
    assert_true(is_done(call[0] = ask(desk, ENGINE_SETTINGS, "a")));
    assert_int_equal(call[0]->settings.rate_milli, 5);
    tick(desk, 1000 + REDIS_SETTINGS_MS);
    call[0] = ask(desk, ENGINE_SETTINGS, "a");
    answer_settings(7);
    assert_int_equal(call[0]->settings.rate_milli, 7);
    assert_int_equal(sent(), 0); /* nobody joined or polled: there is nothing to tick */
    desk_free(desk);
}

static void settings_that_cannot_be_had_are_not_remembered(void **state)
{
    struct desk *desk = desk_new(0, false);
    struct engine_call *first = ask(desk, ENGINE_SETTINGS, "a"), *second = ask(desk, ENGINE_SETTINGS, "a");
    (void)state;

    answer(next_call(ENGINE_SETTINGS), ERROR_ENGINE_UNAVAILABLE);
    assert_int_equal(first->error, ERROR_ENGINE_UNAVAILABLE);
    assert_int_equal(second->error, ERROR_ENGINE_UNAVAILABLE);
    second = ask(desk, ENGINE_SETTINGS, "a");
    answer_settings(5);
    assert_int_equal(second->error, ERROR_NONE);
    desk_free(desk);
}

static void a_change_made_here_is_seen_at_once(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    ask(desk, ENGINE_SETTINGS, "a");
    answer_settings(5);
    struct engine_call *put =
        ask_with(desk, (struct engine_call){.op = ENGINE_PUT, .put = {.version = 3}}, "a");
    answer(next_call(ENGINE_PUT), ERROR_NONE);
    assert_true(is_done(put));
    struct engine_call *after = ask(desk, ENGINE_SETTINGS, "a");
    answer_settings(6);
    assert_int_equal(after->settings.rate_milli, 6);
    desk_free(desk);
}

/* Enters and changes need not come back in the order in which they and questions were sent. */
static void an_answer_from_before_a_change_is_not_for_those_who_ask_after_it(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    struct engine_call *before = ask(desk, ENGINE_SETTINGS, "a");
    struct engine_call *asked = next_call(ENGINE_SETTINGS);
    ask_with(desk, (struct engine_call){.op = ENGINE_PUT, .put = {.version = 3}}, "a");
    answer(next_call(ENGINE_PUT), ERROR_NONE);
    struct engine_call *after = ask(desk, ENGINE_SETTINGS, "a");
    asked->settings = with_rate(5);
    answer(asked, ERROR_NONE);
    assert_true(is_done(before) && !is_done(after));
    answer_settings(6);
    assert_int_equal(after->settings.rate_milli, 6);
    assert_int_equal(ask(desk, ENGINE_SETTINGS, "a")->settings.rate_milli, 6);
    desk_free(desk);
}

/* ---- rooms that are not there ---- */

static void those_who_miss_a_configured_room_wait_for_one_making(void **state)
{
    static const enum engine_op ops[] = {ENGINE_JOIN, ENGINE_STATUS, ENGINE_SETTINGS, ENGINE_FIGURES,
                                         ENGINE_ENTER};
    enum { OPS = sizeof(ops) / sizeof(ops[0]) };
    struct desk *desk = desk_set_up(2, false);
    struct engine_call *call[OPS];
    (void)state;

    for (int i = 0; i < OPS; i++)
        call[i] = ask(desk, ops[i], "lobby");
    for (int i = 0; i < OPS; i++)
        answer(next_call(ops[i]), ERROR_ROOM_NOT_FOUND);
    struct redis_chore *chore = next_chore(CHORE_REGISTER);
    assert_true(chore->since_ms == 0 && span_equal(chore->room, SPAN("lobby")));
    assert_int_equal(chore->rooms_max, ROOMS_MAX);
    assert_int_equal(sent(), 0);
    chore_done(chore, ERROR_NONE);
    chore = next_chore(CHORE_MAKE);
    assert_int_equal(chore->settings->rate_milli, 2000);
    assert_null(chore->epochs);
    assert_int_equal(sent(), 0);
    chore_done(chore, ERROR_NONE);
    for (int i = 0; i < OPS; i++) {
        assert_false(is_done(call[i]));
        answer(next_call(ops[i]), ERROR_NONE);
        assert_true(is_done(call[i]));
        assert_int_equal(call[i]->error, ERROR_NONE);
    }
    desk_free(desk);
}

/* Deleted in the meantime, perhaps: nobody makes it for ever. */
static void a_room_is_made_once_for_a_call(void **state)
{
    static const enum engine_op ops[] = {ENGINE_JOIN, ENGINE_STATUS, ENGINE_SETTINGS, ENGINE_SESSION_TOUCH};
    enum { OPS = sizeof(ops) / sizeof(ops[0]) };
    struct desk *desk = desk_set_up(1, false);
    struct engine_call *call[OPS];
    (void)state;

    for (int i = 0; i < OPS; i++)
        call[i] = ask(desk, ops[i], "hall");
    for (int i = 0; i < OPS; i++)
        answer(next_call(ops[i]), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_NONE);
    chore_done(next_chore(CHORE_MAKE), ERROR_NONE);
    for (int i = 0; i < OPS; i++)
        answer(next_call(ops[i]), ERROR_ROOM_NOT_FOUND);
    for (int i = 0; i < OPS; i++)
        assert_true(is_done(call[i]));
    assert_int_equal(call[0]->error, ERROR_ROOM_NOT_FOUND);
    assert_int_equal(call[1]->error, ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(call[2]->error, ERROR_ROOM_NOT_FOUND);
    assert_int_equal(call[3]->error, ERROR_TOKEN_NOT_FOUND);
    desk_free(desk);
}

static void joins_make_rooms_only_where_they_may(void **state)
{
    struct desk *desk = desk_set_up(1, false);
    (void)state;

    struct engine_call *join = ask(desk, ENGINE_JOIN, "a"), *status = ask(desk, ENGINE_STATUS, "a");
    answer(next_call(ENGINE_JOIN), ERROR_ROOM_NOT_FOUND);
    answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(join->error, ERROR_ROOM_NOT_FOUND);
    assert_int_equal(status->error, ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(sent(), 0);
    desk_free(desk);

    desk = desk_set_up(1, true);
    join = ask(desk, ENGINE_JOIN, "a");
    status = ask(desk, ENGINE_STATUS, "b");
    answer(next_call(ENGINE_JOIN), ERROR_ROOM_NOT_FOUND);
    answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(status->error, ERROR_TOKEN_NOT_FOUND);
    struct redis_chore *chore = next_chore(CHORE_REGISTER);
    assert_true(chore->since_ms == CHORE_ANYWAY); /* nothing speaks against a new one */
    chore_done(chore, ERROR_NONE);
    chore = next_chore(CHORE_MAKE);
    assert_int_equal(chore->settings->rate_milli, 3000);
    chore_done(chore, ERROR_NONE);
    answer(next_call(ENGINE_JOIN), ERROR_NONE);
    assert_int_equal(join->error, ERROR_NONE);
    desk_free(desk);
}

static void a_full_registry_is_a_full_line_to_those_who_come_for_a_room(void **state)
{
    struct desk *desk = desk_set_up(1, true);
    (void)state;

    struct engine_call *join = ask(desk, ENGINE_JOIN, "a");
    answer(next_call(ENGINE_JOIN), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_QUEUE_FULL);
    assert_int_equal(join->error, ERROR_QUEUE_FULL);
    assert_int_equal(join->retry_after_sec, 60);

    struct engine_call *put = ask(desk, ENGINE_PUT, "a");
    chore_done(next_chore(CHORE_REGISTER), ERROR_QUEUE_FULL);
    assert_int_equal(put->error, ERROR_QUEUE_FULL);
    assert_int_equal(put->retry_after_sec, 60);

    struct engine_call *status = ask(desk, ENGINE_STATUS, "hall");
    answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_QUEUE_FULL);
    assert_int_equal(status->error, ERROR_ENGINE_UNAVAILABLE); /* not found would end their place */
    assert_int_equal(status->retry_after_sec, 5);
    desk_free(desk);
}

static void a_server_that_is_away_is_not_asked_again_before_the_next_call(void **state)
{
    struct desk *desk = desk_set_up(1, false);
    (void)state;

    for (int step = 0; step < 2; step++) {
        struct engine_call *status = ask(desk, ENGINE_STATUS, "hall");
        answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
        if (step == 1)
            chore_done(next_chore(CHORE_REGISTER), ERROR_NONE);
        chore_done(next_chore(step == 0 ? CHORE_REGISTER : CHORE_MAKE), ERROR_ENGINE_UNAVAILABLE);
        assert_int_equal(status->error, ERROR_ENGINE_UNAVAILABLE);
        assert_int_equal(status->retry_after_sec, 5);
        assert_int_equal(sent(), 0);
    }
    desk_free(desk);
}

/* ---- what is remembered ---- */

static void a_forgotten_room_is_made_as_it_was(void **state)
{
    struct desk *desk = desk_set_up(1, false);
    (void)state;

    /* One that an operator made, and another with settings from an operator. */
    static const char *const names[] = {"made", "hall"};
    for (int i = 0; i < 2; i++) {
        wake(desk, names[i]);
        ask(desk, ENGINE_SETTINGS, names[i]);
        answer_settings(5);
    }
    tick(desk, 1000);
    rest(next_chore(CHORE_TICK), "some epochs");
    rest(next_chore(CHORE_TICK), "some epochs");
    for (int i = 0; i < 2; i++) {
        struct engine_call *status = ask(desk, ENGINE_STATUS, names[i]);
        answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
        struct redis_chore *chore = next_chore(CHORE_REGISTER);
        assert_true(chore->since_ms == 0);
        chore_done(chore, ERROR_NONE);
        chore = next_chore(CHORE_MAKE);
        assert_int_equal(chore->settings->rate_milli, 5);
        assert_memory_equal(chore->epochs->bytes, "some epochs", chore->epochs->len);
        chore_done(chore, ERROR_NONE);
        answer(next_call(ENGINE_STATUS), ERROR_NONE);
        assert_true(is_done(status));
    }
    desk_free(desk);
}

static void a_room_that_somebody_deleted_does_not_come_back(void **state)
{
    struct desk *desk = desk_set_up(1, true);
    (void)state;

    tick(desk, 1000);
    rest(next_chore(CHORE_TICK), "some epochs");
    struct engine_call *status = ask(desk, ENGINE_STATUS, "hall");
    answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(status->error, ERROR_TOKEN_NOT_FOUND);

    /* A join makes another, which knows nothing of the one before. */
    struct engine_call *join = ask(desk, ENGINE_JOIN, "hall");
    status = ask(desk, ENGINE_STATUS, "hall");
    answer(next_call(ENGINE_JOIN), ERROR_ROOM_NOT_FOUND);
    answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(status->error, ERROR_TOKEN_NOT_FOUND);
    struct redis_chore *chore = next_chore(CHORE_REGISTER);
    assert_true(chore->since_ms == CHORE_ANYWAY);
    chore_done(chore, ERROR_NONE);
    chore = next_chore(CHORE_MAKE);
    assert_null(chore->epochs);
    assert_int_equal(chore->settings->rate_milli, 3000);
    chore_done(chore, ERROR_NONE);
    answer(next_call(ENGINE_JOIN), ERROR_NONE);
    assert_int_equal(join->error, ERROR_NONE);
    desk_free(desk);
}

static void a_delete_unregisters_first_and_forgets(void **state)
{
    struct desk *desk = desk_new(0, true);
    (void)state;

    wake(desk, "a");
    ask(desk, ENGINE_SETTINGS, "a");
    answer_settings(5);
    tick(desk, 1000);
    rest(next_chore(CHORE_TICK), "some epochs");
    struct engine_call *gone = ask(desk, ENGINE_DELETE, "a");
    chore_done(next_chore(CHORE_UNREGISTER), ERROR_NONE);
    assert_false(is_done(gone));
    answer(next_call(ENGINE_DELETE), ERROR_NONE);
    assert_true(is_done(gone));
    struct engine_call *call = ask(desk, ENGINE_SETTINGS, "a");
    answer(next_call(ENGINE_SETTINGS), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(call->error, ERROR_ROOM_NOT_FOUND);
    tick(desk, 2000);
    assert_int_equal(sent(), 0);

    gone = ask(desk, ENGINE_DELETE, "a");
    chore_done(next_chore(CHORE_UNREGISTER), ERROR_NONE);
    answer(next_call(ENGINE_DELETE), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(gone->error, ERROR_ROOM_NOT_FOUND);
    gone = ask(desk, ENGINE_DELETE, "a");
    chore_done(next_chore(CHORE_UNREGISTER), ERROR_ENGINE_UNAVAILABLE);
    assert_int_equal(gone->error, ERROR_ENGINE_UNAVAILABLE);
    desk_free(desk);
}

/* Not even where it could be: it would be made only to be deleted. */
static void a_forgotten_room_is_not_made_for_a_delete(void **state)
{
    struct desk *desk = desk_set_up(1, true);
    (void)state;

    struct engine_call *gone = ask(desk, ENGINE_DELETE, "hall");
    chore_done(next_chore(CHORE_UNREGISTER), ERROR_NONE);
    answer(next_call(ENGINE_DELETE), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(gone->error, ERROR_ROOM_NOT_FOUND);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static void a_new_room_is_registered_before_it_is_made(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    struct engine_call *put = ask(desk, ENGINE_PUT, "a");
    struct redis_chore *chore = next_chore(CHORE_REGISTER);
    assert_true(chore->since_ms == CHORE_ANYWAY);
    assert_int_equal(sent(), 0);
    chore_done(chore, ERROR_NONE);
    answer(next_call(ENGINE_PUT), ERROR_CONFLICT);
    assert_int_equal(put->error, ERROR_CONFLICT);
    /* Another version is no new room. */
    ask_with(desk, (struct engine_call){.op = ENGINE_PUT, .put = {.version = 1}}, "a");
    answer(next_call(ENGINE_PUT), ERROR_NONE);
    desk_free(desk);
}

/* ---- ticks ---- */

static void rooms_are_ticked_while_there_is_something_to_do(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    tick(desk, 1000);
    assert_int_equal(sent(), 0);
    wake(desk, "a");
    tick(desk, 1100);
    struct redis_chore *chore = next_chore(CHORE_TICK);
    assert_int_equal(chore->node, NODE);
    for (int i = 0; i < 5; i++)
        tick(desk, 1200 + 100 * (uint64_t)i); /* never two at a time */
    assert_int_equal(sent(), 0);
    chore_done(chore, ERROR_NONE);
    tick(desk, 1640); /* hardly later than the last one: nothing is due */
    chore = next_chore(CHORE_TICK);
    chore_done(chore, ERROR_ENGINE_UNAVAILABLE);
    tick(desk, 1660);
    assert_int_equal(sent(), 0);
    tick(desk, 1740);
    rest(next_chore(CHORE_TICK), "x");
    tick(desk, 1840);
    assert_int_equal(sent(), 0);
    wake(desk, "a");
    tick(desk, 1940);
    chore_done(next_chore(CHORE_TICK), ERROR_ROOM_NOT_FOUND);
    tick(desk, 2040);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static void a_room_that_was_asked_during_its_tick_is_not_at_rest(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    wake(desk, "a");
    tick(desk, 1000);
    struct redis_chore *chore = next_chore(CHORE_TICK);
    wake(desk, "a");
    rest(chore, "x");
    tick(desk, 1100);
    rest(next_chore(CHORE_TICK), "x");
    tick(desk, 1200);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static void a_room_that_another_ticks_is_looked_at_when_told(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    wake(desk, "a");
    tick(desk, 1000);
    struct redis_chore *chore = next_chore(CHORE_TICK);
    chore->wait_ms = 1000;
    chore_done(chore, ERROR_NONE);
    for (uint64_t ms = 1100; ms < 1950; ms += 100)
        tick(desk, ms);
    wake(desk, "a");
    assert_int_equal(sent(), 0);
    tick(desk, 2000);
    chore_done(next_chore(CHORE_TICK), ERROR_NONE);
    desk_free(desk);
}

static void a_room_with_nobody_in_it_is_ticked_once_a_second_by_one(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    wake(desk, "a");
    tick(desk, 1000);
    struct redis_chore *chore = next_chore(CHORE_TICK);
    chore->is_empty = true;
    chore_done(chore, ERROR_NONE);
    for (uint64_t ms = 1100; ms < 1800; ms += 100)
        tick(desk, ms);
    assert_int_equal(sent(), 0);
    tick(desk, 1900);
    chore = next_chore(CHORE_TICK);
    chore->is_empty = true;
    chore_done(chore, ERROR_NONE);
    wake(desk, "a"); /* somebody comes */
    tick(desk, 2000);
    chore = next_chore(CHORE_TICK);
    chore->is_empty = true;
    chore->wait_ms = 1000;
    chore_done(chore, ERROR_NONE); /* and is gone, and another ticks */
    tick(desk, 3000);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static void a_room_that_is_behind_is_ticked_again_at_once(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    wake(desk, "a");
    tick(desk, 1000);
    for (int i = 0; i < 3; i++) {
        struct redis_chore *chore = next_chore(CHORE_TICK);
        chore->is_behind = i < 2;
        chore_done(chore, ERROR_NONE);
    }
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static void whoever_ticks_a_room_registers_it_now_and_then(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    wake(desk, "a");
    tick(desk, 100000);
    chore_done(next_chore(CHORE_TICK), ERROR_NONE);
    tick(desk, 100100);
    struct redis_chore *chore = next_chore(CHORE_REGISTER);
    assert_true(chore->since_ms == 0);
    chore_done(chore, ERROR_NONE);
    chore_done(next_chore(CHORE_TICK), ERROR_NONE);
    tick(desk, 100200);
    chore_done(next_chore(CHORE_TICK), ERROR_NONE);
    tick(desk, 160100);
    chore_done(next_chore(CHORE_REGISTER), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_TICK), ERROR_NONE);
    desk_free(desk);
}

static void heartbeats_wait_for_the_tick_and_go_by_rooms(void **state)
{
    struct desk *desk = desk_new(0, false);
    struct engine_call *call[4];
    (void)state;

    for (int i = 0; i < 4; i++)
        call[i] = ask(desk, ENGINE_HEARTBEAT, i % 2 == 0 ? "a" : "b");
    assert_int_equal(sent(), 0);
    assert_int_equal(redis_engine_waiting(desk->engine), 4);
    tick(desk, 1000);
    assert_int_equal(sent(), 4);
    assert_ptr_equal(next_call(ENGINE_HEARTBEAT), call[0]);
    assert_ptr_equal(next_call(ENGINE_HEARTBEAT), call[2]);
    assert_ptr_equal(next_call(ENGINE_HEARTBEAT), call[1]);
    assert_ptr_equal(next_call(ENGINE_HEARTBEAT), call[3]);
    for (int i = 0; i < 4; i++)
        answer(call[i], ERROR_NONE);
    tick(desk, 1100);
    chore_done(next_chore(CHORE_TICK), ERROR_NONE);
    chore_done(next_chore(CHORE_TICK), ERROR_NONE);
    desk_free(desk);
}

static void learn_pace(struct desk *desk, const char *room, enum room_pace pace)
{
    ask(desk, ENGINE_SETTINGS, room);
    struct engine_call *settings = next_call(ENGINE_SETTINGS);
    settings->settings = with_rate(5);
    settings->settings.pace = pace;
    answer(settings, ERROR_NONE);
}

/* The tick that was sent finds nobody. */
static void tick_rests(void)
{
    struct redis_chore *chore = next_chore(CHORE_TICK);

    chore->is_at_rest = true;
    chore_done(chore, ERROR_NONE);
}

static void what_was_seen_of_the_shop_goes_with_the_tick_where_it_is_followed(void **state)
{
    struct desk *desk = desk_new(0, false);
    struct shop_report report = {.failures = 2, .times = {[3] = 5}};
    struct engine_call seen = {.op = ENGINE_SHOP, .shop = &report};
    (void)state;

    learn_pace(desk, "fixed", PACE_FIXED);
    learn_pace(desk, "auto", PACE_AUTO);
    assert_true(is_done(ask_with(desk, seen, "fixed")));
    assert_true(is_done(ask_with(desk, seen, "unknown")));
    assert_true(is_done(ask_with(desk, seen, "auto")));
    report.left_alone_ms = 40;
    assert_true(is_done(ask_with(desk, seen, "auto")));
    assert_int_equal(sent(), 0);
    tick(desk, 1000);
    struct redis_chore *chore = next_chore(CHORE_SHOP);
    assert_int_equal(chore->shop->failures, 4);
    assert_int_equal(chore->shop->times[3], 10);
    assert_int_equal(chore->shop->left_alone_ms, 40);
    report.left_alone_ms = 0;
    ask_with(desk, seen, "auto");
    assert_int_equal(chore->shop->failures, 4); /* what is under way stays what it is */
    chore_done(chore, ERROR_NONE);
    tick(desk, 1100);
    chore = next_chore(CHORE_SHOP);
    assert_int_equal(chore->shop->failures, 2);
    chore_done(chore, ERROR_ENGINE_UNAVAILABLE);
    tick_rests(); /* while a shop is left alone somebody must tick the room */
    tick(desk, 1200);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static struct redis_chore *next_report(const char *room, uint32_t left_alone_ms)
{
    struct redis_chore *chore = next_chore(CHORE_SHOP);

    assert_true(span_equal(chore->room, span_of(room)));
    assert_int_equal(chore->shop->left_alone_ms, left_alone_ms);
    return chore;
}

static void a_lobby_is_told_once_a_second_that_people_wait_in_its_hall(void **state)
{
    struct desk *desk = desk_new(0, false);
    struct shop_report report = {.left_alone_ms = 4000};
    struct engine_call seen = {.op = ENGINE_SHOP, .shop = &report};
    (void)state;

    learn_pace(desk, "fixed", PACE_FIXED);
    learn_pace(desk, "follows", PACE_HALL);
    ask_with(desk, seen, "fixed");
    ask_with(desk, seen, "follows");
    ask_with(desk, seen, "unknown"); /* it may be one that follows */
    tick(desk, 1000);
    chore_done(next_report("follows", 4000), ERROR_NONE);
    chore_done(next_report("unknown", 4000), ERROR_ROOM_NOT_FOUND);
    tick_rests();
    report.left_alone_ms = 9000;
    ask_with(desk, seen, "follows");
    report.left_alone_ms = 5000;
    ask_with(desk, seen, "follows");
    ask_with(desk, seen, "fixed"); /* nobody has asked for a while what its pace is */
    tick(desk, 1100);
    chore_done(next_report("fixed", 5000), ERROR_NONE);
    tick_rests();
    tick(desk, 1900);
    assert_int_equal(sent(), 0);
    tick(desk, 2000);
    chore_done(next_report("follows", 9000), ERROR_NONE);
    tick_rests();
    tick(desk, 2100);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

/* ---- rooms that others made ---- */

static void rooms_that_nobody_asked_about_here_are_known_too(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    registry[0] = "a";
    registry[1] = "b";
    registered = 2;
    tick(desk, 1000);
    assert_int_equal(listed, 1);
    answer_texts(5, "of a");
    rest(next_chore(CHORE_TICK), "epochs of a");
    answer(next_call(ENGINE_FIGURES), ERROR_ROOM_NOT_FOUND);
    tick(desk, 1100);
    chore_done(next_chore(CHORE_TICK), ERROR_ROOM_NOT_FOUND);
    tick(desk, 5900);
    assert_int_equal(sent(), 0);
    tick(desk, 6000);
    assert_int_equal(listed, 2);
    answer(next_call(ENGINE_FIGURES), ERROR_ENGINE_UNAVAILABLE);
    chore_done(next_chore(CHORE_TICK), ERROR_ROOM_NOT_FOUND);

    /* The server forgets them: what was found out is of use. */
    ask(desk, ENGINE_STATUS, "a");
    answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_NONE);
    struct redis_chore *chore = next_chore(CHORE_MAKE);
    assert_int_equal(chore->settings->rate_milli, 5);
    assert_string_equal(chore->texts->title, "of a");
    assert_memory_equal(chore->epochs->bytes, "epochs of a", chore->epochs->len);
    chore_done(chore, ERROR_NONE);
    answer(next_call(ENGINE_STATUS), ERROR_NONE);
    desk_free(desk);
}

/* Nobody may ask for it before a worker comes that knows nothing. */
static void who_ticks_a_forgotten_room_makes_it_with_what_is_remembered(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    wake(desk, "a");
    tick(desk, 1000);
    chore_done(next_chore(CHORE_TICK), ERROR_ROOM_NOT_FOUND); /* of which nothing is remembered */
    ask(desk, ENGINE_SETTINGS, "a");
    answer_settings(5);
    wake(desk, "a");
    tick(desk, 1100);
    struct redis_chore *chore = next_chore(CHORE_TICK);
    memcpy(chore->epochs->bytes, "epochs", 6);
    chore->epochs->len = 6;
    chore_done(chore, ERROR_NONE);
    tick(desk, 1200);
    chore_done(next_chore(CHORE_TICK), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_ENGINE_UNAVAILABLE);
    assert_int_equal(sent(), 0);
    tick(desk, 1300);
    chore_done(next_chore(CHORE_TICK), ERROR_ROOM_NOT_FOUND);
    chore = next_chore(CHORE_REGISTER);
    assert_int_equal(chore->since_ms, 0);
    chore_done(chore, ERROR_NONE);
    chore = next_chore(CHORE_MAKE);
    assert_int_equal(chore->settings->rate_milli, 5);
    assert_memory_equal(chore->epochs->bytes, "epochs", chore->epochs->len);
    chore_done(chore, ERROR_NONE);

    tick(desk, 1400);
    chore_done(next_chore(CHORE_TICK), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_ROOM_NOT_FOUND); /* it was deleted */
    tick(desk, 1500);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

/* Others may have changed its settings and lost its primary: a room that is made anew must not be what it was long ago. */
static void what_is_remembered_of_a_room_at_rest_is_looked_up_again(void **state)
{
    struct desk *desk = desk_new(0, false);
    (void)state;

    registry[0] = "a";
    registered = 1;
    tick(desk, 1000);
    answer_texts(5, "old");
    rest(next_chore(CHORE_TICK), "old");
    tick(desk, 60900);
    assert_int_equal(sent(), 0);
    tick(desk, 65900);
    answer_texts(6, "new");
    chore_done(next_chore(CHORE_REGISTER), ERROR_NONE);
    rest(next_chore(CHORE_TICK), "new");
    tick(desk, 70900);
    assert_int_equal(sent(), 0);

    ask(desk, ENGINE_STATUS, "a");
    answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_NONE);
    struct redis_chore *chore = next_chore(CHORE_MAKE);
    assert_int_equal(chore->settings->rate_milli, 6);
    assert_string_equal(chore->texts->title, "new");
    assert_memory_equal(chore->epochs->bytes, "new", chore->epochs->len);
    chore_done(chore, ERROR_NONE);
    answer(next_call(ENGINE_STATUS), ERROR_NONE);
    desk_free(desk);
}

/* What it is made with when the server has forgotten it. */
static void assert_made_with_title(struct desk *desk, const char *title)
{
    ask(desk, ENGINE_STATUS, "a");
    answer(next_call(ENGINE_STATUS), ERROR_ROOM_NOT_FOUND);
    chore_done(next_chore(CHORE_REGISTER), ERROR_NONE);
    struct redis_chore *chore = next_chore(CHORE_MAKE);
    if (title == NULL)
        assert_null(chore->texts);
    else
        assert_string_equal(chore->texts->title, title);
    chore_done(chore, ERROR_NONE);
    answer(next_call(ENGINE_STATUS), ERROR_NONE);
}

/* A change of numbers alone, and figures without texts, say nothing about them. */
static void texts_are_remembered_until_others_are_heard_of(void **state)
{
    struct desk *desk = desk_new(0, false);
    struct texts texts = {.title = "first"}, none = {0};
    struct engine_put put = {.settings = with_rate(5), .texts = &texts, .version = 1, .is_from_api = true};
    (void)state;

    wake(desk, "a");
    tick(desk, 1000);
    rest(next_chore(CHORE_TICK), "epochs");
    ask_with(desk, (struct engine_call){.op = ENGINE_PUT, .put = put}, "a");
    answer(next_call(ENGINE_PUT), ERROR_NONE);
    texts = none; /* it was the caller's */
    assert_made_with_title(desk, "first");
    put.texts = NULL;
    ask_with(desk, (struct engine_call){.op = ENGINE_PUT, .put = put}, "a");
    answer(next_call(ENGINE_PUT), ERROR_NONE);
    ask(desk, ENGINE_FIGURES, "a");
    answer_figures(5, true);
    assert_made_with_title(desk, "first");
    snprintf(texts.title, sizeof(texts.title), "refused");
    put.texts = &texts;
    ask_with(desk, (struct engine_call){.op = ENGINE_PUT, .put = put}, "a");
    answer(next_call(ENGINE_PUT), ERROR_CONFLICT);
    assert_made_with_title(desk, "first");
    put.texts = &none;
    ask_with(desk, (struct engine_call){.op = ENGINE_PUT, .put = put}, "a");
    answer(next_call(ENGINE_PUT), ERROR_NONE);
    assert_made_with_title(desk, NULL);
    desk_free(desk);
}

/* ---- the configuration ---- */

static void configured_rooms_are_brought_to_the_server(void **state)
{
    struct desk *desk = desk_new(2, false);
    (void)state;

    tick(desk, 1000);
    bring("hall", 1000);
    answer_figures(999, false);
    struct engine_call *put = next_call(ENGINE_PUT);
    assert_int_equal(put->put.version, 4);
    assert_int_equal(put->put.settings.rate_milli, 1000);
    assert_false(put->put.is_from_api);
    answer(put, ERROR_NONE);
    bring("lobby", 2000);
    answer_figures(2000, false); /* it has them already */
    tick(desk, 3000);
    rest(next_chore(CHORE_TICK), "x");
    rest(next_chore(CHORE_TICK), "x");
    tick(desk, 9000);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static void calls_wait_until_the_configured_rooms_were_tried(void **state)
{
    struct desk *desk = desk_new(2, false);
    struct engine_call *call[3];
    (void)state;

    call[0] = ask(desk, ENGINE_ROOMS, "");
    call[1] = ask(desk, ENGINE_SETTINGS, "hall");
    call[2] = ask(desk, ENGINE_HEARTBEAT, "lobby");
    assert_int_equal(redis_engine_waiting(desk->engine), 3);
    bring("hall", 1000);
    answer_figures(1000, false);
    bring("lobby", 2000);
    answer_figures(2000, false);
    answer(next_call(ENGINE_ROOMS), ERROR_NONE);
    answer_settings(1000);
    assert_true(is_done(call[0]) && is_done(call[1]) && !is_done(call[2]));
    tick(desk, 1000);
    rest(next_chore(CHORE_TICK), "x");
    answer(next_call(ENGINE_HEARTBEAT), ERROR_NONE);
    rest(next_chore(CHORE_TICK), "x");
    assert_true(is_done(call[2]));
    desk_free(desk);

    desk = desk_new(2, false); /* a server that is away does not hold anybody for ever */
    call[0] = ask(desk, ENGINE_STATUS, "lobby");
    chore_done(next_chore(CHORE_REGISTER), ERROR_ENGINE_UNAVAILABLE);
    answer(next_call(ENGINE_STATUS), ERROR_NONE);
    assert_true(is_done(call[0]));
    desk_free(desk);

    desk = desk_new(2, false); /* neither does one that is slow */
    tick(desk, 1000);
    call[0] = ask(desk, ENGINE_STATUS, "lobby");
    bring("hall", 1000);
    answer_figures(1000, false);
    tick(desk, 2900);
    struct redis_chore *lobby = next_chore(CHORE_REGISTER);
    rest(next_chore(CHORE_TICK), "x");
    assert_int_equal(sent(), 0);
    tick(desk, 3000);
    answer(next_call(ENGINE_STATUS), ERROR_NONE);
    assert_true(is_done(call[0]));
    chore_done(lobby, ERROR_ENGINE_UNAVAILABLE);
    desk_free(desk);
}

static void texts_of_the_configuration_are_brought_too(void **state)
{
    static const struct texts texts = {.title = "of the file"};
    struct desk *desk = desk_new(1, false);
    (void)state;

    conf[0].texts = &texts;
    tick(desk, 1000);
    bring("hall", 1000);
    answer_texts(1000, "of before");
    struct engine_call *put = next_call(ENGINE_PUT);
    assert_string_equal(put->put.texts->title, "of the file");
    answer(put, ERROR_CONFLICT);
    tick(desk, 2100);
    bring("hall", 1000);
    answer_texts(1000, "of the file");
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static void what_an_operator_changed_stays(void **state)
{
    struct desk *desk = desk_new(1, false);
    (void)state;

    tick(desk, 1000);
    bring("hall", 1000);
    answer_figures(999, true);
    tick(desk, 2000);
    rest(next_chore(CHORE_TICK), "x");
    tick(desk, 9000);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

static void rooms_that_could_not_be_brought_are_tried_again(void **state)
{
    struct desk *desk = desk_new(2, false);
    (void)state;

    tick(desk, 1000);
    chore_done(next_chore(CHORE_REGISTER), ERROR_ENGINE_UNAVAILABLE);
    assert_int_equal(sent(), 0);
    tick(desk, 1100);
    bring("lobby", 2000); /* perhaps another server has it */
    answer_figures(2000, false);
    tick(desk, 1200);
    rest(next_chore(CHORE_TICK), "x");
    tick(desk, 1900);
    assert_int_equal(sent(), 0);
    tick(desk, 2000);
    bring("hall", 1000);
    answer_figures(999, false);
    answer(next_call(ENGINE_PUT), ERROR_CONFLICT); /* another node was faster */
    tick(desk, 2900);
    assert_int_equal(sent(), 0);
    tick(desk, 3000);
    bring("hall", 1000);
    answer_figures(1000, false);
    tick(desk, 3100);
    rest(next_chore(CHORE_TICK), "x");
    tick(desk, 9000);
    assert_int_equal(sent(), 0);
    desk_free(desk);
}

/* ---- bounds ---- */

#define NOTES (ROOMS_MAX + 64)

static char names[NOTES + 1][16];

static void miss(struct desk *desk, int i)
{
    snprintf(names[i], sizeof(names[i]), "r%d", i);
    ask(desk, ENGINE_JOIN, names[i]);
    answer(next_call(ENGINE_JOIN), ERROR_ROOM_NOT_FOUND);
}

static void rooms_that_are_asked_for_take_no_more_than_their_space(void **state)
{
    struct desk *desk = desk_new(0, true);
    struct redis_chore *chore[NOTES];
    (void)state;

    for (int i = 0; i < NOTES; i++) {
        miss(desk, i);
        chore[i] = next_chore(CHORE_REGISTER);
        wire.count = wire.taken = 0;
    }
    miss(desk, NOTES); /* something is under way for each of the others */
    assert_int_equal(desk->call[NOTES].error, ERROR_ENGINE_UNAVAILABLE);
    assert_int_equal(desk->call[NOTES].retry_after_sec, 5);
    for (int i = 0; i < NOTES; i++)
        chore_done(chore[i], ERROR_QUEUE_FULL);
    for (int i = 0; i < NOTES; i++)
        assert_int_equal(desk->call[i].error, ERROR_QUEUE_FULL);
    for (int i = 0; i < 100; i++) { /* and then they give their places to others */
        miss(desk, NOTES);
        chore_done(next_chore(CHORE_REGISTER), ERROR_QUEUE_FULL);
        assert_int_equal(desk->call[desk->calls - 1].error, ERROR_QUEUE_FULL);
        snprintf(names[NOTES], sizeof(names[NOTES]), "s%d", i);
        wire.count = wire.taken = 0;
    }
    desk_free(desk);
}

/* ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_handed_on_and_answered),
        cmocka_unit_test(settings_are_asked_for_once_and_remembered_for_a_moment),
        cmocka_unit_test(settings_that_cannot_be_had_are_not_remembered),
        cmocka_unit_test(a_change_made_here_is_seen_at_once),
        cmocka_unit_test(an_answer_from_before_a_change_is_not_for_those_who_ask_after_it),
        cmocka_unit_test(those_who_miss_a_configured_room_wait_for_one_making),
        cmocka_unit_test(a_room_is_made_once_for_a_call),
        cmocka_unit_test(joins_make_rooms_only_where_they_may),
        cmocka_unit_test(a_full_registry_is_a_full_line_to_those_who_come_for_a_room),
        cmocka_unit_test(a_server_that_is_away_is_not_asked_again_before_the_next_call),
        cmocka_unit_test(a_forgotten_room_is_made_as_it_was),
        cmocka_unit_test(a_room_that_somebody_deleted_does_not_come_back),
        cmocka_unit_test(a_delete_unregisters_first_and_forgets),
        cmocka_unit_test(a_forgotten_room_is_not_made_for_a_delete),
        cmocka_unit_test(a_new_room_is_registered_before_it_is_made),
        cmocka_unit_test(rooms_are_ticked_while_there_is_something_to_do),
        cmocka_unit_test(a_room_that_was_asked_during_its_tick_is_not_at_rest),
        cmocka_unit_test(a_room_that_another_ticks_is_looked_at_when_told),
        cmocka_unit_test(a_room_with_nobody_in_it_is_ticked_once_a_second_by_one),
        cmocka_unit_test(a_room_that_is_behind_is_ticked_again_at_once),
        cmocka_unit_test(whoever_ticks_a_room_registers_it_now_and_then),
        cmocka_unit_test(heartbeats_wait_for_the_tick_and_go_by_rooms),
        cmocka_unit_test(what_was_seen_of_the_shop_goes_with_the_tick_where_it_is_followed),
        cmocka_unit_test(a_lobby_is_told_once_a_second_that_people_wait_in_its_hall),
        cmocka_unit_test(rooms_that_nobody_asked_about_here_are_known_too),
        cmocka_unit_test(who_ticks_a_forgotten_room_makes_it_with_what_is_remembered),
        cmocka_unit_test(what_is_remembered_of_a_room_at_rest_is_looked_up_again),
        cmocka_unit_test(texts_are_remembered_until_others_are_heard_of),
        cmocka_unit_test(configured_rooms_are_brought_to_the_server),
        cmocka_unit_test(texts_of_the_configuration_are_brought_too),
        cmocka_unit_test(calls_wait_until_the_configured_rooms_were_tried),
        cmocka_unit_test(what_an_operator_changed_stays),
        cmocka_unit_test(rooms_that_could_not_be_brought_are_tried_again),
        cmocka_unit_test(rooms_that_are_asked_for_take_no_more_than_their_space),
    };
    return cmocka_run_group_tests_name("redis_engine", tests, NULL, NULL);
}
