/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A room of plain C against a room that a real Redis keeps. Both are fed the same random operations and must give the same
 * answers, whatever was asked before.
 *
 * Time is the server's own, and no script takes it from anybody. So the test lets time pass by making the last tick seem longer
 * ago, in the key where the room notes it; and the room of plain C is told how much time the tick then counted.
 */
#include "rig.h"

#include "base/little.h"
#include "redis/ask.h"
#include "redis/rooms.h"
#include "redis_server.h"

#include "engine/engine.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROOM      SPAN("sale")
#define TAG       "{sale}"
#define PEOPLE    60
#define KEYS      25
#define PLACES    96 /* remembered, living or not */
#define GATHERED  5
#define LOSSES    4  /* remembered */
#define LOST      12 /* tickets of each */
#define PAGES     600
#define RUNS      50
#define RUN_STEPS 2500

/* The two rooms, and who has what. */
struct pair {
    uint64_t seed, step;
    struct dice dice;
    struct rig rig;
    struct redis_server *server;
    struct redis_rooms *rooms;
    uint32_t pages; /* of the room of plain C */
    uint64_t clock_ms;
    uint32_t wall_sec;
    uint32_t version; /* of the settings */
    bool has_losses;
    bool
        has_operator; /* who changes settings, calls, clears and deletes: else all that is measured grows old */
    struct place places[PLACES];
    uint32_t place_count; /* ever */
    struct {
        uint32_t epoch, from,
            most; /* counts that were given and forgotten; and how many there is place for */
    } losses[LOSSES];
    uint32_t loss_count; /* ever */
    uint32_t former_sec;
    bool was_deleted;
    uint32_t shop_ms;             /* about what its answers take */
    uint64_t node;                /* that ticks */
    struct redis_epochs recalled; /* as the last tick told */
    const char *act;
};

/* What was compared, over all runs. */
static struct {
    uint64_t operations, eta_checked;
    uint64_t healed, returned; /* answers to tickets of former epochs; sessions made anew */
    uint64_t waits, forgotten; /* ticks that were told to wait; rooms that a server forgot */
    uint64_t by_holder,
        spent;             /* answers to whoever named only themselves; passes that took somebody further */
    uint64_t frozen_halls; /* figures of rooms whose hall is full */
    uint64_t states[TICKET_STATES], errors[ERROR_COUNT], reasons[FOLLOW_REASONS];
} seen;

#define EQUAL(pair, local, redis, what)                                                                    \
    do {                                                                                                   \
        if ((local) != (redis))                                                                            \
            fail_msg("seed %" PRIu64 " step %" PRIu64 " %s: %s is %" PRIu64 ", but %" PRIu64 " in Redis",  \
                     (pair)->seed, (pair)->step, (pair)->act, what, (uint64_t)(local), (uint64_t)(redis)); \
    } while (0)

static uint32_t one_of(struct dice *dice, const uint32_t *values, uint32_t count)
{
    return values[dice_below(dice, count)];
}

