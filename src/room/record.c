/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An operation notes which ticket it changes and what else; when it is committed the ticket is written as it then is. So
 * nobody has to remember to record a field, and an operation that is rolled back has recorded nothing: the bytes lie behind
 * the end of the outbox, and the end moves by the same undo log as everything else.
 *
 * What several operations changed before the outbox was taken becomes one record: each commit puts its parts where the face of
 * the last one was, and its own face behind them.
 */

#include "room/record.h"

#include "base/must.h"
#include "room/state.h"

#define FACE_BYTES PART_BYTES(sizeof(struct part_face))

/* What an operation on one ticket may write: the ticket, and a key. */
#define TICKET_CHANGE_MAX 512

/* New settings, or a clear with all epochs. */
#define LARGEST_CHANGE (PART_BYTES(sizeof(struct part_settings) + SETTINGS_TEXT_MAX) + TICKET_CHANGE_MAX)

_Static_assert(sizeof(struct record_head) + PART_BYTES(sizeof(uint32_t[2]) + ROOM_ID_MAX) +
                       PART_BYTES(sizeof(struct part_settings) + SETTINGS_TEXT_MAX) + FACE_BYTES +
                       LARGEST_CHANGE <=
                   OUTBOX_BYTES,
               "a room that was just made takes settings");
_Static_assert(sizeof(struct record_head) == 16 && sizeof(struct part_head) == 8, "as docs/formats says");
_Static_assert(sizeof(struct part_face) == 56 && sizeof(struct part_away) == 24, "as docs/formats says");
_Static_assert(sizeof(struct epoch) == 12 && sizeof(struct key) == 32, "as docs/formats says");

/* ---- bytes ---- */

size_t record_write_part(unsigned char *out, enum part_kind kind, struct span a, struct span b)
{
    struct part_head head = {(uint16_t)kind, 0, (uint32_t)(a.len + b.len)};
    size_t bytes = PART_BYTES(a.len + b.len);

    memset(out + bytes - 8, 0, 8); /* the padding */
    memcpy(out, &head, sizeof(head));
    if (a.len > 0)
        memcpy(out + sizeof(head), a.data, a.len);
    if (b.len > 0)
        memcpy(out + sizeof(head) + a.len, b.data, b.len);
    return bytes;
}

bool record_read_head(struct span body, struct record_head *head, struct span *parts)
{
    if (body.len < sizeof(*head) || body.len % 8 != 0)
        return false;
    memcpy(head, body.data, sizeof(*head));
    *parts = (struct span){body.data + sizeof(*head), body.len - sizeof(*head)};
    return true;
}

bool record_read_part(struct span *parts, struct part *part, bool *is_bad)
{
    struct part_head head;

    *is_bad = parts->len % 8 != 0;
    if (parts->len == 0 || *is_bad)
        return false;
    memcpy(&head, parts->data, sizeof(head)); /* at least 8 bytes are left */
    *is_bad = head.length > parts->len - sizeof(head) || head.kind < PART_FACE || head.kind > PART_PEOPLE;
    if (*is_bad)
        return false;
    part->kind = head.kind;
    part->data = (struct span){parts->data + sizeof(head), head.length};
    parts->data += PART_BYTES(head.length);
    parts->len -= PART_BYTES(head.length);
    return true;
}

static bool first_part(struct span body, struct part *part)
{
    struct record_head head;
    struct span parts;
    bool is_bad;

    return record_read_head(body, &head, &parts) && record_read_part(&parts, part, &is_bad);
}

bool record_makes_room(struct span body, struct span *name, uint32_t *epoch)
{
    struct part part;
    uint32_t words[2];

    if (!first_part(body, &part) || part.kind != PART_MADE || part.data.len < sizeof(words))
        return false;
    memcpy(words, part.data.data, sizeof(words));
    *epoch = words[0];
    *name = (struct span){part.data.data + sizeof(words), part.data.len - sizeof(words)};
    return *epoch > 0 && words[1] == name->len && room_id_is_valid(*name);
}

bool record_ends_room(struct span body)
{
    struct record_head head;
    struct span parts;
    struct part part;
    bool is_bad;

    if (!record_read_head(body, &head, &parts))
        return false;
    while (record_read_part(&parts, &part, &is_bad))
        if (part.kind == PART_OVER)
            return true;
    return false;
}

/* Sixteen bytes may say that a lost place is gone, which brings back its page and two nodes. */
uint32_t record_pages(struct span body)
{
    size_t pages = ROOM_SPARE_PAGES + 3 * (body.len / 16);

    return pages < ROOM_APPLY_PAGES ? (uint32_t)pages : ROOM_APPLY_PAGES;
}

/* ---- the outbox ---- */

/* Where the next part of this operation goes. */
static unsigned char *outbox_at(struct room *room, size_t bytes)
{
    struct outbox *outbox = &room->outbox;

    if (outbox->at == 0 && outbox->used == 0)
        outbox->at = sizeof(struct record_head);
    if (outbox->at == 0) {
        outbox->at = outbox->used - FACE_BYTES;
        memory_keep(&room->memory, outbox->bytes + outbox->at, FACE_BYTES);
    }
    must(outbox->at + bytes <= OUTBOX_BYTES);
    unsigned char *at = outbox->bytes + outbox->at;
    outbox->at += (uint32_t)bytes;
    return at;
}

