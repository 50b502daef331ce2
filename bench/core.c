/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The room by itself, without nginx: what a rank, a first, a join and a status cost at a thousand, a million and ten million
 * waiting, what a waiting ticket costs in memory, all in, and how long a tick holds the room at the worst of moments.
 */

#include "base/must.h"
#include "engine/local.h"
#include "measure.h"
#include "room/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ROUNDS      7
#define PROBES      200000
#define BYTES_BAR   48
#define ZONE_BYTES  ((size_t)600 << 20)
#define ROOM_COUNTS 3

/* A room of its own zone, with a line of `waiting` people whom nobody will call. */
struct bench {
    void *zone;
    struct room *room;
    page_ref next_page;
    uint32_t waiting;
};

static void give_pages(struct bench *bench)
{
    struct memory *memory = room_memory(bench->room);

    while (memory->spare_count < ROOM_SPARE_PAGES) {
        must((size_t)bench->next_page * PAGE_BYTES < ZONE_BYTES);
        memory_give(memory, bench->next_page++, memory);
        memory_commit(memory);
    }
}

static void join_one(struct bench *bench)
{
    struct join join = {.key_id = 1, .wall_sec = 1};
    uint64_t random[2] = {random_next(), random_next()};
    struct standing standing;
    uint32_t retry_after_sec;

    memcpy(join.holder.id, random, sizeof(join.holder.id));
    give_pages(bench);
    must(room_join(bench->room, &join, &standing, &retry_after_sec) == ERROR_NONE);
}

/* People nobody calls. */
static struct settings held(void)
{
    struct settings settings = settings_default();

    settings.mode = MODE_HOLD;
    return settings;
}

static void bench_init(struct bench *bench, uint32_t waiting, struct settings settings)
{
    bench->zone = mmap(NULL, ZONE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(bench->zone != MAP_FAILED);
    bench->room = room_init((char *)bench->zone + PAGE_BYTES, bench->zone, SPAN("bench"), 1, &settings, NULL);
    bench->next_page = 1 + ROOM_BYTES / PAGE_BYTES;
    bench->waiting = waiting;
    for (uint32_t i = 0; i < waiting; i++)
        join_one(bench);
}

static void bench_fini(struct bench *bench)
{
    munmap(bench->zone, ZONE_BYTES);
}

/* ---- what is measured: each does `probes` operations ---- */

static uint64_t sink;

static void probe_rank(struct bench *bench, uint32_t probes)
{
    for (uint32_t i = 0; i < probes; i++)
        sink += line_rank(&bench->room->line, &bench->room->memory,
                          (uint32_t)(random_next() % bench->waiting) + 1);
}

static void probe_next(struct bench *bench, uint32_t probes)
{
    for (uint32_t i = 0; i < probes; i++)
        sink += line_first(&bench->room->line, &bench->room->memory);
}

static void probe_status(struct bench *bench, uint32_t probes)
{
    struct standing standing;

    for (uint32_t i = 0; i < probes; i++) {
        uint32_t count = (uint32_t)(random_next() % bench->waiting) + 1;
        struct place place = {.epoch = 1,
                              .count = count,
                              .holder = line_find(&bench->room->line, &bench->room->memory, count)->holder};
        must(room_status(bench->room, &place, &standing) == ERROR_NONE);
        sink += standing.position;
    }
}

static void probe_join(struct bench *bench, uint32_t probes)
{
    for (uint32_t i = 0; i < probes; i++)
        join_one(bench);
}

static int compare(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return difference < 0 ? -1 : difference > 0;
}

static double median_ns(struct bench *bench, void (*probe)(struct bench *, uint32_t), uint32_t probes)
{
    double times[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        probe(bench, probes);
        times[round] = (now_ns() - start) / probes;
    }
    qsort(times, ROUNDS, sizeof(times[0]), compare);
    return times[ROUNDS / 2];
}

static void print_bytes(const struct bench *bench, const char *size)
{
    uint32_t pages = bench->next_page - 1 - room_memory(bench->room)->spare_count;
    double bytes = (double)pages * PAGE_BYTES / bench->room->line.last;

    printf("bytes per waiting ticket, %s waiting: %.1f bytes (bar at most %d)%s\n", size, bytes, BYTES_BAR,
           bytes > BYTES_BAR ? " below" : "");
}

/* ---- ticks ---- */

#define TICK_BAR_MS 10.0

struct ticks {
    double worst_ms, total_ms;
    int count;
};

static void tick(struct bench *bench, uint32_t elapsed_ms, struct ticks *ticks)
{
    double start = now_ns();
    room_tick(bench->room, elapsed_ms);
    double ms = (now_ns() - start) / 1e6;

    ticks->worst_ms = ms > ticks->worst_ms ? ms : ticks->worst_ms;
    ticks->total_ms += ms;
    ticks->count++;
}

static void poll_all_but(struct bench *bench, uint32_t silent_every)
{
    struct standing standing;

    for (uint32_t count = 1; count <= bench->waiting; count++) {
        const struct ticket *ticket = line_find(&bench->room->line, &bench->room->memory, count);
        if (ticket == NULL || ticket->state != TICKET_WAITING || count % silent_every == 0)
            continue;
        struct place place = {.epoch = 1, .count = count, .holder = ticket->holder};
        must(room_status(bench->room, &place, &standing) == ERROR_NONE);
    }
}

static void print_worst(const char *name, const struct ticks *ticks)
{
    printf("%s, worst tick: %.2f ms (bar at most %.0f)%s\n", name, ticks->worst_ms, TICK_BAR_MS,
           ticks->worst_ms > TICK_BAR_MS ? " below" : "");
}

/* One in ten is silent; the others poll. The room calls a thousand a second meanwhile, a hundred a tick. */
static void bench_ticks(void)
{
    struct settings settings = settings_default();
    struct ticks ticks = {0};
    struct bench bench;

    settings.rate_milli = 1000000;
    settings.max_active = 0;
    bench_init(&bench, 1000000, settings);
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 25; i++)
            tick(&bench, 1000, &ticks);
        poll_all_but(&bench, 10);
    }
    printf("tick, 1 M waiting, 10 %% absent: %.2f ms (no bar)\n", ticks.total_ms / ticks.count);
    print_worst("1 M waiting, 10 % absent", &ticks);
    bench_fini(&bench);
}

