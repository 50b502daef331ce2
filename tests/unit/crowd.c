/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The crowd believes nothing of the journal. What must be there after an accident follows from what was answered, and when; what
 * was there at each moment from the living rooms themselves.
 *
 * Answers come now or later. What an operation did is seen right after it was submitted, answered or not; what somebody was
 * told counts from the answer on.
 */
#include "crowd.h"

#include "base/must.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MORE_PAGES 1200
#define PATIENCE   200 /* turns after which somebody who waits for an answer waits for ever */

/* ---- lives ---- */

static uint64_t wall_ms(void)
{
    return CROWD_WALL_MS;
}

/* Times so short that all of them end within a trace. */
struct settings crowd_settings(void)
{
    struct settings settings = settings_default();

    settings.rate_milli = 3000;
    settings.max_active = 16;
    settings.away_ttl_sec = 6;
    settings.claim_ttl_sec = 4;
    settings.arrive_ttl_sec = 6;
    settings.session_ttl_sec = 9;
    return settings;
}

struct life life_new_small(struct disk_sim *sim, uint32_t pages)
{
    struct local_zone_options options = {.rooms_max = CROWD_NAMES - 1,
                                         .makes_rooms = true,
                                         .settings = crowd_settings(),
                                         .texts = {.title = "made by its first join"}};
    struct life life = {.sim = sim, .now_ms = 20000}; /* a snapshot is not tried twice in 10 s */

    life.bytes = local_zone_least_bytes(CROWD_NAMES - 1) + (size_t)pages * PAGE_BYTES;
    life.memory = mmap(NULL, life.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(life.memory != MAP_FAILED);
    madvise(life.memory, life.bytes, MADV_HUGEPAGE); /* most of it is used, thousands of times */
    life.zone = local_zone_init(life.memory, life.bytes, &options);
    return life;
}

struct life life_new(struct disk_sim *sim)
{
    return life_new_small(sim, MORE_PAGES);
}

bool life_begin(struct life *life, const struct log_options *options)
{
    struct disk *disk = disk_sim_disk(life->sim);

    if (!local_zone_recover(life->zone, disk, options, CROWD_WALL_MS, &life->recovery))
        return false;
    for (uint32_t i = 0; i < CROWD_WORKERS; i++) {
        life->worker[i] = local_engine_new(life->zone);
        assert_non_null(life->worker[i]);
        local_engine_use_disk(life->worker[i], disk, wall_ms);
    }
    return true;
}

void life_end(struct life *life)
{
    for (uint32_t i = 0; i < CROWD_WORKERS; i++) {
        if (life->worker[i] == NULL)
            continue;
        local_of(life->worker[i])->waiting = 0; /* their answers die with it */
        local_engine_free(life->worker[i]);
    }
    munmap(life->memory, life->bytes);
    *life = (struct life){.sim = life->sim};
}

static void work_now(struct life *life, uint32_t worker)
{
    struct engine *engine = life->worker[worker];

    if (!local_engine_wants_work(engine, life->now_ms))
        return;
    local_engine_work(engine);
    local_engine_worked(engine);
}

static void note_answer(struct engine_call *call)
{
    *(bool *)call->context = true;
}

enum error life_ask(struct life *life, struct engine_call *call, struct span room)
{
    bool is_answered = false;

    call->room = room;
    call->done = note_answer;
    call->context = &is_answered;
    engine_submit(life->worker[0], call);
    for (int i = 0; i < PATIENCE && !is_answered; i++) {
        local_engine_flush(life->worker[0]);
        work_now(life, 0);
    }
    must(is_answered);
    return call->error;
}

uint64_t life_hash(const struct life *life)
{
    const struct local_zone *zone = life->zone;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < zone->rooms; i++)
        if (slot_is_alive(&zone->slots[i]))
            sum += room_hash(slot_room(&zone->slots[i]), 1);
    return sum;
}

struct room *life_room(const struct life *life, struct span name)
{
    struct slot *slot = slot_find(life->zone, name);

    if (slot == NULL || !slot_is_alive(slot) || !span_equal(room_name(slot_room(slot)), name))
        return NULL;
    return slot_room(slot);
}

/* ---- moments ---- */

static struct crowd *present; /* whose engine calls back */