void record_part(struct room *room, enum part_kind kind, struct span a, struct span b)
{
    if (room->is_recorded)
        record_write_part(outbox_at(room, PART_BYTES(a.len + b.len)), kind, a, b);
}

void record_ticket(struct room *room, uint32_t count)
{
    if (!room->is_recorded)
        return;
    must(room->outbox.touched == 0 || room->outbox.touched == count);
    room->outbox.touched = count;
}

void record_face(struct room *room)
{
    room->outbox.has_face = room->is_recorded;
}

void record_settings(struct room *room)
{
    struct part_settings head = {room->settings_version, room->is_settings_from_api, room->terms_now, 0};
    char text[SETTINGS_TEXT_MAX];

    record_part(room, PART_SETTINGS, (struct span){(const char *)&head, sizeof(head)},
                (struct span){text, settings_to_text(&room->settings, &room->texts, text)});
}

void record_epochs(struct room *room)
{
    record_part(room, PART_EPOCHS,
                (struct span){(const char *)room->epoch, room->epochs * sizeof(room->epoch[0])}, SPAN(""));
}

bool record_is_full(struct room *room)
{
    if (!room->is_recorded || room->outbox.used + TICKET_CHANGE_MAX <= OUTBOX_STOP)
        return false;
    room->outbox.is_cut = true;
    return true;
}

void record_gone(struct room *room, uint32_t count)
{
    uint32_t words[2] = {count, 0};

    record_part(room, PART_GONE, (struct span){(const char *)words, sizeof(words)}, SPAN(""));
}

static void write_touched(struct room *room)
{
    uint32_t count = room->outbox.touched;
    const struct ticket *ticket = line_find(&room->line, &room->memory, count);
    struct part_tickets head = {count, 1};

    if (ticket == NULL || !ticket_life(ticket->state)->is_alive)
        record_gone(room, count);
    else
        record_part(room, PART_TICKETS, (struct span){(const char *)&head, sizeof(head)},
                    (struct span){(const char *)ticket, sizeof(*ticket)});
}

static struct part_face face_of(const struct room *room)
{
    return (struct part_face){
        .clock_ms = room->clock_ms,
        .credit = room->pace.credit,
        .issued = room->issued,
        .calls = room->calls,
        .refunds = room->refunds,
        .wait_ms = room->pace.wait_ms,
        .advance = room->advance,
        .last = room->line.last,
        .last_called = room->last_called,
    };
}

static void record_finish(struct room *room)
{
    struct outbox *outbox = &room->outbox;

    if (outbox->touched != 0)
        write_touched(room);
    if (outbox->at == 0 && !outbox->has_face)
        return;
    struct part_face face = face_of(room);
    record_part(room, PART_FACE, (struct span){(const char *)&face, sizeof(face)}, SPAN(""));
    if (outbox->used == 0)
        memory_set(&room->memory, room->change, room->change + 1);
    struct record_head head = {room->number, 0, room->change};
    memcpy(outbox->bytes, &head, sizeof(head));
    memory_set(&room->memory, room->recorded_ms, room->clock_ms);
    memory_set(&room->memory, outbox->used, outbox->at);
}

/* What is noted for the operation under way means nothing any more. */
static void outbox_forget(struct room *room)
{
    room->outbox.at = 0;
    room->outbox.touched = 0;
    room->outbox.has_face = false;
}

void room_commit(struct room *room)
{
    if (room->is_recorded)
        record_finish(room);
    memory_commit(&room->memory);
    outbox_forget(room);
}

void room_rollback(struct room *room)
{
    memory_rollback(&room->memory);
    outbox_forget(room);
}

/* ---- for the room's owner ---- */

static void record_made(struct room *room)
{
    uint32_t words[2] = {room->number, room->name_len};

    record_part(room, PART_MADE, (struct span){(const char *)words, sizeof(words)}, room_name(room));
}

void room_record(struct room *room)
{
    room->is_recorded = true;
    record_made(room);
    record_settings(room);
    room_commit(room);
}

void room_record_on(struct room *room)
{
    room->is_recorded = true;
    room->recorded_ms = room->clock_ms;
}

struct span room_outbox(const struct room *room)
{
    return (struct span){(const char *)room->outbox.bytes, room->outbox.used};
}

void room_outbox_taken(struct room *room)
{
    room->outbox.used = 0;
}

bool room_outbox_is_full(const struct room *room)
{
    return room->outbox.used + LARGEST_CHANGE > OUTBOX_BYTES;
}

bool room_has_more(const struct room *room)
{
    return room->outbox.is_cut;
}

void room_end(struct room *room)
{
    record_part(room, PART_OVER, SPAN(""), SPAN(""));
    memory_set(&room->memory, room->is_over, true);
    room_commit(room);
}

