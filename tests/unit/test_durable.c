/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nothing acknowledged is lost. A crowd uses the engine (crowd.h) on a disk whose power is cut after every call that changes
 * something; each time a fresh zone is made of what is left, and must be what the living one was at some moment, not before the
 * last that somebody was promised.
 *
 * WEIR_DURABLE_SEEDS=N plays N times as many traces, WEIR_DURABLE_SEED=N only those of seed N.
 */
#include "crowd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERATIONS 1000

static const char *const mode_name[] = {
    [SYNC_OFF] = "off", [SYNC_INTERVAL] = "interval", [SYNC_ALWAYS] = "always"};
static const char *const loss_name[] = {
    [SIM_KEEP] = "kept", [SIM_DROP] = "dropped", [SIM_TEAR] = "torn", [SIM_REORDER] = "reordered"};

static struct log_options options_for(enum sync_mode sync)
{
    return (struct log_options){
        .sync = sync, .interval_ms = 300, .segment_bytes = LOG_SEGMENT_LEAST, .reserve_bytes = 1 << 16};
}

static uint64_t number_from(const char *variable)
{
    const char *text = getenv(variable);

    return text == NULL ? 0 : strtoul(text, NULL, 10);
}

/* Seeds from 1 to `count`, unless somebody wants more of them, or one. */
static uint64_t first_seed(void)
{
    uint64_t seed = number_from("WEIR_DURABLE_SEED");

    return seed == 0 ? 1 : seed;
}

static uint64_t last_seed(uint64_t count)
{
    uint64_t seed = number_from("WEIR_DURABLE_SEED"), times = number_from("WEIR_DURABLE_SEEDS");

    return seed == 0 ? count * (times == 0 ? 1 : times) : seed;
}

/* ---- an accident, and what is left ---- */

/* Where the test stands, for messages. */
struct scene {
    const struct crowd *crowd;
    const char *accident;
    enum sim_call call;
    uint64_t calls;
};

__attribute__((format(printf, 2, 3))) static void wrong(const struct scene *scene, const char *format, ...)
{
    char what[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    fail_msg("seed %" PRIu64 ", sync=%s, operation %u, call %" PRIu64 " (%s), %s: %s", scene->crowd->seed,
             mode_name[scene->crowd->options.sync], scene->crowd->ops, scene->calls,
             sim_call_name(scene->call), scene->accident, what);
}

/* Replays what is on the disk, twice; how many operations of the crowd's are in it. */
static uint32_t replayed(const struct scene *scene, struct disk_sim *sim, struct local_recovery *recovery)
{
    struct life life = life_new(sim);

    if (!local_zone_replay(life.zone, disk_sim_disk(sim), NULL, NULL, recovery))
        wrong(scene, "refused: %s", recovery->why);
    uint64_t hash = local_zone_hash(life.zone);
    uint32_t done = crowd_find(scene->crowd, hash);
    if (done == NEVER)
        wrong(scene, "the rooms never were what was recovered");
    life_end(&life);
    return done;
}

static uint32_t after_power_cut(const struct scene *scene, struct disk_sim *cut,
                                struct local_recovery *recovery)
{
    const struct crowd *crowd = scene->crowd;
    uint32_t done = replayed(scene, cut, recovery);

    if (done < crowd_must_have(crowd))
        wrong(scene, "%u operations are there, %u must be (%u by an answer, %u by a sync)", done,
              crowd_must_have(crowd), crowd->told_for_good, crowd->synced);
    if (done < crowd->told && !recovery->has_lost)
        wrong(scene, "%u operations are there and %u were answered, but no loss was noticed", done,
              crowd->told);
    return done;
}

static void after_crash(const struct scene *scene, const struct disk_sim *sim)
{
    const struct crowd *crowd = scene->crowd;
    struct disk_sim *crashed = disk_sim_crash(sim);
    struct local_recovery recovery;
    uint32_t done = replayed(scene, crashed, &recovery);

    if (done < crowd->told || done < crowd->flushed)
        wrong(scene, "%u operations are there, but %u were answered and %u flushed", done, crowd->told,
              crowd->flushed);
    if (recovery.has_lost && !recovery.scan.had_failed)
        wrong(scene, "a loss was seen where there is none");
    disk_sim_free(crashed);
}

/* ---- everybody comes back ---- */

static struct standing poll(const struct scene *scene, struct life *life, const struct slip *slip,
                            enum error *error)
{
    struct engine_call call = {.op = ENGINE_STATUS, .place = slip->place};

    *error = life_ask(life, &call, crowd_room_name(slip->room));
    if (*error != ERROR_NONE && *error != ERROR_TOKEN_NOT_FOUND)
        wrong(scene, "a poll was answered with error %d", *error);
    return call.standing;
}

/* Another ticket of the same person, told or not. */
static const struct slip *other_slip(const struct crowd *crowd, const struct slip *slip,
                                     const struct place *place)
{
    for (uint32_t i = 0; i < crowd->slip_count; i++) {
        const struct slip *other = &crowd->slips[i];
        if (other->person == slip->person && other->place.epoch == place->epoch &&
            other->place.count == place->count)
            return other;
    }
    return NULL;
}

static void comes_back(const struct scene *scene, struct life *life, const struct slip *slip, uint32_t done)
{
    enum error error;
    struct standing standing = poll(scene, life, slip, &error);
    bool is_own = error == ERROR_NONE && standing.place.epoch == slip->place.epoch &&
                  standing.place.count == slip->place.count;
    bool is_other = error == ERROR_NONE && !is_own && other_slip(scene->crowd, slip, &standing.place) != NULL;

    if (slip->over == done + 1)
        return; /* by a tick that was in the midst of its rooms */
    if (slip_is_alive_at(slip, done) && !is_own && !is_other)
        wrong(scene, "%u.%u is alive, and its poll did not say so", slip->place.epoch, slip->place.count);
    if (slip_is_lost_at(slip, done) && !is_own && !is_other)
        wrong(scene, "%u.%u was lost and did not get its place back", slip->place.epoch, slip->place.count);
    if (slip->over <= done && is_own)
        wrong(scene, "%u.%u was over and came back", slip->place.epoch, slip->place.count);
    if (is_own &&
        (standing.issued_sec != slip->place.issue.sec || standing.key_id != slip->place.issue.key_id))
        wrong(scene, "%u.%u came back as another", slip->place.epoch, slip->place.count);
}

static void enters_again(const struct scene *scene, struct life *life, const struct slip *slip)
{
    struct engine_call call = {.op = ENGINE_ENTER,
                               .enter = {.place = slip->place, .key_id = 9, .wall_sec = 1800000000}};
    enum error error = life_ask(life, &call, crowd_room_name(slip->room));

    if (error != ERROR_NONE || !call.standing.is_repeat || !pass_is_same(&call.standing, &slip->pass))
        wrong(scene, "error %d: the pass of %u.%u is not given again", error, slip->place.epoch,
              slip->place.count);
}

/* Whether somebody still believes in it. Without syncs the very room may be lost, and all that was in it for good. */
static bool is_held(const struct slip *slip, uint32_t done)
{
    return slip->room != NEVER && slip->made <= done && slip->is_told && !slip->is_given_up;
}

static void everybody_comes_back(const struct scene *scene, struct life *life, uint32_t done)
{
    const struct crowd *crowd = scene->crowd;
    struct dice dice = {crowd->seed + scene->calls};
    uint32_t start = crowd->slip_count == 0 ? 0 : dice_below(&dice, crowd->slip_count);

    for (uint32_t i = 0; i < crowd->slip_count; i++) {
        const struct slip *slip = &crowd->slips[(start + i * 7919) % crowd->slip_count];
        /* Who is known to have gone is gone, also if they ask. */
        bool is_gone = slip->room != NEVER && slip->over <= done;
        if (is_held(slip, done) || is_gone)
            comes_back(scene, life, slip, done);
        if (is_held(slip, done) && slip->has_pass && slip_is_alive_at(slip, done + 1) &&
            slip->entered <= done)
            enters_again(scene, life, slip);
    }
}

/* Of two who stand in a line the one who came first stands first. */
static uint32_t check_order(const struct scene *scene, const struct life *life, uint32_t room)
{
    const struct crowd *crowd = scene->crowd;
    uint32_t last = 0, rank = 0;

    for (uint32_t i = 0; i < crowd->slip_count; i++) {
        const struct slip *slip = &crowd->slips[i];
        uint32_t count;
        if (slip->room != room || !slip_stands(life, slip, &count))
            continue;
        const struct room *at = life_room(life, crowd_room_name(room));
        const struct ticket *ticket = line_find(&at->line, &at->memory, count);
        if (count <= last)
            wrong(scene, "%u.%u has overtaken somebody", slip->place.epoch, slip->place.count);
        last = count;
        if (ticket->state == TICKET_WAITING && line_rank(&at->line, &at->memory, count) != ++rank)
            wrong(scene, "%u.%u is not number %u", slip->place.epoch, slip->place.count, rank);
    }
    return last;
}

static struct place newcomer(const struct scene *scene, struct life *life, uint32_t room, uint64_t who)
{
    struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = holder_of(who), .wall_sec = 7}};
    enum error error = life_ask(life, &call, crowd_room_name(room));

    if (error != ERROR_NONE && error != ERROR_ROOM_CLOSED)
        wrong(scene, "a newcomer was answered with error %d", error);
    return error == ERROR_NONE ? call.standing.place : (struct place){.epoch = 0};
}