static void *grown(void *array, uint32_t count, size_t each)
{
    /* At every power of two. */
    if (count >= 16 && (count & (count - 1)) != 0)
        return array;
    array = realloc(array, (count < 16 ? 16 : 2 * (size_t)count) * each);
    assert_non_null(array);
    return array;
}

static void moment_add(struct crowd *crowd, uint64_t hash, uint32_t done)
{
    crowd->moments = grown(crowd->moments, crowd->moment_count, sizeof(crowd->moments[0]));
    crowd->moments[crowd->moment_count++] = (struct moment){hash, done};
}

uint32_t crowd_find(const struct crowd *crowd, uint64_t hash)
{
    for (uint32_t i = crowd->moment_count; i-- > 0;)
        if (crowd->moments[i].hash == hash)
            return crowd->moments[i].done;
    return NEVER;
}

uint32_t crowd_must_have(const struct crowd *crowd)
{
    return crowd->told_for_good > crowd->synced ? crowd->told_for_good : crowd->synced;
}

/* In the midst of an operation: after a tick of one room, and before that of the next. */
static void see_room(struct span room, const struct figures *figures)
{
    moment_add(present, life_hash(present->life), present->ops - 1);
    if (present->watch != NULL)
        present->watch(room, figures);
}

static _Alignas(PAGE_BYTES) unsigned char scratch[ROOM_BYTES];

/* A room is made before anybody does anything in it. */
static void foresee_made(struct crowd *crowd, struct span name, const struct settings *settings,
                         const struct texts *texts)
{
    memset(scratch, 0, sizeof(scratch));
    struct room *room = room_init(scratch, scratch, name, crowd->life->zone->next_epoch, settings, texts);
    moment_add(crowd, life_hash(crowd->life) + room_hash(room, 1), crowd->ops - 1);
}

/* And emptied before it is deleted. */
static void foresee_emptied(struct crowd *crowd, const struct room *room)
{
    struct room *copy = (struct room *)scratch;
    uint32_t last = room->line.last;

    memcpy(copy, room, sizeof(*copy));
    for (uint32_t i = 0; i < copy->epochs; i++)
        copy->epoch[i].lost_from = 0;
    line_init(&copy->line);
    copy->line.last = last;
    moment_add(crowd, life_hash(crowd->life) - room_hash(room, 1) + room_hash(copy, 1), crowd->ops - 1);
}

/* ---- slips ---- */

struct span crowd_room_name(uint32_t room)
{
    static const char names[] =
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omikron "
        "pi rho sigma tau upsilon phi ";
    const char *name = names, *end;

    for (; (end = strchr(name, ' ')) != NULL && room > 0; room--)
        name = end + 1;
    assert_non_null(end);
    return (struct span){name, (size_t)(end - name)};
}

static bool is_same_place(const struct place *a, const struct place *b)
{
    return a->epoch == b->epoch && a->count == b->count && holder_equal(&a->holder, &b->holder);
}

struct slip *crowd_slip(struct crowd *crowd, uint32_t room, const struct place *place)
{
    for (uint32_t i = crowd->slip_count; i-- > 0;)
        if (crowd->slips[i].room == room && is_same_place(&crowd->slips[i].place, place))
            return &crowd->slips[i];
    return NULL;
}

bool slip_stands(const struct life *life, const struct slip *slip, uint32_t *count)
{
    const struct room *room = life_room(life, crowd_room_name(slip->room));

    if (room == NULL || room_find(room, &slip->place, count) == NULL)
        return false;
    struct place found = room_place(room, *count, &slip->place.holder);
    return is_same_place(&found, &slip->place);
}

/* Whoever was given a ticket earlier has the lower number, over all times; so no number is given twice. */
static void check_number(const struct crowd *crowd, const struct slip *slip)
{
    uint64_t mine = (uint64_t)slip->place.epoch << 32 | slip->place.count;

    for (const struct slip *other = crowd->slips; other < crowd->slips + crowd->slip_count; other++) {
        uint64_t number = (uint64_t)other->place.epoch << 32 | other->place.count;
        if (other == slip || other->room != slip->room || !other->is_told)
            continue;
        if (number == mine || (other < slip) != (number < mine))
            fail_msg("seed %" PRIu64 ", operation %u: %u.%u was given when %u.%u had been", crowd->seed,
                     crowd->ops, slip->place.epoch, slip->place.count, other->place.epoch,
                     other->place.count);
    }
}

