/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record as JSON: everything that is in it, but of holders no more than in words. Parts keep their order, which is the order
 * in which they are applied.
 */
#include "cli/journal.h"

#include "base/little.h"
#include "cli/say.h"
#include "room/line.h"

#include <string.h>

#define HOLDER_BYTES 4

static void room_json(json_t *object, struct span body);
static bool part_json(json_t *object, const struct part *part);

static void member(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, say_no_memory_if_null(value)) != 0)
        say_no_memory_if_null(NULL);
}

static void item(json_t *array, json_t *value)
{
    if (json_array_append_new(array, say_no_memory_if_null(value)) != 0)
        say_no_memory_if_null(NULL);
}

static void number(json_t *object, const char *name, uint64_t value)
{
    member(object, name, journal_count_json(value));
}

void journal_json(json_t *object, const struct frame_record *record)
{
    bool has_number = record->body.len == 8;

    if (record->type == RECORD_ROOM)
        room_json(object, record->body);
    else if (record->type == RECORD_ZONE && has_number)
        number(object, "next_epoch", little_get32(record->body.data));
    else if (has_number)
        number(object, "position", little_get64(record->body.data));
}

static void room_json(json_t *object, struct span body)
{
    json_t *list = say_no_memory_if_null(json_array());
    struct record_head head;
    struct span parts;
    struct part part;
    bool is_bad = !record_read_head(body, &head, &parts);

    if (!is_bad) {
        number(object, "number", head.room);
        number(object, "change", head.change);
    }
    while (!is_bad && record_read_part(&parts, &part, &is_bad)) {
        json_t *one = say_no_memory_if_null(json_object());
        member(one, "part", json_string(journal_part(part.kind)));
        if (!part_json(one, &part))
            member(one, "unreadable", json_true());
        item(list, one);
    }
    member(object, "parts", list);
    if (is_bad)
        member(object, "unreadable", json_true());
}

/* ---- parts ---- */

static bool face_json(json_t *object, struct span data)
{
    struct part_face face;

    if (data.len != sizeof(face))
        return false;
    memcpy(&face, data.data, sizeof(face));
    number(object, "clock_ms", face.clock_ms);
    number(object, "credit", face.credit);
    number(object, "wait_ms", face.wait_ms);
    number(object, "issued", face.issued);
    number(object, "calls", face.calls);
    number(object, "refunds", face.refunds);
    number(object, "advance", face.advance);
    number(object, "last", face.last);
    number(object, "last_called", face.last_called);
    return true;
}

static json_t *ticket_json(uint32_t place, const struct ticket *ticket)
{
    json_t *object = say_no_memory_if_null(json_object());
    char holder[2 * HOLDER_BYTES + 1];

    for (int i = 0; i < HOLDER_BYTES; i++)
        snprintf(holder + 2 * i, 3, "%02x", ticket->holder.id[i]);
    number(object, "place", place);
    member(object, "state", json_string(ticket_life(ticket->state)->name));
    member(object, "holder", json_string(holder));
    number(object, "issued_at", ticket->issued_sec);
    member(object, "told", json_boolean((ticket->flags & TICKET_TOLD) != 0));
    member(object, "leaving", json_boolean((ticket->flags & TICKET_LEAVING) != 0));
    member(object, "spent", json_boolean(ticket->is_spent));
    member(object, "trusted", json_boolean((ticket->flags & TICKET_TRUSTED) != 0));
    return object;
}

static bool tickets_json(json_t *object, struct span data)
{
    json_t *list = say_no_memory_if_null(json_array());
    struct part_tickets head = {0, 0};
    struct ticket ticket;

    member(object, "tickets", list);
    if (data.len < sizeof(head))
        return false;
    memcpy(&head, data.data, sizeof(head));
    if (data.len != sizeof(head) + (uint64_t)head.number * sizeof(ticket))
        return false;
    for (uint32_t i = 0; i < head.number; i++) {
        memcpy(&ticket, data.data + sizeof(head) + i * sizeof(ticket), sizeof(ticket));
        if (ticket.state >= TICKET_STATES)
            return false;
        item(list, ticket_json(head.first + i, &ticket));
    }
    return true;
}

