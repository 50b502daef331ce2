/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape.h"

#include <stdlib.h>
#include <string.h>

void tape_free(struct tape *tape)
{
    free(tape->bytes);
    free(tape->end);
    *tape = (struct tape){0};
}

static void *grown(void *at, size_t bytes)
{
    void *more = realloc(at, bytes);

    assert_non_null(more);
    return more;
}

void tape_add(struct tape *tape, struct span body)
{
    if (tape->used + body.len > tape->size) {
        tape->size = 2 * (tape->used + body.len);
        tape->bytes = grown(tape->bytes, tape->size);
    }
    if (tape->records == tape->records_max) {
        tape->records_max = 2 * tape->records_max + 64;
        tape->end = grown(tape->end, tape->records_max * sizeof(tape->end[0]));
    }
    memcpy(tape->bytes + tape->used, body.data, body.len);
    tape->used += body.len;
    tape->end[tape->records++] = tape->used;
}

bool tape_take(struct tape *tape, struct room *room)
{
    struct span body = room_outbox(room);

    if (body.len == 0)
        return false;
    tape_add(tape, body);
    room_outbox_taken(room);
    return true;
}

void tape_take_all(struct tape *tape, struct room *room)
{
    tape_take(tape, room);
    while (room_has_more(room)) {
        room_tick(room, 0);
        assert_true(tape_take(tape, room) || !room_has_more(room));
    }
}

struct span tape_record(const struct tape *tape, uint32_t number)
{
    assert_true(number < tape->records);
    size_t from = number == 0 ? 0 : tape->end[number - 1];

    return (struct span){(const char *)tape->bytes + from, tape->end[number] - from};
}

void tape_snapshot(struct tape *tape, const struct room *room)
{
    struct room_cursor cursor = {0};
    unsigned char *piece = malloc(ROOM_PIECE_BYTES);

    assert_non_null(piece);
    while (!cursor.is_done)
        tape_add(tape, (struct span){(const char *)piece, room_snapshot(room, &cursor, piece)});
    free(piece);
}

struct copy copy_new(uint32_t pages)
{
    struct copy copy = {rig_new(pages, NULL), calloc(pages, sizeof(page_ref)), 0};
    struct memory *memory = room_memory(copy.rig.room);

    assert_non_null(copy.pool);
    while (memory->spare_count > 0) {
        copy.pool[copy.pooled++] = memory_take_back(memory, memory);
        memory_commit(memory);
    }
    return copy;
}

void copy_free(struct copy *copy)
{
    free(copy->pool);
    rig_free(&copy->rig);
}

static void fill(struct copy *copy, uint32_t pages)
{
    struct memory *memory = room_memory(copy->rig.room);

    while (memory->spare_count < pages && copy->pooled > 0) {
        memory_give(memory, copy->pool[--copy->pooled], memory);
        memory_commit(memory);
    }
}

static void drain(struct copy *copy, uint32_t pages)
{
    struct memory *memory = room_memory(copy->rig.room);

    while (memory->spare_count > pages) {
        copy->pool[copy->pooled++] = memory_take_back(memory, memory);
        memory_commit(memory);
    }
}

void copy_apply(struct copy *copy, struct span body, bool is_snapshot)
{
    bool is_full;
    char *bytes = malloc(body.len); /* and none behind them: a sanitizer sees who reads on */

    assert_non_null(bytes);
    memcpy(bytes, body.data, body.len);
    fill(copy, record_pages(body));
    drain(copy, record_pages(body));
    assert_true(room_apply(copy->rig.room, (struct span){bytes, body.len}, is_snapshot, &is_full));
    free(bytes);
}

void copy_replay(struct copy *copy, const struct tape *tape, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        copy_apply(copy, tape_record(tape, i), false);
}

struct copy copy_recovered(uint32_t pages, const struct tape *snapshot, const struct tape *tape,
                           uint32_t from)
{
    struct copy copy = copy_new(pages);

    for (uint32_t i = 0; snapshot != NULL && i < snapshot->records; i++)
        copy_apply(&copy, tape_record(snapshot, i), true);
    copy_replay(&copy, tape, from, tape->records);
    return copy;
}