static void slip_told(struct crowd *crowd, struct slip *slip)
{
    slip->is_given_up = false;
    if (slip->is_told)
        return;
    slip->is_told = true;
    check_number(crowd, slip);
}

/* What the last operation did to the tickets of a room. */
static void observe(struct crowd *crowd, uint32_t room, bool forgets_lost)
{
    for (struct slip *slip = crowd->slips; slip < crowd->slips + crowd->slip_count; slip++) {
        uint32_t count;
        if (slip->room != room)
            continue;
        bool is_alive = slip_stands(crowd->life, slip, &count);
        if (is_alive && slip->over != NEVER)
            fail_msg("seed %" PRIu64 ", operation %u: %u.%u was over and came back", crowd->seed, crowd->ops,
                     slip->place.epoch, slip->place.count);
        if (is_alive && slip->born == NEVER)
            slip->born = crowd->ops;
        if (!is_alive && slip->over == NEVER && (slip->born != NEVER || forgets_lost))
            slip->over = crowd->ops;
    }
}

/* ---- asking ---- */

struct ask {
    struct engine_call call;
    struct crowd *crowd;
    uint32_t op, room, person;
    struct place place;
    uint32_t covers; /* the operation that an answer stands for */
    bool is_being_submitted, is_answered;
    enum sync_mode sync;
};

static uint64_t hash_of_room(const struct crowd *crowd, uint32_t room)
{
    const struct room *at = life_room(crowd->life, crowd_room_name(room));

    return at == NULL ? 0 : room_hash(at, 1);
}

static void take_answer(struct ask *ask);

static void hear(struct engine_call *call)
{
    struct ask *ask = call->context;

    assert_false(ask->is_answered);
    ask->is_answered = true;
    ask->crowd->open_count--;
    if (!ask->is_being_submitted)
        take_answer(ask);
}

static struct ask *ask_new(struct crowd *crowd, enum engine_op op, uint32_t room, uint32_t person)
{
    struct ask *ask = calloc(1, sizeof(*ask));

    assert_non_null(ask);
    ask->crowd = crowd;
    ask->room = room;
    ask->person = person;
    ask->call.op = op;
    ask->call.room = crowd_room_name(room);
    ask->call.done = hear;
    ask->call.context = ask;
    crowd->asks = grown(crowd->asks, crowd->ask_count, sizeof(struct ask *));
    crowd->asks[crowd->ask_count++] = ask;
    crowd->open_count++;
    return ask;
}

static void foresee(struct crowd *crowd, const struct ask *ask)
{
    const struct room *room = life_room(crowd->life, ask->call.room);

    if (room == NULL && ask->call.op == ENGINE_JOIN)
        foresee_made(crowd, ask->call.room, &crowd->life->zone->options.settings,
                     &crowd->life->zone->options.texts);
    if (room == NULL && ask->call.op == ENGINE_PUT)
        foresee_made(crowd, ask->call.room, &ask->call.put.settings, ask->call.put.texts);
    if (room != NULL && ask->call.op == ENGINE_DELETE)
        foresee_emptied(crowd, room);
}

/* A join took effect, told or not. */
static void note_join(struct crowd *crowd, const struct ask *ask)
{
    const struct standing *standing = &ask->call.standing;

    if (crowd_slip(crowd, ask->room, &standing->place) != NULL)
        return;
    assert_false(standing->is_repeat);
    crowd->slips = grown(crowd->slips, crowd->slip_count, sizeof(crowd->slips[0]));
    struct slip *slip = &crowd->slips[crowd->slip_count++];
    *slip = (struct slip){.person = ask->person, .room = ask->room, .place = standing->place};
    slip->place.issue = (struct issue){true, standing->is_trusted, standing->key_id, standing->issued_sec};
    slip->made = crowd->made[ask->room];
    slip->born = crowd->ops;
    slip->over = NEVER;
}