static void newcomers_stand_behind(const struct scene *scene, struct life *life, uint32_t room, uint32_t last)
{
    const struct crowd *crowd = scene->crowd;

    for (uint64_t who = 1; who <= 2; who++) {
        struct place place = newcomer(scene, life, room, who);
        const struct room *at = life_room(life, crowd_room_name(room));
        uint32_t count;
        if (place.epoch == 0)
            continue;
        if (room_find(at, &place, &count) == NULL || count <= last)
            wrong(scene, "a newcomer stands before people");
        last = count;
        for (uint32_t i = 0; i < crowd->slip_count; i++)
            if (crowd->slips[i].room == room && crowd->slips[i].is_told &&
                crowd->slips[i].place.epoch == place.epoch && crowd->slips[i].place.count == place.count)
                wrong(scene, "%u.%u was given twice", place.epoch, place.count);
    }
}

/* The operator calls one more: it is whoever stands first. */
static void the_first_is_called(const struct scene *scene, struct life *life, uint32_t room)
{
    const struct room *at = life_room(life, crowd_room_name(room));
    uint32_t first = line_first(&at->line, &at->memory);
    struct engine_call call = {.op = ENGINE_ADVANCE, .people = 1};
    enum error error = life_ask(life, &call, crowd_room_name(room));

    if (error != ERROR_NONE)
        wrong(scene, "the operator was answered with error %d", error);
    if (call.people > 0 && line_find(&at->line, &at->memory, first)->state != TICKET_CALLED)
        wrong(scene, "somebody else was called");
}

static void the_line_goes_on(const struct scene *scene, struct life *life)
{
    for (uint32_t room = 0; room < scene->crowd->rooms; room++) {
        if (life_room(life, crowd_room_name(room)) == NULL)
            continue;
        newcomers_stand_behind(scene, life, room, check_order(scene, life, room));
        for (int i = 0; i < 3; i++)
            the_first_is_called(scene, life, room);
    }
    local_zone_check(life->zone);
}

/* What the journal says is what the rooms are. */
static void journal_says_the_same(const struct scene *scene, struct life *life)
{
    struct disk_sim *crashed = disk_sim_crash(life->sim);
    uint64_t hash = life_hash(life);

    for (int i = 0; i < 2; i++) {
        struct life again = life_new(crashed);
        if (!local_zone_replay(again.zone, disk_sim_disk(crashed), NULL, NULL, &again.recovery))
            wrong(scene, "refused afterwards: %s", again.recovery.why);
        if (local_zone_hash(again.zone) != hash)
            wrong(scene, "a replay makes other rooms than there are");
        life_end(&again);
    }
    disk_sim_free(crashed);
}

static void recover_and_come_back(const struct scene *scene, struct disk_sim *cut, uint32_t done)
{
    struct life life = life_new(cut);

    if (!life_begin(&life, &scene->crowd->options))
        wrong(scene, "recovery: %s", life.recovery.why);
    everybody_comes_back(scene, &life, done);
    the_line_goes_on(scene, &life);
    journal_says_the_same(scene, &life);
    life_end(&life);
}

/* ---- power is cut after every call ---- */

struct trial {
    struct crowd crowd;
    struct life life;
    uint32_t cuts;
    uint32_t come_back_every; /* so many cuts are recovered from in full */
    bool is_brief;            /* the kinds of loss take turns */
};

static bool changes_the_disk(enum sim_call call)
{
    return call == SIM_WRITE || call == SIM_SYNC || call == SIM_ALLOCATE || call == SIM_RENAME ||
           call == SIM_REMOVE || call == SIM_SYNC_FOLDER;
}

static void cut_now(struct trial *trial, struct disk_sim *sim, enum sim_call call, enum sim_loss loss)
{
    struct scene scene = {&trial->crowd, loss_name[loss], call, disk_sim_calls(sim, SIM_ANY)};
    struct disk_sim *cut = disk_sim_power_cut(sim, loss, trial->crowd.seed * 100003 + trial->cuts);
    struct local_recovery recovery;
    uint32_t done = after_power_cut(&scene, cut, &recovery);

    if (trial->cuts % (trial->come_back_every * SIM_LOSSES) == trial->come_back_every * loss)
        recover_and_come_back(&scene, cut, done);
    disk_sim_free(cut);
}

static void cut_after(void *context, struct disk_sim *sim, enum sim_call call)
{
    struct trial *trial = context;
    struct scene scene = {&trial->crowd, "all processes died", call, disk_sim_calls(sim, SIM_ANY)};

    if (!changes_the_disk(call))
        return;
    trial->cuts++;
    bool is_sync = call == SIM_SYNC || call == SIM_SYNC_FOLDER; /* nobody sees a difference without a cut */
    for (enum sim_loss loss = is_sync ? SIM_DROP : SIM_KEEP; loss < SIM_LOSSES; loss++)
        if (!trial->is_brief || (trial->cuts + loss) % 2 == 0)
            cut_now(trial, sim, call, loss);
    if (!is_sync)
        after_crash(&scene, sim);
}

static void trial_begin(struct trial *trial, uint64_t seed, enum sync_mode sync)
{
    struct log_options options = options_for(sync);

    *trial = (struct trial){.come_back_every = 25, .life = life_new(disk_sim_new())};
    crowd_init(&trial->crowd, seed, &options);
    assert_true(life_begin(&trial->life, &options));
    crowd_enter(&trial->crowd, &trial->life);
}

static void trial_end(struct trial *trial)
{
    struct scene scene = {&trial->crowd, "at the end", SIM_ANY, 0};

    disk_sim_watch(trial->life.sim, NULL, NULL);
    crowd_settle(&trial->crowd);
    crowd_flush(&trial->crowd, 0);
    local_zone_check(trial->life.zone);
    journal_says_the_same(&scene, &trial->life);
    life_end(&trial->life);
    disk_sim_free(trial->life.sim);
    crowd_fini(&trial->crowd);
}

