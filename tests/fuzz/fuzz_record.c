/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records that anybody may have written. A room takes what it is told, or refuses it; what it took it can hash, write into a
 * snapshot and be made from it again, and it goes on: nothing that a record says may break an invariant later.
 *
 * An input is a row of records: a byte of flags, two bytes of length, so many bytes. Unless the flags say that they are a whole
 * body, they are parts, and the head before them is made here: no fuzzer should have to count changes.
 */
#include "base/must.h"
#include "room/state.h"

#include <stdlib.h>

#define ROOM_PAGE  1
#define FIRST_PAGE (ROOM_PAGE + ROOM_BYTES / PAGE_BYTES)
#define PAGES      768
#define NUMBER     7

enum flag { IS_SNAPSHOT = 1, IS_WHOLE = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct room *room_new(unsigned char *zone);
static bool apply_all(struct room *room, struct span input);
static bool apply_one(struct room *room, uint8_t flags, struct span bytes);
static void walk(struct span body);
static void check(const struct room *room);
static bool is_one_ticket_each(const struct room *room);
static void come_back_from_snapshot(const struct room *room);
static void go_on(struct room *room, struct span input);
static void take(struct room *room);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char zone[(FIRST_PAGE + PAGES) * PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
    struct room *room = room_new(zone);
    struct span input = {(const char *)data, size};

    /* A room that refused a record is given up. */
    if (!apply_all(room, input))
        return 0;
    check(room);
    come_back_from_snapshot(room);
    room_resume(room);
    room_record_on(room);
    check(room);
    go_on(room, input);
    check(room);
    return 0;
}

static struct room *room_new(unsigned char *zone)
{
    struct settings settings = settings_default();

    memset(zone + ROOM_PAGE * PAGE_BYTES, 0, ROOM_BYTES);
    struct room *room = room_init(zone + ROOM_PAGE * PAGE_BYTES, zone, SPAN("sale"), NUMBER, &settings, NULL);
    struct memory *memory = room_memory(room);
    for (page_ref page = FIRST_PAGE; page < FIRST_PAGE + PAGES; page++) {
        memory_give(memory, page, memory);
        memory_commit(memory);
    }
    return room;
}

static bool apply_all(struct room *room, struct span input)
{
    while (input.len >= 3) {
        uint8_t flags = (uint8_t)input.data[0];
        size_t len = (uint8_t)input.data[1] | (size_t)(uint8_t)input.data[2] << 8;
        if (len > input.len - 3)
            len = input.len - 3;
        if (!apply_one(room, flags, (struct span){input.data + 3, len}))
            return false;
        input.data += 3 + len;
        input.len -= 3 + len;
    }
    return true;
}

/* In memory of its own size, so that a sanitizer sees a read past its end. */
static bool apply_one(struct room *room, uint8_t flags, struct span bytes)
{
    struct record_head head = {NUMBER, 0, room->change + 1};
    size_t head_len = (flags & IS_WHOLE) != 0 ? 0 : sizeof(head);
    char *body = malloc(head_len + bytes.len + 1);
    bool is_full;

    must(body != NULL);
    memcpy(body, &head, head_len);
    if (bytes.len > 0)
        memcpy(body + head_len, bytes.data, bytes.len);
    struct span record = {body, head_len + bytes.len};
    walk(record);
    bool is_taken = room_apply(room, record, (flags & IS_SNAPSHOT) != 0, &is_full);
    free(body);
    return is_taken;
}

static void walk(struct span body)
{
    struct record_head head;
    struct span parts, name;
    struct part part;
    uint32_t epoch;
    bool is_bad;

    if (record_makes_room(body, &name, &epoch))
        must(room_id_is_valid(name) && epoch > 0);
    record_ends_room(body);
    if (!record_read_head(body, &head, &parts))
        return;
    while (record_read_part(&parts, &part, &is_bad))
        must(part.data.data >= body.data && part.data.data + part.data.len <= body.data + body.len);
}

/* Two tickets of one holder and turns nobody had are untrue, not harmful, and room_check would not have them. */
static void check(const struct room *room)
{
    line_check(&room->line, &room->memory);
    keys_check(&room->keys, room_holders(room).memory);
    if (is_one_ticket_each(room) && room->calls >= room->refunds)
        must(room_check(room) == PAGES);
}

static bool is_one_ticket_each(const struct room *room)
{
    struct map_owner owner = room_holders(room);
    uint32_t first = line_page_from(&room->line, &room->memory, 1), tickets;

    for (; first != LINE_NONE; first = line_page_after(&room->line, &room->memory, first)) {
        const struct ticket *ticket = line_page(&room->line, &room->memory, first, &tickets);
        for (uint32_t i = 0; i < tickets; i++)
            if (ticket_life(ticket[i].state)->is_alive &&
                map_find(&room->by_holder, &owner, &ticket[i].holder) != first + i)
                return false;
    }
    return true;
}

static void come_back_from_snapshot(const struct room *room)
{
    static unsigned char zone[(FIRST_PAGE + PAGES) * PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
    static unsigned char piece[ROOM_PIECE_BYTES];
    struct room *copy = room_new(zone);
    struct room_cursor cursor = {0};
    bool is_full;

    while (!cursor.is_done) {
        struct span body = {(const char *)piece, room_snapshot(room, &cursor, piece)};
        if (!room_apply(copy, body, true, &is_full)) {
            must(is_full);
            return;
        }
    }
    must(room_hash(copy, 1) == room_hash(room, 1));
}

/* With people who name places that the input names. */
static void go_on(struct room *room, struct span input)
{
    struct standing standing;
    uint32_t words[2] = {0, 0}, number;

    for (size_t at = 0; at < input.len && at < 400; at += 40) {
        memcpy(words, input.data + at, input.len - at < 8 ? input.len - at : 8);
        struct place place = {
            .epoch = words[0] % 16, .count = words[1], .issue = {true, true, 1, 1}, .grant = {true, 1, 1}};
        struct join join = {.holder = {{(uint8_t)words[0]}}, .wall_sec = 1};
        place.holder = join.holder;
        room_join(room, &join, &standing, &number);
        take(room);
        room_status(room, &place, &standing);
        take(room);
        place.epoch = room_epoch(room);
        room_leave(room, &place);
        take(room);
        room_tick(room, words[0] % 2000);
        take(room);
    }
    if (room_epoch(room) < UINT32_MAX)
        room_begin_epoch(room, UINT32_MAX);
    take(room);
    room_tick(room, 1000);
    take(room);
    if (words[1] % 2 == 0)
        room_clear(room, &number);
    take(room);
}

/* A few outboxes of what is left to do: a room of the fuzzer's may have any number of people called at once. */
static void take(struct room *room)
{
    must(room_outbox(room).len <= OUTBOX_BYTES);
    room_outbox_taken(room);
    for (int i = 0; i < 4 && room_has_more(room); i++) {
        room_tick(room, 0);
        room_outbox_taken(room);
    }
}