/* An answer that tells of no change stands for the last one there was in its room. */
static uint32_t covered(struct crowd *crowd, const struct ask *ask, bool has_changed)
{
    const struct engine_call *call = &ask->call;

    if (has_changed)
        crowd->changed[ask->room] = ask->op;
    switch (call->op) {
    case ENGINE_STATUS:
    case ENGINE_HEARTBEAT:
        return call->error == ERROR_NONE && (has_changed || call->standing.is_ready)
                   ? crowd->changed[ask->room]
                   : 0;
    case ENGINE_SESSION_TOUCH:
        return has_changed ? ask->op : 0;
    case ENGINE_LEAVE: /* one that is gone has left */
        return life_room(crowd->life, call->room) == NULL ? 0 : crowd->changed[ask->room];
    default:
        return call->error == ERROR_NONE ? crowd->changed[ask->room] : 0;
    }
}

/* A lost place that is left, or whose holder has another, is over without ever having been seen to stand. */
static void note_lost(struct crowd *crowd, const struct ask *ask)
{
    const struct engine_call *call = &ask->call;
    struct slip *slip = crowd_slip(crowd, ask->room, &ask->place);
    bool is_told = call->op == ENGINE_STATUS || call->op == ENGINE_HEARTBEAT || call->op == ENGINE_ENTER;
    bool is_elsewhere = is_told && !is_same_place(&call->standing.place, &slip->place);

    if (slip->born == NEVER && slip->over == NEVER && (call->op == ENGINE_LEAVE || is_elsewhere))
        slip->over = crowd->ops;
}

static void submit(struct crowd *crowd, uint32_t worker, struct ask *ask)
{
    bool is_new = life_room(crowd->life, ask->call.room) == NULL;
    uint64_t before = hash_of_room(crowd, ask->room);

    ask->op = ++crowd->ops;
    ask->sync = crowd->options.sync;
    ask->is_being_submitted = true;
    foresee(crowd, ask);
    engine_submit(crowd->life->worker[worker], &ask->call);
    ask->is_being_submitted = false;
    if (is_new && life_room(crowd->life, ask->call.room) != NULL)
        crowd->made[ask->room] = ask->op;
    if (ask->call.op == ENGINE_JOIN && ask->call.error == ERROR_NONE)
        note_join(crowd, ask);
    if (ask->place.count != 0 && (ask->call.error == ERROR_NONE || ask->call.error == ERROR_NOT_READY))
        note_lost(crowd, ask);
    bool is_clear =
        ask->call.error == ERROR_NONE && (ask->call.op == ENGINE_CLEAR || ask->call.op == ENGINE_DELETE);
    observe(crowd, ask->room, is_clear);
    ask->covers = covered(crowd, ask, hash_of_room(crowd, ask->room) != before);
    moment_add(crowd, life_hash(crowd->life), crowd->ops);
    if (ask->is_answered)
        take_answer(ask);
}

/* ---- answers ---- */

static bool outlives_power(const struct ask *ask)
{
    switch (ask->call.op) {
    case ENGINE_ENTER:
    case ENGINE_LEAVE:
    case ENGINE_SESSION_END:
    case ENGINE_PUT:
    case ENGINE_DELETE:
    case ENGINE_ADVANCE:
    case ENGINE_CLEAR:
        return ask->sync != SYNC_OFF;
    default:
        return ask->sync == SYNC_ALWAYS;
    }
}

static void raise_to(uint32_t *number, uint32_t least)
{
    if (*number < least)
        *number = least;
}

/* An answer in a room vouches for the room. */
static void note_told(struct crowd *crowd, const struct ask *ask)
{
    if (ask->covers == 0)
        return;
    raise_to(&crowd->told, ask->covers);
    if (outlives_power(ask))
        raise_to(&crowd->told_for_good, ask->covers);
    if (ask->sync != SYNC_OFF && crowd->made[ask->room] <= ask->op)
        raise_to(&crowd->told_for_good, crowd->made[ask->room]);
}

bool pass_is_same(const struct standing *a, const struct standing *b)
{
    return a->iat_sec == b->iat_sec && a->pass_key_id == b->pass_key_id &&
           a->pass_life_sec == b->pass_life_sec && a->tier == b->tier;
}

/* The answer may be about another ticket of the same person: the older place, or the one whose turn has come. */
static struct slip *slip_answered(struct ask *ask, struct slip *slip)
{
    const struct standing *standing = &ask->call.standing;