bool room_is_over(const struct room *room)
{
    return room->is_over;
}

uint32_t room_number(const struct room *room)
{
    return room->number;
}

/* ---- snapshot ---- */

struct piece {
    unsigned char *out;
    size_t used;
};

#define PAGE_PIECE_MAX (LINE_PAGE_COUNT * PART_BYTES(sizeof(struct part_tickets) + sizeof(struct ticket)))

/* However few tickets there are on each: whoever reads the piece needs as many pages, and nodes above them. */
#define PIECE_PAGES 32

static void piece_add(struct piece *piece, enum part_kind kind, struct span a, struct span b)
{
    must(piece->used + PART_BYTES(a.len + b.len) <= ROOM_PIECE_BYTES);
    piece->used += record_write_part(piece->out + piece->used, kind, a, b);
}

static void piece_add_room(struct piece *piece, const struct room *room)
{
    uint32_t made[2] = {room->number, room->name_len}, terms[ROOM_TERMS][2];
    struct part_settings settings = {room->settings_version, room->is_settings_from_api, room->terms_now, 0};
    struct part_face face = face_of(room);
    uint32_t people[2] = {room->by_holder.entries, 0};
    char text[SETTINGS_TEXT_MAX];

    for (int i = 0; i < ROOM_TERMS; i++) {
        terms[i][0] = room->terms[i].session_max_sec;
        terms[i][1] = room->terms[i].tier;
    }
    piece_add(piece, PART_MADE, (struct span){(const char *)made, sizeof(made)}, room_name(room));
    piece_add(piece, PART_EPOCHS,
              (struct span){(const char *)room->epoch, room->epochs * sizeof(room->epoch[0])}, SPAN(""));
    piece_add(piece, PART_SETTINGS, (struct span){(const char *)&settings, sizeof(settings)},
              (struct span){text, settings_to_text(&room->settings, &room->texts, text)});
    piece_add(piece, PART_PEOPLE, (struct span){(const char *)people, sizeof(people)}, SPAN(""));
    piece_add(piece, PART_TERMS, (struct span){(const char *)terms, sizeof(terms)}, SPAN(""));
    piece_add(piece, PART_FACE, (struct span){(const char *)&face, sizeof(face)}, SPAN(""));
}

/* Runs of living tickets; and of places that were lost and given back once, who is over. */
static void piece_add_page(struct piece *piece, const struct room *room, uint32_t first)
{
    uint32_t tickets;
    const struct ticket *ticket = line_page(&room->line, &room->memory, first, &tickets);

    for (uint32_t i = 0; i < tickets;) {
        uint32_t run = i;
        while (run < tickets && ticket_life(ticket[run].state)->is_alive)
            run++;
        struct part_tickets head = {first + i, run - i};
        if (run > i)
            piece_add(piece, PART_TICKETS, (struct span){(const char *)&head, sizeof(head)},
                      (struct span){(const char *)&ticket[i], (run - i) * sizeof(*ticket)});
        uint32_t gone[2] = {first + run, 0};
        if (run < tickets && ticket[run].state == TICKET_DONE && is_lost_place(room, first + run))
            piece_add(piece, PART_GONE, (struct span){(const char *)gone, sizeof(gone)}, SPAN(""));
        i = run + 1;
    }
}

static void piece_add_pages(struct piece *piece, const struct room *room, struct room_cursor *cursor)
{
    for (int pages = 0; pages < PIECE_PAGES && piece->used + PAGE_PIECE_MAX <= ROOM_PIECE_BYTES; pages++) {
        uint32_t first = cursor->place == LINE_NONE
                             ? line_page_from(&room->line, &room->memory, 1)
                             : line_page_after(&room->line, &room->memory, cursor->place);
        if (first == LINE_NONE) {
            *cursor = (struct room_cursor){.step = 2};
            return;
        }
        piece_add_page(piece, room, first);
        cursor->place = first;
    }
}

static void piece_add_keys(struct piece *piece, const struct room *room, struct room_cursor *cursor)
{
    const struct key *key;

    while (piece->used + PART_BYTES(sizeof(*key)) <= ROOM_PIECE_BYTES) {
        key = keys_next(&room->keys, &room->memory, &cursor->place);
        if (key == NULL) {
            cursor->is_done = true;
            return;
        }
        piece_add(piece, PART_KEY, (struct span){(const char *)key, sizeof(*key)}, SPAN(""));
    }
}

size_t room_snapshot(const struct room *room, struct room_cursor *cursor, unsigned char out[ROOM_PIECE_BYTES])
{
    struct record_head head = {room->number, 0, room->change};
    struct piece piece = {out, sizeof(head)};

    memcpy(out, &head, sizeof(head));
    if (cursor->step == 0) {
        piece_add_room(&piece, room);
        cursor->step = 1;
    } else if (cursor->step == 1) {
        piece_add_pages(&piece, room, cursor);
    } else {
        piece_add_keys(&piece, room, cursor);
    }
    return piece.used;
}