static void play_cuts(enum sync_mode sync)
{
    for (uint64_t seed = first_seed(); seed <= last_seed(1); seed++) {
        struct trial trial;
        trial_begin(&trial, seed, sync);
        disk_sim_watch(trial.life.sim, cut_after, &trial);
        while (trial.crowd.ops < OPERATIONS)
            crowd_turn(&trial.crowd);
        trial_end(&trial);
    }
}

static void power_cut_anywhere_takes_nothing_that_was_answered(void **state)
{
    (void)state;
    play_cuts(SYNC_ALWAYS);
}

static void power_cut_anywhere_takes_no_pass_and_nothing_that_was_synced(void **state)
{
    (void)state;
    play_cuts(SYNC_INTERVAL);
}

static void power_cut_anywhere_without_syncs_leaves_what_once_was(void **state)
{
    (void)state;
    play_cuts(SYNC_OFF);
}

/* ---- segments and snapshots ---- */

/* A crowd, what is left of its disk, and how many of its operations are there. */
struct ruin {
    struct crowd crowd;
    struct disk_sim *left;
    uint32_t done;
};

static void ruin_free(struct ruin *ruin)
{
    disk_sim_free(ruin->left);
    crowd_fini(&ruin->crowd);
}

static uint32_t count_lost(const struct crowd *crowd, uint32_t done)
{
    uint32_t lost = 0;

    for (uint32_t i = 0; i < crowd->slip_count; i++)
        lost += crowd->slips[i].room != NEVER && crowd->slips[i].is_told &&
                slip_is_lost_at(&crowd->slips[i], done);
    return lost;
}

/* Plays until a power cut takes so many tickets that were told of, and has that happen. */
static void play_until_lost(struct ruin *ruin, struct life *life, enum sim_loss loss, uint32_t lost)
{
    struct scene scene = {&ruin->crowd, "a loss", SIM_ANY, 0};
    struct local_recovery recovery;

    for (;;) {
        crowd_turn(&ruin->crowd);
        ruin->left = disk_sim_power_cut(life->sim, loss, ruin->crowd.seed);
        ruin->done = after_power_cut(&scene, ruin->left, &recovery);
        if (count_lost(&ruin->crowd, ruin->done) >= lost && ruin->crowd.ops > 60)
            break;
        disk_sim_free(ruin->left);
    }
    life_end(life);
    disk_sim_free(life->sim);
}

/*
 * A crowd and its disk after some lives: every recovery begins a new segment, so the log is longer than one. Some have lost their
 * places, and have not come back yet.
 */
static struct ruin eve_new(uint64_t seed, enum sync_mode sync, uint32_t rooms)
{
    struct log_options options = options_for(sync);
    struct ruin eve = {.left = disk_sim_new()};

    crowd_init(&eve.crowd, seed, &options);
    eve.crowd.rooms = rooms;
    for (uint32_t i = 0; i < 3; i++) {
        struct life life = life_new(eve.left);
        assert_true(life_begin(&life, &options));
        crowd_move(&eve.crowd, &life, eve.done);
        play_until_lost(&eve, &life, sync == SYNC_OFF ? SIM_KEEP : SIM_DROP,
                        sync == SYNC_INTERVAL ? 2 * i : 0);
    }
    return eve;
}

/* A recovery takes a snapshot if one is due. As far as the zone knows it has not. */
static void make_snapshot_due(struct life *life)
{
    life->zone->snapshot = 0;
    life->zone->snapshot_bytes = 0;
    assert_true(snapshot_is_due(life->zone));
}

/* The operator is busy, until the log is so long. */
static void fill_log(struct crowd *crowd, uint64_t end)
{
    while (log_end(crowd->life->zone->log) < end) {
        crowd_put(crowd, 0, dice_below(&crowd->dice, 4));
        if (crowd->ops % 16 == 0)
            crowd_settle(crowd);
    }
}

static void play_segment(enum sync_mode sync, uint64_t seed)
{
    struct trial trial;

    trial_begin(&trial, seed, sync);
    for (uint32_t i = 0; i < 20; i++)
        crowd_turn(&trial.crowd);
    fill_log(&trial.crowd, LOG_SEGMENT_LEAST - 1500);
    disk_sim_watch(trial.life.sim, cut_after, &trial);
    for (uint32_t i = 0; i < 8 || log_end(trial.life.zone->log) < LOG_SEGMENT_LEAST + 300; i++)
        crowd_turn(&trial.crowd);
    trial_end(&trial);
}

static void power_cut_while_a_segment_ends_and_another_begins(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(); seed <= last_seed(1); seed++)
        for (enum sync_mode sync = SYNC_OFF; sync <= SYNC_ALWAYS; sync++)
            play_segment(sync, seed);
}

/* So many rooms that a snapshot takes several ticks, in which everything goes on. */
static void play_snapshot(enum sync_mode sync, uint64_t seed)
{
    struct ruin eve = eve_new(seed, sync, CROWD_NAMES);
    struct trial trial = {.is_brief = sync != SYNC_INTERVAL,
                          .come_back_every = 25,
                          .crowd = crowd_copy(&eve.crowd),
                          .life = life_new(disk_sim_crash(eve.left))};

    assert_true(life_begin(&trial.life, &trial.crowd.options));
    crowd_move(&trial.crowd, &trial.life, eve.done);
    make_snapshot_due(&trial.life);
    disk_sim_watch(trial.life.sim, cut_after, &trial);
    for (uint32_t i = 0; i < 10;) {
        assert_true(trial.crowd.ops < OPERATIONS);
        crowd_turn(&trial.crowd);
        i += local_zone_journal(trial.life.zone).snapshot != 0;
    }
    trial_end(&trial);
    ruin_free(&eve);
}

static void power_cut_while_a_snapshot_is_taken(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(); seed <= last_seed(1); seed++)
        for (enum sync_mode sync = SYNC_OFF; sync <= SYNC_ALWAYS; sync++)
            play_snapshot(sync, seed);
}

/*
 * While a snapshot is taken, rooms change that are in it already and others that come into it later, and nothing of that is
 * written. It says what never was, until the journal has the rest.
 */
static void a_snapshot_counts_for_nothing_before_the_journal_reaches_its_end(void **state)
{
    struct ruin eve = eve_new(1, SYNC_INTERVAL, CROWD_NAMES);
    struct life life = life_new(eve.left);
    struct scene scene = {&eve.crowd, "a snapshot ahead of the journal", SIM_ANY, 0};
    const struct local_snapshot *snapshot;
    (void)state;

    assert_true(life_begin(&life, &eve.crowd.options));
    crowd_move(&eve.crowd, &life, eve.done);
    make_snapshot_due(&life);
    snapshot = &local_of(life.worker[0])->snapshot;
    while (!snapshot->is_under_way) {
        crowd_flush(&eve.crowd, 0);
        crowd_tick(&eve.crowd, 0, 100);
    }
    while (!snapshot->is_written) {
        for (uint32_t room = 0; room < CROWD_NAMES; room++)
            crowd_put(&eve.crowd, 0, room);
        crowd_tick(&eve.crowd, 0, 100);
    }
    assert_true(log_written(life.zone->log) < snapshot->first + 5000);
    local_engine_wants_work(life.worker[0], life.now_ms);
    local_engine_work(life.worker[0]);
    after_crash(&scene, life.sim);
    local_engine_worked(life.worker[0]);
    crowd_settle(&eve.crowd);
    after_crash(&scene, life.sim);
    life_end(&life);
    ruin_free(&eve);
}

/* ---- many lives ---- */

/* One accident at a moment that nobody knows. */
struct fate {
    struct crowd *crowd, then; /* then: what the crowd knew when it came */
    uint64_t call;             /* when it comes */
    bool is_crash;
    enum sim_loss loss;
    struct disk_sim *left; /* NULL: it has not come yet */
    struct scene scene;
};