    if (is_same_place(&standing->place, &slip->place))
        return slip;
    struct slip *other = crowd_slip(ask->crowd, ask->room, &standing->place);
    if (other == NULL || other->person != slip->person ||
        (other > slip && ticket_life(standing->state)->is_queueing))
        fail_msg("seed %" PRIu64 ", operation %u: asked for %u.%u, told of %u.%u", ask->crowd->seed, ask->op,
                 slip->place.epoch, slip->place.count, standing->place.epoch, standing->place.count);
    slip->is_given_up = true;
    slip_told(ask->crowd, other);
    return other;
}

static void take_pass(struct ask *ask, struct slip *slip)
{
    const struct standing *standing = &ask->call.standing;
    bool is_later = slip->has_pass && ask->op > slip->entered;

    if (slip->has_pass && (!pass_is_same(standing, &slip->pass) || (is_later && !standing->is_repeat)))
        fail_msg("seed %" PRIu64 ", operation %u: another pass for the same ticket", ask->crowd->seed,
                 ask->op);
    if (!is_later) {
        slip->has_pass = true;
        slip->pass = *standing;
        slip->entered = ask->op;
    }
}

static void take_refusal(struct ask *ask, struct slip *slip)
{
    const struct engine_call *call = &ask->call;
    bool is_gone = call->error == ERROR_TOKEN_NOT_FOUND;
    bool is_about_session = call->op == ENGINE_SESSION_TOUCH || call->op == ENGINE_SESSION_END;

    if ((is_about_session && !slip->has_pass) || (call->op == ENGINE_LEAVE_SOON && slip->born == NEVER))
        return;
    if (call->error == ERROR_NOT_READY && call->op == ENGINE_ENTER && !slip->has_pass)
        return;
    /* One that is over stands for another of the same holder, where that has other names. */
    is_gone =
        is_gone || (call->error == ERROR_NOT_READY && !is_same_place(&call->standing.place, &slip->place));
    if (!is_gone || slip->over == NEVER)
        fail_msg("seed %" PRIu64 ", operation %u: call %d about %u.%u was answered with error %d",
                 ask->crowd->seed, ask->op, call->op, slip->place.epoch, slip->place.count, call->error);
    slip->is_given_up = true;
}

static void take_answer_about(struct ask *ask, struct slip *slip)
{
    if (ask->call.error != ERROR_NONE) {
        take_refusal(ask, slip);
        return;
    }
    switch (ask->call.op) {
    case ENGINE_STATUS:
    case ENGINE_HEARTBEAT:
        slip_answered(ask, slip);
        return;
    case ENGINE_ENTER:
        take_pass(ask, slip_answered(ask, slip));
        return;
    case ENGINE_LEAVE:
    case ENGINE_SESSION_END:
        slip->is_given_up = true;
        return;
    default:
        return;
    }
}

static void give_up_cleared(struct ask *ask)
{
    struct crowd *crowd = ask->crowd;

    for (struct slip *slip = crowd->slips; slip < crowd->slips + crowd->slip_count; slip++)
        if (slip->room == ask->room && slip->over <= ask->op)
            slip->is_given_up = true;
}

static void take_answer(struct ask *ask)
{
    struct crowd *crowd = ask->crowd;
    const struct engine_call *call = &ask->call;

    if (call->error == ERROR_ENGINE_UNAVAILABLE) {
        if (!crowd->may_be_refused)
            fail_msg("seed %" PRIu64 ", operation %u: refused, though nothing is wrong", crowd->seed,
                     ask->op);
        crowd->refused++;
        crowd->refused_joins += call->op == ENGINE_JOIN;
        return;
    }
    note_told(crowd, ask);
    if (call->op == ENGINE_JOIN && call->error == ERROR_NONE)
        slip_told(crowd, crowd_slip(crowd, ask->room, &call->standing.place));
    else if (call->op == ENGINE_CLEAR || call->op == ENGINE_DELETE)
        give_up_cleared(ask);
    else if (ask->place.count != 0)
        take_answer_about(ask, crowd_slip(crowd, ask->room, &ask->place));
}

/* ---- what people do ---- */

static struct holder holder_of_person(uint32_t person)
{
    return holder_of(1000 + person);
}

/* Most are in the first few. */
static uint32_t room_of_person(const struct crowd *crowd, uint32_t person)
{
    return person % (person < CROWD_PEOPLE / 2 && crowd->rooms > 4 ? 4 : crowd->rooms);
}

