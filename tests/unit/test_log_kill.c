/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that die in the log: after any instruction that changes something, and at random while others go on. The next one
 * finds it whole, and what anybody was told is in it.
 */
#include "rig.h"

#include "journal/folder.h"
#include "journal/log.h"
#include "journal/scan.h"
#include "log_reader.h"

#include <errno.h>
#include <pthread.h>
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

#define SEGMENT LOG_SEGMENT_LEAST
#define BIG     60000 /* a body of which some twenty make a segment */

static const struct log_options by_interval = {SYNC_INTERVAL, 1000, SEGMENT, SEGMENT / 4};
static const struct log_start from_zero = {0, 1};

/*
 * A log over a real folder, in memory that a child can die in. Syncs are left out (no power is cut here), and each call is
 * counted in that memory: so everything that a child does can be seen from outside.
 */
struct scene {
    struct log *log;
    struct folder folder;
    struct disk *disk;
    struct log_writer writer;
    char path[64];
    uint64_t numbers;
    struct log_start start; /* of what is begun on */
    uint64_t folder_syncs;  /* before the child came */
};

static struct shared {
    _Atomic uint64_t calls; /* of the disk, that changed something */
    _Atomic uint64_t told;  /* what the child was told: an end, or how far something has come */
    _Atomic uint64_t folder_syncs;
} * shared;

static struct disk real;

static int counted(int result)
{
    atomic_fetch_add(&shared->calls, 1);
    return result;
}

static bool refuses_to_open;

static int counted_open(struct disk *disk, const char *name, enum disk_open how)
{
    return counted(refuses_to_open ? -EMFILE : real.open(disk, name, how));
}

static int counted_write(struct disk *disk, int file, const void *data, size_t len, uint64_t offset)
{
    return counted(real.write(disk, file, data, len, offset));
}

static int counted_allocate(struct disk *disk, int file, uint64_t bytes)
{
    return counted(real.allocate(disk, file, bytes));
}

static int counted_rename(struct disk *disk, const char *from, const char *to)
{
    return counted(real.rename(disk, from, to));
}

static int counted_remove(struct disk *disk, const char *name)
{
    return counted(real.remove(disk, name));
}

static int no_sync(struct disk *disk, int file)
{
    (void)disk, (void)file;
    return counted(0);
}

static int no_sync_folder(struct disk *disk)
{
    (void)disk;
    atomic_fetch_add(&shared->folder_syncs, 1);
    return counted(0);
}

static size_t shared_bytes(void)
{
    return PAGE_BYTES + log_bytes();
}

