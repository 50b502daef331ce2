/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A run is a row of rounds: the operator may do something, some people arrive, everybody whose time it is acts, somebody does
 * something out of turn, and the clock ticks. People act on the room's clock, as their temper says; what they are told they
 * know from the ledger, which has judged it.
 */

#include "world.h"

#include "dice.h"
#include "ledger.h"
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENGINE_EVERY   32 /* runs: the others have a bare room */
#define CROWD_MOST     160
#define WALL_FIRST_SEC 1700000000
#define NEVER          UINT64_MAX

#define SEC  1000LL
#define HOUR (3600 * SEC)
#define YEAR (365 * 24 * HOUR)

enum temper {
    FAITHFUL,  /* polls exactly as told, enters when told */
    LEAVER,    /* gives up at some time */
    SLEEPER,   /* a phone: falls silent for a while, and is back */
    REFRESHER, /* says goodbye with every refresh, and is back, mostly */
    GHOST,     /* joins and is never seen again */
    NO_SHOW,   /* polls, but never enters */
    LATECOMER, /* enters when the time is nearly over, or just is */
};

enum shape { FLASH_CROWD, STEADY, WAVES, SHAPES };

struct world {
    struct dice dice;
    struct house house;
    struct ledger ledger;
    enum shape shape;
    uint32_t arrivals_percent; /* mean number a round */
    uint32_t crowd_most;
    uint32_t slowness; /* of 100 ticks so many count a whole second: long times pass in few events */
    bool has_operator;
    uint32_t events;
    uint32_t wall_sec;
    uint64_t people;                        /* holders so far */
    uint8_t temper[LEDGER_PEOPLE + 1];      /* by count */
    uint64_t acts_at_ms[LEDGER_PEOPLE + 1]; /* by count */
    uint64_t holder_no[LEDGER_PEOPLE + 1];  /* by count */
};

static bool is_over(const struct world *world)
{
    return run->event >= world->events;
}

static struct holder holder_of(uint64_t number)
{
    struct dice dice = {number};
    uint64_t words[2] = {dice_roll(&dice), dice_roll(&dice)};
    struct holder holder;

    memcpy(holder.id, words, sizeof(holder.id));
    return holder;
}

/* ---- settings ---- */

static uint32_t one_of(struct dice *dice, const uint32_t *values, uint32_t count)
{
    return values[dice_below(dice, count)];
}