static void join(struct crowd *crowd, uint32_t worker, uint32_t person)
{
    struct ask *ask = ask_new(crowd, ENGINE_JOIN, room_of_person(crowd, person), person);

    ask->call.join = (struct join){
        .holder = holder_of_person(person),
        .key_id = (uint8_t)dice_below(&crowd->dice, 4),
        .wall_sec = 1790000000 + crowd->ops,
    };
    if (dice_below(&crowd->dice, 3) == 0)
        ask->call.join.request = key_of(10 * person + dice_below(&crowd->dice, 3), 1);
    submit(crowd, worker, ask);
}

static void use(struct crowd *crowd, uint32_t worker, const struct slip *slip, enum engine_op op)
{
    struct ask *ask = ask_new(crowd, op, slip->room, slip->person);

    ask->place = slip->place;
    if (op == ENGINE_ENTER)
        ask->call.enter = (struct enter){.place = slip->place,
                                         .key_id = (uint8_t)dice_below(&crowd->dice, 4),
                                         .wall_sec = 1790000000 + crowd->ops};
    else
        ask->call.place = slip->place;
    submit(crowd, worker, ask);
}

static enum engine_op some_op(struct crowd *crowd, const struct slip *slip)
{
    static const enum engine_op outside[] = {
        ENGINE_STATUS, ENGINE_STATUS,    ENGINE_STATUS,     ENGINE_STATUS, ENGINE_STATUS,
        ENGINE_ENTER,  ENGINE_ENTER,     ENGINE_ENTER,      ENGINE_JOIN,   ENGINE_LEAVE,
        ENGINE_STATUS, ENGINE_HEARTBEAT, ENGINE_LEAVE_SOON, ENGINE_STATUS, ENGINE_STATUS,
    };
    static const enum engine_op inside[] = {
        ENGINE_SESSION_TOUCH, ENGINE_SESSION_TOUCH, ENGINE_ENTER, ENGINE_SESSION_END,
        ENGINE_STATUS,        ENGINE_SESSION_TOUCH, ENGINE_LEAVE,
    };

    if (slip->has_pass)
        return inside[dice_below(&crowd->dice, sizeof(inside) / sizeof(inside[0]))];
    return outside[dice_below(&crowd->dice, sizeof(outside) / sizeof(outside[0]))];
}

/* Mostly the newest ticket they have; sometimes one that they found in another pocket. */
static struct slip *pick_slip(struct crowd *crowd, uint32_t person)
{
    struct slip *picked = NULL;

    for (uint32_t i = crowd->slip_count; i-- > 0;) {
        struct slip *slip = &crowd->slips[i];
        if (slip->person != person || slip->room == NEVER || !slip->is_told || slip->is_given_up)
            continue;
        picked = slip;
        if (dice_below(&crowd->dice, 4) != 0)
            break;
    }
    return picked;
}

static void person_acts(struct crowd *crowd, uint32_t worker)
{
    uint32_t person = dice_below(&crowd->dice, CROWD_PEOPLE);
    const struct slip *slip = pick_slip(crowd, person);
    enum engine_op op = slip == NULL ? ENGINE_JOIN : some_op(crowd, slip);

    if (op == ENGINE_JOIN)
        join(crowd, worker, person);
    else
        use(crowd, worker, slip, op);
}

/* ---- what the operator does ---- */

static struct settings some_settings(struct crowd *crowd)
{
    static const enum room_mode modes[] = {MODE_QUEUE, MODE_QUEUE, MODE_QUEUE, MODE_HOLD,
                                           MODE_QUEUE, MODE_OPEN,  MODE_QUEUE, MODE_CLOSED};
    struct settings settings = crowd_settings();

    settings.mode = modes[dice_below(&crowd->dice, 8)];
    settings.rate_milli = 1000 + dice_below(&crowd->dice, 20000);
    settings.max_active = 4 + dice_below(&crowd->dice, 12);
    settings.session_max_sec = 10 * dice_below(&crowd->dice, 3);
    settings.tier = 1 + dice_below(&crowd->dice, 2);
    settings.max_called = dice_below(&crowd->dice, 4);
    return settings;
}