/* `scene` must stay where it is. */
static void scene_init(struct scene *scene)
{
    *scene = (struct scene){.disk = &scene->folder.disk};
    shared = shared_new(shared_bytes());
    scene->log = (struct log *)((char *)shared + PAGE_BYTES);
    log_init(scene->log);
    snprintf(scene->path, sizeof(scene->path), "%s/weir-log-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(scene->path));
    assert_int_equal(folder_open(&scene->folder, scene->path), 0);
    real = scene->folder.disk;
    scene->disk->open = counted_open;
    scene->disk->write = counted_write;
    scene->disk->allocate = counted_allocate;
    scene->disk->rename = counted_rename;
    scene->disk->remove = counted_remove;
    scene->disk->sync = no_sync;
    scene->disk->sync_folder = no_sync_folder;
    log_writer_init(&scene->writer, scene->disk);
    assert_int_equal(log_begin(scene->log, scene->disk, &from_zero, &by_interval), 0);
}

static void remove_each(void *context, const char *name)
{
    struct disk *disk = context;

    assert_int_equal(disk->remove(disk, name), 0);
}

static void scene_fini(struct scene *scene)
{
    log_writer_close(&scene->writer);
    assert_int_equal(scene->disk->list(scene->disk, remove_each, scene->disk), 0);
    folder_close(&scene->folder);
    assert_int_equal(rmdir(scene->path), 0);
    shared_free(shared, shared_bytes());
}

static uint64_t scene_append(struct scene *scene, size_t len)
{
    struct span body = body_of(scene->numbers + 1, len);
    uint64_t end = log_append(scene->log, &scene->writer, RECORD_ROOM, body, 1);

    assert_true(end != UINT64_MAX);
    scene->numbers++;
    return end;
}

static void scene_flush(struct scene *scene)
{
    assert_int_equal(log_flush(scene->log, &scene->writer), 0);
}

static void scene_append_until(struct scene *scene, uint64_t position)
{
    while (log_end(scene->log) + frame_record_bytes(BIG) <= position)
        scene_append(scene, BIG);
    uint64_t left = position - log_end(scene->log);
    if (left >= frame_record_bytes(8))
        scene_append(scene, left - FRAME_RECORD_BYTES);
    assert_int_equal(log_end(scene->log), position);
}

static struct log_reading scene_read(struct scene *scene)
{
    return log_read_back(scene->disk, from_zero);
}

static bool expect_next(void *context, const struct frame_record *record, const struct scan_place *place,
                        bool is_snapshot)
{
    uint64_t *numbers = context;
    (void)place, (void)is_snapshot;

    if (record->type == RECORD_ROOM)
        assert_int_equal(number_of(record->body), ++*numbers);
    return true;
}

/* If everybody died now: a recovery finds what was written, and misses nothing. */
static uint64_t scene_scan(struct scene *scene, struct scan_report *report)
{
    uint64_t numbers = 0;
    struct scan_reader reader = {.each = expect_next, .context = &numbers};

    assert_int_equal(journal_scan(scene->disk, &reader, report), SCAN_GOOD);
    assert_false(scan_may_have_lost(report));
    return numbers;
}

/* ---- what a child does, and what stands before it ---- */

struct play {
    const char *name;
    void (*prepare)(struct scene *scene);
    void (*act)(struct scene *scene);
    void (*expect)(struct scene *scene); /* of what is left by somebody who died */
};

static void a_few_records(struct scene *scene)
{
    for (int n = 0; n < 3; n++)
        scene_append(scene, 50);
    scene_flush(scene);
}

static void records_in_the_ring(struct scene *scene)
{
    a_few_records(scene);
    for (int n = 0; n < 3; n++)
        scene_append(scene, 50);
}

static void the_end_of_the_ring(struct scene *scene)
{
    scene_append_until(scene, (1 << 18) - 16);
    scene_flush(scene);
}

static void records_around_the_end_of_the_ring(struct scene *scene)
{
    the_end_of_the_ring(scene);
    scene_append(scene, 50);
    scene_append(scene, 50);
}

static void a_full_ring(struct scene *scene)
{
    a_few_records(scene);
    scene_append_until(scene, log_written(scene->log) + (1 << 18) - 64);
}

static void the_end_of_a_segment(struct scene *scene)
{
    scene_append_until(scene, SEGMENT - FRAME_END_BYTES - 16);
    scene_flush(scene);
}

static void two_segments_in_the_ring(struct scene *scene)
{
    the_end_of_a_segment(scene);
    scene_append(scene, 50);
    scene_append(scene, 50);
}

/* Of the second segment, which was LOG_NEXT. */
static void the_end_of_another_segment(struct scene *scene)
{
    the_end_of_a_segment(scene);
    scene_append(scene, 50);
    scene_flush(scene);
    scene_append_until(scene, 2 * SEGMENT - 2 * FRAME_END_BYTES);
    scene_flush(scene);
    assert_true(log_needs_prepare(scene->log));
}

static void a_segment_that_nobody_prepared(struct scene *scene)
{
    the_end_of_another_segment(scene);
    scene_append(scene, 50);
}

static void a_shortage_that_is_over(struct scene *scene)
{
    records_in_the_ring(scene);
    log_writer_close(&scene->writer);
    refuses_to_open = true;
    assert_int_equal(log_flush(scene->log, &scene->writer), -EMFILE);
    refuses_to_open = false;
    assert_int_equal(log_trouble(scene->log), LOG_FULL);
}

static void two_segments_written(struct scene *scene)
{
    two_segments_in_the_ring(scene);
    scene_flush(scene);
}

static void act_append(struct scene *scene)
{
    shared->told = log_append(scene->log, &scene->writer, RECORD_ROOM, body_of(scene->numbers + 1, 60), 1);
}

static void act_flush(struct scene *scene)
{
    if (log_flush(scene->log, &scene->writer) == 0)
        shared->told = log_written(scene->log);
}

static void act_sync(struct scene *scene)
{
    if (log_sync(scene->log, scene->disk, 1) == 0)
        shared->told = log_written(scene->log);
}

static void act_prepare(struct scene *scene)
{
    log_prepare(scene->log, scene->disk);
}

static void act_append_in_another_mode(struct scene *scene)
{
    struct log_options options = by_interval;

    options.sync = SYNC_ALWAYS;
    log_set_options(scene->log, &options);
    act_append(scene);
}

/* ---- dying ---- */

static void play_begin(const struct play *play, struct scene *scene)
{
    scene_init(scene);
    play->prepare(scene);
    scene->folder_syncs = shared->folder_syncs;
    log_writer_close(&scene->writer); /* a worker that has not written to this segment yet */
}

static pid_t play_child(const struct play *play, struct scene *scene)
{
    pid_t child = fork_traced();

    if (child == 0) {
        play->act(scene);
        _exit(0);
    }
    return child;
}

/* One instruction; false when the child is over. */
static bool step(pid_t child)
{
    int status;

    assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status))
        assert_int_equal(WEXITSTATUS(status), 0);
    else
        assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    return WIFSTOPPED(status);
}