#define ONE_OF(dice, ...) \
    one_of(dice, (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* ---- asking both ---- */

static void note_done(struct engine_call *call)
{
    *(bool *)call->context = true;
}

static void ask_redis(struct pair *pair, struct engine_call *calls, uint32_t count)
{
    bool is_done[GATHERED] = {false};

    for (uint32_t i = 0; i < count; i++) {
        calls[i].room = ROOM;
        calls[i].done = note_done;
        calls[i].context = &is_done[i];
        redis_submit(pair->rooms, &calls[i]);
    }
    redis_flush(pair->rooms);
    for (uint32_t i = 0; i < count; i++)
        assert_true(is_done[i]);
}

static void ask_local(struct pair *pair, struct engine_call *call)
{
    call->room = ROOM;
    call->retry_after_sec = 0;
    call->error = engine_run(pair->rig.room, call);
}

static void compare_standing(const struct pair *pair, const struct standing *a, const struct standing *b)
{
    EQUAL(pair, a->place.epoch, b->place.epoch, "epoch");
    EQUAL(pair, a->place.count, b->place.count, "count");
    assert_true(holder_equal(&a->place.holder, &b->place.holder));
    EQUAL(pair, a->state, b->state, "state");
    EQUAL(pair, a->is_trusted, b->is_trusted, "is_trusted");
    EQUAL(pair, a->is_ready, b->is_ready, "is_ready");
    EQUAL(pair, a->is_repeat, b->is_repeat, "is_repeat");
    EQUAL(pair, a->key_id, b->key_id, "key_id");
    EQUAL(pair, a->tier, b->tier, "tier");
    EQUAL(pair, a->pass_key_id, b->pass_key_id, "pass_key_id");
    EQUAL(pair, a->issued_sec, b->issued_sec, "issued_sec");
    EQUAL(pair, a->position, b->position, "position");
    EQUAL(pair, a->waited_sec, b->waited_sec, "waited_sec");
    EQUAL(pair, a->eta_sec, b->eta_sec, "eta_sec");
    EQUAL(pair, a->eta_low_sec, b->eta_low_sec, "eta_low_sec");
    EQUAL(pair, a->eta_high_sec, b->eta_high_sec, "eta_high_sec");
    EQUAL(pair, a->next_poll_sec, b->next_poll_sec, "next_poll_sec");
    EQUAL(pair, a->iat_sec, b->iat_sec, "iat_sec");
    EQUAL(pair, a->pass_life_sec, b->pass_life_sec, "pass_life_sec");
    EQUAL(pair, a->arrive_ttl_sec, b->arrive_ttl_sec, "arrive_ttl_sec");
    seen.states[a->state]++;
    seen.healed += a->place.epoch != room_epoch(pair->rig.room);
}

/* What a clear leaves behind keeps the room of plain C from its rest until the next tick; a server forgets it aside. */
static bool is_clearing(const struct room *room)
{
    return line_pages(&room->dead_line, &room->memory) > 0 || map_pages(&room->dead_holders) > 0;
}

static void compare_figures(const struct pair *pair, const struct figures *a, const struct figures *b)
{
    static const char *const states[] = {"none", "waiting", "away", "called", "entered", "active", "done"};

    EQUAL(pair, a->epoch, b->epoch, "epoch");
    EQUAL(pair, a->clock_ms, b->clock_ms, "clock_ms");
    for (int state = TICKET_WAITING; state < TICKET_STATES; state++)
        EQUAL(pair, a->in_state[state], b->in_state[state], states[state]);
    EQUAL(pair, a->issued, b->issued, "issued");
    EQUAL(pair, a->calls, b->calls, "calls");
    EQUAL(pair, a->refunds, b->refunds, "refunds");
    EQUAL(pair, a->keys_dropped, b->keys_dropped, "keys_dropped");
    EQUAL(pair, a->last_called, b->last_called, "last_called");
    if (!is_clearing(pair->rig.room)) {
        EQUAL(pair, a->joined_milli, b->joined_milli, "joined_milli");
        EQUAL(pair, a->called_milli, b->called_milli, "called_milli");
    }
    EQUAL(pair, a->newcomer_eta_sec, b->newcomer_eta_sec, "newcomer_eta_sec");
    EQUAL(pair, a->eta_checked, b->eta_checked, "eta_checked");
    EQUAL(pair, a->eta_kept, b->eta_kept, "eta_kept");
    EQUAL(pair, a->rate_milli, b->rate_milli, "rate_milli");
    EQUAL(pair, a->pace_reason, b->pace_reason, "pace_reason");
    EQUAL(pair, a->shop_time_ms, b->shop_time_ms, "shop_time_ms");
    EQUAL(pair, a->shop_target_ms, b->shop_target_ms, "shop_target_ms");
    EQUAL(pair, a->shop_failed_permille, b->shop_failed_permille, "shop_failed_permille");
    EQUAL(pair, a->settings_version, b->settings_version, "settings_version");
    seen.reasons[a->pace_reason]++;
    seen.frozen_halls += a->pace_reason == FOLLOW_FROZEN && room_settings(pair->rig.room)->pace == PACE_HALL;
    EQUAL(pair, a->is_settings_from_api, b->is_settings_from_api, "is_settings_from_api");
    seen.eta_checked += a->eta_checked;
}

static bool has_standing(const struct engine_call *call)
{
    if (call->op == ENGINE_ENTER && call->error == ERROR_NOT_READY)
        return true;
    return call->error == ERROR_NONE && (call->op <= ENGINE_ENTER);
}

static void compare(const struct pair *pair, const struct engine_call *a, const struct engine_call *b)
{
    EQUAL(pair, a->error, b->error, "error");
    EQUAL(pair, a->retry_after_sec, b->retry_after_sec, "retry_after_sec");
    if (has_standing(a))
        compare_standing(pair, &a->standing, &b->standing);
    if (a->op == ENGINE_FIGURES && a->error == ERROR_NONE)
        compare_figures(pair, &a->figures, &b->figures);
    if (a->texts != NULL)
        assert_memory_equal(a->texts, b->texts, sizeof(*a->texts));
    if (a->op == ENGINE_FIGURES || a->op == ENGINE_SETTINGS)
        assert_memory_equal(&a->settings, &b->settings, sizeof(a->settings));
    if (a->op == ENGINE_ADVANCE || a->op == ENGINE_CLEAR)
        EQUAL(pair, a->people, b->people, "people");
    seen.errors[a->error]++;
    seen.operations++;
}

/* Asks both, and returns what they agree on. */
static struct engine_call ask_both(struct pair *pair, const char *act, struct engine_call asked)
{
    static struct texts texts[2];
    struct engine_call local = asked, redis = asked;

    pair->act = act;
    if (asked.op == ENGINE_FIGURES) {
        memset(texts, 0, sizeof(texts));
        local.texts = &texts[0];
        redis.texts = &texts[1];
    }
    ask_local(pair, &local);
    ask_redis(pair, &redis, 1);
    compare(pair, &local, &redis);
    return local;
}

/* ---- what people do ---- */

#define IN(state)  (1U << TICKET_##state)
#define IN_LINE    (IN(WAITING) | IN(AWAY))
#define INSIDE     (IN(ENTERED) | IN(ACTIVE))
#define ANYWHERE   UINT32_MAX
#define SOME_TRIES 30

static enum ticket_state state_of(const struct pair *pair, const struct place *place)
{
    struct standing standing;

    return room_look(pair->rig.room, place, &standing) == ERROR_NONE ? standing.state : TICKET_DONE;
}

/* One that a server gave before it was lost. Always the same person's. */
static struct place lost_place(struct pair *pair)
{
    uint32_t known = pair->loss_count < LOSSES ? pair->loss_count : LOSSES;
    uint32_t loss = dice_below(&pair->dice, known);
    uint32_t count = pair->losses[loss].from + dice_below(&pair->dice, LOST);

    if (dice_below(&pair->dice, 12) == 0)
        count = pair->losses[loss].most + dice_below(&pair->dice, 2);

    return (struct place){.epoch = pair->losses[loss].epoch,
                          .count = count,
                          .holder = holder_of((pair->losses[loss].epoch + count * 7) % PEOPLE)};
}

/* One in such a state, mostly: also who is not there, or not there any more, asks now and then. */
static struct place known_place(struct pair *pair, uint32_t states)
{
    uint32_t known = pair->place_count < PLACES ? pair->place_count : PLACES;
    uint32_t tries = dice_below(&pair->dice, 8) == 0 ? 1 : SOME_TRIES;
    struct place place;

    do
        place = pair->places[dice_below(&pair->dice, known)];
    while (--tries > 0 && (states & 1U << state_of(pair, &place)) == 0);
    return place;
}

/* And what the token says beside it, or not. Some come with nothing but who they are. */
static struct place some_place(struct pair *pair, uint32_t states)
{
    bool is_lost = pair->loss_count > 0 && dice_below(&pair->dice, 6) == 0;
    struct place place = is_lost ? lost_place(pair) : known_place(pair, states);

    if (dice_below(&pair->dice, 8) == 0)
        place.epoch = 0;
    if (dice_below(&pair->dice, 4) != 0)
        place.issue = (struct issue){true, dice_below(&pair->dice, 2) == 0,
                                     (uint8_t)dice_below(&pair->dice, 256), pair->wall_sec - 5};
    if (dice_below(&pair->dice, 2) == 0)
        place.grant = (struct grant){true, (uint8_t)dice_below(&pair->dice, 256),
                                     (uint8_t)(1 + dice_below(&pair->dice, 2)),
                                     pair->former_sec + ONE_OF(&pair->dice, 0, 5, 10) - 5};
    return place;
}

static struct request_key some_key(struct pair *pair)
{
    if (dice_below(&pair->dice, 3) != 0)
        return (struct request_key){0};
    return key_of(dice_below(&pair->dice, KEYS), dice_below(&pair->dice, 8) == 0 ? 2 : UINT64_MAX);
}

/* A ticket of another epoch, count or holder is nobody's. */
static struct place spoiled(struct pair *pair, struct place place)
{
    if (dice_below(&pair->dice, 30) == 0)
        place.epoch--;
    if (dice_below(&pair->dice, 30) == 0)
        place.count += 1000000;
    if (dice_below(&pair->dice, 30) == 0)
        place = (struct place){place.epoch, place.count, holder_of(PEOPLE + 1), {0}, {0}};
    return place;
}

static struct engine_call some_call(struct pair *pair, enum engine_op op, uint32_t states)
{
    struct engine_call call = {.op = op, .seconds = dice_below(&pair->dice, 100)};
    uint8_t key_id = (uint8_t)dice_below(&pair->dice, 256);

    if (op == ENGINE_JOIN)
        call.join = (struct join){.holder = holder_of(dice_below(&pair->dice, PEOPLE)),
                                  .is_trusted = dice_below(&pair->dice, 2) == 0,
                                  .key_id = key_id,
                                  .wall_sec = pair->wall_sec,
                                  .request = some_key(pair)};
    else if (op == ENGINE_ENTER)
        call.enter = (struct enter){.place = some_place(pair, states),
                                    .key_id = key_id,
                                    .wall_sec = pair->wall_sec,
                                    .request = some_key(pair),
                                    .spends = dice_below(&pair->dice, 3) == 0};
    else
        call.place = spoiled(pair, some_place(pair, states));
    return call;
}

static void count_seen(const struct engine_call *call)
{
    const struct place *place = call->op == ENGINE_ENTER ? &call->enter.place : &call->place;

    seen.by_holder += call->op != ENGINE_JOIN && call->error == ERROR_NONE && place->epoch == 0;
    seen.spent += call->op == ENGINE_ENTER && call->error == ERROR_NONE && call->enter.spends;
}

static void learn_place(struct pair *pair, const struct engine_call *call)
{
    if (call->op == ENGINE_JOIN && call->error == ERROR_NONE && !call->standing.is_repeat)
        pair->places[pair->place_count++ % PLACES] = call->standing.place;
}

/* Several at once, now and then: the script is given all of them, the room of plain C one after the other. */
static void ask_people(struct pair *pair, enum engine_op op, uint32_t states, const char *act)
{
    struct engine_call local[GATHERED], redis[GATHERED];
    uint32_t count = dice_below(&pair->dice, 2) == 0 ? 1 : 1 + dice_below(&pair->dice, GATHERED);

    pair->act = act;
    for (uint32_t i = 0; i < count; i++)
        redis[i] = local[i] = some_call(pair, op, states);
    for (uint32_t i = 0; i < count; i++) {
        bool is_outside = op == ENGINE_SESSION_TOUCH && (INSIDE & 1U << state_of(pair, &local[i].place)) == 0;
        ask_local(pair, &local[i]);
        seen.returned += is_outside && local[i].error == ERROR_NONE;
    }
    ask_redis(pair, redis, count);
    for (uint32_t i = 0; i < count; i++) {
        compare(pair, &local[i], &redis[i]);
        count_seen(&local[i]);
        learn_place(pair, &local[i]);
    }
}

/* ---- time ---- */

static void note_chore(struct redis_chore *chore)
{
    *(bool *)chore->context = true;
}

static uint64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct redis_chore ask_tick(struct pair *pair, uint64_t node)
{
    bool is_done = false;
    struct redis_chore tick = {.kind = CHORE_TICK,
                               .room = ROOM,
                               .node = node,
                               .epochs = &pair->recalled,
                               .done = note_chore,
                               .context = &is_done};

    redis_submit_chore(pair->rooms, &tick);
    assert_true(is_done);
    EQUAL(pair, ERROR_NONE, tick.error, "error");
    EQUAL(pair, false, tick.is_behind, "is_behind");
    return tick;
}

/* The room of plain C follows the time that this tick counted. */
static void follow_tick(struct pair *pair, const struct redis_chore *tick)
{
    uint64_t calls = room_figures(pair->rig.room).calls;

    assert_true(tick->clock_ms >= pair->clock_ms && tick->clock_ms <= pair->clock_ms + 1000);
    uint32_t elapsed_ms = (uint32_t)(tick->clock_ms - pair->clock_ms);
    pair->clock_ms = tick->clock_ms;
    if (elapsed_ms > 0)
        room_tick(pair->rig.room, elapsed_ms);
    EQUAL(pair, room_figures(pair->rig.room).calls - calls, tick->called, "called");
    if (elapsed_ms > 0) /* in plain C what a clear left behind goes with the next tick */
        EQUAL(pair, room_is_at_rest(pair->rig.room), tick->is_at_rest, "is_at_rest");
    struct figures after = room_figures(pair->rig.room);
    EQUAL(pair, after.issued == after.in_state[TICKET_DONE], tick->is_empty, "is_empty");
    seen.operations++;
}

/* Whoever ticked last goes on: nobody else has anything to do until their time is over. */
static void ask_as_another(struct pair *pair)
{
    uint64_t other = pair->node ^ UINT64_C(1) << dice_below(&pair->dice, 64);
    struct redis_chore tick = ask_tick(pair, other);

    if (tick.wait_ms > 0) {
        EQUAL(pair, pair->clock_ms, tick.clock_ms, "clock_ms");
        seen.waits++;
    } else
        pair->node = other;
    follow_tick(pair, &tick);
}

static void lease_end(struct pair *pair)
{
    redis_server_number(pair->server, "HSET queue:room:" TAG " lease_ms %" PRIu64,
                        wall_ms() - ONE_OF(&pair->dice, 0, 1, 5000) +
                            (dice_below(&pair->dice, 2) == 0 ? 100000 : 0));
    pair->node = dice_roll(&pair->dice);
}

static void tick(struct pair *pair, uint32_t ms)
{
    struct redis_chore tick;

    pair->act = "tick";
    redis_server_number(pair->server, "HSET queue:room:" TAG " ticked_ms %" PRIu64, wall_ms() - ms);
    pair->wall_sec += ms / 1000;
    if (dice_below(&pair->dice, 10) == 0)
        ask_as_another(pair);
    if (dice_below(&pair->dice, 50) == 0)
        lease_end(pair);
    while ((tick = ask_tick(pair, pair->node)).wait_ms > 0)
        lease_end(pair);
    follow_tick(pair, &tick);
}

static void pass_time(struct pair *pair)
{
    uint32_t many = dice_below(&pair->dice, 60) == 0 ? 1 + dice_below(&pair->dice, 30) : 1;

    for (uint32_t i = 0; i < many; i++)
        tick(pair, many > 1 ? 1000 : ONE_OF(&pair->dice, 0, 60, 100, 100, 250, 800, 1000, 5000));
}

/* ---- what the operator does ---- */

static struct settings some_settings(struct dice *dice)
{
    struct settings settings = settings_default();

    settings.mode =
        ONE_OF(dice, MODE_QUEUE, MODE_QUEUE, MODE_QUEUE, MODE_QUEUE, MODE_HOLD, MODE_OPEN, MODE_CLOSED);
    settings.burst = ONE_OF(dice, 0, 0, 1, 3, 20);
    settings.rate_milli = ONE_OF(dice, 1, 300, 1000, 3333, 3333, 10000, 50000, 200000);
    if (dice_below(dice, 3) == 0) {
        settings.batch = ONE_OF(dice, 1, 2, 7, 20, 500);
        settings.interval_sec = ONE_OF(dice, 1, 2, 3, 10, 30);
        settings.smooth = dice_below(dice, 2);
    }
    if (settings.batch == 0 && dice_below(dice, 4) == 0) {
        settings.pace = PACE_AUTO;
        settings.shop_target_ms = ONE_OF(dice, 0, 0, 50, 400);
        /* Where the burst is that of the rate, a lower rate costs credit: in Redis after the calls of the tick, and not before. */
        settings.burst = ONE_OF(dice, 1, 3, 20);
        settings.rate_min_milli = ONE_OF(dice, 500, 2000);
        settings.rate_max_milli = ONE_OF(dice, 5000, 40000);
    }
    if (settings.pace == PACE_FIXED && dice_below(dice, 4) == 0)
        settings.pace = PACE_HALL;
    settings.preset = ONE_OF(dice, PRESET_PLAIN, PRESET_HALL, PRESET_LOBBY, PRESET_CONCERT);
    settings.max_active = ONE_OF(dice, 0, 1, 5, 10, 20, 40);
    settings.max_called = ONE_OF(dice, 0, 0, 0, 1, 3, 10);
    settings.min_wait_sec = ONE_OF(dice, 0, 0, 0, 1, 5, 15);
    settings.max_waiting = ONE_OF(dice, 0, 0, 0, 5, 50);
    settings.max_eta_sec = ONE_OF(dice, 0, 0, 0, 0, 5, 30, 300);
    settings.eta_cap_sec = ONE_OF(dice, 0, 0, 0, 60);
    settings.seen_ttl_sec = ONE_OF(dice, 10, 10, 12, 30);
    settings.away_ttl_sec = ONE_OF(dice, 1, 5, 20, 60, 300);
    settings.claim_ttl_sec = ONE_OF(dice, 1, 2, 5, 20, 60);
    settings.arrive_ttl_sec = ONE_OF(dice, 1, 5, 20, 180);
    settings.session_ttl_sec = ONE_OF(dice, 1, 3, 10, 40);
    settings.session_max_sec = ONE_OF(dice, 0, 0, 5, 30);
    settings.session_renew = dice_below(dice, 4) != 0;
    settings.tier = 1 + dice_below(dice, 2);
    return settings;
}

/* By dice of their own: what is shown has no part in what happens. */
static const struct texts *some_texts(void)
{
    static struct dice dice = {11};

    return texts_at_random(&dice);
}

static void put(struct pair *pair, struct settings settings)
{
    bool is_stale = dice_below(&pair->dice, 5) == 0;
    struct engine_call call = {
        .op = ENGINE_PUT,
        .put = {.settings = settings,
                .texts = some_texts(),
                .version = pair->version - is_stale,
                .is_from_api = dice_below(&pair->dice, 2) == 0},
    };

    if (ask_both(pair, "put", call).error == ERROR_NONE)
        pair->version++;
}

static void compare_figure(const struct pair *pair, uint64_t local, const char *name)
{
    uint64_t redis = (uint64_t)redis_server_number(pair->server, "HGET queue:room:" TAG " %s", name);

    EQUAL(pair, local, redis, name);
}

/* Of the pace little is seen until it is spent. */
static void compare_pace(const struct pair *pair)
{
    const struct room *room = pair->rig.room;

    compare_figure(pair, room->pace.credit, "credit");
    compare_figure(pair, room->pace.wait_ms, "wait_ms");
    compare_figure(pair, room->advance, "advance");
}

/* What the server holds is what it should hold, and no more. */
static void check_keys(struct pair *pair)
{
    struct redis_server *server = pair->server;
    struct figures figures = room_figures(pair->rig.room);
    long long alive = (long long)(figures.issued - figures.in_state[TICKET_DONE]);

    assert_int_equal(redis_server_number(server, "HLEN queue:tickets:" TAG), alive);
    assert_int_equal(redis_server_number(server, "ZCARD queue:due:" TAG), alive);
    assert_int_equal(redis_server_number(server, "ZCARD queue:event:" TAG), figures.in_state[TICKET_WAITING]);
    assert_int_equal(redis_server_number(server, "HLEN queue:requests:" TAG),
                     pair->rig.room->keys.by_scope.entries);
    assert_int_equal(redis_server_number(server, "LLEN queue:requests:order:" TAG),
                     pair->rig.room->keys.by_scope.entries);
    assert_in_range(redis_server_number(server, "LLEN queue:measured:" TAG), 0, 59);
    assert_in_range(redis_server_number(server, "HLEN queue:shop:" TAG), 0,
                    room_settings(pair->rig.room)->pace == PACE_AUTO ? SHOP_TIMES + 2 : 0);
    assert_in_range(redis_server_number(server, "DBSIZE"), 2, 10);
    room_check(pair->rig.room);
}

/* ---- runs ---- */

/* What the server alone knows of a room that was just made: its epochs come from its clock. */
static void learn_made(struct pair *pair)
{
    struct engine_call look = {.op = ENGINE_FIGURES};

    ask_redis(pair, &look, 1);
    assert_int_equal(look.error, ERROR_NONE);
    must(pair->rig.room != NULL);
    pair->rig.room->epoch[pair->rig.room->epochs - 1].epoch = look.figures.epoch;
    uint32_t former_sec = (uint32_t)redis_server_number(pair->server, "HGET queue:room:" TAG " former_sec");
    /* Nobody knows what was before, unless it was deleted. */
    assert_true((former_sec == 0) == pair->was_deleted);
    if (former_sec != 0)
        room_had_former(pair->rig.room, former_sec);
    pair->former_sec = former_sec == 0 ? pair->wall_sec : former_sec;
    pair->loss_count = 0;
    pair->version = 1;
    pair->clock_ms = 0;
}

/* Both are made anew, by the first settings. */
static void make(struct pair *pair, struct settings settings)
{
    struct engine_call call = {.op = ENGINE_PUT,
                               .put = {.settings = settings, .texts = some_texts(), .is_from_api = true}};

    pair->rig = rig_new(pair->pages, &settings);
    ask_both(pair, "make", call);
    learn_made(pair);
}

/* As a node does that finds no room, with what it has in mind of it. */
static void ask_make(struct pair *pair, const struct settings *settings, const struct texts *texts)
{
    bool is_done = false;
    struct redis_chore make = {.kind = CHORE_MAKE,
                               .room = ROOM,
                               .settings = settings,
                               .texts = texts,
                               .epochs = &pair->recalled,
                               .done = note_chore,
                               .context = &is_done};

    redis_submit_chore(pair->rooms, &make);
    assert_true(is_done);
    EQUAL(pair, ERROR_NONE, make.error, "error");
}

static void make_as_node(struct pair *pair, const struct settings *settings, const struct texts *texts)
{
    ask_make(pair, settings, texts);
    pair->rig = rig_new(pair->pages, settings);
    assert_int_equal(room_set_settings(pair->rig.room, settings, texts, false), ERROR_NONE);
}

/* The room is deleted, and made anew: nothing of the former one counts, whatever nodes remember. */
static void make_anew(struct pair *pair)
{
    uint32_t epoch = room_epoch(pair->rig.room);

    ask_both(pair, "delete", (struct engine_call){.op = ENGINE_DELETE});
    assert_int_equal(redis_server_number(pair->server, "DBSIZE"), 1);
    rig_free(&pair->rig);
    pair->was_deleted = true;
    if (dice_below(&pair->dice, 2) == 0) {
        make(pair, some_settings(&pair->dice));
    } else {
        struct settings settings = some_settings(&pair->dice);
        make_as_node(pair, &settings, some_texts());
        learn_made(pair);
    }
    pair->recalled.len = 0;
    assert_true(room_epoch(pair->rig.room) > epoch);
}

/* What a room of plain C would be that has lost all its people. The bytes are those of lua/lib/loss.lua. */
static void recall(struct pair *pair, struct room *room)
{
    const char *at = pair->recalled.bytes + 8;
    uint32_t count = (pair->recalled.len - 8) / 12;
    uint32_t cleared = little_get32(pair->recalled.bytes + 4); /* up to there, when the last tick told */

    room->epochs = count;
    for (uint32_t i = 0; i < count; i++, at += 12) {
        struct epoch *epoch = &room->epoch[i];
        *epoch = (struct epoch){little_get32(at), little_get32(at + 4), little_get32(at + 8)};
        room->line.last = epoch->lost_from;
        if (epoch->lost_from != 0)
            epoch->lost_from = cleared > epoch->base ? cleared - epoch->base + 1 : 1;
    }
    uint32_t lost_from =
        cleared > room->epoch[count - 1].base ? cleared - room->epoch[count - 1].base + 1 : 1;
    room_begin_epoch(room, room->epoch[count - 1].epoch + 1);
    room->epoch[room->epochs - 2].lost_from = lost_from;
    room_freeze_calls(room);
}

/*
 * A server that forgets everything, perhaps just after a clear. Two nodes make the room anew, and have other settings in mind. They
 * know what the last tick told.
 */
static void forget(struct pair *pair)
{
    struct settings settings = *room_settings(pair->rig.room), others = some_settings(&pair->dice);
    struct texts texts = *room_texts(pair->rig.room);
    uint32_t clears = dice_below(&pair->dice, 4);

    if (clears < 2)
        ask_both(pair, "clear", (struct engine_call){.op = ENGINE_CLEAR});
    if (clears == 0)
        tick(pair, 100);
    pair->act = "forget";
    if (pair->recalled.len == 0)
        return;
    freeReplyObject(redis_server_ask(pair->server, "FLUSHALL"));
    rig_free(&pair->rig);
    make_as_node(pair, &settings, &texts);
    ask_make(pair, &others, some_texts());
    recall(pair, pair->rig.room);
    pair->was_deleted = false;
    learn_made(pair);
    assert_true(room_epoch(pair->rig.room) > pair->rig.room->epoch[pair->rig.room->epochs - 2].epoch);
    seen.forgotten++;
}

/* ---- losses ---- */

/* A node that noticed it too, or worked something out, and comes later. */
struct late {
    struct redis_command command; /* first */
    const char *former;
    const struct follower *follower; /* or that */
    struct resp resp;
    struct script_names names;
    bool is_answered;
};

static char *late_write(struct redis_command *command, const char *run_id, size_t *len)
{
    struct late *late = (struct late *)command;
    struct ask ask = {&late->resp, &late->names, run_id, true};

    if (late->follower != NULL)
        ask_follow(&ask, ROOM, late->follower);
    else
        ask_renew(&ask, ROOM, span_of(late->former), false);
    return resp_bytes(&late->resp, len);
}

static void late_done(struct redis_command *command, enum command_end end, const struct redisReply *reply)
{
    ((struct late *)command)->is_answered = end == COMMAND_ANSWERED && reply->type == REDIS_REPLY_ARRAY;
}

static void come_late(struct pair *pair, const char *former, const struct follower *follower)
{
    static struct late late;

    late = (struct late){
        .command = {.write = late_write, .done = late_done}, .former = former, .follower = follower};
    script_names_init(&late.names);
    pair->server->transport.submit(&pair->server->transport, &late.command);
    assert_true(late.is_answered);
}

/* The room names this process as the one that kept it last. Whatever is asked next notices. */
static struct figures notice(struct pair *pair, const char *former)
{
    struct engine_call look = {.op = ENGINE_FIGURES};

    redis_server_number(pair->server, "HSET queue:room:" TAG " primary %s", former);
    ask_redis(pair, &look, 1);
    EQUAL(pair, ERROR_NONE, look.error, "error");
    come_late(pair, former, NULL);
    return look.figures;
}

/* Another server is the primary, and does not know the last tickets that were given. Every node says so. */
static void lose(struct pair *pair)
{
    struct room *room = pair->rig.room;
    char former[24];
    uint32_t loss = pair->loss_count++ % LOSSES;

    pair->act = "lose";
    pair->losses[loss].epoch = room_epoch(room);
    pair->losses[loss].from = room->line.last - room->epoch[room->epochs - 1].base + 1;
    snprintf(former, sizeof(former), "%" PRIx64, dice_roll(&pair->dice));
    uint32_t epoch = notice(pair, former).epoch;
    assert_in_range(epoch, room_epoch(room) + 1, UINT32_MAX);
    room_begin_epoch(room, epoch);
    pair->losses[loss].most = room->epoch[room->epochs - 1].base - room->epoch[room->epochs - 2].base;
    room_freeze_calls(room);
}

/* The room is kept by another server now, and nothing else is different. */
static void move(struct pair *pair)
{
    pair->act = "move";
    snprintf(pair->server->neighbour, sizeof(pair->server->neighbour), "%" PRIx64, dice_roll(&pair->dice));
    EQUAL(pair, room_epoch(pair->rig.room), notice(pair, pair->server->neighbour).epoch, "epoch");
}

static void people_act(struct pair *pair, uint32_t roll)
{
    if (roll < 110 || pair->place_count == 0)
        ask_people(pair, ENGINE_JOIN, 0, "join");
    else if (roll < 390)
        ask_people(pair, ENGINE_STATUS, IN_LINE | IN(CALLED), "status");
    else if (roll < 420)
        ask_people(pair, ENGINE_HEARTBEAT, IN_LINE | IN(CALLED), "heartbeat");
    else if (roll < 440)
        ask_people(pair, ENGINE_LOOK, ANYWHERE & ~IN(WAITING) & ~IN(DONE), "look");
    else if (roll < 520)
        ask_people(pair, ENGINE_ENTER, roll < 490 ? IN(CALLED) : INSIDE, "enter");
    else if (roll < 535)
        ask_people(pair, ENGINE_LEAVE, ANYWHERE & ~IN(DONE), "leave");
    else
        ask_people(pair, ENGINE_LEAVE_SOON, IN_LINE | IN(CALLED), "leave_soon");
}

static void tell_shop(struct pair *pair, const struct shop_report *report)
{
    bool is_done = false;
    struct redis_chore shop = {
        .kind = CHORE_SHOP, .room = ROOM, .shop = report, .done = note_chore, .context = &is_done};

    pair->act = "shop";
    assert_int_equal(room_shop(pair->rig.room, report), ERROR_NONE);
    redis_submit_chore(pair->rooms, &shop);
    assert_true(is_done);
    EQUAL(pair, ERROR_NONE, shop.error, "error");
    seen.operations++;
}

/* The shop is well for a while, and then it is not. */
static void report_shop(struct pair *pair)
{
    struct dice *dice = &pair->dice;
    struct shop_report report = {0};

    if (dice_below(dice, 20) == 0)
        pair->shop_ms = ONE_OF(dice, 1, 20, 20, 60, 150, 1500, 20000);
    for (uint32_t answers = dice_below(dice, 30); answers > 0; answers--)
        shop_report_add(&report, pair->shop_ms / 2 + dice_below(dice, pair->shop_ms), dice_below(dice, 90));
    for (uint32_t failures = ONE_OF(dice, 0, 0, 0, 0, 0, 0, 1, 8); failures > 0; failures--)
        shop_report_add_failure(&report, 3);
    if (dice_below(dice, room_settings(pair->rig.room)->pace == PACE_HALL ? 4 : 40) == 0)
        shop_report_left_alone(&report, ONE_OF(dice, 1, 300, 2000, 7000));
    tell_shop(pair, &report);
}

static void shop_acts(struct pair *pair, uint32_t roll)
{
    if (roll < 25)
        report_shop(pair);
    else if (roll < 85)
        ask_people(pair, ENGINE_SESSION_TOUCH, INSIDE, "session_touch");
    else if (roll < 95)
        ask_people(pair, ENGINE_SESSION_END, INSIDE, "session_end");
    else
        ask_people(pair, ENGINE_SESSION_EXTEND, INSIDE, "session_extend");
}

static void operator_acts(struct pair *pair, uint32_t roll)
{
    if (roll < 7)
        ask_both(pair, "advance",
                 (struct engine_call){.op = ENGINE_ADVANCE, .people = dice_below(&pair->dice, 8)});
    else if (roll < 14)
        put(pair, some_settings(&pair->dice));
    else if (roll < 18)
        ask_both(pair, "settings", (struct engine_call){.op = ENGINE_SETTINGS});
    else if (roll < 19)
        ask_both(pair, "clear", (struct engine_call){.op = ENGINE_CLEAR});
    else
        make_anew(pair);
}

static void act_at_random(struct pair *pair)
{
    uint32_t roll = dice_below(&pair->dice, 1000);

    if (roll < 560 || pair->place_count == 0)
        people_act(pair, roll);
    else if (roll < 670)
        shop_acts(pair, roll - 560);
    else if (roll < 673 && pair->has_losses)
        lose(pair);
    else if (roll < 675 && pair->has_losses)
        move(pair);
    else if (roll < 676 && pair->has_losses)
        forget(pair);
    else if (roll < 696 && pair->has_operator)
        operator_acts(pair, roll - 676);
    else
        pass_time(pair);
}

static struct pair pair_new(struct redis_server *server, uint64_t seed)
{
    struct pair pair = {.seed = seed,
                        .dice = {seed},
                        .server = server,
                        .rooms = redis_rooms_new(&server->transport),
                        .wall_sec = 1700000000,
                        .shop_ms = 20,
                        .pages = PAGES,
                        .has_losses = seed % 3 == 0,
                        .has_operator = seed % 2 == 0};

    assert_non_null(pair.rooms);
    redis_server_number(server, "FLUSHALL"); /* a test that failed has left its room */
    return pair;
}

static void pair_free(struct pair *pair)
{
    redis_rooms_free(pair->rooms);
    rig_free(&pair->rig);
}

static void play(struct redis_server *server, uint64_t seed, uint32_t steps)
{
    struct pair pair = pair_new(server, seed);

    make(&pair, some_settings(&pair.dice));
    for (pair.step = 0; pair.step < steps; pair.step++) {
        act_at_random(&pair);
        if (pair.step % 4 == 0) {
            ask_both(&pair, "figures", (struct engine_call){.op = ENGINE_FIGURES});
            compare_pace(&pair);
        }
        if (pair.step % 100 == 0)
            check_keys(&pair);
    }
    pair_free(&pair);
}

/* Nothing was compared by being left out. */
static void check_seen(void)
{
    static const enum error errors[] = {
        ERROR_NONE,
        ERROR_NOT_READY,
        ERROR_TOKEN_NOT_FOUND,
        ERROR_CONFLICT,
        ERROR_IDEMPOTENCY_CONFLICT,
        ERROR_QUEUE_FULL,
        ERROR_WAIT_TOO_LONG,
        ERROR_ROOM_CLOSED,
    };
    static const enum follow_reason reasons[] = {
        FOLLOW_FIXED, FOLLOW_BEGIN,   FOLLOW_FILLING,    FOLLOW_QUIET,
        FOLLOW_SLOW,  FOLLOW_FAILING, FOLLOW_RECOVERING, FOLLOW_FROZEN,
    };

    assert_true(seen.operations >= 200000);
    assert_true(seen.eta_checked > 1000);
    assert_true(seen.healed > 1000 && seen.returned > 100);
    assert_true(seen.waits > 1000 && seen.forgotten > 20);
    assert_true(seen.by_holder > 1000 && seen.spent > 200 && seen.frozen_halls > 200);
    for (int state = TICKET_WAITING; state < TICKET_DONE; state++)
        assert_true(seen.states[state] > 50);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        assert_true(seen.errors[errors[i]] > 50);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        assert_true(seen.reasons[reasons[i]] > 20);
}

/* WEIR_SEED=… plays that run alone; WEIR_TEST=a_room* leaves out the other tests. */
static void a_room_in_redis_answers_like_one_of_plain_c(void **state)
{
    struct redis_server *server = *state;
    const char *seed = getenv("WEIR_SEED");

    if (seed != NULL) {
        play(server, strtoull(seed, NULL, 10), RUN_STEPS);
        return;
    }
    for (uint64_t i = 1; i <= RUNS; i++)
        play(server, i, RUN_STEPS);
    check_seen();
}

/* Somebody repeats their join again and again, and is there all the time. */
static void a_key_is_forgotten_at_the_same_moment(void **state)
{
    struct pair pair = pair_new(*state, 1);
    struct settings settings = settings_default();
    struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = holder_of(1), .request = key_of(1, 1)}};
    uint32_t told = 0, told_anew = 0;

    settings.mode = MODE_HOLD;
    make(&pair, settings);
    for (pair.step = 0; pair.clock_ms < 620000; pair.step++) {
        /* With the position of the first answer for as long as the key is known; others have left meanwhile. */
        call.join.request.body = dice_below(&pair.dice, 2);
        struct engine_call answer = ask_both(&pair, "join", call);
        told += answer.error == ERROR_NONE;
        told_anew += answer.error == ERROR_IDEMPOTENCY_CONFLICT;
        tick(&pair, pair.clock_ms % 300000 > 299000 ? 100 : 1000);
        ask_both(&pair, "figures", (struct engine_call){.op = ENGINE_FIGURES});
    }
    assert_true(told > 100 && told_anew > 100);
    /* Then nobody asks any more, and it is forgotten all the same. */
    for (int seconds = 0; seconds < 302; seconds++)
        tick(&pair, 1000);
    check_keys(&pair);
    assert_int_equal(redis_server_number(pair.server, "EXISTS queue:requests:" TAG), 0);
    pair_free(&pair);
}

