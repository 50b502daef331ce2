/* SPDX-License-Identifier: BSD-2-Clause */
/* A room's records carry its number, and only the first of them its name. Numbers rise, so a new room mostly belongs at the end. */
#include "cli/journal.h"

#include "cli/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t room_index(const struct journal_rooms *rooms, uint32_t number);
static struct journal_room *room_insert(struct journal_rooms *rooms, size_t index, uint32_t number);

struct journal_room *journal_rooms_take(struct journal_rooms *rooms, struct span body)
{
    struct record_head head;
    struct span parts, name;
    uint32_t epoch;

    if (!record_read_head(body, &head, &parts))
        return NULL;
    size_t index = room_index(rooms, head.room);
    struct journal_room *room = index < rooms->count && rooms->rooms[index].number == head.room
                                    ? &rooms->rooms[index]
                                    : room_insert(rooms, index, head.room);
    if (record_makes_room(body, &name, &epoch)) {
        memcpy(room->name, name.data, name.len);
        room->name[name.len] = '\0';
    }
    return room;
}

void journal_room_follow(struct journal_room *room, struct span body)
{
    struct part_settings settings_head;
    struct record_head head;
    struct settings settings;
    struct texts texts;
    struct span parts;
    struct part part;
    bool is_bad;

    if (!record_read_head(body, &head, &parts))
        return;
    while (record_read_part(&parts, &part, &is_bad))
        if (part.kind == PART_SETTINGS &&
            journal_settings_read(part.data, &settings_head, &settings, &texts)) {
            room->settings = settings;
            room->texts = texts;
        }
}

void journal_rooms_free(struct journal_rooms *rooms)
{
    free(rooms->rooms);
    *rooms = (struct journal_rooms){0};
}

/* Where it is, or belongs. */
static size_t room_index(const struct journal_rooms *rooms, uint32_t number)
{
    size_t low = 0, high = rooms->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rooms->rooms[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct journal_room *room_insert(struct journal_rooms *rooms, size_t index, uint32_t number)
{
    if (rooms->count == rooms->capacity) {
        rooms->capacity = rooms->capacity * 2 + 16;
        rooms->rooms =
            say_no_memory_if_null(reallocarray(rooms->rooms, rooms->capacity, sizeof(rooms->rooms[0])));
    }
    struct journal_room *room = &rooms->rooms[index];
    memmove(room + 1, room, (rooms->count - index) * sizeof(*room));
    *room = (struct journal_room){.number = number, .settings = settings_default()};
    snprintf(room->name, sizeof(room->name), "#%" PRIu32, number);
    rooms->count++;
    return room;
}