void copy_wake(struct copy *copy)
{
    fill(copy, UINT32_MAX);
    room_resume(copy->rig.room);
    room_record_on(copy->rig.room);
}

/* ---- comparing ---- */

static bool has_fixed_time(const struct ticket *ticket)
{
    return ticket->state == TICKET_AWAY || ticket->state == TICKET_CALLED ||
           ticket->state == TICKET_ENTERED ||
           (ticket->state == TICKET_WAITING && (ticket->flags & TICKET_LEAVING) != 0);
}

static bool is_inside(const struct ticket *ticket)
{
    return ticket->state == TICKET_ENTERED || ticket->state == TICKET_ACTIVE;
}

/* What is left out may differ: when somebody was last seen, and what they were shown. */
static bool is_same_ticket(const struct room *a, const struct ticket *at, const struct room *b,
                           const struct ticket *bt)
{
    const struct terms *aterms = &a->terms[at->terms], *bterms = &b->terms[bt->terms];

    if (!holder_equal(&at->holder, &bt->holder) || at->issued_sec != bt->issued_sec ||
        at->state != bt->state || at->has_alias != bt->has_alias || at->is_extended != bt->is_extended ||
        at->is_spent != bt->is_spent || at->flags != bt->flags || at->key_id != bt->key_id ||
        at->joined != bt->joined)
        return false;
    if (has_fixed_time(at) && at->deadline != bt->deadline)
        return false;
    if (at->state == TICKET_CALLED && (at->flags & TICKET_LEAVING) != 0 && at->shown != bt->shown)
        return false;
    return !is_inside(at) ||
           (at->entered == bt->entered && at->pass_key_id == bt->pass_key_id &&
            aterms->session_max_sec == bterms->session_max_sec && aterms->tier == bterms->tier);
}

static void compare_tickets(const struct room *live, const struct room *copy, const char *where)
{
    uint32_t first = line_page_from(&live->line, &live->memory, 1), tickets;

    for (; first != LINE_NONE; first = line_page_after(&live->line, &live->memory, first)) {
        const struct ticket *ticket = line_page(&live->line, &live->memory, first, &tickets);
        for (uint32_t i = 0; i < tickets; i++) {
            if (!ticket_life(ticket[i].state)->is_alive)
                continue;
            const struct ticket *other = line_find(&copy->line, &copy->memory, first + i);
            if (other == NULL || !is_same_ticket(live, &ticket[i], copy, other))
                fail_msg("%s: the ticket at place %u (%s) is another", where, first + i,
                         ticket_life(ticket[i].state)->name);
        }
    }
}

void assert_same_room(const struct room *live, const struct room *copy, const char *where)
{
    struct figures a = room_figures(live), b = room_figures(copy);

    for (int i = 0; i < TICKET_STATES; i++)
        if (a.in_state[i] != b.in_state[i])
            fail_msg("%s: %lu and %lu people are %s", where, a.in_state[i], b.in_state[i],
                     ticket_life((enum ticket_state)i)->name);
    compare_tickets(live, copy, where);
    if (a.epoch != b.epoch || a.issued != b.issued || a.calls != b.calls || a.refunds != b.refunds ||
        a.last_called != b.last_called || a.settings_version != b.settings_version ||
        a.is_settings_from_api != b.is_settings_from_api || live->line.last != copy->line.last)
        fail_msg("%s: the figures differ", where);
    /* What nobody waits for lapses without a word; and a batch that begins calls nobody yet. */
    if (a.in_state[TICKET_WAITING] > 0 && live->advance != copy->advance)
        fail_msg("%s: the operator's calls differ", where);
    if (live->settings.batch == 0 && live->clock_ms == copy->clock_ms &&
        live->pace.credit != copy->pace.credit)
        fail_msg("%s: the paces differ", where);
    if (memcmp(&live->settings, &copy->settings, sizeof(live->settings)) != 0)
        fail_msg("%s: the settings differ", where);
    if (room_hash(live, 1) != room_hash(copy, 1))
        fail_msg("%s: the hashes differ", where);
}