/* Whoever comes with a ticket that was lost and has another place by now has come back, whatever their call is answered. */
static void a_lost_ticket_comes_back_once_also_where_its_pass_was_spent(void **state)
{
    struct pair pair = pair_new(*state, 1);
    struct settings settings = settings_default();
    struct engine_call join = {.op = ENGINE_JOIN, .join.holder = holder_of(1)};
    struct engine_call enter = {.op = ENGINE_ENTER, .enter = {.place.holder = holder_of(1), .spends = true}};
    struct engine_call leave = {.op = ENGINE_LEAVE, .place.holder = holder_of(1)};

    settings.mode = MODE_OPEN;
    make(&pair, settings);
    lose(&pair);
    struct place lost = {pair.losses[0].epoch, pair.losses[0].from, holder_of(1), {.is_known = true}, {0}};
    assert_int_equal(ask_both(&pair, "join", join).error, ERROR_NONE);
    assert_int_equal(ask_both(&pair, "enter", enter).error, ERROR_NONE);
    enter.enter.place = lost;
    assert_int_equal(ask_both(&pair, "enter", enter).error, ERROR_IDEMPOTENCY_CONFLICT);
    assert_int_equal(ask_both(&pair, "leave", leave).error, ERROR_NONE);
    struct engine_call status = {.op = ENGINE_STATUS, .place = lost};
    assert_int_equal(ask_both(&pair, "status", status).error, ERROR_TOKEN_NOT_FOUND);
    pair_free(&pair);
}