static void fate_comes(void *context, struct disk_sim *sim, enum sim_call call)
{
    struct fate *fate = context;

    if (fate->left != NULL || disk_sim_calls(sim, SIM_ANY) < fate->call)
        return;
    fate->then = crowd_copy(fate->crowd);
    fate->left = fate->is_crash ? disk_sim_crash(sim)
                                : disk_sim_power_cut(sim, fate->loss, fate->crowd->seed + fate->call);
    fate->scene = (struct scene){&fate->then, fate->is_crash ? "all processes died" : loss_name[fate->loss],
                                 call, fate->call};
}

static uint32_t judge_fate(const struct fate *fate, struct local_recovery *recovery)
{
    if (!fate->is_crash)
        return after_power_cut(&fate->scene, fate->left, recovery);
    after_crash(&fate->scene, fate->left);
    return replayed(&fate->scene, fate->left, recovery);
}

/* As a reload does it. */
static void change_mode(struct crowd *crowd, struct dice *dice)
{
    crowd_flush(crowd, 0);
    crowd->options.sync = dice_below(dice, 3);
    local_zone_set_journal(crowd->life->zone, disk_sim_disk(crowd->life->sim), &crowd->options);
}

static struct fate some_fate(struct crowd *crowd, struct dice *dice)
{
    return (struct fate){.crowd = crowd,
                         .call = disk_sim_calls(crowd->life->sim, SIM_ANY) + 1 + dice_below(dice, 150),
                         .is_crash = dice_below(dice, 3) == 0,
                         .loss = dice_below(dice, SIM_LOSSES)};
}

/* The crowd goes on with what is left of its disk. */
static void next_life(struct crowd *crowd, struct life *life, struct fate *fate)
{
    struct local_recovery recovery;
    uint32_t done = judge_fate(fate, &recovery);

    if (fate->call % 5 == 0) {
        struct disk_sim *copy = disk_sim_crash(fate->left);
        recover_and_come_back(&fate->scene, copy, done);
        disk_sim_free(copy);
    }
    life_end(life);
    disk_sim_free(life->sim);
    crowd_fini(crowd);
    *crowd = fate->then;
    *life = life_new(fate->left);
    if (!life_begin(life, &crowd->options))
        wrong(&fate->scene, "recovery: %s", life->recovery.why);
    crowd_move(crowd, life, done);
}

static void play_until(struct crowd *crowd, struct fate *fate, struct dice *dice)
{
    disk_sim_watch(crowd->life->sim, fate_comes, fate);
    while (fate->left == NULL) {
        crowd_turn(crowd);
        if (dice_below(dice, 20) == 0)
            change_mode(crowd, dice);
    }
}

/* A crowd over many accidents, of processes and of power, with whatever is said about syncs. */
static void play_lives(struct crowd *crowd, uint64_t seed, uint32_t lives,
                       void (*moved)(const struct life *life))
{
    struct life life = life_new(disk_sim_new());
    struct dice dice = {~seed};

    assert_true(life_begin(&life, &crowd->options));
    crowd_enter(crowd, &life);
    for (uint32_t n = 0; n < lives; n++) {
        struct fate fate = some_fate(crowd, &dice);
        play_until(crowd, &fate, &dice);
        next_life(crowd, &life, &fate);
        if (moved != NULL)
            moved(&life);
    }
    crowd_settle(crowd);
    local_zone_check(life.zone);
    life_end(&life);
    disk_sim_free(life.sim);
    crowd_fini(crowd);
}

static void a_line_lives_through_one_accident_after_the_other(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(); seed <= last_seed(12); seed++) {
        struct log_options options = options_for(SYNC_INTERVAL);
        struct crowd crowd;
        crowd_init(&crowd, seed, &options);
        play_lives(&crowd, seed, 30, NULL);
    }
}

static struct place join_of(struct life *life, uint64_t who)
{
    struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = holder_of(who), .wall_sec = 5}};

    assert_int_equal(life_ask(life, &call, crowd_room_name(0)), ERROR_NONE);
    return call.standing.place;
}

/* The next life of what an accident left; the one before is over. */
static void live_on_with(struct life *life, struct disk_sim *left, enum sync_mode sync)
{
    struct log_options options = options_for(sync);

    options.segment_bytes *= 4; /* so that no snapshot is due, which would know everything */
    life_end(life);
    disk_sim_free(life->sim);
    *life = life_new(left);
    assert_true(life_begin(life, &options));
}

static void live_on(struct life *life, struct disk_sim *left)
{
    live_on_with(life, left, SYNC_INTERVAL);
}

/* Whatever epochs it came to, and whoever comes after it. */
static void the_numbers_of_a_deleted_room_are_not_given_again(void **state)
{
    struct log_options options = options_for(SYNC_INTERVAL);
    struct life life = life_new(disk_sim_new());
    struct engine_call delete = {.op = ENGINE_DELETE};
    (void)state;

    assert_true(life_begin(&life, &options));
    uint32_t epoch = join_of(&life, 1).epoch;
    live_on(&life, disk_sim_power_cut(life.sim, SIM_DROP, 1));
    struct place last = join_of(&life, 2);
    assert_true(life.recovery.has_lost && last.epoch > epoch);
    assert_int_equal(life_ask(&life, &delete, crowd_room_name(0)), ERROR_NONE);
    live_on(&life, disk_sim_crash(life.sim));
    assert_true(join_of(&life, 3).epoch > last.epoch);
    life_end(&life);
    disk_sim_free(life.sim);
}

static void time_passes(struct life *life, uint64_t ms)
{
    for (; ms > 0; ms -= 100) {
        life->now_ms += 100;
        life->worker[0]->tick(life->worker[0], life->now_ms);
        local_engine_flush(life->worker[0]);
    }
}

static struct place pass_of(struct life *life, struct place place)
{
    struct engine_call call = {.op = ENGINE_ENTER, .enter = {.place = place, .key_id = 9, .wall_sec = 77}};

    assert_int_equal(life_ask(life, &call, crowd_room_name(0)), ERROR_NONE);
    place.issue = (struct issue){true, false, 9, 77};
    place.grant = (struct grant){true, 9, 2, 77};
    return place;
}

static bool is_let_in(struct life *life, const struct place *pass)
{
    struct engine_call call = {.op = ENGINE_SESSION_TOUCH, .place = *pass};

    return life_ask(life, &call, crowd_room_name(0)) == ERROR_NONE;
}

static bool is_called_at_once(struct life *life, uint64_t who)
{
    struct engine_call call = {.op = ENGINE_STATUS, .place = join_of(life, who)};

    assert_int_equal(life_ask(life, &call, crowd_room_name(0)), ERROR_NONE);
    return call.standing.is_ready;
}

/*
 * Without syncs a power cut may take an enter whose pass was handed out; with them it cannot, and nobody need wait for those
 * inside.
 */
static void a_pass_opens_the_gate_though_a_power_cut_took_its_enter(void **state)
{
    static const enum sync_mode modes[] = {SYNC_OFF, SYNC_INTERVAL};
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct log_options options = options_for(modes[i]);
        struct life life = life_new(disk_sim_new());
        assert_true(life_begin(&life, &options));
        join_of(&life, 1); /* makes the room */
        live_on_with(&life, disk_sim_crash(life.sim), modes[i]);
        time_passes(&life, 1000);
        struct place pass = pass_of(&life, join_of(&life, 2));
        live_on_with(&life, disk_sim_power_cut(life.sim, SIM_DROP, 1), modes[i]);
        assert_true(life.recovery.has_lost);
        time_passes(&life, 1000);
        const struct room *room = life_room(&life, crowd_room_name(0));
        assert_int_equal(room->in_state[TICKET_ENTERED], modes[i] != SYNC_OFF);
        assert_int_equal(is_called_at_once(&life, 3), modes[i] != SYNC_OFF);
        assert_true(is_let_in(&life, &pass));
        live_on_with(&life, disk_sim_crash(life.sim), modes[i]);
        assert_true(is_let_in(&life, &pass));
        struct engine_call end = {.op = ENGINE_SESSION_END, .place = pass};
        assert_int_equal(life_ask(&life, &end, crowd_room_name(0)), ERROR_NONE);
        assert_false(is_let_in(&life, &pass));
        live_on_with(&life, disk_sim_crash(life.sim), modes[i]);
        assert_false(is_let_in(&life, &pass));
        life_end(&life);
        disk_sim_free(life.sim);
    }
}

