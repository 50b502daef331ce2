/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine over a real server, and several of them as several nodes. What the local engine is asked to keep (test_local.c) is
 * asked here wherever it means something. Time passes when the test says so: the room's last tick and its lease are made older.
 */
#include "redis_server.h"
#include "rig.h"

#include "redis/redis_engine.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_MS      100
#define ROOMS_LISTED 8

static struct redis_server server;

static int start(void **state)
{
    (void)state;
    redis_server_start(&server, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    redis_server_stop(&server);
    return 0;
}

static void forget_all(void)
{
    freeReplyObject(redis_server_ask(&server, "FLUSHALL"));
}

/* ---- nodes ---- */

struct node {
    struct engine *engine;
    uint64_t now_ms;
};

static struct settings patient(void)
{
    struct settings settings = settings_default();

    settings.seen_ttl_sec = 86400;
    settings.claim_ttl_sec = 86400;
    settings.arrive_ttl_sec = 1;
    settings.session_ttl_sec = 86400;
    settings.mode = MODE_HOLD;
    return settings;
}

static struct redis_room_conf configured(const char *name)
{
    return (struct redis_room_conf){span_of(name), patient(), NULL};
}

static uint64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* With these rooms in its configuration. */
static struct node node_with(const struct redis_room_conf *rooms, size_t count, bool makes_rooms)
{
    static uint64_t nodes;
    struct redis_engine_options options = {
        .transport = &server.transport,
        .node = ++nodes,
        .since_ms = wall_ms(),
        .rooms_max = 3,
        .makes_rooms = makes_rooms,
        .made_settings = patient(),
        .rooms = rooms,
        .room_count = count,
    };
    struct node node = {redis_engine_new(&options), 1000};

    assert_non_null(node.engine);
    assert_null(node.engine->trouble(node.engine));
    return node;
}

static struct node node_new(bool makes_rooms)
{
    return node_with(NULL, 0, makes_rooms);
}

static void node_free(struct node *node)
{
    assert_int_equal(redis_engine_waiting(node->engine), 0);
    redis_engine_free(node->engine);
}

static void node_tick(struct node *node)
{
    node->now_ms += TICK_MS;
    node->engine->tick(node->engine, node->now_ms);
}

/* So much time has passed since the last tick of this room. */
static void pass(const char *room, int ms)
{
    redis_server_number(&server, "HINCRBY queue:room:{%s} ticked_ms %d", room, -ms);
    redis_server_number(&server, "HINCRBY queue:room:{%s} lease_ms %d", room, -ms);
}

static void note_done(struct engine_call *call)
{
    *(int *)call->context += 1;
}

static enum error submit(struct node *node, struct engine_call *call, const char *room)
{
    int done = 0;

    call->room = span_of(room);
    call->done = note_done;
    call->context = &done;
    engine_submit(node->engine, call);
    redis_engine_flush(node->engine);
    if (call->op == ENGINE_HEARTBEAT)
        node_tick(node);
    assert_int_equal(done, 1);
    return call->error;
}

static enum error join(struct node *node, const char *room, uint64_t who, struct standing *standing)
{
    struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = holder_of(who), .wall_sec = 5}};
    enum error error = submit(node, &call, room);

    assert_int_equal(call.retry_after_sec, error == ERROR_QUEUE_FULL ? 60 : 0);
    *standing = call.standing;
    return error;
}

static enum error ask(struct node *node, const char *room, enum engine_op op, const struct place *place,
                      struct standing *standing)
{
    struct engine_call call = {.op = op, .place = *place};

    if (op == ENGINE_ENTER)
        call.enter = (struct enter){.place = *place, .key_id = 1, .wall_sec = 6};
    enum error error = submit(node, &call, room);
    *standing = call.standing;
    return error;
}

static enum error put(struct node *node, const char *room, struct settings settings, uint32_t version)
{
    struct engine_call call = {.op = ENGINE_PUT, .put = {settings, NULL, version, true}};