/* ---- a shop that can be followed ---- */

/* What a node worked out while the settings changed does not count. Another rate begins anew. */
static void put_before_step(struct pair *pair, bool is_other_rate)
{
    struct follower late = {.rate_milli = 1234, .len = FOLLOWER_BYTES};
    struct engine_call call = {.op = ENGINE_PUT, .put = {.settings = *room_settings(pair->rig.room)}};

    call.put.settings.rate_milli += is_other_rate;
    late.version = (uint32_t)redis_server_number(pair->server, "HGET queue:room:" TAG " follow_version");
    call.put.version = pair->version++;
    assert_int_equal(ask_both(pair, "put", call).error, ERROR_NONE);
    come_late(pair, NULL, &late);
    ask_both(pair, "figures", (struct engine_call){.op = ENGINE_FIGURES});
}

/* What it answers in a phase, and whether people come. */
struct shop_phase {
    uint32_t ms, joins;
    enum follow_reason reason; /* that is told at its end */
};

static void shop_answers(struct pair *pair, uint32_t ms)
{
    struct shop_report report = {0};

    for (int answers = 0; answers < 15; answers++)
        shop_report_add(&report, ms, 2);
    tell_shop(pair, &report);
}

static void a_pace_follows_the_shop_as_in_plain_c(void **state)
{
    static const struct shop_phase phases[] = {
        {20, 0, FOLLOW_UNUSED}, {20, 8, FOLLOW_WELL},  {20, 8, FOLLOW_FULL}, {150, 8, FOLLOW_SLOW},
        {90, 8, FOLLOW_NEAR},   {600, 8, FOLLOW_SLOW}, {20, 8, FOLLOW_WELL},
    };
    struct pair pair = pair_new(*state, 1);
    struct settings settings = settings_default();
    struct engine_call call = {.op = ENGINE_JOIN};
    uint64_t who = 1000;

    settings.pace = PACE_AUTO;
    settings.rate_milli = 6000;
    settings.rate_min_milli = 1000;
    settings.rate_max_milli = 12000;
    settings.shop_target_ms = 100;
    settings.burst = 5;
    settings.max_active = 0;
    settings.seen_ttl_sec = settings.claim_ttl_sec = 86400;
    make(&pair, settings);
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        for (int steps = 0; steps < 40; steps++, pair.step++) {
            for (uint32_t joins = 0; joins < phases[i].joins; joins++) {
                call.join.holder = holder_of(who++);
                ask_both(&pair, "join", call);
            }
            shop_answers(&pair, phases[i].ms);
            tick(&pair, 500);
            ask_both(&pair, "figures", (struct engine_call){.op = ENGINE_FIGURES});
            compare_pace(&pair);
        }
        EQUAL(&pair, phases[i].reason, room_figures(pair.rig.room).pace_reason, "pace_reason of the phase");
        put_before_step(&pair, phases[i].reason == FOLLOW_SLOW);
    }
    pair_free(&pair);
}

