/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The journal by itself, without nginx, in a folder of its own: how fast a room of ten million comes back from a journal that
 * holds each join as a record, and from a snapshot; what that takes of memory and disk; and how long a tick is that takes a
 * piece of a snapshot.
 *
 *   journal [PEOPLE]     a million at least: fewer do not fill a segment, and there would be no snapshot
 */

#include "base/must.h"
#include "engine/local.h"
#include "journal/folder.h"
#include "measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define JOURNAL_BAR  1e6
#define SNAPSHOT_BAR 3e6
#define TICK_BAR_MS  10
#define PEOPLE_LEAST 1000000
#define TURN         32 /* joins of one turn of an event loop */

static const struct log_options options = {SYNC_INTERVAL, 1000, 64 << 20, 16 << 20};

static double now_sec(void)
{
    return now_ns() / 1e9;
}

static double wall_sec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t wall_ms(void)
{
    return (uint64_t)time(NULL) * 1000;
}

struct zone {
    void *memory;
    size_t bytes;
    struct local_zone *zone;
};

static struct zone zone_new(uint32_t people)
{
    struct zone zone = {.bytes = local_zone_least_bytes(1) + (size_t)people * 56 + (16 << 20)};
    struct local_zone_options zone_options = {.rooms_max = 1, .settings = settings_default()};

    zone.bytes = zone.bytes / 4096 * 4096;
    zone.memory = mmap(NULL, zone.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(zone.memory != MAP_FAILED);
    zone.zone = local_zone_init(zone.memory, zone.bytes, &zone_options);
    return zone;
}

static void zone_free(struct zone *zone)
{
    munmap(zone->memory, zone->bytes);
}

static void recover(struct zone *zone, struct disk *disk, struct local_recovery *recovery)
{
    if (local_zone_recover(zone->zone, disk, &options, wall_ms(), recovery))
        return;
    fprintf(stderr, "%s\n", recovery->why);
    exit(1);
}

static void noticed(struct engine_call *call)
{
    must(call->error == ERROR_NONE);
}

/* Each person's record by itself, as if each had come in a turn of their own. */
static void fill(struct engine *engine, uint32_t people)
{
    static struct engine_call calls[TURN];

    for (uint32_t who = 0; who < people; who++) {
        struct engine_call *call = &calls[who % TURN];
        uint64_t mixed = (who + 1) * 0x9e3779b97f4a7c15ULL;
        *call = (struct engine_call){.op = ENGINE_JOIN, .room = SPAN("bench"), .done = noticed};
        call->join = (struct join){.key_id = 1, .wall_sec = 1};
        memcpy(call->join.holder.id, &mixed, sizeof(mixed));
        memcpy(call->join.holder.id + sizeof(mixed), &who, sizeof(who));
        engine_submit(engine, call);
        if (who % TURN == TURN - 1)
            local_engine_flush(engine);
        if (local_engine_wants_work(engine, 10000 + who / 10)) {
            local_engine_work(engine);
            local_engine_worked(engine);
        }
    }
    local_engine_flush(engine);
}

static void say(const char *name, double value, const char *unit, const char *bar, bool is_met)
{
    printf("%s: %.4g %s%s%s\n", name, value, unit, bar, is_met ? "" : " below");
    fflush(stdout);
}

static void bench_recovery(const char *what, struct disk *disk, uint32_t people, double bar)
{
    struct zone zone = zone_new(people);
    struct local_recovery recovery;
    char name[128], text[64];
    double began = now_sec(), wall = wall_sec();

    must(local_zone_replay(zone.zone, disk, NULL, NULL, &recovery));
    double cpu = now_sec() - began;
    wall = wall_sec() - wall;
    must(recovery.tickets == people);
    snprintf(name, sizeof(name), "recovery of %" PRIu32 " from %s", people, what);
    snprintf(text, sizeof(text), " (bar %.3g)", bar);
    say(name, people / cpu, "a second of CPU", text, people / cpu >= bar);
    snprintf(text, sizeof(text), " (read %.0f MB)",
             (double)(recovery.scan.journal_bytes + recovery.scan.snapshot_bytes) / 1e6);
    say("  by the clock", wall, "s", text, true);
    zone_free(&zone);
}

static double tick_ms(struct engine *engine, uint64_t now_ms)
{
    double began = now_sec();

    engine->tick(engine, now_ms);
    local_engine_flush(engine);
    return (now_sec() - began) * 1000;
}

/* Ticks until there is a snapshot; the longest of them. */
static void bench_snapshot(struct zone *zone, struct engine *engine)
{
    uint64_t now_ms = UINT32_MAX, before = local_zone_journal(zone->zone).snapshot;
    double longest = 0;
    uint32_t ticks = 0;

    for (; local_zone_journal(zone->zone).snapshot == before; now_ms += ROOM_TICK_MS, ticks++) {
        double took = tick_ms(engine, now_ms);
        if (took > longest)
            longest = took;
        if (local_engine_wants_work(engine, now_ms)) {
            local_engine_work(engine);
            local_engine_worked(engine);
        }
    }
    say("longest tick while a snapshot is taken", longest, "ms", " (bar 10)", longest < TICK_BAR_MS);
    say("ticks of 100 ms that the snapshot took", ticks, "", "", true);
}

static void remove_file(void *context, const char *name)
{
    struct disk *disk = context;

    must(disk->remove(disk, name) == 0);
}

static void remove_folder(struct folder *folder, const char *path)
{
    must(folder->disk.list(&folder->disk, remove_file, &folder->disk) >= 0);
    folder_close(folder);
    must(rmdir(path) == 0);
}

int main(int argc, char **argv)
{
    uint32_t asked = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000000;
    uint32_t people = asked < PEOPLE_LEAST ? PEOPLE_LEAST : asked;
    char path[] = "/tmp/weir-bench-XXXXXX";
    struct settings settings = settings_default();
    struct local_recovery recovery;
    struct folder folder;
    struct rusage usage;

    must(mkdtemp(path) != NULL && folder_open(&folder, path) == 0);
    settings.mode = MODE_HOLD;
    settings.seen_ttl_sec = 86400;
    struct zone zone = zone_new(people);
    recover(&zone, &folder.disk, &recovery);
    must(local_zone_put_room(zone.zone, SPAN("bench"), &settings, NULL) == ERROR_NONE);
    struct engine *engine = local_engine_new(zone.zone);
    local_engine_use_disk(engine, &folder.disk, wall_ms);

    double began = now_sec();
    fill(engine, people);
    say("joins with their records, 32 a turn", people / (now_sec() - began), "a second of CPU", "", true);
    bench_recovery("the journal", &folder.disk, people, JOURNAL_BAR);
    bench_snapshot(&zone, engine);
    bench_recovery("a snapshot", &folder.disk, people, SNAPSHOT_BAR);
    getrusage(RUSAGE_SELF, &usage);
    say("memory of a process with both zones", (double)usage.ru_maxrss / 1024, "MB", "", true);

    local_engine_free(engine);
    zone_free(&zone);
    remove_folder(&folder, path);
    return 0;
}