#define POINTS 5000

/*
 * Every place is died at; under the sanitizers, where a fork takes long, some. There no two runs have the same number of steps
 * either: their allocator depends on where things lie.
 */
#ifdef __SANITIZE_ADDRESS__
#define POINT_STRIDE 7
#define STEPS_DIFFER true
#else
#define POINT_STRIDE 1
#define STEPS_DIFFER false
#endif

/* The steps after which something is different in the shared memory, or in the folder: it is enough to die there. */
static size_t play_points(const struct play *play, uint32_t points[POINTS])
{
    unsigned char *seen = malloc(shared_bytes());
    struct scene scene;
    size_t count = 0;

    assert_non_null(seen);
    play_begin(play, &scene);
    memcpy(seen, shared, shared_bytes());
    pid_t child = play_child(play, &scene);
    for (uint32_t steps = 1; step(child); steps++) {
        if (memcmp(seen, shared, shared_bytes()) == 0)
            continue;
        memcpy(seen, shared, shared_bytes());
        assert_true(count < POINTS);
        points[count++] = steps;
    }
    free(seen);
    scene_fini(&scene);
    assert_true(count > 4);
    return count;
}

static void play_and_kill(const struct play *play, uint32_t steps)
{
    struct scene scene;
    int status;

    play_begin(play, &scene);
    pid_t child = play_child(play, &scene);
    uint32_t done = 0;
    while (done < steps && step(child))
        done++;
    if (done == steps) {
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
    } else {
        assert_true(STEPS_DIFFER); /* it came to its end */
    }
    play->expect(&scene);
    scene_fini(&scene);
}

static void play_all(const struct play *plays, size_t count)
{
    static uint32_t points[POINTS];

    alarm(500); /* a lock that stays behind would be waited for */
    for (size_t i = 0; i < count; i++) {
        size_t places = play_points(&plays[i], points);
        print_message("%s: %zu places to die\n", plays[i].name, places);
        for (size_t n = 0; n < places; n += POINT_STRIDE)
            play_and_kill(&plays[i], points[n]);
    }
    alarm(0);
}

/* ---- in a log that others use ---- */

/* All that is in it is there, and it goes on over more than a segment. */
static void expect_to_go_on(struct scene *scene)
{
    assert_int_equal(log_prepare(scene->log, scene->disk), 0);
    assert_false(log_needs_prepare(scene->log));
    assert_int_equal(disk_size_of(scene->disk, LOG_NEXT), SEGMENT);
    scene_append_until(scene, log_end(scene->log) + SEGMENT / 2);
    assert_int_equal(log_sync(scene->log, scene->disk, 1), 0);
    for (int n = 0; n < 20; n++)
        scene_append(scene, BIG);
    scene_flush(scene);
    assert_int_equal(log_sync(scene->log, scene->disk, 1), 0);
    assert_int_equal(log_trouble(scene->log), LOG_FINE);
    assert_false(log_is_dirty(scene->log));
    scene_flush(scene);
    struct log_reading reading = scene_read(scene);
    assert_int_equal(reading.position, log_end(scene->log));
    assert_int_equal(reading.numbers, scene->numbers);
    log_head_of(scene->disk, reading.first);
}

static struct log_reading scene_flush_and_read(struct scene *scene)
{
    struct scan_report report;