#define ONE_OF(dice, ...) \
    one_of(dice, (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void choose_pace(struct dice *dice, struct settings *settings)
{
    settings->batch = 0;
    settings->burst = ONE_OF(dice, 0, 0, 1, 3, 20);
    settings->rate_milli =
        dice_hits(dice, 20) ? 1 : ONE_OF(dice, 300, 1000, 3333, 10000, 10000, 50000, 200000);
    if (dice_hits(dice, 3)) {
        settings->batch = ONE_OF(dice, 1, 2, 7, 20, 500);
        settings->interval_sec = ONE_OF(dice, 1, 2, 3, 10, 30);
        settings->smooth = dice_hits(dice, 2);
    }
}

static void choose_limits(struct dice *dice, struct settings *settings)
{
    settings->max_active = ONE_OF(dice, 0, 1, 2, 5, 10, 20, 40);
    settings->max_called = ONE_OF(dice, 0, 0, 0, 1, 3, 10);
    settings->min_wait_sec = ONE_OF(dice, 0, 0, 0, 1, 5, 15);
    settings->max_waiting = ONE_OF(dice, 0, 0, 0, 5, 50);
    settings->max_eta_sec = ONE_OF(dice, 0, 0, 0, 0, 30, 300);
}

static void choose_times(struct dice *dice, struct settings *settings)
{
    settings->seen_ttl_sec = ONE_OF(dice, 10, 10, 12, 30);
    settings->away_ttl_sec = ONE_OF(dice, 1, 5, 20, 60, 300);
    settings->claim_ttl_sec = ONE_OF(dice, 1, 2, 5, 20, 60);
    settings->arrive_ttl_sec = ONE_OF(dice, 1, 5, 20, 180);
    settings->session_ttl_sec = ONE_OF(dice, 1, 3, 10, 40);
    settings->session_max_sec = ONE_OF(dice, 0, 0, 5, 30);
    settings->session_renew = !dice_hits(dice, 4);
    settings->tier = dice_between(dice, 1, 2);
}

static struct settings choose_settings(struct dice *dice)
{
    struct settings settings = settings_default();

    choose_pace(dice, &settings);
    choose_limits(dice, &settings);
    choose_times(dice, &settings);
    return settings;
}

/* ---- the operator ---- */

static void trace_settings(const struct settings *settings)
{
    char text[32];

    if (!run->is_traced)
        return;
    for (size_t i = 0; i < setting_numbers; i++) {
        setting_format(&setting_list[i], setting_value(settings, &setting_list[i]), text, sizeof(text));
        trace("    %s %s", setting_list[i].name, text);
    }
}

static void change_settings(struct world *world)
{
    struct engine_call call = {.op = ENGINE_PUT,
                               .put = {.settings = world->ledger.settings, .is_from_api = true}};
    struct settings *settings = &call.put.settings;
    struct dice *dice = &world->dice;

    switch (dice_below(dice, 8)) {
    case 0:
        settings->mode = ONE_OF(dice, MODE_HOLD, MODE_OPEN, MODE_CLOSED);
        break;
    case 1:
        choose_limits(dice, settings);
        break;
    case 2:
        choose_times(dice, settings);
        break;
    case 3: /* the same again: that must bring nothing */
        break;
    default:
        choose_pace(dice, settings);
    }
    if (settings->mode == world->ledger.settings.mode && dice_hits(dice, 2))
        settings->mode = MODE_QUEUE;
    trace("%" PRIu32 " settings", run->event + 1);
    trace_settings(settings);
    ledger_submit(&world->ledger, &call);
}

static void operate(struct world *world)
{
    struct dice *dice = &world->dice;
    uint32_t what = dice_below(dice, 12);

    if (what > 2) {
        change_settings(world);
        return;
    }
    struct engine_call call = {.op = ENGINE_ADVANCE, .people = ONE_OF(dice, 0, 1, 3, 20, 1000000)};
    if (what == 0 && dice_hits(dice, 4))
        call.op = ENGINE_CLEAR;
    trace("%" PRIu32 " %s %" PRIu32, run->event + 1, call.op == ENGINE_CLEAR ? "clear" : "advance",
          call.people);
    ledger_submit(&world->ledger, &call);
}

/* ---- people ---- */

static uint8_t choose_temper(struct dice *dice)
{
    return (uint8_t)ONE_OF(dice, FAITHFUL, FAITHFUL, FAITHFUL, LEAVER, SLEEPER, SLEEPER, SLEEPER, REFRESHER,
                           GHOST, NO_SHOW, LATECOMER);
}

/* Returns the ticket that was answered about; 0 if none was. */
static uint32_t join(struct world *world, uint64_t number, struct request_key request)
{
    struct ledger *ledger = &world->ledger;
    struct engine_call call = {
        .op = ENGINE_JOIN,
        .join = {.holder = holder_of(number), .key_id = 3, .wall_sec = world->wall_sec, .request = request},
    };
    uint32_t last = ledger->last;

    trace("%" PRIu32 " join of holder %" PRIu64, run->event + 1, number);
    ledger_submit(ledger, &call);
    if (ledger->last == last)
        return call.error == ERROR_NONE ? call.standing.place.count : 0;
    uint32_t count = ledger->last;
    world->temper[count] = choose_temper(&world->dice);
    world->holder_no[count] = number;
    world->acts_at_ms[count] = ledger->clock_ms;
    if (!call.standing.is_ready)
        world->acts_at_ms[count] += call.standing.next_poll_sec * 1000ULL;
    if (world->temper[count] == GHOST)
        world->acts_at_ms[count] = NEVER;
    ledger->person[count].is_faithful = world->temper[count] == FAITHFUL;
    return count;
}

static void arrive(struct world *world)
{
    uint64_t number = world->people++;
    struct request_key request = {
        .is_set = dice_hits(&world->dice, 4), .scope = holder_of(~number), .body = 1};

    join(world, number, request);
}

static void send(struct world *world, enum engine_op op, struct place place)
{
    static const char *const names[] = {
        [ENGINE_STATUS] = "status",      [ENGINE_HEARTBEAT] = "heartbeat", [ENGINE_LOOK] = "look",
        [ENGINE_ENTER] = "enter",        [ENGINE_LEAVE] = "leave",         [ENGINE_LEAVE_SOON] = "beacon",
        [ENGINE_SESSION_TOUCH] = "gate", [ENGINE_SESSION_END] = "end",
    };
    struct engine_call call = {.op = op};

    if (op == ENGINE_ENTER)
        call.enter = (struct enter){
            .place = place, .key_id = (uint8_t)dice_below(&world->dice, 4), .wall_sec = world->wall_sec};
    else
        call.place = place;
    trace("%" PRIu32 " %s of %" PRIu32, run->event + 1, names[op], place.count);
    ledger_submit(&world->ledger, &call);
}

static void act_again(struct world *world, uint32_t count, uint64_t in_ms)
{
    world->acts_at_ms[count] = world->ledger.clock_ms + in_ms;
}

static void act_in_line(struct world *world, const struct person *person)
{
    uint32_t count = person->place.count;
    struct dice *dice = &world->dice;

    switch ((enum temper)world->temper[count]) {
    case LEAVER:
        if (dice_hits(dice, 5)) {
            send(world, ENGINE_LEAVE, person->place);
            return;
        }
        break;
    case REFRESHER:
        if (dice_hits(dice, 2)) {
            send(world, ENGINE_LEAVE_SOON, person->place);
            act_again(world, count, dice_below(dice, 12000));
            return;
        }
        break;
    default:
        break;
    }
    send(world, ENGINE_STATUS, person->place);
    act_again(world, count, person->poll_sec * 1000ULL);
    if (world->temper[count] == SLEEPER && dice_hits(dice, 2))
        act_again(world, count, dice_below(dice, 1U << dice_between(dice, 13, 18)));
    if (person->state == TICKET_CALLED) /* that was the answer */
        act_again(world, count, 0);
}

static void act_called(struct world *world, const struct person *person)
{
    uint32_t count = person->place.count, claim_ms = world->ledger.settings.claim_ttl_sec * 1000;
    struct dice *dice = &world->dice;

    if (!person->is_told) {
        send(world, ENGINE_STATUS, person->place);
        act_again(world, count, 0);
        if (world->temper[count] == LATECOMER)
            act_again(world, count, claim_ms - 300 + dice_below(dice, 600));
        return;
    }
    if (world->temper[count] == NO_SHOW || (world->temper[count] == LEAVER && dice_hits(dice, 3))) {
        send(world, dice_hits(dice, 3) ? ENGINE_LEAVE : ENGINE_STATUS, person->place);
        act_again(world, count, 1000);
        return;
    }
    if (world->temper[count] == REFRESHER && dice_hits(dice, 3)) {
        send(world, ENGINE_LEAVE_SOON, person->place);
        act_again(world, count, dice_below(dice, 12000));
        return;
    }
    send(world, ENGINE_ENTER, person->place);
    act_again(world, count, dice_below(dice, 3000));
}

static void act_inside(struct world *world, const struct person *person)
{
    static const enum engine_op deeds[] = {ENGINE_SESSION_TOUCH, ENGINE_SESSION_TOUCH, ENGINE_SESSION_TOUCH,
                                           ENGINE_ENTER,         ENGINE_STATUS,        ENGINE_SESSION_END,
                                           ENGINE_LEAVE,         ENGINE_LEAVE_SOON};
    struct dice *dice = &world->dice;

    send(world, deeds[dice_below(dice, sizeof(deeds) / sizeof(deeds[0]))], person->place);
    act_again(world, person->place.count, dice_below(dice, dice_hits(dice, 6) ? 60000 : 4000));
}

static void act(struct world *world, uint32_t count)
{
    const struct person *person = &world->ledger.person[count];

    if (person->state == TICKET_DONE)
        return; /* cleared in the meantime */
    if (person->state <= TICKET_AWAY)
        act_in_line(world, person);
    else if (person->state == TICKET_CALLED)
        act_called(world, person);
    else
        act_inside(world, person);
}

/* One thing may lead to another at once. */
static void act_if_due(struct world *world, uint32_t count)
{
    for (int deeds = 0; deeds < 3 && world->acts_at_ms[count] <= world->ledger.clock_ms && !is_over(world);
         deeds++)
        act(world, count);
}

/* Everybody whose time it is. Acting may change who is alive: so first the list, then the deeds. */
static void act_all(struct world *world)
{
    static uint32_t due[LEDGER_PEOPLE];
    const struct ledger *ledger = &world->ledger;
    uint32_t count = 0;

    for (uint32_t i = 0; i < ledger->alive_count; i++)
        if (world->acts_at_ms[ledger->alive[i]] <= ledger->clock_ms)
            due[count++] = ledger->alive[i];
    for (uint32_t i = 0; i < count; i++)
        act_if_due(world, due[i]);
}

/* Whoever is faithful goes by what they were told last, whenever they asked. */
static void go_by_it(struct world *world, uint32_t count)
{
    const struct person *person = &world->ledger.person[count];

    if (count == 0)
        return;
    uint64_t told_ms = world->ledger.clock_ms + (person->is_told ? 0 : person->poll_sec * 1000ULL);

    if (world->temper[count] == FAITHFUL && person->state <= TICKET_CALLED &&
        told_ms < world->acts_at_ms[count])
        world->acts_at_ms[count] = told_ms;
    act_if_due(world, count);
}

/* The faithful do nothing but what they are told. */
static bool may_interfere(const struct world *world, uint32_t count, enum engine_op op)
{
    return world->temper[count] != FAITHFUL || op == ENGINE_STATUS || op == ENGINE_HEARTBEAT ||
           op == ENGINE_LOOK || op == ENGINE_ENTER;
}

/*
 * The key of their join: of the ticket that lives, if they have one. Not at the moment at which it is forgotten, which may be a
 * tick later than it need be.
 */
static struct request_key key_for_retry(const struct world *world, uint32_t count)
{
    const struct ledger *ledger = &world->ledger;
    struct request_key request = ledger->person[count].key.request;

    for (uint32_t i = 0; i < ledger->alive_count; i++) {
        const struct person *person = &ledger->person[ledger->alive[i]];
        uint64_t age_ms = ledger->clock_ms - person->key.at_ms;
        if (world->holder_no[ledger->alive[i]] != world->holder_no[count])
            continue;
        request = person->key.request;
        request.is_set &= age_ms < 300 * SEC || age_ms > 301 * SEC;
    }
    return request;
}

/* Somebody does something at a moment of their own, perhaps long after they were over, perhaps with a wrong ticket. */
static void surprise(struct world *world)
{
    static const enum engine_op deeds[] = {ENGINE_STATUS,        ENGINE_HEARTBEAT,  ENGINE_LOOK,
                                           ENGINE_ENTER,         ENGINE_LEAVE,      ENGINE_LEAVE_SOON,
                                           ENGINE_SESSION_TOUCH, ENGINE_SESSION_END};
    struct ledger *ledger = &world->ledger;
    struct dice *dice = &world->dice;
    enum engine_op op = deeds[dice_below(dice, sizeof(deeds) / sizeof(deeds[0]))];

    if (ledger->last == 0)
        return;
    uint32_t count = dice_hits(dice, 4) || ledger->alive_count == 0
                         ? dice_between(dice, 1, ledger->last)
                         : ledger->alive[dice_below(dice, ledger->alive_count)];
    struct place place = ledger->person[count].place;
    if (dice_hits(dice, 6)) { /* again, with the key if there was one, or with a wrong body */
        struct request_key request = key_for_retry(world, count);
        request.body += dice_hits(dice, 8);
        go_by_it(world, join(world, world->holder_no[count], request));
        return;
    }
    if (dice_hits(dice, 10))
        place.holder.id[dice_below(dice, sizeof(place.holder.id))] ^= 1;
    else if (dice_hits(dice, 20))
        place.epoch += dice_hits(dice, 2) ? 1 : 2; /* none is 0, which would name the holder's own ticket */
    else if (dice_hits(dice, 20))
        place.count = ONE_OF(dice, 0, ledger->last + 1, UINT32_MAX);
    if (!may_interfere(world, count, op))
        return;
    send(world, op, place);
    go_by_it(world, count);
}

/* ---- time ---- */

static int64_t choose_elapsed(struct world *world)
{
    struct dice *dice = &world->dice;

    if (dice_below(dice, 100) < world->slowness)
        return 1000;
    switch (dice_below(dice, 60)) {
    case 0: /* it stands still */
    case 1:
        return 0;
    case 2:
        return dice_below(dice, 1000);
    case 3:
        return dice_below(dice, 100);
    case 4:
        return dice_between(dice, 1, 60) * SEC;
    case 5:
        return dice_hits(dice, 2) ? HOUR : YEAR;
    case 6:
        return -(dice_hits(dice, 2) ? (int64_t)dice_below(dice, 2000) : HOUR);
    default:
        return 100;
    }
}

static void tick(struct world *world)
{
    int64_t elapsed_ms = choose_elapsed(world);

    trace("%" PRIu32 " tick after %" PRId64 " ms", run->event + 1, elapsed_ms);
    ledger_tick(&world->ledger, elapsed_ms);
    /* The wall clock in tickets and passes decides nothing: it may as well do what it likes. */
    world->wall_sec = WALL_FIRST_SEC + dice_below(&world->dice, 100000000);
}

/* ---- a run ---- */

static uint32_t arrivals_now(struct world *world, uint32_t round)
{
    struct dice *dice = &world->dice;
    uint32_t percent = world->arrivals_percent;

    if (world->shape == FLASH_CROWD)
        percent = round == 0 ? 100 * world->crowd_most : percent / 4;
    if (world->shape == WAVES && round / 150 % 2 == 1)
        percent = 0;
    if (world->ledger.alive_count >= world->crowd_most)
        return 0;
    return percent / 100 + (dice_below(dice, 100) < percent % 100);
}

static void play_round(struct world *world, uint32_t round)
{
    struct dice *dice = &world->dice;

    if (world->has_operator && dice_hits(dice, 40))
        operate(world);
    for (uint32_t left = arrivals_now(world, round); left > 0 && !is_over(world); left--)
        arrive(world);
    act_all(world);
    while (dice_hits(dice, 3) && !is_over(world))
        surprise(world);
    if (!is_over(world))
        tick(world);
}

static void open_world(struct world *world, uint64_t seed, uint32_t events)
{
    struct dice *dice = &world->dice;

    *dice = (struct dice){seed};
    world->shape = (enum shape)dice_below(dice, SHAPES);
    world->arrivals_percent = ONE_OF(dice, 5, 20, 60, 150);
    world->crowd_most = ONE_OF(dice, 10, 30, 60, CROWD_MOST);
    world->slowness = ONE_OF(dice, 0, 0, 20, 80);
    world->has_operator = !dice_hits(dice, 4);
    world->events = events;
    world->wall_sec = WALL_FIRST_SEC;
    world->people = seed << 32;
    struct settings settings = choose_settings(dice);
    bool has_engine = seed % ENGINE_EVERY == 0;
    /* Sometimes too few pages for all who come: then the room must refuse, and stay whole. */
    uint32_t pages = has_engine || !dice_hits(dice, 8) ? 256 : HOUSE_LEAST_PAGES;

    trace("seed %" PRIu64 ": %s, %" PRIu32 " pages", seed, has_engine ? "engine" : "room", pages);
    trace_settings(&settings);
    house_open(&world->house, has_engine, pages, &settings);
    ledger_open(&world->ledger, &world->house, &settings);
}

void world_play(uint64_t seed, uint32_t events)
{
    struct world *world = calloc(1, sizeof(*world));

    if (world == NULL)
        violated("no memory");
    open_world(world, seed, events);
    for (uint32_t round = 0; !is_over(world); round++)
        play_round(world, round);
    house_check(&world->house);
    ledger_close(&world->ledger);
    house_close(&world->house);
    free(world);
}