/* ---- keys ---- */

#define STRICT_STEPS 1500

/* Nobody may touch any other keys than those that ask_key names, neither the scripts nor this test. */
static void allow_own_keys(struct redis_server *server)
{
    const char *key;

    freeReplyObject(redis_server_ask(server, "ACL SETUSER default resetkeys ~" ASK_REGISTRY));
    for (size_t i = 0; (key = ask_key(i)) != NULL; i++) {
        char rule[64];
        snprintf(rule, sizeof(rule), "~%s:" TAG, key);
        freeReplyObject(redis_server_ask(server, "ACL SETUSER default %s", rule));
    }
}

static void await_cluster(struct redis_server *server)
{
    bool is_whole = false;

    freeReplyObject(redis_server_ask(server, "CLUSTER ADDSLOTSRANGE 0 16383"));
    while (!is_whole) {
        struct redisReply *info = redis_server_ask(server, "CLUSTER INFO");
        is_whole = strstr(info->str, "cluster_state:ok") != NULL;
        freeReplyObject(info);
    }
}

static int start_strict(void **state)
{
    static const char *const options[] = {"--cluster-enabled", "yes", NULL};
    static struct redis_server server;

    redis_server_start(&server, options);
    await_cluster(&server);
    allow_own_keys(&server);
    *state = &server;
    return 0;
}