    scene_scan(scene, &report);
    assert_true(report.end + FRAME_END_BYTES >= log_written(scene->log)); /* a RECORD_END does not count */
    scene_flush(scene);
    assert_int_equal(log_trouble(scene->log), LOG_FINE);
    struct log_reading reading = scene_read(scene);
    assert_int_equal(reading.position, log_end(scene->log));
    return reading;
}

/* The record is in it as a whole or not at all; and surely if somebody was told so. */
static void expect_all_and_perhaps_one(struct scene *scene)
{
    uint64_t told = shared->told;

    assert_true(log_end(scene->log) >= told);
    struct log_reading reading = scene_flush_and_read(scene);
    assert_true(reading.numbers == scene->numbers + 1 || (reading.numbers == scene->numbers && told == 0));
    scene->numbers = reading.numbers;
    expect_to_go_on(scene);
}

static void expect_all(struct scene *scene)
{
    assert_true(log_written(scene->log) >= shared->told);
    assert_int_equal(scene_flush_and_read(scene).numbers, scene->numbers);
    expect_to_go_on(scene);
}

/* The name of the second segment is on the disk with what is in it, whoever of the two has seen to that. */
static void expect_synced(struct scene *scene)
{
    assert_int_equal(log_sync(scene->log, scene->disk, 1), 0);
    assert_false(log_is_dirty(scene->log));
    assert_true(shared->folder_syncs > scene->folder_syncs);
    expect_all(scene);
}

static void a_process_killed_after_any_instruction_leaves_a_whole_log(void **state)
{
    static const struct play plays[] = {
        {"an append", a_few_records, act_append, expect_all_and_perhaps_one},
        {"an append around the end of the ring", the_end_of_the_ring, act_append, expect_all_and_perhaps_one},
        {"an append into a full ring", a_full_ring, act_append, expect_all_and_perhaps_one},
        {"an append that begins a segment", the_end_of_a_segment, act_append, expect_all_and_perhaps_one},
        {"an append in another mode", a_few_records, act_append_in_another_mode, expect_all_and_perhaps_one},
        {"a flush", records_in_the_ring, act_flush, expect_all},
        {"a flush around the end of the ring", records_around_the_end_of_the_ring, act_flush, expect_all},
        {"a flush into the prepared segment", two_segments_in_the_ring, act_flush, expect_all},
        {"a flush into a segment that is not there", a_segment_that_nobody_prepared, act_flush, expect_all},
        {"a flush that ends a shortage", a_shortage_that_is_over, act_flush, expect_all},
        {"a sync", two_segments_written, act_sync, expect_synced},
        {"a prepare", two_segments_written, act_prepare, expect_all},
    };
    (void)state;

    play_all(plays, sizeof(plays) / sizeof(plays[0]));
}

/* ---- while it is begun ---- */

/* Seals what is there, and says where a new log begins. */
static struct log_start scene_seal(struct scene *scene)
{
    struct scan_report report;
    struct log_start start;

    assert_int_equal(scene_scan(scene, &report), scene->numbers);
    assert_int_equal(journal_seal(scene->disk, &report, &start), 0);
    return start;
}

static void a_sealed_journal(struct scene *scene)
{
    a_few_records(scene);
    scene->start = scene_seal(scene);
}

static void act_begin(struct scene *scene)
{
    log_begin(scene->log, scene->disk, &scene->start, &by_interval);
}

/* In memory of its own: nothing of the old zone is left. */
static void expect_a_new_begin(struct scene *scene)
{
    memset((void *)scene->log, 0, log_bytes());
    log_init(scene->log);
    struct log_start start = scene_seal(scene);
    assert_int_equal(log_begin(scene->log, scene->disk, &start, &by_interval), 0);
    scene_append(scene, 50);
    scene_flush(scene);
    scene_seal(scene);
}

static void a_process_killed_while_it_begins_leaves_a_folder_to_begin_anew(void **state)
{
    static const struct play plays[] = {{"a begin", a_sealed_journal, act_begin, expect_a_new_begin}};
    (void)state;

    play_all(plays, 1);
}

/* ---- at random ---- */

#define WORKERS 4
#ifdef __SANITIZE_ADDRESS__
#define KILLS 20
#else
#define KILLS 100
#endif

/* One life of a worker: its number in the upper half of those it writes. */
struct life {
    _Atomic uint64_t appended, written; /* how many of its records were taken, how many it saw written */
    uint64_t found;                     /* in the end */
};

struct crew {
    struct scene scene;
    struct life *lives; /* shared */
    uint32_t count;
    struct {
        pid_t pid;
        uint32_t life;
    } workers[WORKERS];
};