void crowd_put(struct crowd *crowd, uint32_t worker, uint32_t room)
{
    struct ask *ask = ask_new(crowd, ENGINE_PUT, room, NEVER);
    const struct room *at = life_room(crowd->life, crowd_room_name(room));

    ask->call.put = (struct engine_put){.settings = some_settings(crowd),
                                        .texts = texts_at_random(&crowd->dice),
                                        .version = at == NULL ? 0 : room_figures(at).settings_version,
                                        .is_from_api = true};
    submit(crowd, worker, ask);
}

static void operator_acts(struct crowd *crowd, uint32_t worker)
{
    static const enum engine_op ops[] = {ENGINE_PUT, ENGINE_PUT,   ENGINE_PUT,    ENGINE_ADVANCE,
                                         ENGINE_PUT, ENGINE_CLEAR, ENGINE_DELETE, ENGINE_ADVANCE};
    enum engine_op op = ops[dice_below(&crowd->dice, 8)];
    uint32_t room = dice_below(&crowd->dice, crowd->rooms);

    if (op == ENGINE_PUT) {
        crowd_put(crowd, worker, room);
        return;
    }
    struct ask *ask = ask_new(crowd, op, room, NEVER);
    ask->call.people = 1 + dice_below(&crowd->dice, 4);
    submit(crowd, worker, ask);
}

/* ---- turns ---- */

void crowd_tick(struct crowd *crowd, uint32_t worker, uint32_t elapsed_ms)
{
    uint64_t before[CROWD_NAMES];

    for (uint32_t room = 0; room < crowd->rooms; room++)
        before[room] = hash_of_room(crowd, room);
    crowd->life->now_ms += elapsed_ms;
    crowd->ops++;
    crowd->life->worker[worker]->tick(crowd->life->worker[worker], crowd->life->now_ms);
    for (uint32_t room = 0; room < crowd->rooms; room++) {
        observe(crowd, room, false);
        if (hash_of_room(crowd, room) != before[room])
            crowd->changed[room] = crowd->ops;
    }
    moment_add(crowd, life_hash(crowd->life), crowd->ops);
}

static bool is_well(const struct crowd *crowd)
{
    return log_trouble(crowd->life->zone->log) == LOG_FINE;
}

void crowd_flush(struct crowd *crowd, uint32_t worker)
{
    uint32_t ops = crowd->ops;

    local_engine_flush(crowd->life->worker[worker]);
    if (is_well(crowd)) {
        crowd->flushed = ops;
        crowd->flushed_until = log_change(crowd->life->zone->log);
    }
}

/* What a thread does is done some turns later, and heard of later still. */
static void work_on(struct crowd *crowd, uint32_t worker)
{
    struct engine *engine = crowd->life->worker[worker];
    const struct log *log = crowd->life->zone->log;
    uint64_t until = crowd->flushed_until;
    uint32_t flushed = crowd->flushed;

    switch (crowd->work[worker]) {
    case WORK_NONE:
        if (local_engine_wants_work(engine, crowd->life->now_ms))
            crowd->work[worker] = WORK_WANTED;
        return;
    case WORK_WANTED:
        local_engine_work(engine);
        if (local_of(engine)->work.sync && is_well(crowd) && log_synced(log) >= until)
            raise_to(&crowd->synced, flushed);
        crowd->work[worker] = WORK_DONE;
        return;
    case WORK_DONE:
        crowd->work[worker] = WORK_NONE;
        local_engine_worked(engine);
        return;
    }
}

/* While an event loop is at its turn, its thread may be at work, and so may the other process. */
static void work_meanwhile(struct crowd *crowd, uint32_t busy)
{
    for (uint32_t worker = 0; worker < CROWD_WORKERS; worker++)
        if (dice_below(&crowd->dice, 6) == 0 && (worker != busy || crowd->work[worker] == WORK_WANTED))
            work_on(crowd, worker);
}

