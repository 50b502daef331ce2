/* SPDX-License-Identifier: BSD-2-Clause */
/* The local engine: rooms in shared memory, and processes that die in them. */
#include "disk_sim.h"
#include "rig.h"

#include "engine/local.h"
#include "engine/local_zone.h"
#include "journal/folder.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct fixture {
    void *memory;
    size_t bytes;
    struct local_zone *zone;
    struct engine *engine;
};

static struct settings patient(void)
{
    struct settings settings = settings_default();

    settings.seen_ttl_sec = 86400;
    settings.claim_ttl_sec = 86400;
    settings.arrive_ttl_sec = 86400;
    settings.session_ttl_sec = 86400;
    return settings;
}

static struct fixture fixture_new(uint32_t rooms_max, uint32_t more_pages, bool makes_rooms,
                                  const struct settings *settings)
{
    struct local_zone_options options = {
        .rooms_max = rooms_max, .makes_rooms = makes_rooms, .settings = *settings};
    struct fixture f = {.bytes = local_zone_least_bytes(rooms_max) + (size_t)more_pages * PAGE_BYTES};

    f.memory = shared_new(f.bytes);
    f.zone = local_zone_init(f.memory, f.bytes, &options);
    f.engine = local_engine_new(f.zone);
    assert_non_null(f.engine);
    return f;
}

static void fixture_free(struct fixture *f)
{
    local_zone_check(f->zone);
    local_engine_free(f->engine);
    shared_free(f->memory, f->bytes);
}

static void note_done(struct engine_call *call)
{
    *(int *)call->context += 1;
}

static uint64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* What an event loop does at the end of a turn; what it gives to a thread is done at once. */
static void end_turn(struct engine *engine)
{
    local_engine_flush(engine);
    if (!local_engine_wants_work(engine, clock_ms()))
        return;
    local_engine_work(engine);
    local_engine_worked(engine);
}

static enum error submit(struct engine *engine, struct engine_call *call, const char *room)
{
    int done = 0;

    call->room = span_of(room);
    call->done = note_done;
    call->context = &done;
    engine_submit(engine, call);
    for (int turns = 0; turns < 100 && done == 0; turns++)
        end_turn(engine);
    assert_int_equal(done, 1);
    return call->error;
}

static enum error join(struct engine *engine, const char *room, uint64_t who, struct standing *standing)
{
    struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = holder_of(who), .wall_sec = 5}};
    enum error error = submit(engine, &call, room);

    assert_true((call.retry_after_sec > 0) == (error == ERROR_QUEUE_FULL));
    *standing = call.standing;
    return error;
}

static enum error ask(struct engine *engine, const char *room, enum engine_op op, const struct place *place,
                      struct standing *standing)
{
    struct engine_call call = {.op = op, .place = *place};

    if (op == ENGINE_ENTER)
        call.enter = (struct enter){.place = *place, .key_id = 1, .wall_sec = 6};
    enum error error = submit(engine, &call, room);
    *standing = call.standing;
    return error;
}

static struct figures figures_of(struct engine *engine, const char *room)
{
    struct engine_call call = {.op = ENGINE_FIGURES};

    assert_int_equal(submit(engine, &call, room), ERROR_NONE);
    return call.figures;
}

/* ---- journals ---- */

/* A folder of this test's own. Only processes die here, so what is written is safe. */
struct journal {
    struct folder folder;
    char path[64];
};

static const struct log_options by_interval = {SYNC_INTERVAL, 20, LOG_SEGMENT_LEAST, 0};

static int no_sync(struct disk *disk, int file)
{
    (void)disk, (void)file;
    return 0;
}

static int no_sync_folder(struct disk *disk)
{
    (void)disk;
    return 0;
}