/*
 * Promise 3 over accidents: in any w milliseconds of a room's time, calls - refunds <= burst + rate * w. Of all windows that end
 * now `worst` is the largest calls - refunds - rate * w, in millionths of a call; the empty one keeps it from going below 0.
 */
#define CALL 1000000U

struct turn {
    uint64_t clock_ms, calls, refunds;
    uint64_t worst;
};

static struct turns {
    struct turn turn[20000];
    uint32_t count;
    struct settings settings;
} turns;

static void count_turns(struct span room, const struct figures *figures)
{
    uint64_t per_ms = turns.settings.rate_milli, most = CALL + per_ms * ROOM_TICK_MS;
    struct turn last = turns.count == 0 ? (struct turn){0} : turns.turn[turns.count - 1];
    struct turn now = {figures->clock_ms, figures->calls, figures->refunds, last.worst};
    (void)room;

    assert_true(now.clock_ms >= last.clock_ms && now.calls >= last.calls && now.refunds >= last.refunds);
    uint64_t better = (now.clock_ms - last.clock_ms) * per_ms + (now.refunds - last.refunds) * CALL;
    now.worst = now.worst > better ? now.worst - better : 0;
    now.worst += (now.calls - last.calls) * CALL;
    assert_true(now.worst <= most);
    assert_true(figures->in_state[TICKET_CALLED] + figures->in_state[TICKET_ENTERED] +
                    figures->in_state[TICKET_ACTIVE] <=
                turns.settings.max_active);
    assert_true(turns.count < sizeof(turns.turn) / sizeof(turns.turn[0]));
    turns.turn[turns.count++] = now;
}

/* What was lost never was. */
static void forget_turns(const struct life *life)
{
    const struct room *room = life_room(life, crowd_room_name(0));
    struct figures figures = room == NULL ? (struct figures){0} : room_figures(room);

    while (turns.count > 0 && (turns.turn[turns.count - 1].calls > figures.calls ||
                               turns.turn[turns.count - 1].refunds > figures.refunds ||
                               turns.turn[turns.count - 1].clock_ms > figures.clock_ms))
        turns.count--;
    uint64_t calls = turns.count == 0 ? 0 : turns.turn[turns.count - 1].calls;
    assert_int_equal(calls, figures.calls);
}

static void slots_and_pace_hold_over_any_accident(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(); seed <= last_seed(3); seed++) {
        struct log_options options = options_for(SYNC_INTERVAL);
        struct crowd crowd;
        crowd_init(&crowd, seed, &options);
        crowd.rooms = 1;
        crowd.has_operator = false;
        crowd.watch = count_turns;
        turns.count = 0;
        turns.settings = crowd_settings();
        play_lives(&crowd, seed, 30, forget_turns);
    }
}

/* ---- a recovery that does not come to its end ---- */

static struct ruin ruin_new(uint64_t seed)
{
    struct log_options options = options_for(SYNC_INTERVAL);
    struct life life = life_new(disk_sim_new());
    struct ruin ruin;

    crowd_init(&ruin.crowd, seed, &options);
    assert_true(life_begin(&life, &options));
    crowd_enter(&ruin.crowd, &life);
    play_until_lost(&ruin, &life, seed % 2 == 0 ? SIM_DROP : SIM_REORDER, 4);
    return ruin;
}

static void recover_anew(struct ruin *ruin, struct disk_sim *sim, const char *accident, enum sim_call call)
{
    struct scene scene = {&ruin->crowd, accident, call, disk_sim_calls(sim, SIM_ANY)};

    recover_and_come_back(&scene, sim, ruin->done);
    disk_sim_free(sim);
}

static void interrupt_after(void *context, struct disk_sim *sim, enum sim_call call)
{
    if (!changes_the_disk(call))
        return;
    uint64_t calls = disk_sim_calls(sim, SIM_ANY);
    for (enum sim_loss loss = calls % 2; loss < SIM_LOSSES; loss += 2)
        recover_anew(context, disk_sim_power_cut(sim, loss, calls), loss_name[loss], call);
    recover_anew(context, disk_sim_crash(sim), "died in a recovery", call);
}

static void a_recovery_cut_short_anywhere_is_made_good_by_the_next(void **state)
{
    static const enum sync_mode modes[] = {SYNC_INTERVAL, SYNC_ALWAYS, SYNC_OFF};
    (void)state;

    for (uint64_t seed = first_seed(); seed <= last_seed(3); seed++) {
        struct ruin ruin = ruin_new(seed);
        struct log_options options = options_for(modes[seed % 3]);
        struct life life = life_new(disk_sim_crash(ruin.left));
        disk_sim_watch(life.sim, interrupt_after, &ruin);
        assert_true(life_begin(&life, &options));
        disk_sim_watch(life.sim, NULL, NULL);
        life_end(&life);
        disk_sim_free(life.sim);
        ruin_free(&ruin);
    }
}

/* True: it was tried, and the n-th call of its recovery failed. */
static bool fail_recovery(struct ruin *ruin, uint64_t n, int error)
{
    struct disk_sim *sim = disk_sim_crash(ruin->left);
    struct life life = life_new(sim);
    uint64_t before = disk_sim_calls(sim, SIM_ANY);

    disk_sim_fail(sim, SIM_ANY, n, error, false);
    life_begin(&life, &ruin->crowd.options);
    bool has_failed = disk_sim_calls(sim, SIM_ANY) >= before + n;
    disk_sim_heal(sim);
    recover_anew(ruin, disk_sim_crash(sim), "a call of a recovery failed", SIM_ANY);
    enum sim_loss loss = n % SIM_LOSSES;
    recover_anew(ruin, disk_sim_power_cut(sim, loss, n), loss_name[loss], SIM_ANY);
    life_end(&life);
    disk_sim_free(sim);
    return has_failed;
}

static void a_recovery_in_which_any_call_fails_is_made_good_by_the_next(void **state)
{
    static const int errors[] = {EIO, ENOSPC};
    (void)state;

    for (uint64_t seed = first_seed(); seed <= last_seed(1); seed++) {
        struct ruin ruin = ruin_new(seed);
        for (uint64_t n = 1; fail_recovery(&ruin, n, errors[(n + seed) % 2]); n++)
            ;
        ruin_free(&ruin);
    }
}

/* ---- a disk that fails ---- */

struct fault {
    enum sim_call call;
    uint64_t n;
    int error;
    bool is_for_good;
};

static void disk_fails(struct crowd *crowd, const struct fault *fault, struct scene *scene)
{
    struct disk_sim *sim = crowd->life->sim;

    crowd->may_be_refused = true;
    disk_sim_fail(sim, fault->call, fault->n, fault->error, fault->is_for_good);
    *scene =
        (struct scene){crowd, fault->is_for_good ? "fails for good" : "fails once", fault->call, fault->n};
}

static void check_cut(const struct scene *scene, enum sim_loss loss)
{
    struct disk_sim *cut = disk_sim_power_cut(scene->crowd->life->sim, loss, scene->calls);
    struct local_recovery recovery;

    after_power_cut(scene, cut, &recovery);
    disk_sim_free(cut);
}