static int stop_strict(void **state)
{
    redis_server_stop(*state);
    return 0;
}

static void scripts_run_in_a_cluster_and_touch_no_key_but_those_they_name(void **state)
{
    play(*state, 6, STRICT_STEPS); /* with losses and an operator */
    play(*state, 12, STRICT_STEPS);
}

/* ---- the registry ---- */

static struct redis_rooms *registry_open(struct redis_server *server)
{
    struct redis_rooms *rooms = redis_rooms_new(&server->transport);

    assert_non_null(rooms);
    freeReplyObject(redis_server_ask(server, "FLUSHALL"));
    return rooms;
}

static enum error registry_ask(struct redis_rooms *rooms, enum redis_chore_kind kind, const char *room,
                               bool is_known)
{
    bool is_done = false;
    struct redis_chore chore = {.kind = kind,
                                .room = span_of(room),
                                .rooms_max = 3,
                                .since_ms = is_known ? 0 : UINT64_MAX,
                                .done = note_chore,
                                .context = &is_done};

    redis_submit_chore(rooms, &chore);
    assert_true(is_done);
    return chore.error;
}

static enum error put_in(struct redis_rooms *rooms, const char *room)
{
    return registry_ask(rooms, CHORE_REGISTER, room, false);
}

static void take_out(struct redis_rooms *rooms, const char *room)
{
    assert_int_equal(registry_ask(rooms, CHORE_UNREGISTER, room, false), ERROR_NONE);
}