static size_t lives_bytes(void)
{
    return (WORKERS + KILLS) * sizeof(struct life);
}

/* As the threads of a worker's pool do. */
static void *sync_and_prepare(void *context)
{
    struct scene *scene = context;

    for (uint64_t now_ms = 1;; now_ms += 500) {
        if (log_claim_sync(scene->log, now_ms))
            must(log_sync(scene->log, scene->disk, 1) == 0);
        if (log_needs_prepare(scene->log))
            must(log_prepare(scene->log, scene->disk) == 0);
    }
    return NULL;
}

static void work(struct scene *scene, struct life *life, uint32_t number)
{
    struct dice dice = {number};
    pthread_t thread;

    must(pthread_create(&thread, NULL, sync_and_prepare, scene) == 0);
    for (uint64_t n = 1;;) {
        for (uint32_t more = dice_below(&dice, 8); more > 0; more--, n++) {
            size_t len = 8 + dice_below(&dice, dice_below(&dice, 100) == 0 ? BIG : 300);
            uint64_t end = log_append(scene->log, &scene->writer, RECORD_ROOM,
                                      body_of((uint64_t)number << 32 | n, len), 1);
            must(end != UINT64_MAX && log_end(scene->log) >= end);
            atomic_store(&life->appended, n);
        }
        must(log_flush(scene->log, &scene->writer) == 0);
        atomic_store(&life->written, n - 1);
        nanosleep(&(struct timespec){0, dice_below(&dice, 300000)}, NULL); /* a turn of an event loop */
    }
}

static void hire(struct crew *crew, uint32_t worker)
{
    uint32_t life = crew->count++;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work(&crew->scene, &crew->lives[life], life);
    }
    crew->workers[worker].pid = pid;
    crew->workers[worker].life = life;
}

static void kill_worker(struct crew *crew, uint32_t worker)
{
    int status;

    assert_int_equal(kill(crew->workers[worker].pid, SIGKILL), 0);
    assert_int_equal(waitpid(crew->workers[worker].pid, &status, 0), crew->workers[worker].pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* not of a broken invariant */
}

/* Nobody is kept from work by one who died. */
static void await_progress(struct crew *crew, uint64_t records)
{
    uint64_t end = log_written(crew->scene.log) + records * 100;

    while (log_written(crew->scene.log) < end)
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void find(void *context, uint64_t number)
{
    struct crew *crew = context;
    struct life *life = &crew->lives[number >> 32];

    assert_true(number >> 32 < crew->count);
    assert_int_equal(number & UINT32_MAX, ++life->found); /* each once, in its order */
}

static void workers_killed_at_random_lose_no_record_and_block_nobody(void **state)
{
    struct crew crew = {.lives = shared_new(lives_bytes())};
    struct dice dice = {1};
    (void)state;

    scene_init(&crew.scene);
    alarm(300);
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        hire(&crew, worker);
    for (int kills = 0; kills < KILLS; kills++) {
        uint32_t worker = dice_below(&dice, WORKERS);
        await_progress(&crew, dice_below(&dice, 200));
        kill_worker(&crew, worker);
        hire(&crew, worker);
    }
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        kill_worker(&crew, worker);
    scene_flush(&crew.scene);
    struct log_reading reading = log_read_any(crew.scene.disk, from_zero, find, &crew);
    assert_int_equal(reading.position, log_end(crew.scene.log));
    assert_int_equal(log_trouble(crew.scene.log), LOG_FINE);
    for (uint32_t n = 0; n < crew.count; n++) {
        const struct life *life = &crew.lives[n];
        assert_true(life->found >= life->appended && life->appended >= life->written);
        assert_true(life->found <= life->appended + 1); /* died before it heard of it */
    }
    alarm(0);
    print_message("%llu records in %llu segments\n", (unsigned long long)reading.numbers,
                  (unsigned long long)reading.segments);
    scene_fini(&crew.scene);
    shared_free(crew.lives, lives_bytes());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_killed_after_any_instruction_leaves_a_whole_log),
        cmocka_unit_test(a_process_killed_while_it_begins_leaves_a_folder_to_begin_anew),
        cmocka_unit_test(workers_killed_at_random_lose_no_record_and_block_nobody),
    };
    return cmocka_run_group_tests_name("log_kill", tests, NULL, NULL);
}