void crowd_turn(struct crowd *crowd)
{
    static const uint32_t pauses_ms[] = {100, 100, 100, 200, 400, 1000};
    uint32_t worker = dice_below(&crowd->dice, CROWD_WORKERS);
    uint32_t acts = 1 + dice_below(&crowd->dice, 5);

    for (uint32_t i = 0; i < acts; i++) {
        if (crowd->has_operator && dice_below(&crowd->dice, 25) == 0)
            operator_acts(crowd, worker);
        else
            person_acts(crowd, worker);
        work_meanwhile(crowd, worker);
    }
    if (dice_below(&crowd->dice, 3) == 0)
        crowd_tick(crowd, worker, pauses_ms[dice_below(&crowd->dice, 6)]);
    work_meanwhile(crowd, worker);
    crowd_flush(crowd, worker);
    for (worker = 0; worker < CROWD_WORKERS; worker++)
        for (uint32_t steps = dice_below(&crowd->dice, 3); steps > 0; steps--)
            work_on(crowd, worker);
}

void crowd_settle(struct crowd *crowd)
{
    for (int i = 0; i < PATIENCE && crowd->open_count > 0; i++)
        for (uint32_t worker = 0; worker < CROWD_WORKERS; worker++) {
            crowd_flush(crowd, worker);
            work_on(crowd, worker);
        }
    if (crowd->open_count > 0)
        fail_msg("seed %" PRIu64 ": %u wait for an answer for ever", crowd->seed, crowd->open_count);
}

/* ---- beginning and going on ---- */

void crowd_init(struct crowd *crowd, uint64_t seed, const struct log_options *options)
{
    *crowd =
        (struct crowd){.seed = seed, .dice = {seed}, .options = *options, .rooms = 4, .has_operator = true};
}

static void forget_life(struct crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->ask_count; i++)
        free(crowd->asks[i]);
    crowd->ask_count = crowd->open_count = 0;
    crowd->moment_count = 0;
    crowd->flushed_until = 0;
    crowd->ops = crowd->told = crowd->told_for_good = crowd->flushed = crowd->synced = 0;
    crowd->refused = crowd->refused_joins = 0;
    memset(crowd->work, 0, sizeof(crowd->work));
    memset(crowd->changed, 0, sizeof(crowd->changed));
    memset(crowd->made, 0, sizeof(crowd->made));
}

void crowd_fini(struct crowd *crowd)
{
    forget_life(crowd);
    free(crowd->slips);
    free(crowd->moments);
    free(crowd->asks);
}

void crowd_enter(struct crowd *crowd, struct life *life)
{
    present = crowd;
    forget_life(crowd);
    crowd->life = life;
    for (uint32_t i = 0; i < CROWD_WORKERS; i++)
        life->worker[i]->watch = see_room;
    moment_add(crowd, life_hash(life), 0);
}

/* With as much room as `grown` counts on. */
static void *copied(const void *array, uint32_t count, size_t each)
{
    size_t room = 16;

    while (room < count)
        room *= 2;
    void *copy = malloc(room * each);
    assert_non_null(copy);
    if (count > 0)
        memcpy(copy, array, count * each);
    return copy;
}

struct crowd crowd_copy(const struct crowd *crowd)
{
    struct crowd copy = *crowd;

    copy.slips = copied(crowd->slips, crowd->slip_count, sizeof(crowd->slips[0]));
    copy.moments = copied(crowd->moments, crowd->moment_count, sizeof(crowd->moments[0]));
    copy.asks = NULL; /* they are the original's */
    copy.ask_count = copy.open_count = 0;
    return copy;
}

/* A tick may have been in the midst of its rooms. */
static bool is_over_at(const struct life *life, const struct slip *slip, uint32_t done)
{
    uint32_t count;

    return slip->over <= done ||
           (slip->over == done + 1 && slip->born <= done && !slip_stands(life, slip, &count));
}

/* What was done after that moment was never done. A ticket that nobody was told of, or in a room that is lost, never was. */
void crowd_move(struct crowd *crowd, struct life *life, uint32_t done)
{
    for (struct slip *slip = crowd->slips; slip < crowd->slips + crowd->slip_count; slip++) {
        if (slip->room == NEVER)
            continue;
        slip->over = is_over_at(life, slip, done) ? 0 : NEVER;
        slip->born = slip->born <= done ? 0 : NEVER;
        if ((!slip->is_told && slip->born == NEVER) || slip->made > done)
            slip->room = NEVER;
        slip->made = 0;
        if (slip->entered > done)
            slip->has_pass = false;
        slip->entered = 0;
    }
    crowd_enter(crowd, life);
}
