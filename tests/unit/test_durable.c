/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nothing acknowledged is lost. A crowd uses the engine (crowd.h) on a disk whose power is cut after every call that changes
 * something; each time a fresh zone is made of what is left, and must be what the living one was at some moment, not before the
 * last that somebody was promised.
 *
 * WEIR_DURABLE_SEEDS=N plays N times as many traces.
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

static uint32_t seeds(void)
{
    const char *text = getenv("WEIR_DURABLE_SEEDS");

    return text == NULL ? 1 : (uint32_t)strtoul(text, NULL, 10);
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
    if (recovery.has_lost)
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
    for (uint64_t seed = 1; seed <= seeds(); seed++) {
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

/* The operator is busy, until the log is so long. */
static void fill_log(struct crowd *crowd, uint64_t end)
{
    while (log_end(crowd->life->zone->log) < end) {
        crowd_put(crowd, 0, dice_below(&crowd->dice, 4));
        if (crowd->ops % 16 == 0)
            crowd_settle(crowd);
    }
}

static void play_segments(enum sync_mode sync, uint64_t seed, uint32_t segments)
{
    struct trial trial;

    trial_begin(&trial, seed, sync);
    trial.crowd.rooms = CROWD_NAMES;
    for (uint32_t i = 0; i < 40; i++)
        crowd_turn(&trial.crowd);
    for (uint32_t i = 1; i <= segments; i++) {
        uint64_t snapshot = local_zone_journal(trial.life.zone).snapshot;
        disk_sim_watch(trial.life.sim, NULL, NULL);
        fill_log(&trial.crowd, i * LOG_SEGMENT_LEAST - 2000);
        disk_sim_watch(trial.life.sim, cut_after, &trial);
        for (uint32_t turns = 0; local_zone_journal(trial.life.zone).snapshot == snapshot; turns++) {
            assert_true(turns < 400);
            crowd_turn(&trial.crowd);
        }
    }
    trial_end(&trial);
}

static void power_cut_while_segments_change_and_snapshots_are_taken(void **state)
{
    (void)state;
    play_segments(SYNC_ALWAYS, 1, 1);
    play_segments(SYNC_INTERVAL, 1, 2);
    play_segments(SYNC_OFF, 1, 1);
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

/* A crowd over many accidents, of processes and of power, with whatever is said about syncs. */
static void play_lives(uint64_t seed, uint32_t lives)
{
    struct log_options options = options_for(SYNC_INTERVAL);
    struct life life = life_new(disk_sim_new());
    struct dice dice = {~seed};
    struct crowd crowd;

    crowd_init(&crowd, seed, &options);
    assert_true(life_begin(&life, &options));
    crowd_enter(&crowd, &life);
    for (uint32_t n = 0; n < lives; n++) {
        struct fate fate = some_fate(&crowd, &dice);
        disk_sim_watch(life.sim, fate_comes, &fate);
        while (fate.left == NULL) {
            crowd_turn(&crowd);
            if (dice_below(&dice, 20) == 0)
                change_mode(&crowd, &dice);
        }
        next_life(&crowd, &life, &fate);
    }
    crowd_settle(&crowd);
    local_zone_check(life.zone);
    life_end(&life);
    disk_sim_free(life.sim);
    crowd_fini(&crowd);
}

static void a_line_lives_through_one_accident_after_the_other(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20 * seeds(); seed++)
        play_lives(seed, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cut_anywhere_takes_nothing_that_was_answered),
        cmocka_unit_test(power_cut_anywhere_takes_no_pass_and_nothing_that_was_synced),
        cmocka_unit_test(power_cut_anywhere_without_syncs_leaves_what_once_was),
        cmocka_unit_test(power_cut_while_segments_change_and_snapshots_are_taken),
        cmocka_unit_test(a_line_lives_through_one_accident_after_the_other),
    };
    cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