/* A million vanish in the same moment: first they are away, later their places are given up. */
static void bench_vanish(void)
{
    struct bench bench;
    struct ticks away = {0}, over = {0};

    bench_init(&bench, 1000000, held());
    while (bench.room->in_state[TICKET_WAITING] > 0)
        tick(&bench, 1000, &away);
    printf("noticing 1 M absences: %.0f ns each (no bar)\n", away.total_ms);
    print_worst("1 M vanish together", &away);
    while (bench.room->in_state[TICKET_AWAY] > 0)
        tick(&bench, 1000, &over);
    printf("giving up 1 M places: %.0f ns each (no bar)\n", over.total_ms);
    print_worst("1 M places given up together", &over);
    bench_fini(&bench);
}

int main(void)
{
    bench_ticks();
    bench_vanish();

    static const struct {
        const char *name;
        uint32_t waiting;
    } sizes[ROOM_COUNTS] = {{"1 k", 1000}, {"1 M", 1000000}, {"10 M", 10000000}};

    for (int i = 0; i < ROOM_COUNTS; i++) {
        struct bench bench;

        bench_init(&bench, sizes[i].waiting, held());
        /* A thousand tickets share the cost of the room itself; the bar is for lines. */
        if (sizes[i].waiting > 1000)
            print_bytes(&bench, sizes[i].name);
        printf("rank, %s waiting: %.0f ns (no bar)\n", sizes[i].name, median_ns(&bench, probe_rank, PROBES));
        printf("next, %s waiting: %.0f ns (no bar)\n", sizes[i].name, median_ns(&bench, probe_next, PROBES));
        printf("status in the room, %s waiting: %.0f ns (no bar)\n", sizes[i].name,
               median_ns(&bench, probe_status, PROBES));
        printf("join in the room, %s waiting: %.0f ns (no bar)\n", sizes[i].name,
               median_ns(&bench, probe_join, sizes[i].waiting / 100));
        fflush(stdout);
        bench_fini(&bench);
    }
    return sink == 0;
}
