/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state that a journal stands for, in a zone that nobody else sees. How large that must be is known only when it is there;
 * so it is given far more addresses than it can need, which cost nothing until they are used.
 */
#include "cli/journal.h"

#include "cli/progress.h"
#include "cli/say.h"

#include <stdlib.h>
#include <sys/mman.h>

/* A room is made by a record of more bytes than this. Beyond the most that weir_zone takes there is none to be expected. */
#define ROOM_RECORD_LEAST 256
#define ROOMS_MOST        (1u << 17)

/* One ticket of a snapshot may need a page and a node for itself: 8 KiB for its 48 bytes. */
#define ZONE_PER_BYTE 256
#define ZONE_SPARE    (64u << 20)
#define ZONE_MOST     (UINT64_C(1) << 43)

static void replay_once(struct journal *journal, struct journal_state *state);
static size_t zone_reserve(uint64_t journal_bytes, uint32_t *rooms_max, void **memory);
static void state_look(struct local_zone *zone, struct journal_state *state);

void journal_replay(struct journal *journal, struct journal_state *state)
{
    int tries = 0;

    do
        replay_once(journal, state);
    while (state->recovery.result != SCAN_GOOD && ++tries < JOURNAL_TRIES && journal_has_moved(journal));
}

static void replay_once(struct journal *journal, struct journal_state *state)
{
    struct local_zone_options options = {.settings = settings_default()};
    struct progress progress;
    void *memory;
    size_t bytes = zone_reserve(journal->bytes, &options.rooms_max, &memory);

    *state = (struct journal_state){.recovery = {.result = SCAN_STOPPED, .is_full = true}};
    if (bytes == 0)
        return;
    struct local_zone *zone = local_zone_init(memory, bytes, &options);
    progress_init(&progress, true);
    if (local_zone_replay(zone, &journal->folder.disk, progress_tell, &progress, &state->recovery))
        state_look(zone, state);
    progress_end(&progress);
    munmap(memory, bytes);
}

static uint64_t at_most(uint64_t number, uint64_t most)
{
    return number < most ? number : most;
}

/* Where addresses are limited too (ulimit -v, overcommit off) it is content with fewer. 0: there are not even those. */
static size_t zone_reserve(uint64_t journal_bytes, uint32_t *rooms_max, void **memory)
{
    uint64_t rooms = at_most(journal_bytes / ROOM_RECORD_LEAST + 1, ROOMS_MOST);
    uint64_t pages = (at_most(journal_bytes, ZONE_MOST / ZONE_PER_BYTE) * ZONE_PER_BYTE + ZONE_SPARE) / 4096;

    for (; pages > 0; pages /= 2, rooms = (rooms + 1) / 2) {
        size_t bytes = local_zone_least_bytes((uint32_t)rooms) + (size_t)pages * 4096;
        *memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        *rooms_max = (uint32_t)rooms;
        if (*memory != MAP_FAILED)
            return bytes;
    }
    return 0;
}

static void answered(struct engine_call *call)
{
    (void)call;
}

static void room_count(struct engine *engine, const struct room_id *id, struct journal_state *state)
{
    struct engine_call call = {.op = ENGINE_FIGURES, .room = {id->name, id->len}, .done = answered};

    engine_submit(engine, &call);
    for (int i = 0; call.error == ERROR_NONE && i < TICKET_STATES; i++)
        state->people[i] += call.figures.in_state[i];
}

static void state_look(struct local_zone *zone, struct journal_state *state)
{
    struct engine *engine = say_no_memory_if_null(local_engine_new(zone));
    size_t rooms = (size_t)state->recovery.rooms;
    struct engine_call call = {.op = ENGINE_ROOMS, .done = answered};

    call.list.ids = say_no_memory_if_null(calloc(rooms + 1, sizeof(call.list.ids[0])));
    call.list.size = (uint32_t)rooms;
    engine_submit(engine, &call);
    for (uint32_t i = 0; i < call.list.count && i < rooms; i++)
        room_count(engine, &call.list.ids[i], state);
    free(call.list.ids);
    local_engine_free(engine);
    state->hash = local_zone_hash(zone);
}