    return submit(node, &call, room);
}

static enum error delete_room(struct node *node, const char *room)
{
    struct engine_call call = {.op = ENGINE_DELETE};

    return submit(node, &call, room);
}

static struct engine_call look(struct node *node, const char *room)
{
    struct engine_call call = {.op = ENGINE_FIGURES};

    assert_int_equal(submit(node, &call, room), ERROR_NONE);
    return call;
}

static struct figures figures_of(struct node *node, const char *room)
{
    return look(node, room).figures;
}

static void expect_rooms(struct node *node, const char *names)
{
    struct room_id ids[ROOMS_LISTED];
    struct engine_call call = {.op = ENGINE_ROOMS, .list = {.ids = ids, .size = ROOMS_LISTED}};
    char found[256] = "";

    assert_int_equal(submit(node, &call, ""), ERROR_NONE);
    for (uint32_t i = 0; i < call.list.count; i++)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%.*s", i == 0 ? "" : " ",
                 (int)ids[i].len, ids[i].name);
    assert_string_equal(found, names);
}

/* ---- rooms ---- */

static void unknown_rooms_are_refused_unless_they_may_be_made(void **state)
{
    struct node node = node_new(false), maker = node_new(true);
    struct place place = {.epoch = 1, .count = 1, .holder = holder_of(1)};
    struct engine_call call = {.op = ENGINE_FIGURES};
    struct standing standing;
    (void)state;

    forget_all();
    assert_int_equal(join(&node, "a", 1, &standing), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(submit(&node, &call, "a"), ERROR_ROOM_NOT_FOUND);
    call.op = ENGINE_SETTINGS;
    assert_int_equal(submit(&node, &call, "a"), ERROR_ROOM_NOT_FOUND);
    for (int op = ENGINE_STATUS; op <= ENGINE_SESSION_EXTEND; op++) {
        assert_int_equal(ask(&node, "a", op, &place, &standing), ERROR_TOKEN_NOT_FOUND);
        assert_int_equal(ask(&maker, "a", op, &place, &standing), ERROR_TOKEN_NOT_FOUND);
    }
    expect_rooms(&node, "");
    assert_int_equal(join(&maker, "a", 1, &standing), ERROR_NONE);
    assert_int_equal(standing.position, 1);
    assert_int_equal(join(&node, "a", 2, &standing), ERROR_NONE);
    assert_int_equal(standing.position, 2);
    assert_int_equal(ask(&node, "a", ENGINE_HEARTBEAT, &standing.place, &standing), ERROR_NONE);
    node_free(&node);
    node_free(&maker);
}

static void rooms_are_as_many_as_there_may_be_and_each_is_its_own(void **state)
{
    struct node node = node_new(true), other = node_new(true);
    struct standing standing;
    (void)state;

    forget_all();
    assert_int_equal(join(&node, "c", 1, &standing), ERROR_NONE);
    assert_int_equal(join(&other, "a", 1, &standing), ERROR_NONE);
    assert_int_equal(join(&node, "b", 1, &standing), ERROR_NONE);
    assert_int_equal(standing.place.count, 1);
    assert_int_equal(join(&other, "one-too-many", 1, &standing), ERROR_QUEUE_FULL);
    assert_int_equal(put(&node, "one-too-many", patient(), 0), ERROR_QUEUE_FULL);
    expect_rooms(&other, "a b c");
    /* A ticket of one room is nothing in another. */
    assert_int_equal(join(&other, "b", 1, &standing), ERROR_NONE);
    assert_true(standing.is_repeat);
    assert_int_equal(ask(&node, "b", ENGINE_STATUS, &standing.place, &standing), ERROR_NONE);
    struct place place = standing.place;
    place.count = 2;
    assert_int_equal(ask(&node, "c", ENGINE_STATUS, &place, &standing), ERROR_TOKEN_NOT_FOUND);

    assert_int_equal(delete_room(&node, "b"), ERROR_NONE);
    assert_int_equal(delete_room(&node, "b"), ERROR_ROOM_NOT_FOUND);
    expect_rooms(&node, "a c");
    assert_int_equal(join(&other, "one-too-many", 1, &standing), ERROR_NONE);
    expect_rooms(&node, "a c one-too-many");
    node_free(&node);
    node_free(&other);
}

static void settings_change_once_for_each_version(void **state)
{
    struct node node = node_new(false), other = node_new(false);
    struct engine_call call = {.op = ENGINE_SETTINGS};
    struct settings settings = patient();
    struct standing standing;
    (void)state;

    forget_all();
    assert_int_equal(put(&node, "a", settings, 3), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(put(&node, "a", settings, 0), ERROR_NONE);
    assert_int_equal(put(&other, "a", settings, 0), ERROR_CONFLICT);
    for (uint64_t who = 1; who <= 9; who++)
        assert_int_equal(join(&other, "a", who, &standing), ERROR_NONE);
    assert_int_equal(submit(&node, &call, "a"), ERROR_NONE);
    assert_int_equal(submit(&other, &call, "a"), ERROR_NONE);
    assert_int_equal(call.settings.max_waiting, 0);
    settings.max_waiting = 9;
    assert_int_equal(put(&node, "a", settings, 1), ERROR_NONE);
    assert_int_equal(put(&other, "a", settings, 1), ERROR_CONFLICT);
    assert_int_equal(submit(&node, &call, "a"), ERROR_NONE);
    assert_int_equal(call.settings.max_waiting, 9); /* at once where it was changed */
    for (int ticks = 0; ticks < REDIS_SETTINGS_MS / TICK_MS; ticks++)
        node_tick(&other);
    assert_int_equal(submit(&other, &call, "a"), ERROR_NONE);
    assert_int_equal(call.settings.max_waiting, 9); /* a moment later elsewhere */
    struct engine_call tenth = {.op = ENGINE_JOIN, .join = {.holder = holder_of(10)}};
    assert_int_equal(submit(&other, &tenth, "a"), ERROR_QUEUE_FULL);
    assert_int_equal(figures_of(&node, "a").in_state[TICKET_WAITING], 9);
    node_free(&node);
    node_free(&other);
}

/* ---- the configuration ---- */

static void rooms_of_the_file_are_there_with_its_settings(void **state)
{
    struct redis_room_conf rooms[2] = {configured("a"), configured("b")}, changed[1] = {configured("a")};
    struct node node = node_with(rooms, 2, false), same = node_with(rooms, 2, false);
    (void)state;

    forget_all();
    node_tick(&node);
    node_tick(&same);
    expect_rooms(&node, "a b");
    assert_int_equal(figures_of(&node, "a").settings_version, 1); /* equal settings are no change */
    assert_false(figures_of(&node, "a").is_settings_from_api);
    changed[0].settings.rate_milli = 7000;
    struct node next = node_with(changed, 1, false);
    node_tick(&next);
    assert_int_equal(look(&next, "a").settings.rate_milli, 7000);
    assert_int_equal(figures_of(&next, "a").settings_version, 2);
    expect_rooms(&node, "a b");

    struct settings by_operator = patient();
    by_operator.rate_milli = 9000;
    assert_int_equal(put(&node, "a", by_operator, 2), ERROR_NONE);
    struct node last = node_with(rooms, 2, false);
    node_tick(&last);
    assert_int_equal(look(&last, "a").settings.rate_milli, 9000); /* what an operator changed stays */
    node_free(&node);
    node_free(&same);
    node_free(&next);
    node_free(&last);
}

static void a_deleted_room_of_the_file_comes_back_with_the_next_start(void **state)
{
    struct redis_room_conf rooms[1] = {configured("a")};
    struct node node = node_with(rooms, 1, false), other = node_with(rooms, 1, false);
    struct node late = node_with(rooms, 1, false);
    struct standing standing, gone;
    (void)state;

    forget_all();
    node_tick(&node);
    node_tick(&other);
    assert_int_equal(join(&other, "a", 1, &gone), ERROR_NONE);
    node_tick(&other);
    assert_int_equal(delete_room(&node, "a"), ERROR_NONE);
    for (int i = 0; i < 20; i++) {
        node_tick(&node);
        node_tick(&other);
    }
    assert_int_equal(join(&node, "a", 2, &standing), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(join(&other, "a", 2, &standing), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(ask(&other, "a", ENGINE_STATUS, &gone.place, &standing), ERROR_TOKEN_NOT_FOUND);
    node_tick(&late); /* a worker that begins only now, with what was read before */
    assert_int_equal(join(&late, "a", 2, &standing), ERROR_ROOM_NOT_FOUND);
    expect_rooms(&late, "");

    while (wall_ms() <= (uint64_t)redis_server_number(&server, "ZSCORE queue:rooms a"))
        ; /* a later start is one that is later by the clock */
    struct node next = node_with(rooms, 1, false);
    node_tick(&next);
    expect_rooms(&next, "a");
    assert_int_equal(join(&other, "a", 2, &standing), ERROR_NONE);
    assert_int_equal(standing.position, 1);
    assert_int_equal(ask(&other, "a", ENGINE_STATUS, &gone.place, &standing), ERROR_TOKEN_NOT_FOUND);
    node_free(&node);
    node_free(&other);
    node_free(&late);
    node_free(&next);
}

/* ---- a server that forgets ---- */

enum { PEOPLE = 20 };

/* Everybody polls, the last first, each with a ticket that says when it was issued; and is called in the order of places. */
static void poll_backwards(struct node *node, const char *room, const struct place *places)
{
    struct standing standing;

    for (int i = PEOPLE - 1; i >= 0; i--) {
        struct place place = places[i];
        place.issue = (struct issue){.is_known = true, .key_id = 1, .sec = 5};
        assert_int_equal(ask(node, room, ENGINE_STATUS, &place, &standing), ERROR_NONE);
        assert_int_equal(standing.place.epoch, place.epoch);
        assert_int_equal(standing.place.count, place.count);
    }
    assert_int_equal(join(node, room, 1000, &standing), ERROR_NONE);
    assert_int_equal(figures_of(node, room).in_state[TICKET_WAITING], PEOPLE + 1);
    for (int i = 0; i < PEOPLE; i++) {
        struct engine_call next = {.op = ENGINE_ADVANCE, .people = 1};
        assert_int_equal(ask(node, room, ENGINE_STATUS, &places[i], &standing), ERROR_NONE);
        assert_false(standing.is_ready);
        assert_int_equal(submit(node, &next, room), ERROR_NONE);
        assert_int_equal(ask(node, room, ENGINE_STATUS, &places[i], &standing), ERROR_NONE);
        assert_true(standing.is_ready);
    }
}

static void join_all(struct node *node, const char *room, struct place *places)
{
    struct standing standing;

    for (int i = 0; i < PEOPLE; i++) {
        assert_int_equal(join(node, room, (uint64_t)i + 1, &standing), ERROR_NONE);
        places[i] = standing.place;
    }
}

static void a_server_that_forgot_everything_gets_its_rooms_and_places_back(void **state)
{
    struct redis_room_conf rooms[1] = {configured("of-the-file")};
    struct node node = node_with(rooms, 1, true), other = node_with(rooms, 1, true);
    static const char *const names[] = {"of-the-file", "of-a-join"};
    struct place places[2][PEOPLE];
    (void)state;

    forget_all();
    node_tick(&node);
    node_tick(&other);
    for (int i = 0; i < 2; i++)
        join_all(&node, names[i], places[i]);
    node_tick(&node);
    for (int ticks = 0; ticks < 60; ticks++)
        node_tick(&other); /* it was asked about none of them, and knows them all the same */
    for (int losses = 0; losses < 2; losses++) {
        forget_all();
        node_tick(&other);
        node_tick(&node);
        for (int i = 0; i < 2; i++)
            poll_backwards(losses == 0 ? &other : &node, names[i], places[i]);
        expect_rooms(&node, "of-a-join of-the-file");
        for (int ticks = 0; ticks < 60; ticks++) {
            node_tick(&node);
            node_tick(&other);
        }
    }
    node_free(&node);
    node_free(&other);
}

static void what_an_operator_made_comes_back_as_it_was(void **state)
{
    struct node node = node_new(false);
    struct settings settings = patient();
    struct place places[PEOPLE];
    (void)state;

    forget_all();
    settings.rate_milli = 7000;
    assert_int_equal(put(&node, "a", settings, 0), ERROR_NONE);
    join_all(&node, "a", places);
    node_tick(&node);
    forget_all();
    poll_backwards(&node, "a", places);
    assert_int_equal(look(&node, "a").settings.rate_milli, 7000);
    expect_rooms(&node, "a");
    node_free(&node);
}

/* ---- many nodes ---- */

static void nodes_together_call_as_many_as_there_are_slots(void **state)
{
    enum { NODES = 3, CROWD = 60, ROOM_SLOTS = 10 };
    struct settings settings = patient();
    settings.mode = MODE_QUEUE;
    settings.max_active = ROOM_SLOTS;
    settings.rate_milli = 10000;
    struct node nodes[NODES];
    struct place places[CROWD];
    struct standing standing;
    int ready = 0;
    (void)state;

    forget_all();
    for (int i = 0; i < NODES; i++)
        nodes[i] = node_new(false);
    assert_int_equal(put(&nodes[0], "a", settings, 0), ERROR_NONE);
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(join(&nodes[i % NODES], "a", (uint64_t)i + 1, &standing), ERROR_NONE);
        places[i] = standing.place;
    }
    for (int ticks = 0; ticks < 50; ticks++) {
        pass("a", TICK_MS);
        for (int i = 0; i < NODES; i++)
            node_tick(&nodes[i]);
        struct figures figures = figures_of(&nodes[0], "a");
        assert_true(figures.in_state[TICKET_CALLED] <= ROOM_SLOTS);
        assert_true(figures.calls <= 2 + figures.clock_ms / 100); /* a burst of two ticks, and one in 0.1 s */
    }
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(ask(&nodes[(i + 1) % NODES], "a", ENGINE_STATUS, &places[i], &standing), ERROR_NONE);
        assert_int_equal(standing.is_ready, i < ROOM_SLOTS);
        ready += standing.is_ready;
    }
    assert_int_equal(ready, ROOM_SLOTS);
    for (int i = 0; i < NODES; i++)
        node_free(&nodes[i]);
}

static uint64_t changes(void)
{
    redisReply *info = redis_server_ask(&server, "INFO persistence");
    const char *at = strstr(info->str, "rdb_changes_since_last_save:");

    assert_non_null(at);
    uint64_t count = strtoull(strchr(at, ':') + 1, NULL, 10);
    freeReplyObject(info);
    return count;
}

/* Valkey, and Redis since 7.2, let a WAIT wait for the client's last write: one that writes nothing would be confirmed by nobody. */
static void an_enter_that_is_repeated_writes_again(void **state)
{
    struct settings settings = patient();
    struct standing standing;
    (void)state;

    forget_all();
    struct node node = node_new(false);
    settings.mode = MODE_OPEN;
    assert_int_equal(put(&node, "a", settings, 0), ERROR_NONE);
    assert_int_equal(join(&node, "a", 1, &standing), ERROR_NONE);
    struct place place = standing.place;
    assert_int_equal(ask(&node, "a", ENGINE_ENTER, &place, &standing), ERROR_NONE);
    uint64_t before = changes();
    assert_int_equal(ask(&node, "a", ENGINE_ENTER, &place, &standing), ERROR_NONE);
    assert_true(standing.is_repeat);
    assert_true(changes() > before);
    node_free(&node);
}

static void another_node_goes_on_when_one_has_stopped(void **state)
{
    struct node first = node_new(true), second = node_new(true);
    struct standing standing;
    (void)state;

    forget_all();
    assert_int_equal(join(&first, "a", 1, &standing), ERROR_NONE);
    assert_int_equal(join(&second, "a", 2, &standing), ERROR_NONE);
    node_tick(&first);
    pass("a", TICK_MS);
    uint64_t clock_ms = figures_of(&second, "a").clock_ms;
    node_tick(&second); /* told to wait */
    assert_int_equal(figures_of(&second, "a").clock_ms, clock_ms);
    node_tick(&first);
    assert_true(figures_of(&second, "a").clock_ms > clock_ms);
    clock_ms = figures_of(&second, "a").clock_ms;

    pass("a", 1000); /* and the first is no more */
    for (int ticks = 0; ticks < 10; ticks++)
        node_tick(&second);
    assert_true(figures_of(&second, "a").clock_ms > clock_ms);
    clock_ms = figures_of(&second, "a").clock_ms;
    pass("a", TICK_MS);
    node_tick(&first); /* it wakes after its time: another has taken over */
    assert_int_equal(figures_of(&second, "a").clock_ms, clock_ms);
    node_free(&first);
    node_free(&second);
}

static void a_room_at_rest_costs_nothing(void **state)
{
    struct node node = node_new(true), other = node_new(true);
    struct standing standing;
    (void)state;

    forget_all();
    assert_int_equal(join(&node, "a", 1, &standing), ERROR_NONE);
    assert_int_equal(ask(&node, "a", ENGINE_LEAVE, &standing.place, &standing), ERROR_NONE);
    for (int ticks = 0; ticks < 400; ticks++) { /* passes of a former room are believed for 300 s */
        pass("a", 1000);
        node.now_ms += 1000 - TICK_MS;
        node_tick(&node);
    }
    uint64_t clock_ms = figures_of(&node, "a").clock_ms;
    assert_in_range(clock_ms, 300000, 302000);
    for (int ticks = 0; ticks < 5; ticks++) {
        pass("a", TICK_MS);
        node_tick(&node);
    }
    assert_int_equal(figures_of(&node, "a").clock_ms, clock_ms);
    /* Whoever is asked next begins at once. */
    assert_int_equal(join(&other, "a", 2, &standing), ERROR_NONE);
    node_tick(&other);
    assert_true(figures_of(&node, "a").clock_ms > clock_ms);
    node_free(&node);
    node_free(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_rooms_are_refused_unless_they_may_be_made),
        cmocka_unit_test(rooms_are_as_many_as_there_may_be_and_each_is_its_own),
        cmocka_unit_test(settings_change_once_for_each_version),
        cmocka_unit_test(rooms_of_the_file_are_there_with_its_settings),
        cmocka_unit_test(a_deleted_room_of_the_file_comes_back_with_the_next_start),
        cmocka_unit_test(a_server_that_forgot_everything_gets_its_rooms_and_places_back),
        cmocka_unit_test(what_an_operator_made_comes_back_as_it_was),
        cmocka_unit_test(nodes_together_call_as_many_as_there_are_slots),
        cmocka_unit_test(an_enter_that_is_repeated_writes_again),
        cmocka_unit_test(another_node_goes_on_when_one_has_stopped),
        cmocka_unit_test(a_room_at_rest_costs_nothing),
    };
    return cmocka_run_group_tests_name("redis_nodes", tests, start, stop);
}