/* A restart after a failed sync writes everything anew: what was only in the machine's memory outlives a power cut then. */
static void check_restart(const struct scene *scene)
{
    const struct crowd *crowd = scene->crowd;
    struct life life = life_new(disk_sim_crash(crowd->life->sim));

    if (!life_begin(&life, &crowd->options))
        wrong(scene, "the restart: %s", life.recovery.why);
    uint64_t hash = life_hash(&life);
    struct disk_sim *cut = disk_sim_power_cut(life.sim, SIM_DROP, 1);
    struct life again = life_new(cut);
    if (!local_zone_replay(again.zone, disk_sim_disk(cut), NULL, NULL, &again.recovery))
        wrong(scene, "after the restart: %s", again.recovery.why);
    if (local_zone_hash(again.zone) != hash)
        wrong(scene, "what was recovered was not on the disk");
    life_end(&again);
    disk_sim_free(cut);
    life_end(&life);
    disk_sim_free(life.sim);
}

/* Nothing changes any more; who asks is told what they were told before, and all but a call that is in no journal. */
static void check_broken(const struct scene *scene, struct life *life)
{
    static const enum engine_op changes[] = {ENGINE_JOIN,    ENGINE_ENTER, ENGINE_LEAVE,
                                             ENGINE_ADVANCE, ENGINE_CLEAR, ENGINE_DELETE};
    uint64_t syncs = disk_sim_calls(life->sim, SIM_SYNC), hash = life_hash(life);
    uint32_t asked = 0;

    for (uint32_t i = 0; i < scene->crowd->slip_count; i++) {
        const struct slip *slip = &scene->crowd->slips[i];
        struct engine_call status = {.op = ENGINE_STATUS, .place = slip->place};
        struct engine_call change = {.op = changes[i % 6]};
        uint32_t count;
        if (slip->room == NEVER)
            continue;
        enum error error = life_ask(life, &status, crowd_room_name(slip->room));
        if (slip->is_told && slip->born == NEVER && slip->over == NEVER && error != ERROR_ENGINE_UNAVAILABLE)
            wrong(scene, "a lost ticket was answered with error %d", error);
        if (!slip_stands(life, slip, &count))
            continue;
        if (error != ERROR_NONE && error != ERROR_ENGINE_UNAVAILABLE)
            wrong(scene, "a poll was answered with error %d", error);
        asked += error == ERROR_NONE;
        struct engine_call touch = {.op = ENGINE_SESSION_TOUCH, .place = slip->place};
        if (slip->has_pass && life_ask(life, &touch, crowd_room_name(slip->room)) != ERROR_NONE)
            wrong(scene, "a pass was not let through");
        if (change.op == ENGINE_JOIN)
            change.join = (struct join){.holder = holder_of(i)};
        else
            change.enter = (struct enter){.place = slip->place};
        if (life_ask(life, &change, crowd_room_name(slip->room)) != ERROR_ENGINE_UNAVAILABLE)
            wrong(scene, "change %d was made though the log is broken", change.op);
    }
    life->worker[0]->tick(life->worker[0], life->now_ms + 1000);
    if (asked == 0 || life_hash(life) != hash)
        wrong(scene, "polls did not go on, or something else did");
    if (disk_sim_calls(life->sim, SIM_SYNC) != syncs)
        wrong(scene, "it was synced again");
    if (life->worker[0]->trouble(life->worker[0]) == NULL)
        wrong(scene, "the engine does not say that it is in trouble");
}

/* It was only once, or not that bad: everybody is served again. */
static void check_well(const struct scene *scene, struct crowd *crowd)
{
    disk_sim_heal(crowd->life->sim);
    crowd->life->now_ms += 2000;
    crowd_settle(crowd);
    for (uint32_t i = 0; i < 2 * CROWD_WORKERS; i++)
        crowd_turn(crowd);
    crowd_settle(crowd);
    uint32_t refused = crowd->refused;
    for (uint32_t i = 0; i < 10; i++)
        crowd_turn(crowd);
    crowd_settle(crowd);
    if (crowd->refused != refused)
        wrong(scene, "people are refused when all is well again");
}

static void play_faulty_turns(struct crowd *crowd, const struct scene *scene)
{
    static const enum sync_mode modes[] = {SYNC_ALWAYS, SYNC_INTERVAL, SYNC_OFF, SYNC_INTERVAL};
    uint64_t before = disk_sim_calls(crowd->life->sim, scene->call);
    uint32_t checks = 0;

    for (uint32_t turn = 0; turn < 20; turn++) {
        crowd_turn(crowd);
        if (turn % 5 == 3) { /* a new segment */
            crowd->options.sync = modes[turn / 5];
            local_zone_set_journal(crowd->life->zone, disk_sim_disk(crowd->life->sim), &crowd->options);
        }
        if (disk_sim_calls(crowd->life->sim, scene->call) >= before + scene->calls && checks++ < 2)
            check_cut(scene, SIM_DROP);
    }
}

/* False: there is no n-th call. */
static bool play_fault(const struct ruin *eve, const struct fault *fault)
{
    struct crowd crowd = crowd_copy(&eve->crowd);
    struct life life = life_new(disk_sim_crash(eve->left));
    struct scene scene;

    assert_true(life_begin(&life, &crowd.options));
    crowd_move(&crowd, &life, eve->done);
    make_snapshot_due(&life);
    uint64_t before = disk_sim_calls(life.sim, fault->call);
    disk_fails(&crowd, fault, &scene);
    play_faulty_turns(&crowd, &scene);
    bool has_come = disk_sim_calls(life.sim, fault->call) >= before + fault->n;
    after_crash(&scene, life.sim);
    check_cut(&scene, SIM_REORDER);
    if (log_trouble(life.zone->log) == LOG_BROKEN) {
        check_broken(&scene, &life);
        check_restart(&scene);
    } else {
        check_well(&scene, &crowd);
    }
    life_end(&life);
    disk_sim_free(life.sim);
    crowd_fini(&crowd);
    return has_come;
}

static void whatever_call_fails_nothing_is_answered_that_is_not_there(void **state)
{
    static const enum sim_call calls[] = {SIM_WRITE,  SIM_SYNC,        SIM_OPEN, SIM_RENAME, SIM_ALLOCATE,
                                          SIM_REMOVE, SIM_SYNC_FOLDER, SIM_LIST, SIM_SIZE};
    static const int errors[] = {EIO, ENOSPC, EIO, EMFILE};
    (void)state;

    for (uint64_t seed = first_seed(); seed <= last_seed(1); seed++) {
        struct ruin eve = eve_new(seed, SYNC_INTERVAL, 4);
        for (uint32_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
            struct fault fault = {.call = calls[i]};
            do {
                fault.n++;
                fault.error = errors[(fault.n + i) % 4];
                fault.is_for_good = true;
                play_fault(&eve, &fault);
                fault.is_for_good = false;
            } while (play_fault(&eve, &fault));
        }
        ruin_free(&eve);
    }
}

/* Whatever of it was on the disk: who has a ticket that is not over has a place. */
static void everybody_has_a_place(const struct scene *scene, struct disk_sim *sim)
{
    struct life life = life_new(sim);

    if (!life_begin(&life, &scene->crowd->options))
        wrong(scene, "recovery: %s", life.recovery.why);
    for (uint32_t i = 0; i < scene->crowd->slip_count; i++) {
        const struct slip *slip = &scene->crowd->slips[i];
        enum error error;
        if (!is_held(slip, NEVER) || slip->over != NEVER)
            continue;
        poll(scene, &life, slip, &error);
        if (error != ERROR_NONE)
            wrong(scene, "%u.%u is gone", slip->place.epoch, slip->place.count);
    }
    local_zone_check(life.zone);
    life_end(&life);
    disk_sim_free(sim);
}