static void expect_listed(struct redis_rooms *rooms, uint32_t size, const char *expected)
{
    bool is_done = false;
    struct room_id ids[4];
    char names[sizeof(ids)] = "";
    struct engine_call call = {
        .op = ENGINE_ROOMS, .list = {.ids = ids, .size = size}, .done = note_done, .context = &is_done};

    redis_submit(rooms, &call);
    redis_flush(rooms);
    assert_true(is_done && call.error == ERROR_NONE && call.list.count <= size);
    for (uint32_t i = 0; i < call.list.count; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%.*s ", (int)ids[i].len, ids[i].name);
    assert_string_equal(names, expected);
}

static void rooms_are_listed_by_name_and_not_more_than_there_may_be(void **state)
{
    struct redis_rooms *rooms = registry_open(*state);

    expect_listed(rooms, 4, "");
    assert_int_equal(put_in(rooms, "b"), ERROR_NONE);
    assert_int_equal(put_in(rooms, "B"), ERROR_NONE);
    assert_int_equal(put_in(rooms, "ab"), ERROR_NONE);
    assert_int_equal(put_in(rooms, "c"), ERROR_QUEUE_FULL);
    assert_int_equal(put_in(rooms, "b"), ERROR_NONE);
    expect_listed(rooms, 4, "B ab b ");
    expect_listed(rooms, 2, "B ab ");
    expect_listed(rooms, 0, "");
    take_out(rooms, "ab");
    assert_int_equal(put_in(rooms, "c"), ERROR_NONE);
    expect_listed(rooms, 4, "B b c ");
    redis_rooms_free(rooms);
}

static void a_room_that_was_deleted_is_told_from_one_that_was_forgotten(void **state)
{
    struct redis_rooms *rooms = registry_open(*state);

    assert_int_equal(registry_ask(rooms, CHORE_REGISTER, "a", true), ERROR_NONE); /* forgotten */
    take_out(rooms, "a");
    assert_int_equal(registry_ask(rooms, CHORE_REGISTER, "a", true), ERROR_ROOM_NOT_FOUND);
    expect_listed(rooms, 4, "");
    assert_int_equal(put_in(rooms, "a"), ERROR_NONE); /* anew */
    assert_int_equal(registry_ask(rooms, CHORE_REGISTER, "a", true), ERROR_NONE);
    expect_listed(rooms, 4, "a ");
    redis_rooms_free(rooms);
}

static void the_oldest_of_the_deleted_are_forgotten(void **state)
{
    struct redis_rooms *rooms = registry_open(*state);
    char name[16];

    assert_int_equal(put_in(rooms, "a"), ERROR_NONE);
    assert_int_equal(put_in(rooms, "z"), ERROR_NONE);
    redis_server_number(*state, "ZADD " ASK_REGISTRY " 5 oldest 6 older");
    for (int i = 0; i < 999; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        take_out(rooms, name);
    }
    assert_int_equal(redis_server_number(*state, "ZCARD " ASK_REGISTRY), 2 + 1000);
    assert_int_equal(registry_ask(rooms, CHORE_REGISTER, "older", true), ERROR_ROOM_NOT_FOUND);
    assert_int_equal(registry_ask(rooms, CHORE_REGISTER, "oldest", true), ERROR_NONE);
    expect_listed(rooms, 4, "a oldest z ");
    redis_rooms_free(rooms);
}

/* ---- a million people ---- */

#define MILLION       1000000
#define MILLION_PAGES (MILLION / LINE_PAGE_COUNT + MILLION * 16 / PAGE_BYTES + PAGES)
#define SIZE_ROUNDS   400

/* Others join until so many are in line: in Redis they are only their places, which is all that others see of them. */
static void fill(struct pair *pair, uint32_t people)
{
    struct standing standing;

    for (uint32_t count = pair->rig.room->line.last + 1; count <= people; count++)
        assert_int_equal(rig_join(&pair->rig, 1000 + count, &standing), ERROR_NONE);
    freeReplyObject(redis_server_ask(
        pair->server, "EVAL %s 2 queue:event:" TAG " queue:room:" TAG " %" PRIu32,
        "for i = redis.call('ZCARD', KEYS[1]) + 1, ARGV[1] do redis.call('ZADD', KEYS[1], i, 'one' .. i) end "
        "redis.call('HSET', KEYS[2], 'last', ARGV[1], 'issued', ARGV[1], 'slot_joins', ARGV[1])",
        people));
}

/* As often small as large. */
static uint64_t some_size(struct dice *dice, uint64_t most)
{
    return dice_roll(dice) % (most >> dice_below(dice, 40) | 1);
}

/* What was measured so far, in both. */
static void set_measured(struct pair *pair)
{
    struct estimate *estimate = &pair->rig.room->estimate;
    struct dice *dice = &pair->dice;
    struct estimate_slot slot = {
        .waited_ms = some_size(dice, MILLION * 300000ULL),
        .inside_ms = some_size(dice, MILLION * 300000ULL),
        .busy_ms = (uint32_t)some_size(dice, 300000),
        .joins = (uint32_t)some_size(dice, 10 * MILLION),
        .calls = (uint32_t)some_size(dice, 10 * MILLION),
        .turns = (uint32_t)some_size(dice, 10 * MILLION),
        .ends = (uint32_t)some_size(dice, 10 * MILLION),
        .gone = (uint32_t)some_size(dice, MILLION),
        .silent = (int32_t)some_size(dice, MILLION) - (int32_t)some_size(dice, 1000),
    };

    estimate->slot[estimate->now] = slot;
    redis_server_number(pair->server,
                        "HSET queue:room:" TAG
                        " slot_waited_ms %llu slot_inside_ms %llu slot_busy_ms %u slot_joins %u "
                        "slot_calls %u slot_turns %u slot_ends %u slot_gone %u slot_silent %d",
                        (unsigned long long)slot.waited_ms, (unsigned long long)slot.inside_ms, slot.busy_ms,
                        slot.joins, slot.calls, slot.turns, slot.ends, slot.gone, slot.silent);
}

/* To the last digit, of which seconds show little. */
static void compare_derived(struct pair *pair)
{
    const struct estimate *estimate = &pair->rig.room->estimate;

    pair->act = "derive";
    compare_figure(pair, estimate->calls_per_ks, "calls_per_ks");
    compare_figure(pair, estimate->gone_per_gs, "gone_per_gs");
    compare_figure(pair, estimate->silent_per_gs, "silent_per_gs");
    compare_figure(pair, estimate->is_settled, "is_settled");
}

static struct settings settings_of_any_size(struct dice *dice)
{
    struct settings settings = settings_default();

    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 86400;
    settings.rate_milli = 1 + (uint32_t)some_size(dice, 99999999);
    settings.max_active = (uint32_t)some_size(dice, 100000000);
    settings.session_max_sec = (uint32_t)some_size(dice, 86400);
    if (dice_below(dice, 3) == 0) {
        settings.batch = 1 + (uint32_t)some_size(dice, 99999999);
        settings.interval_sec = 1 + (uint32_t)some_size(dice, 86399);
        settings.smooth = dice_below(dice, 2);
    }
    return settings;
}

static void positions_and_estimates_agree_behind_a_million(void **state)
{
    struct pair pair = pair_new(*state, 1);
    struct engine_call call = {.op = ENGINE_JOIN, .join.holder = holder_of(1)};

    pair.pages = MILLION_PAGES;
    make(&pair, settings_of_any_size(&pair.dice));
    fill(&pair, MILLION);
    call = ask_both(&pair, "join", call);
    assert_int_equal(call.standing.position, MILLION + 1);
    for (pair.step = 0; pair.step < SIZE_ROUNDS; pair.step++) {
        if (dice_below(&pair.dice, 4) == 0)
            put(&pair, settings_of_any_size(&pair.dice));
        set_measured(&pair);
        tick(&pair, 60);
        compare_derived(&pair);
        ask_both(&pair, "status", (struct engine_call){.op = ENGINE_STATUS, .place = call.standing.place});
        ask_both(&pair, "figures", (struct engine_call){.op = ENGINE_FIGURES});
    }
    pair_free(&pair);
}

/* On both sides of each step of their tables (src/room/standing.c). */
static void those_in_halls_and_lobbies_are_told_to_ask_as_often(void **state)
{
    static const uint32_t ahead[] = {0,    500,  501,  999,   1000,  2000,  2001,
                                     4999, 5000, 9999, 10000, 10001, 99999, 100000};
    struct pair pair = pair_new(*state, 1);
    struct settings settings = settings_default();

    pair.pages = MILLION_PAGES / 4;
    settings.mode = MODE_HOLD;
    make(&pair, settings);
    for (; pair.step < sizeof(ahead) / sizeof(ahead[0]); pair.step++) {
        struct engine_call call = {.op = ENGINE_JOIN, .join.holder = holder_of(pair.step)};
        fill(&pair, ahead[pair.step]);
        call = ask_both(&pair, "join", call);
        assert_int_equal(call.standing.position, ahead[pair.step] + 1);
        for (settings.preset = PRESET_PLAIN; settings.preset <= PRESET_CONCERT; settings.preset++) {
            call = (struct engine_call){
                .op = ENGINE_PUT,
                .put = {.settings = settings, .version = pair.version++, .is_from_api = true}};
            ask_both(&pair, "put", call);
            call = (struct engine_call){.op = ENGINE_STATUS, .place = {.holder = holder_of(pair.step)}};
            assert_int_equal(ask_both(&pair, "status", call).error, ERROR_NONE);
        }
    }
    pair_free(&pair);
}

/* Around the tests and not in one of them: a test that fails does not come to its end, and must leave nothing behind. */
static int start(void **state)
{
    static struct redis_server server;

    redis_server_start(&server, NULL);
    *state = &server;
    return 0;
}

static int stop(void **state)
{
    redis_server_stop(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_room_in_redis_answers_like_one_of_plain_c),
        cmocka_unit_test(a_key_is_forgotten_at_the_same_moment),
        cmocka_unit_test(a_lost_ticket_comes_back_once_also_where_its_pass_was_spent),
        cmocka_unit_test(a_pace_follows_the_shop_as_in_plain_c),
        cmocka_unit_test(positions_and_estimates_agree_behind_a_million),
        cmocka_unit_test(those_in_halls_and_lobbies_are_told_to_ask_as_often),
        cmocka_unit_test_setup_teardown(scripts_run_in_a_cluster_and_touch_no_key_but_those_they_name,
                                        start_strict, stop_strict),
        cmocka_unit_test(rooms_are_listed_by_name_and_not_more_than_there_may_be),
        cmocka_unit_test(a_room_that_was_deleted_is_told_from_one_that_was_forgotten),
        cmocka_unit_test(the_oldest_of_the_deleted_are_forgotten),
    };
    cmocka_set_test_filter(getenv("WEIR_TEST"));
    return cmocka_run_group_tests_name("differential", tests, start, stop);
}