static void journal_make(struct journal *journal)
{
    snprintf(journal->path, sizeof(journal->path), "%s/weir-local-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(journal->path));
    assert_int_equal(folder_open(&journal->folder, journal->path), 0);
    journal->folder.disk.sync = no_sync;
    journal->folder.disk.sync_folder = no_sync_folder;
}

static void remove_each(void *context, const char *name)
{
    struct disk *disk = context;

    assert_int_equal(disk->remove(disk, name), 0);
}

static void journal_remove(struct journal *journal)
{
    struct disk *disk = &journal->folder.disk;

    assert_int_equal(disk->list(disk, remove_each, disk), 0);
    folder_close(&journal->folder);
    assert_int_equal(rmdir(journal->path), 0);
}

static void fixture_recover(struct fixture *f, struct journal *journal)
{
    struct local_recovery recovery;

    if (!local_zone_recover(f->zone, &journal->folder.disk, &by_interval, 1, &recovery))
        fail_msg("%s", recovery.why);
    assert_false(recovery.has_lost);
    local_engine_use_disk(f->engine, &journal->folder.disk, clock_ms);
}

/* Whatever those left behind who died: it is put into the journal, and what that says is what there is. */
static void expect_journal_says_the_same(struct fixture *f, struct journal *journal)
{
    struct fixture copy =
        fixture_new(f->zone->rooms_max, (uint32_t)(f->bytes / PAGE_BYTES), false, &f->zone->options.settings);
    struct local_recovery recovery;

    f->engine->tick(f->engine,
                    1); /* a clock that has jumped: no time passes, but what lies in outboxes is taken */
    local_engine_flush(f->engine);
    if (!local_zone_replay(copy.zone, &journal->folder.disk, NULL, NULL, &recovery))
        fail_msg("%s", recovery.why);
    assert_false(recovery.has_lost);
    assert_int_equal(local_zone_hash(copy.zone), local_zone_hash(f->zone));
    fixture_free(&copy);
}

/* ---- rooms ---- */

static void unknown_rooms_are_refused_unless_they_may_be_made(void **state)
{
    struct settings settings = patient();
    struct fixture f = fixture_new(3, 64, false, &settings);
    struct place place = {.epoch = 1, .count = 1, .holder = holder_of(1)};
    struct standing standing;
    (void)state;

    assert_int_equal(join(f.engine, "a", 1, &standing), ERROR_ROOM_NOT_FOUND);
    struct engine_call call = {.op = ENGINE_FIGURES};
    assert_int_equal(submit(f.engine, &call, "a"), ERROR_ROOM_NOT_FOUND);
    for (int op = ENGINE_STATUS; op <= ENGINE_SESSION_END; op++)
        assert_int_equal(ask(f.engine, "a", op, &place, &standing), ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(local_zone_put_room(f.zone, SPAN("a"), &settings, NULL), ERROR_NONE);
    assert_int_equal(join(f.engine, "a", 1, &standing), ERROR_NONE);
    assert_int_equal(join(f.engine, "b", 1, &standing), ERROR_ROOM_NOT_FOUND);

    struct local_zone_options options = {.rooms_max = 3, .makes_rooms = true, .settings = settings};
    local_zone_reconfigure(f.zone, &options);
    assert_int_equal(join(f.engine, "b", 1, &standing), ERROR_NONE);
    fixture_free(&f);
}

static void rooms_are_as_many_as_there_may_be_and_each_is_its_own(void **state)
{
    enum { ROOMS = 40 };
    struct settings settings = patient();
    settings.mode = MODE_HOLD;
    struct fixture f = fixture_new(ROOMS, 64, true, &settings);
    struct standing standing;
    uint32_t last_epoch = 0;
    char name[65];
    (void)state;

    for (int room = 0; room < ROOMS; room++) {
        memset(name, 'x', 64); /* the longest name there is */
        snprintf(name, sizeof(name), "%s%d", room % 2 == 0 ? "room-" : "r:", room);
        if (room % 2 == 0)
            memset(name + strlen(name), 'x', 64 - strlen(name));
        name[64] = '\0';
        for (uint64_t who = 1; who <= 3; who++) {
            assert_int_equal(join(f.engine, name, who, &standing), ERROR_NONE);
            assert_int_equal(standing.place.count, who);
            assert_int_equal(standing.position, who);
        }
        assert_true(standing.place.epoch > last_epoch); /* FAILURES 4 */
        last_epoch = standing.place.epoch;
    }
    assert_int_equal(join(f.engine, "one-too-many", 1, &standing), ERROR_QUEUE_FULL);
    assert_int_equal(local_zone_put_room(f.zone, SPAN("one-too-many"), &settings, NULL), ERROR_QUEUE_FULL);
    assert_int_equal(join(f.engine, "r:1", 2, &standing), ERROR_NONE);
    assert_true(standing.is_repeat);
    /* A ticket of one room is nothing in another. */
    assert_int_equal(ask(f.engine, "r:3", ENGINE_STATUS, &standing.place, &standing), ERROR_TOKEN_NOT_FOUND);
    fixture_free(&f);
}

static struct fixture *watched;
static enum error while_deleted;

/* Called in the midst of a delete: everything is gone, and the room's lock is still held. */
static void put_another(struct span room, const struct figures *figures)
{
    struct engine_call call = {.op = ENGINE_PUT, .put = {.settings = patient()}};
    (void)room, (void)figures;

    watched->engine->watch = NULL;
    while_deleted = submit(watched->engine, &call, "another");
}

static void the_place_of_a_room_is_not_taken_before_it_is_deleted_to_its_end(void **state)
{
    struct settings settings = patient();
    struct fixture f = fixture_new(1, 64, true, &settings);
    struct engine_call call = {.op = ENGINE_DELETE};
    struct standing standing;
    (void)state;

    assert_int_equal(join(f.engine, "one", 1, &standing), ERROR_NONE);
    watched = &f;
    f.engine->watch = put_another;
    alarm(60); /* it would wait for the lock that this very delete holds */
    assert_int_equal(submit(f.engine, &call, "one"), ERROR_NONE);
    alarm(0);
    assert_int_equal(while_deleted, ERROR_QUEUE_FULL);
    assert_int_equal(join(f.engine, "another", 1, &standing), ERROR_NONE);
    fixture_free(&f);
}

static void settings_of_a_room_change_and_its_line_stays(void **state)
{
    struct settings settings = patient();
    settings.mode = MODE_HOLD;
    struct fixture f = fixture_new(2, 64, true, &settings);
    struct standing standing;
    (void)state;

    for (uint64_t who = 1; who <= 9; who++)
        assert_int_equal(join(f.engine, "a", who, &standing), ERROR_NONE);
    settings.max_waiting = 9;
    assert_int_equal(local_zone_put_room(f.zone, SPAN("a"), &settings, NULL), ERROR_NONE);
    assert_int_equal(join(f.engine, "a", 10, &standing), ERROR_QUEUE_FULL);
    struct engine_call call = {.op = ENGINE_SETTINGS};
    assert_int_equal(submit(f.engine, &call, "a"), ERROR_NONE);
    assert_int_equal(call.settings.max_waiting, 9);
    assert_int_equal(figures_of(f.engine, "a").in_state[TICKET_WAITING], 9);
    fixture_free(&f);
}

/* FAILURES 50: two rooms on one zone. What one gives back the other can have. */
static void a_full_zone_refuses_and_what_drains_is_there_for_others(void **state)
{
    struct settings settings = patient();
    settings.mode = MODE_HOLD;
    struct fixture f = fixture_new(2, 200, true, &settings);
    struct standing standing;
    (void)state;

    uint64_t joined[2] = {0, 0};
    for (int room = 0; room < 2; room++) {
        while (join(f.engine, room == 0 ? "a" : "b", joined[room] + 1, &standing) == ERROR_NONE)
            joined[room]++;
        local_zone_check(f.zone);
    }
    assert_true(joined[0] > 10000);
    for (uint64_t who = 1; who <= joined[0]; who++) {
        struct place place = {.epoch = 1, .count = (uint32_t)who, .holder = holder_of(who)};
        assert_int_equal(ask(f.engine, "a", ENGINE_STATUS, &place, &standing), ERROR_NONE);
        assert_int_equal(ask(f.engine, "a", ENGINE_LEAVE, &place, &standing), ERROR_NONE);
    }
    local_zone_check(f.zone);
    uint64_t more = 0;
    while (join(f.engine, "b", 1000000 + more, &standing) == ERROR_NONE)
        more++;
    assert_true(more > joined[0] / 2);
    fixture_free(&f);
}

/* ---- time ---- */

static struct fixture ticking(struct settings *settings)
{
    *settings = patient();
    settings->rate_milli = 10000;
    settings->burst = 1;
    settings->max_active = 0;
    struct fixture f = fixture_new(2, 64, true, settings);
    struct standing standing;

    for (uint64_t who = 1; who <= 500; who++)
        assert_int_equal(join(f.engine, "a", who, &standing), ERROR_NONE);
    assert_int_equal(figures_of(f.engine, "a").calls, 1);
    return f;
}

/* FAILURES 17: every worker ticks, time passes once. */
static void many_workers_tick_and_time_passes_once(void **state)
{
    struct settings settings;
    struct fixture f = ticking(&settings);
    struct engine *other = local_engine_new(f.zone);
    (void)state;

    for (uint64_t ms = 5000; ms <= 15000; ms += 20) {
        f.engine->tick(f.engine, ms);
        other->tick(other, ms + 3);
        other->tick(other, ms + 3);
    }
    assert_true(figures_of(f.engine, "a").calls >= 95);
    assert_true(figures_of(f.engine, "a").calls <= 102);
    local_engine_free(other);
    fixture_free(&f);
}

/* Workers read the clock once per turn of their loop: a busy one comes with a time that is a little old. */
static void a_worker_with_an_old_time_does_not_make_time_pass_twice(void **state)
{
    struct settings settings;
    struct fixture f = ticking(&settings);
    (void)state;

    settings.burst = 1000; /* the credit is not cut off: time counted twice would show in it */
    assert_int_equal(local_zone_put_room(f.zone, SPAN("a"), &settings, NULL), ERROR_NONE);
    for (uint64_t ms = 5000; ms <= 15000; ms += 100) {
        f.engine->tick(f.engine, ms);
        f.engine->tick(f.engine, ms - 60);
    }
    assert_true(figures_of(f.engine, "a").calls >= 95);
    assert_true(figures_of(f.engine, "a").calls <= 102);
    fixture_free(&f);
}

/* Promise 10. */
static void a_pause_or_a_jump_counts_one_second_and_ticking_goes_on(void **state)
{
    struct settings settings;
    struct fixture f = ticking(&settings);
    (void)state;

    settings.burst = 1000;
    assert_int_equal(local_zone_put_room(f.zone, SPAN("a"), &settings, NULL), ERROR_NONE);
    f.engine->tick(f.engine, 5000);
    assert_int_equal(figures_of(f.engine, "a").calls, 1);
    f.engine->tick(f.engine, 5000 + 3600000);
    assert_int_equal(figures_of(f.engine, "a").calls, 11);
    f.engine->tick(f.engine, UINT64_MAX / 2);
    assert_int_equal(figures_of(f.engine, "a").calls, 21);
    /* Back: nothing happens, and from there it goes on. */
    f.engine->tick(f.engine, 1000);
    assert_int_equal(figures_of(f.engine, "a").calls, 21);
    f.engine->tick(f.engine, 2000);
    assert_int_equal(figures_of(f.engine, "a").calls, 31);
    fixture_free(&f);
}

/* ---- dying ---- */

/* What a worker has done with somebody, written down in shared memory right after the answer. */
enum phase { OUTSIDE, JOINED, INSIDE, ARRIVED };

struct note {
    uint32_t joins; /* tickets ever got */
    uint8_t phase;
    uint8_t intent; /* 1 + the operation under way; 0 = none */
    uint16_t reserved;
};

/* The note changes as a whole: its writer may die at any moment too. */
struct log_entry {
    _Atomic struct note note;
    struct place place;
};

enum { WORKERS = 3, FLOCK = 3000, ROUNDS = 240 };

struct crash {
    struct fixture f;
    struct journal *journal; /* NULL: none */
    uint32_t more_pages;
    struct log_entry (*log)[FLOCK];
    pid_t pid[WORKERS];
    uint64_t seed;
};

static const char *room_of(uint32_t person)
{
    return person % 5 == 0 ? "small" : "big";
}

static struct note note_of(struct log_entry *entry)
{
    return atomic_load(&entry->note);
}

static void begin(struct log_entry *entry, enum engine_op op)
{
    struct note note = note_of(entry);

    note.intent = (uint8_t)(1 + op);
    atomic_store(&entry->note, note);
}

static void finish(struct log_entry *entry, enum phase phase)
{
    struct note note = note_of(entry);

    note.joins += note.intent == 1 + ENGINE_JOIN && phase == JOINED;
    note.phase = (uint8_t)phase;
    note.intent = 0;
    atomic_store(&entry->note, note);
}

/* A worker that finds something wrong says what and gives up; the parent sees that it was not killed. */
static void expect(bool is_right, const char *what, uint32_t person)
{
    if (!is_right) {
        fprintf(stderr, "person %u: %s\n", person, what);
        _exit(3);
    }
}

static void work_join(struct crash *crash, struct log_entry *entry, uint32_t worker, uint32_t person,
                      struct dice *dice)
{
    uint64_t who = worker * 100000ULL + person;
    struct engine_call call = {.op = ENGINE_JOIN, .join = {.holder = holder_of(who), .wall_sec = 5}};

    if (dice_below(dice, 4) == 0)
        call.join.request = key_of(who, 1);
    begin(entry, ENGINE_JOIN);
    enum error error = submit(crash->f.engine, &call, room_of(person));
    if (error == ERROR_QUEUE_FULL) {
        finish(entry, OUTSIDE);
        return;
    }
    expect(error == ERROR_NONE && !call.standing.is_repeat, "was in line before joining", person);
    entry->place = call.standing.place;
    finish(entry, JOINED);
}

static void work_inside(struct crash *crash, struct log_entry *entry, uint32_t person, struct dice *dice)
{
    static const enum engine_op ops[] = {ENGINE_STATUS,      ENGINE_STATUS,       ENGINE_ENTER,
                                         ENGINE_ENTER,       ENGINE_LEAVE,        ENGINE_LEAVE,
                                         ENGINE_SESSION_END, ENGINE_SESSION_TOUCH};
    enum engine_op op = ops[dice_below(dice, 8)];
    struct standing standing;

    begin(entry, op);
    enum error error = ask(crash->f.engine, room_of(person), op, &entry->place, &standing);
    enum phase phase = note_of(entry).phase;
    bool is_inside = phase == INSIDE || phase == ARRIVED;
    switch (op) {
    case ENGINE_ENTER:
        expect(error == ERROR_NONE || (error == ERROR_NOT_READY && !is_inside), "enter", person);
        finish(entry, error == ERROR_NONE && phase == JOINED ? INSIDE : phase);
        break;
    case ENGINE_LEAVE:
        expect(error == ERROR_NONE, "leave", person);
        finish(entry, OUTSIDE);
        break;
    case ENGINE_SESSION_END:
        expect((error == ERROR_NONE) == is_inside, "end", person);
        finish(entry, is_inside ? OUTSIDE : phase);
        break;
    case ENGINE_SESSION_TOUCH:
        expect((error == ERROR_NONE) == is_inside, "touch", person);
        finish(entry, is_inside ? ARRIVED : phase);
        break;
    default:
        expect(error == ERROR_NONE, "status", person);
        finish(entry, phase);
    }
}

static void work(struct crash *crash, uint32_t worker, uint64_t seed)
{
    struct dice dice = {seed};

    for (;;) {
        /* The flock swells and shrinks, so that pages and buckets come and go. */
        uint32_t size = clock_ms() / 400 % 2 == 0 ? FLOCK : FLOCK / 5;
        uint32_t person = dice_below(&dice, FLOCK);
        struct log_entry *entry = &crash->log[worker][person];
        enum phase phase = note_of(entry).phase;
        if (phase == OUTSIDE && person < size)
            work_join(crash, entry, worker, person, &dice);
        else if (phase != OUTSIDE)
            work_inside(crash, entry, person, &dice);
        if (dice_below(&dice, 20) != 0)
            continue;
        crash->f.engine->tick(crash->f.engine, clock_ms());
        end_turn(crash->f.engine);
    }
}

static void hire(struct crash *crash, uint32_t worker)
{
    uint64_t seed = crash->seed++;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody behind */
        work(crash, worker, seed);
    }
    crash->pid[worker] = pid;
}

static void kill_worker(struct crash *crash, uint32_t worker)
{
    int status;

    assert_int_equal(kill(crash->pid[worker], SIGKILL), 0);
    assert_int_equal(waitpid(crash->pid[worker], &status, 0), crash->pid[worker]);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    crash->pid[worker] = 0;
}

static bool is_phase(enum ticket_state state, enum phase phase)
{
    switch (phase) {
    case OUTSIDE:
        return state == TICKET_DONE;
    case JOINED:
        return state == TICKET_WAITING || state == TICKET_CALLED;
    case INSIDE:
        return state == TICKET_ENTERED;
    case ARRIVED:
        return state == TICKET_ACTIVE;
    }
    return false;
}

/* An operation under way when its worker died has happened or has not. Leaves the entry as it turned out. */
static void settle(struct crash *crash, uint32_t worker, uint32_t person)
{
    static const enum phase after[] = {[ENGINE_ENTER] = INSIDE,
                                       [ENGINE_LEAVE] = OUTSIDE,
                                       [ENGINE_SESSION_END] = OUTSIDE,
                                       [ENGINE_SESSION_TOUCH] = ARRIVED};
    struct log_entry *entry = &crash->log[worker][person];
    struct standing standing = no_standing;
    struct note note = note_of(entry);

    if (note.intent == 1 + ENGINE_JOIN) {
        enum error error = join(crash->f.engine, room_of(person), worker * 100000ULL + person, &standing);
        assert_true(error == ERROR_NONE || error == ERROR_QUEUE_FULL);
        entry->place = standing.place;
        finish(entry, error == ERROR_NONE ? JOINED : OUTSIDE);
        return;
    }
    if (note.joins == 0)
        return;
    enum error error = ask(crash->f.engine, room_of(person), ENGINE_STATUS, &entry->place, &standing);
    enum ticket_state now = error == ERROR_NONE ? standing.state : TICKET_DONE;
    if (is_phase(now, note.phase)) {
        finish(entry, note.phase);
        return;
    }
    if (note.intent < 1 + ENGINE_ENTER || !is_phase(now, after[note.intent - 1]))
        fail_msg("person %u of worker %u: phase %u, intent %u, found %s", person, worker, note.phase,
                 note.intent, ticket_life(now)->name);
    finish(entry, after[note.intent - 1]);
}

/* Everybody is where the last answer said, and no ticket was lost or given twice. */
static void verify(struct crash *crash)
{
    uint64_t joins[2] = {0, 0};

    local_zone_check(crash->f.zone);
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        for (uint32_t person = 0; person < FLOCK; person++) {
            settle(crash, worker, person);
            joins[person % 5 == 0] += note_of(&crash->log[worker][person]).joins;
        }
    local_zone_check(crash->f.zone);
    assert_int_equal(figures_of(crash->f.engine, "big").issued, joins[0]);
    assert_int_equal(figures_of(crash->f.engine, "small").issued, joins[1]);
    struct figures small = figures_of(crash->f.engine, "small");
    assert_true(
        small.in_state[TICKET_CALLED] + small.in_state[TICKET_ENTERED] + small.in_state[TICKET_ACTIVE] <= 5);
}

static struct fixture crash_fixture(const struct crash *crash)
{
    struct settings settings = patient();
    settings.rate_milli = 1000000;
    settings.max_active = 300;
    struct fixture f = fixture_new(2, crash->more_pages, true, &settings);

    if (crash->journal != NULL)
        fixture_recover(&f, crash->journal);
    return f;
}

/* All are dead. Either one comes and goes on in memory, or all that is left is the journal. */
static void judge_the_dead(struct crash *crash, bool is_memory_lost)
{
    if (crash->journal != NULL && is_memory_lost) {
        local_engine_free(crash->f.engine);
        shared_free(crash->f.memory, crash->f.bytes);
        crash->f = crash_fixture(crash);
    }
    verify(crash);
    if (crash->journal != NULL)
        expect_journal_says_the_same(&crash->f, crash->journal);
}

static void run_crashes(uint32_t more_pages, uint32_t rounds, uint64_t seed, struct journal *journal)
{
    struct crash crash = {.journal = journal, .more_pages = more_pages, .seed = seed};
    struct settings settings = patient();
    settings.rate_milli = 1000000;
    settings.max_active = 300;
    struct dice dice = {seed};

    crash.f = crash_fixture(&crash);
    crash.log = shared_new(sizeof(*crash.log) * WORKERS);
    assert_int_equal(local_zone_put_room(crash.f.zone, SPAN("big"), &settings, NULL), ERROR_NONE);
    settings.max_active = 5;
    assert_int_equal(local_zone_put_room(crash.f.zone, SPAN("small"), &settings, NULL), ERROR_NONE);
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        hire(&crash, worker);
    for (uint32_t round = 1; round <= rounds; round++) {
        /* The moment is random: this is no waiting for something. */
        nanosleep(&(struct timespec){0, 1000000 + dice_below(&dice, 20000000)}, NULL);
        uint32_t worker = dice_below(&dice, WORKERS);
        kill_worker(&crash, worker);
        for (uint32_t person = 0; person < FLOCK; person++)
            settle(&crash, worker, person); /* the others go on meanwhile */
        hire(&crash, worker);
        if (round % 20 != 0)
            continue;
        for (worker = 0; worker < WORKERS; worker++)
            kill_worker(&crash, worker);
        judge_the_dead(&crash, round % 40 == 0);
        for (worker = 0; worker < WORKERS; worker++)
            hire(&crash, worker);
    }
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        kill_worker(&crash, worker);
    judge_the_dead(&crash, true);
    shared_free(crash.log, sizeof(*crash.log) * WORKERS);
    fixture_free(&crash.f);
}

/* FAILURES 38, 52, and promise 4 as far as memory goes. */
static void workers_killed_at_random_lose_nothing_and_block_nobody(void **state)
{
    (void)state;
    alarm(300); /* a lock held for ever would show here */
    run_crashes(200, ROUNDS / 2, 1000, NULL);
    run_crashes(0, ROUNDS / 2, 2000, NULL); /* memory so scarce that joins are refused all the time */
    alarm(0);
}

/* The same with a journal, which is all that is left of it in the end. */
static void workers_killed_at_random_leave_a_whole_journal(void **state)
{
    struct journal journal;
    (void)state;

    alarm(300);
    journal_make(&journal);
    run_crashes(200, ROUNDS / 2, 3000, &journal);
    journal_remove(&journal);
    alarm(0);
}

/* ---- dying at a chosen instruction, locks and the moving of pages included ---- */

enum step { INSTRUCTION, SYSTEM_CALL };

/* The child stops by itself where it is to be led from. */
static bool watched_child_stops;

static void stop_here(struct span room, const struct figures *figures)
{
    (void)room, (void)figures;
    raise(SIGSTOP);
}

static void lead(pid_t child, enum __ptrace_request how, int *status)
{
    assert_int_equal(ptrace(how, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, status, 0), child);
}

/* Kills it after so many steps; what is left of them when it came to its end before that stays in `steps`. */
static void step_and_kill(struct fixture *f, void (*act)(struct fixture *f), enum step step, uint32_t *steps)
{
    pid_t child = fork_traced();
    int status = W_STOPCODE(SIGSTOP);

    if (child == 0) {
        act(f);
        _exit(0);
    }
    if (watched_child_stops)
        lead(child, PTRACE_CONT, &status);
    for (; *steps > 0 && WIFSTOPPED(status); --*steps)
        lead(child, step == INSTRUCTION ? PTRACE_SINGLESTEP : PTRACE_SYSCALL, &status);
    if (!WIFSTOPPED(status)) {
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return;
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static void join_first(struct fixture *f)
{
    struct standing standing;

    join(f->engine, "a", 1, &standing);
}

/* How many instructions it takes when nobody is killed. */
static uint32_t steps_of(struct fixture (*prepare)(void), void (*act)(struct fixture *f))
{
    struct fixture f = prepare();
    uint32_t left = UINT32_MAX;

    step_and_kill(&f, act, INSTRUCTION, &left);
    fixture_free(&f);
    return UINT32_MAX - left;
}

/* Whatever was left behind, the join is made good, once, and no page is lost. */
static void expect_joined_once(struct fixture *f)
{
    struct standing standing;

    for (int again = 0; again < 2; again++) {
        assert_int_equal(join(f->engine, "a", 1, &standing), ERROR_NONE);
        assert_int_equal(standing.place.count, 1);
        assert_true(standing.is_ready);
    }
    f->engine->tick(f->engine, 1000);
    assert_int_equal(join(f->engine, "b", 1, &standing), ERROR_NONE);
    assert_int_equal(join(f->engine, "c", 1, &standing), ERROR_QUEUE_FULL);
    assert_int_equal(figures_of(f->engine, "a").issued, 1);
}

static struct fixture no_rooms(void)
{
    struct settings settings = patient();

    return fixture_new(2, 40, true, &settings);
}

/* The first join of a room that is not there: it is made, given pages, and joined. */
static void a_maker_killed_anywhere_leaves_no_room_or_a_whole_one(void **state)
{
    struct dice dice = {10};
    uint32_t total = steps_of(no_rooms, join_first);
    (void)state;

    for (int kills = 0; kills < 8; kills++) {
        struct fixture f = no_rooms();
        uint32_t steps = dice_below(&dice, total);
        step_and_kill(&f, join_first, INSTRUCTION, &steps);
        expect_joined_once(&f);
        fixture_free(&f);
    }
}

static struct fixture an_empty_room(void)
{
    struct settings settings = patient();
    struct fixture f = no_rooms();

    assert_int_equal(local_zone_put_room(f.zone, SPAN("a"), &settings, NULL), ERROR_NONE);
    return f;
}

/* The first join of a room that has no pages yet: they are moved to it from the zone, one by one. */
static void a_worker_killed_while_moving_pages_loses_none(void **state)
{
    struct dice dice = {12};
    uint32_t total = steps_of(an_empty_room, join_first);
    (void)state;

    for (int kills = 0; kills < 60; kills++) {
        struct fixture f = an_empty_room();
        uint32_t steps = dice_below(&dice, kills % 4 == 0 ? total : total / 3);
        step_and_kill(&f, join_first, INSTRUCTION, &steps);
        expect_joined_once(&f);
        fixture_free(&f);
    }
}

static struct fixture a_room_with_people(void)
{
    struct settings settings = patient();
    struct fixture f = fixture_new(1, 40, true, &settings);
    struct standing standing;

    for (uint64_t who = 1; who <= 40; who++)
        assert_int_equal(join(f.engine, "a", who, &standing), ERROR_NONE);
    return f;
}

static void delete_room(struct fixture *f)
{
    struct engine_call call = {.op = ENGINE_DELETE};

    submit(f->engine, &call, "a");
}

/* Its place goes to another room, and with the room its pages went back to the zone. */
static void a_worker_killed_while_deleting_a_room_loses_no_page(void **state)
{
    struct dice dice = {14};
    uint32_t total = steps_of(a_room_with_people, delete_room);
    (void)state;

    for (int kills = 0; kills < 40; kills++) {
        struct fixture f = a_room_with_people();
        uint32_t steps = dice_below(&dice, total);
        struct standing standing;
        step_and_kill(&f, delete_room, INSTRUCTION, &steps);
        if (join(f.engine, "b", 1, &standing) ==
            ERROR_QUEUE_FULL) { /* it came not that far: "a" is still there */
            delete_room(&f);
            assert_int_equal(join(f.engine, "b", 1, &standing), ERROR_NONE);
        }
        assert_int_equal(figures_of(f.engine, "b").issued, 1);
        fixture_free(&f);
    }
}

/* ---- the same with a journal ---- */

static struct journal paper;

static struct fixture a_recorded_room(void)
{
    struct settings settings = patient();
    struct fixture f = fixture_new(2, 300, true, &settings);

    journal_make(&paper);
    fixture_recover(&f, &paper);
    assert_int_equal(local_zone_put_room(f.zone, SPAN("a"), &settings, NULL), ERROR_NONE);
    return f;
}

static void fixture_free_with_paper(struct fixture *f)
{
    expect_journal_says_the_same(f, &paper);
    journal_remove(&paper);
    fixture_free(f);
}

static uint32_t steps_with_paper(struct fixture (*prepare)(void), void (*act)(struct fixture *f),
                                 enum step step)
{
    struct fixture f = prepare();
    uint32_t left = UINT32_MAX;

    step_and_kill(&f, act, step, &left);
    fixture_free_with_paper(&f);
    return UINT32_MAX - left;
}

static void expect_joined_on_paper(struct fixture *f)
{
    expect_joined_once(f);
    fixture_free_with_paper(f);
}

/* Before and after each system call, and so many times anywhere. */
static void kill_with_paper(struct fixture (*prepare)(void), void (*act)(struct fixture *f),
                            void (*expect_whole)(struct fixture *f), uint32_t kills, struct dice dice)
{
    uint32_t instructions = steps_with_paper(prepare, act, INSTRUCTION);
    uint32_t calls = steps_with_paper(prepare, act, SYSTEM_CALL);

    for (uint32_t i = 1; i <= calls + kills; i++) {
        struct fixture f = prepare();
        uint32_t steps = i <= calls ? i : dice_below(&dice, instructions);
        step_and_kill(&f, act, i <= calls ? SYSTEM_CALL : INSTRUCTION, &steps);
        expect_whole(&f);
    }
}

static void join_and_stop(struct fixture *f)
{
    f->engine->watch = stop_here;
    join_first(f);
}

/* The room has changed, and its lock is held: the record goes into the ring and out of the outbox. */
static void a_worker_killed_over_a_record_leaves_it_once(void **state)
{
    (void)state;
    watched_child_stops = true;
    kill_with_paper(a_recorded_room, join_and_stop, expect_joined_on_paper, 80, (struct dice){15});
    watched_child_stops = false;
}

/* A join: the record into the ring, the ring to the disk, the answer. */
static void a_worker_killed_on_the_way_to_the_journal_leaves_it_whole(void **state)
{
    (void)state;
    kill_with_paper(a_recorded_room, join_first, expect_joined_on_paper, 12, (struct dice){16});
}

static struct fixture a_room_to_be_copied(void)
{
    struct fixture f = a_recorded_room();
    struct standing standing;

    for (uint64_t who = 1; who <= 40; who++)
        assert_int_equal(join(f.engine, "a", who, &standing), ERROR_NONE);
    /* The log is as long as a segment and more, and nobody has ever taken a snapshot. */
    struct fixture again = fixture_new(2, 300, true, &f.zone->options.settings);
    fixture_recover(&again, &paper);
    again.zone->snapshot = again.zone->snapshot_bytes = 0;
    assert_true(snapshot_is_due(again.zone));
    fixture_free(&f);
    return again;
}

static void copy_room(struct fixture *f)
{
    for (int ticks = 0; ticks < 2; ticks++) {
        f->engine->tick(f->engine, clock_ms() + (uint64_t)(ticks * 100));
        end_turn(f->engine);
    }
}

static void expect_copied(struct fixture *f)
{
    struct standing standing;

    assert_int_equal(join(f->engine, "a", 41, &standing), ERROR_NONE);
    assert_int_equal(standing.place.count, 41);
    for (int ticks = 0; ticks < 3; ticks++)
        copy_room(f);
    assert_true(local_zone_journal(f->zone).snapshot > 0);
    fixture_free_with_paper(f);
}

static void a_worker_killed_over_a_snapshot_leaves_it_to_the_next(void **state)
{
    (void)state;
    kill_with_paper(a_room_to_be_copied, copy_room, expect_copied, 4, (struct dice){18});
}

/* ---- a journal's folder ---- */

static void count_segment(void *context, const char *name)
{
    bool is_snapshot;
    uint64_t first;

    *(uint32_t *)context += frame_name_read(name, &is_snapshot, &first) && !is_snapshot;
}

/* Each begins a segment, and none lives long enough for a worker to take a snapshot. */
static void starts_that_fail_again_and_again_do_not_fill_the_disk(void **state)
{
    static const struct log_options options = {SYNC_INTERVAL, 1000, LOG_SEGMENT_LEAST, LOG_SEGMENT_LEAST / 4};
    struct settings settings = patient();
    struct disk_sim *sim = disk_sim_new();
    struct disk *disk = disk_sim_disk(sim);
    struct local_recovery recovery;
    (void)state;

    for (int start = 0; start < 30; start++) {
        uint32_t segments = 0;
        struct fixture f = fixture_new(3, 256, false, &settings);
        assert_true(local_zone_recover(f.zone, disk, &options, 1, &recovery));
        assert_int_equal(recovery.rooms, start > 0);
        assert_int_equal(local_zone_put_room(f.zone, SPAN("a"), &settings, NULL), ERROR_NONE);
        assert_int_equal(local_zone_close(f.zone, disk, 1), 0);
        assert_int_equal(disk->list(disk, count_segment, &segments), 0);
        assert_in_range(segments, 1, 4);
        fixture_free(&f);
    }
    disk_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_rooms_are_refused_unless_they_may_be_made),
        cmocka_unit_test(rooms_are_as_many_as_there_may_be_and_each_is_its_own),
        cmocka_unit_test(the_place_of_a_room_is_not_taken_before_it_is_deleted_to_its_end),
        cmocka_unit_test(settings_of_a_room_change_and_its_line_stays),
        cmocka_unit_test(a_full_zone_refuses_and_what_drains_is_there_for_others),
        cmocka_unit_test(many_workers_tick_and_time_passes_once),
        cmocka_unit_test(a_worker_with_an_old_time_does_not_make_time_pass_twice),
        cmocka_unit_test(a_pause_or_a_jump_counts_one_second_and_ticking_goes_on),
        cmocka_unit_test(workers_killed_at_random_lose_nothing_and_block_nobody),
        cmocka_unit_test(workers_killed_at_random_leave_a_whole_journal),
        cmocka_unit_test(a_maker_killed_anywhere_leaves_no_room_or_a_whole_one),
        cmocka_unit_test(a_worker_killed_while_moving_pages_loses_none),
        cmocka_unit_test(a_worker_killed_while_deleting_a_room_loses_no_page),
        cmocka_unit_test(a_worker_killed_over_a_record_leaves_it_once),
        cmocka_unit_test(a_worker_killed_on_the_way_to_the_journal_leaves_it_whole),
        cmocka_unit_test(a_worker_killed_over_a_snapshot_leaves_it_to_the_next),
        cmocka_unit_test(starts_that_fail_again_and_again_do_not_fill_the_disk),
    };
    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