static void interrupt_restart(void *context, struct disk_sim *sim, enum sim_call call)
{
    struct scene *scene = context;

    if (!changes_the_disk(call))
        return;
    for (enum sim_loss loss = SIM_KEEP; loss < SIM_LOSSES; loss++)
        everybody_has_a_place(scene, disk_sim_power_cut(sim, loss, disk_sim_calls(sim, SIM_ANY)));
    everybody_has_a_place(scene, disk_sim_crash(sim));
}

/* False: the sync that failed was of something that can be done without. */
static bool play_restart(const struct ruin *eve, uint64_t n)
{
    struct crowd crowd = crowd_copy(&eve->crowd);
    struct life life = life_new(disk_sim_crash(eve->left));
    struct fault fault = {SIM_SYNC, n, EIO, false};
    struct scene scene;

    assert_true(life_begin(&life, &crowd.options));
    crowd_move(&crowd, &life, eve->done);
    make_snapshot_due(&life);
    disk_fails(&crowd, &fault, &scene);
    for (uint32_t i = 0; i < 20; i++)
        crowd_turn(&crowd);
    crowd_settle(&crowd);
    bool is_broken = log_trouble(life.zone->log) == LOG_BROKEN;
    struct life restart = life_new(disk_sim_crash(life.sim));
    scene.accident = "a restart after a failed sync";
    disk_sim_watch(restart.sim, is_broken ? interrupt_restart : NULL, &scene);
    assert_true(life_begin(&restart, &crowd.options));
    disk_sim_watch(restart.sim, NULL, NULL);
    life_end(&restart);
    disk_sim_free(restart.sim);
    life_end(&life);
    disk_sim_free(life.sim);
    crowd_fini(&crowd);
    return is_broken;
}

/* What a failed sync left in the machine's memory is read by the restart, but is not on the disk until that has written it. */
static void a_restart_after_a_failed_sync_may_be_cut_short_anywhere(void **state)
{
    struct ruin eve = eve_new(3, SYNC_INTERVAL, 4);
    uint32_t broken = 0;
    (void)state;

    for (uint64_t n = 1; broken < 3; n++)
        broken += play_restart(&eve, n);
    ruin_free(&eve);
}

/* The disk has space for one segment more, and of that the last part is kept for those who are in line already. */
static void let_space_run_out(struct trial *trial)
{
    struct crowd *crowd = &trial->crowd;
    struct disk_sim *sim = trial->life.sim;

    disk_sim_set_space(sim, disk_sim_space_used(sim));
    crowd->options.reserve_bytes = LOG_SEGMENT_LEAST - (16 << 10);
    crowd->options.sync = SYNC_ALWAYS; /* another mode, another segment */
    local_zone_set_journal(trial->life.zone, disk_sim_disk(sim), &crowd->options);
    for (uint32_t i = 0; i < 20 || !log_is_short(trial->life.zone->log); i++)
        crowd_turn(crowd);
}

static void polls_go_on(const struct crowd *crowd)
{
    uint32_t polls = 0;

    for (uint32_t i = 0; i < crowd->slip_count; i++) {
        struct engine_call call = {.op = ENGINE_STATUS, .place = crowd->slips[i].place};
        if (slip_is_alive_at(&crowd->slips[i], crowd->ops) && crowd->slips[i].is_told)
            polls += life_ask(crowd->life, &call, crowd_room_name(crowd->slips[i].room)) == ERROR_NONE;
    }
    assert_true(polls > 0);
}

/* Whoever is in line and opens the page once more. */
static void people_may_join_again(const struct crowd *crowd)
{
    uint32_t joins = 0;

    for (uint32_t i = 0; i < crowd->slip_count; i++) {
        const struct slip *slip = &crowd->slips[i];
        struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = slip->place.holder}};
        if (!slip_is_alive_at(slip, crowd->ops))
            continue;
        assert_int_equal(life_ask(crowd->life, &call, crowd_room_name(slip->room)), ERROR_NONE);
        assert_true(call.standing.is_repeat);
        joins++;
    }
    assert_true(joins > 0);
}

static void a_full_disk_refuses_joins_first_and_all_is_well_when_there_is_space(void **state)
{
    struct trial trial;
    struct crowd *crowd = &trial.crowd;
    (void)state;

    trial_begin(&trial, 1, SYNC_INTERVAL);
    crowd->may_be_refused = true;
    let_space_run_out(&trial);
    assert_int_equal(crowd->refused, crowd->refused_joins);
    uint32_t joins = crowd->refused_joins;
    for (uint32_t i = 0; i < 40; i++)
        crowd_turn(crowd);
    crowd_settle(crowd);
    assert_true(crowd->refused_joins > joins);
    assert_int_equal(crowd->refused, crowd->refused_joins); /* everybody else is served */
    people_may_join_again(crowd);

    while (log_trouble(trial.life.zone->log) == LOG_FINE) {
        crowd_put(crowd, 0, 0);
        crowd_flush(crowd, 0);
        crowd_settle(crowd);
    }
    assert_int_equal(log_trouble(trial.life.zone->log), LOG_FULL);
    polls_go_on(crowd);

    struct scene scene = {crowd, "the disk is full", SIM_ANY, 0};
    after_crash(&scene, trial.life.sim);
    check_cut(&scene, SIM_REORDER);
    disk_sim_set_space(trial.life.sim, UINT64_MAX);
    check_well(&scene, crowd);
    trial_end(&trial);
}

/* The ring is full and cannot be written: what happened then is in no log yet, and nobody may wait for a place in it. */
static void who_changes_something_while_the_ring_is_full_is_answered(void **state)
{
    struct trial trial;
    (void)state;

    trial_begin(&trial, 1, SYNC_INTERVAL);
    trial.crowd.may_be_refused = true;
    disk_sim_fail(trial.life.sim, SIM_WRITE, 1, ENOSPC, true);
    while (log_trouble(trial.life.zone->log) == LOG_FINE)
        crowd_put(&trial.crowd, 0, dice_below(&trial.crowd.dice, 4));
    disk_sim_heal(trial.life.sim);
    crowd_settle(&trial.crowd);
    assert_int_equal(log_trouble(trial.life.zone->log), LOG_FINE);
    uint32_t refused = trial.crowd.refused;
    assert_true(refused > 0);
    for (uint32_t room = 0; room < 4; room++)
        crowd_put(&trial.crowd, 1, room);
    crowd_settle(&trial.crowd);
    assert_int_equal(trial.crowd.refused, refused);
    trial_end(&trial);
}

static void note_done(struct engine_call *call)
{
    *(bool *)call->context = true;
}

static void ask_without_flush(struct life *life, int worker, struct engine_call *call, bool *is_done)
{
    call->room = crowd_room_name(0);
    call->done = note_done;
    call->context = is_done;
    engine_submit(life->worker[worker], call);
}