static bool place_json(json_t *object, struct span data)
{
    if (data.len != 8)
        return false;
    number(object, "place", little_get32(data.data));
    return true;
}

static bool away_json(json_t *object, struct span data)
{
    json_t *list = say_no_memory_if_null(json_array());
    struct part_away away;

    member(object, "places", list);
    if (data.len != sizeof(away))
        return false;
    memcpy(&away, data.data, sizeof(away));
    for (uint32_t i = 0; i < LINE_PAGE_COUNT; i++)
        if ((away.who[i / 64] >> i % 64 & 1) != 0)
            item(list, journal_count_json(away.first - away.first % LINE_PAGE_COUNT + i));
    return true;
}

static bool key_json(json_t *object, struct span data)
{
    return data.len == 32 &&
           place_json(object, (struct span){data.data + sizeof(struct holder), 2 * sizeof(uint32_t)});
}

static bool made_json(json_t *object, struct span data)
{
    if (data.len < 8)
        return false;
    number(object, "epoch", little_get32(data.data));
    return true;
}

/* As the operator's API writes them. */
static json_t *setting_json(const struct setting_info *info, uint32_t value)
{
    char word[NUMBER_TEXT_MAX];

    setting_format(info, value, word, sizeof(word));
    if (setting_is_word(info))
        return json_string(word);
    if (info->kind == SETTING_FLAG)
        return json_boolean(value != 0);
    return info->kind == SETTING_MILLI && value % 1000 != 0
               ? json_real(value / 1000.0)
               : json_integer(info->kind == SETTING_MILLI ? value / 1000 : value);
}

static bool settings_json(json_t *object, struct span data)
{
    json_t *list = say_no_memory_if_null(json_object());
    struct part_settings head;
    struct settings settings;
    struct texts texts;

    member(object, "settings", list);
    if (!journal_settings_read(data, &head, &settings, &texts))
        return false;
    number(object, "version", head.version);
    member(object, "from_api", json_boolean(head.is_from_api != 0));
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting_info *info = &setting_list[i];
        member(list, info->name,
               setting_is_text(info) ? json_string(setting_text(&texts, info).data)
                                     : setting_json(info, setting_value(&settings, info)));
    }
    return true;
}

static bool terms_json(json_t *object, struct span data)
{
    json_t *list = say_no_memory_if_null(json_array());

    member(object, "terms", list);
    for (; data.len >= 8; data.data += 8, data.len -= 8) {
        json_t *one = say_no_memory_if_null(json_object());
        number(one, "session_max_sec", little_get32(data.data));
        number(one, "tier", little_get32(data.data + 4));
        item(list, one);
    }
    return data.len == 0;
}

#define EPOCH_BYTES 12

static bool epochs_json(json_t *object, struct span data)
{
    json_t *list = say_no_memory_if_null(json_array());

    member(object, "epochs", list);
    for (; data.len >= EPOCH_BYTES; data.data += EPOCH_BYTES, data.len -= EPOCH_BYTES) {
        json_t *one = say_no_memory_if_null(json_object());
        number(one, "epoch", little_get32(data.data));
        number(one, "base", little_get32(data.data + 4));
        number(one, "lost_from", little_get32(data.data + 8));
        item(list, one);
    }
    return data.len == 0;
}

static bool people_json(json_t *object, struct span data)
{
    if (data.len != 8)
        return false;
    number(object, "number", little_get32(data.data));
    return true;
}

static bool (*const readers[])(json_t *object, struct span data) = {
    [PART_FACE] = face_json,     [PART_TICKETS] = tickets_json,   [PART_GONE] = place_json,
    [PART_AWAY] = away_json,     [PART_KEY] = key_json,           [PART_MADE] = made_json,
    [PART_TERMS] = terms_json,   [PART_SETTINGS] = settings_json, [PART_EPOCHS] = epochs_json,
    [PART_PEOPLE] = people_json,
};

/* A part that says all by its kind has no reader. */
static bool part_json(json_t *object, const struct part *part)
{
    bool has_reader = part->kind < sizeof(readers) / sizeof(readers[0]) && readers[part->kind] != NULL;

    return !has_reader || readers[part->kind](object, part->data);
}