/* Else they would be told a higher number after a crash. The other worker's leave is in the ring, and in no file. */
static void nobody_is_told_of_a_place_that_became_free_before_that_is_written(void **state)
{
    static const enum sync_mode modes[] = {SYNC_OFF, SYNC_INTERVAL, SYNC_ALWAYS};
    (void)state;

    for (int i = 0; i < 3; i++) {
        struct log_options options = options_for(modes[i]);
        struct life life = life_new(disk_sim_new());
        assert_true(life_begin(&life, &options));
        struct place place[100];
        for (uint64_t who = 0; who < 100; who++)
            place[who] = join_of(&life, who);
        struct engine_call before = {.op = ENGINE_STATUS, .place = place[99]};
        bool is_told = false, has_left = false;
        ask_without_flush(&life, 1, &before, &is_told);
        assert_true(is_told);
        assert_false(before.standing.is_ready);

        struct engine_call leave = {.op = ENGINE_LEAVE, .place = place[98]};
        struct engine_call poll = {.op = ENGINE_STATUS, .place = place[99]};
        is_told = false;
        ask_without_flush(&life, 0, &leave, &has_left);
        ask_without_flush(&life, 1, &poll, &is_told);
        assert_false(is_told);
        local_engine_flush(life.worker[1]);
        assert_true(is_told); /* however long the leave itself waits for the disk */
        assert_int_equal(poll.error, ERROR_NONE);
        assert_int_equal(poll.standing.position, before.standing.position - 1);
        life_end(&life);
        disk_sim_free(life.sim);
    }
}

/* ---- an orderly end ---- */

static void after_an_orderly_end_all_is_there_in_every_mode(void **state)
{
    (void)state;
    for (enum sync_mode sync = SYNC_OFF; sync <= SYNC_ALWAYS; sync++) {
        struct trial trial;
        trial_begin(&trial, 7, sync);
        for (int i = 0; i < 60; i++)
            crowd_turn(&trial.crowd);
        struct scene scene = {&trial.crowd, "after an orderly end", SIM_ANY, 0};
        assert_int_equal(local_zone_close(trial.life.zone, disk_sim_disk(trial.life.sim), CROWD_WALL_MS), 0);
        struct disk_sim *cut = disk_sim_power_cut(trial.life.sim, SIM_DROP, 1);
        struct local_recovery recovery;
        uint32_t done = replayed(&scene, cut, &recovery);
        if (done != trial.crowd.ops || recovery.has_lost)
            wrong(&scene, "%u of %u operations are there", done, trial.crowd.ops);
        recover_and_come_back(&scene, cut, done);
        disk_sim_free(cut);
        life_end(&trial.life);
        disk_sim_free(trial.life.sim);
        crowd_fini(&trial.crowd);
    }
}

/* ---- operations that are more than one record ---- */

#define MANY   2000
#define CALLED 1500

static void join_many(struct life *life, uint32_t room, uint32_t many)
{
    for (uint32_t who = 1; who <= many; who++) {
        struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = holder_of(who), .wall_sec = 5}};
        assert_int_equal(life_ask(life, &call, crowd_room_name(room)), ERROR_NONE);
        assert_int_equal(call.standing.place.count, who);
    }
}

/* However far it got, those who stood first were called, and nobody else. */
static uint32_t count_called(struct disk_sim *sim)
{
    struct life life = life_new(sim);

    assert_true(local_zone_replay(life.zone, disk_sim_disk(sim), NULL, NULL, &life.recovery));
    const struct room *room = life_room(&life, crowd_room_name(0));
    uint32_t called = (uint32_t)room_figures(room).calls;
    for (uint32_t count = 1; count <= room->line.last; count++)
        assert_int_equal(line_find(&room->line, &room->memory, count)->state,
                         count <= called ? TICKET_CALLED : TICKET_WAITING);
    local_zone_check(life.zone);
    life_end(&life);
    disk_sim_free(sim);
    return called;
}

static void cut_calls(void *context, struct disk_sim *sim, enum sim_call call)
{
    uint32_t *some = context;

    if (!changes_the_disk(call))
        return;
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t called = count_called(disk_sim_power_cut(sim, seed % SIM_LOSSES, seed));
        *some += called > 0 && called < CALLED;
    }
}

static void a_thousand_calls_cut_short_are_the_first_so_many(void **state)
{
    struct log_options options = options_for(SYNC_INTERVAL);
    struct settings settings = crowd_settings();
    struct life life = life_new(disk_sim_new());
    uint32_t some = 0;
    (void)state;

    settings.mode = MODE_HOLD;
    settings.max_active = 0;
    assert_true(life_begin(&life, &options));
    struct engine_call put = {.op = ENGINE_PUT, .put = {.settings = settings, .is_from_api = true}};
    assert_int_equal(life_ask(&life, &put, crowd_room_name(0)), ERROR_NONE);
    join_many(&life, 0, MANY);
    disk_sim_watch(life.sim, cut_calls, &some);
    struct engine_call advance = {.op = ENGINE_ADVANCE, .people = CALLED};
    assert_int_equal(life_ask(&life, &advance, crowd_room_name(0)), ERROR_NONE);
    assert_int_equal(advance.people, CALLED);
    disk_sim_watch(life.sim, NULL, NULL);
    assert_true(some > 0); /* else nothing was shown */
    assert_int_equal(count_called(disk_sim_power_cut(life.sim, SIM_DROP, 1)), CALLED);
    life_end(&life);
    disk_sim_free(life.sim);
}

/* ---- a zone without a page to spare ---- */

#define FEW_PAGES 160

static void a_full_zone_is_recovered_into_one_of_its_size(void **state)
{
    struct log_options options = options_for(SYNC_OFF);
    struct life life = life_new_small(disk_sim_new(), FEW_PAGES);
    uint32_t full = 0;
    (void)state;

    assert_true(life_begin(&life, &options));
    for (uint64_t who = 1; full < 4 * 50; who++) {
        struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = holder_of(who), .wall_sec = 5}};
        if (who % 3 == 0)
            call.join.request = key_of(who, 1);
        full += life_ask(&life, &call, crowd_room_name(who % 4)) == ERROR_QUEUE_FULL;
    }
    uint64_t hash = life_hash(&life);
    struct disk_sim *crashed = disk_sim_crash(life.sim);
    struct life again = life_new_small(crashed, FEW_PAGES);
    if (!life_begin(&again, &options))
        fail_msg("%s", again.recovery.why);
    assert_int_equal(life_hash(&again), hash);
    local_zone_check(again.zone);
    life_end(&again);
    disk_sim_free(crashed);
    life_end(&life);
    disk_sim_free(life.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cut_anywhere_takes_nothing_that_was_answered),
        cmocka_unit_test(power_cut_anywhere_takes_no_pass_and_nothing_that_was_synced),
        cmocka_unit_test(power_cut_anywhere_without_syncs_leaves_what_once_was),
        cmocka_unit_test(power_cut_while_a_segment_ends_and_another_begins),
        cmocka_unit_test(power_cut_while_a_snapshot_is_taken),
        cmocka_unit_test(a_snapshot_counts_for_nothing_before_the_journal_reaches_its_end),
        cmocka_unit_test(a_line_lives_through_one_accident_after_the_other),
        cmocka_unit_test(the_numbers_of_a_deleted_room_are_not_given_again),
        cmocka_unit_test(a_pass_opens_the_gate_though_a_power_cut_took_its_enter),
        cmocka_unit_test(slots_and_pace_hold_over_any_accident),
        cmocka_unit_test(a_recovery_cut_short_anywhere_is_made_good_by_the_next),
        cmocka_unit_test(a_recovery_in_which_any_call_fails_is_made_good_by_the_next),
        cmocka_unit_test(whatever_call_fails_nothing_is_answered_that_is_not_there),
        cmocka_unit_test(a_restart_after_a_failed_sync_may_be_cut_short_anywhere),
        cmocka_unit_test(a_full_disk_refuses_joins_first_and_all_is_well_when_there_is_space),
        cmocka_unit_test(who_changes_something_while_the_ring_is_full_is_answered),
        cmocka_unit_test(nobody_is_told_of_a_place_that_became_free_before_that_is_written),
        cmocka_unit_test(after_an_orderly_end_all_is_there_in_every_mode),
        cmocka_unit_test(a_thousand_calls_cut_short_are_the_first_so_many),
        cmocka_unit_test(a_full_zone_is_recovered_into_one_of_its_size),
    };
    return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
