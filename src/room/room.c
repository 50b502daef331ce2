/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The operations of a room. Each prepares, changes through the undo log, and ends in commit or rollback; what a ticket does is
 * in moves.c, what people are told in standing.c.
 */

#include "room/room.h"

#include "base/must.h"
#include "room/state.h"

#include <string.h>

/* Bounds on the work of one tick; what is left over is done by the next. */
#define TICK_PAGES      2048
#define TICK_OVER       16384
#define TICK_KEYS       256
#define TICK_CALLS      10000
#define TICK_MOST_MS    1000
#define TICK_DEAD_PAGES 4096

#define RECORD_FACE_MS 1000

/* Nobody is left to be called: what remains is not kept for those who come later, not even until the next tick. */
static void lapse_if_empty(struct room *room)
{
    if (room->in_state[TICKET_WAITING] != 0)
        return;
    memory_keep(&room->memory, &room->pace, sizeof(room->pace));
    pace_lapse(&room->pace, &room->paced);
    memory_set(&room->memory, room->advance, 0);
}

static enum error finish(struct room *room, enum error error)
{
    if (error == ERROR_NONE) {
        lapse_if_empty(room);
        room_commit(room);
    } else {
        room_rollback(room);
    }
    return error;
}

struct room *room_init(void *at, void *base, struct span name, uint32_t epoch,
                       const struct settings *settings, const struct texts *texts)
{
    struct room *room = at;

    must(name.len > 0 && name.len <= ROOM_ID_MAX && epoch > 0);
    memory_init(&room->memory, base);
    memcpy(room->name, name.data, name.len);
    room->name_len = (uint32_t)name.len;
    room->number = epoch;
    room->epochs = 1;
    room->epoch[0] = (struct epoch){epoch, 0, 0};
    room->settings = *settings;
    if (texts != NULL)
        room->texts = *texts;
    room->terms[0] = (struct terms){settings->session_max_sec, settings->tier, 0};
    room_begin_pace(room);
    pace_init(&room->pace, &room->paced);
    line_init(&room->line);
    keys_init(&room->keys);
    return room;
}

size_t room_bytes_used(void)
{
    return sizeof(struct room);
}

struct span room_name(const struct room *room)
{
    return (struct span){room->name, room->name_len};
}

struct memory *room_memory(struct room *room)
{
    return &room->memory;
}

const struct settings *room_settings(const struct room *room)
{
    return &room->settings;
}

const struct texts *room_texts(const struct room *room)
{
    return &room->texts;
}

/* ---- idempotency ---- */

/* What the key of this request stands for: NULL if it is new, or if what it stood for is over. */
static const struct key *remembered(struct room *room, const struct request_key *request)
{
    const struct key *key = request->is_set ? keys_find(&room->keys, &room->memory, &request->scope) : NULL;
    const struct ticket *ticket = key == NULL ? NULL : line_find(&room->line, &room->memory, key->count);

    if (ticket == NULL || key_is_over(key, room_past(room)) || !ticket_life(ticket->state)->is_alive)
        return NULL;
    return key;
}

_Static_assert(TICKET_POLL_MAX_SEC <= 63, "a poll interval fits the bits that a key has for it");

static enum error remember(struct room *room, const struct request_key *request, uint32_t count,
                           const struct standing *standing)
{
    struct key key = {
        .scope = request->scope,
        .count = count,
        .body = keys_body(request->body),
        .poll_sec = standing->next_poll_sec & 63,
        .at = room_now(room),
        .position = standing->position & 0x7fffffff,
        .is_ready = standing->is_ready,
    };

    if (!request->is_set)
        return ERROR_NONE;
    record_part(room, PART_KEY, (struct span){(const char *)&key, sizeof(key)}, SPAN(""));
    struct key *old = keys_find(&room->keys, &room->memory, &request->scope);
    if (old != NULL) {
        memory_set(&room->memory, *old, key);
        return ERROR_NONE;
    }
    return keys_add(&room->keys, &room->memory, &key) ? ERROR_NONE : ERROR_QUEUE_FULL;
}

/*
 * For what a retry without its key would find done as well: an enter, or a join of someone who has a ticket. These never
 * fail because memory has ended.
 */
static enum error remember_if_possible(struct room *room, const struct request_key *request, uint32_t count,
                                       const struct standing *standing)
{
    return room->memory.spare_count < KEYS_ADD_MAX ? ERROR_NONE : remember(room, request, count, standing);
}

/* By the time that the journal knows, if there is one: a room made from it must not know keys that this one has forgotten. */
static void forget_keys(struct room *room, int most)
{
    uint32_t now = room->is_recorded ? (uint32_t)(room->recorded_ms / 100) : room_past(room);

    while (most-- > 0 && keys_forget(&room->keys, &room->memory, now))
        room_commit(room);
}

/* ---- join ---- */

static bool would_wait_too_long(const struct room *room)
{
    uint32_t max_eta_sec = room->settings.max_eta_sec;

    return max_eta_sec != 0 && standing_eta_of_newcomer(room).sec > max_eta_sec;
}

static enum error join_allowed(const struct room *room)
{
    const struct settings *settings = &room->settings;
    uint64_t in_line = (uint64_t)room->in_state[TICKET_WAITING] + room->in_state[TICKET_AWAY];

    if (settings->mode == MODE_CLOSED)
        return ERROR_ROOM_CLOSED;
    if (settings->max_waiting != 0 && in_line >= settings->max_waiting)
        return ERROR_QUEUE_FULL;
    return line_standing(&room->line) > 0 && would_wait_too_long(room) ? ERROR_WAIT_TOO_LONG : ERROR_NONE;
}

static enum error join_anew(struct room *room, const struct join *join, uint32_t *count)
{
    bool is_too_long = would_wait_too_long(room);
    enum error error = join_allowed(room);
    enum call_ground ground;

    if (error == ERROR_NONE)
        error = ticket_join(room, join, count);
    if (error != ERROR_NONE)
        return error;
    /* Where there is room nobody waits for a tick, whatever the estimate says of those who would. */
    if (room_next_call(room, &ground) == *count)
        ticket_call(room, *count, line_find(&room->line, &room->memory, *count), ground);
    else if (is_too_long)
        return ERROR_WAIT_TOO_LONG;
    return ERROR_NONE;
}

/* Notes what a newcomer is told, to learn later whether it came true. */
static void note_eta(struct room *room, uint32_t count, const struct standing *standing)
{
    struct line_note *note = line_note(&room->line, &room->memory, count);

    if (note == NULL || standing->state != TICKET_WAITING || !room->estimate.is_settled)
        return;
    memory_keep(&room->memory, note, sizeof(*note));
    *note =
        (struct line_note){room_later(room, standing->eta_low_sec), room_later(room, standing->eta_high_sec)};
}

static enum error join_once(struct room *room, const struct join *join, struct standing *standing)
{
    struct map_owner owner = room_holders(room);
    uint32_t count = map_find(&room->by_holder, &owner, &join->holder);
    bool is_repeat = count != MAP_NONE;
    enum error error = ERROR_NONE;

    if (!is_repeat)
        error = join_anew(room, join, &count);
    if (error != ERROR_NONE)
        return error;
    standing_tell(room, count, line_find(&room->line, &room->memory, count), standing);
    standing->is_repeat = is_repeat;
    if (!is_repeat)
        note_eta(room, count, standing);
    return (is_repeat ? remember_if_possible : remember)(room, &join->request, count, standing);
}

static enum error repeat_join(struct room *room, const struct key *key, uint64_t body,
                              struct standing *standing)
{
    if (key->body != keys_body(body))
        return ERROR_IDEMPOTENCY_CONFLICT;
    /* The first answer may have said "not yet": repeating it tells nobody that their turn has come meanwhile. */
    struct ticket *ticket = line_find(&room->line, &room->memory, key->count);
    (key->is_ready ? standing_tell : standing_see)(room, key->count, ticket, standing);
    standing->is_repeat = true;
    standing->position = key->position;
    standing->is_ready = key->is_ready;
    standing->next_poll_sec = key->poll_sec;
    if (ticket->state == TICKET_WAITING)
        standing_expect(room, key->count, ticket, key->poll_sec);
    return ERROR_NONE;
}

enum error room_join(struct room *room, const struct join *join, struct standing *standing,
                     uint32_t *retry_after_sec)
{
    *retry_after_sec = 0;
    if (join->request.is_set)
        forget_keys(room, 2);
    const struct key *key = remembered(room, &join->request);
    enum error error =
        key != NULL ? repeat_join(room, key, join->request.body, standing) : join_once(room, join, standing);

    *retry_after_sec = standing_retry_after(room, error);
    return finish(room, error);
}

/* ---- what a ticket's holder does ---- */

enum error room_status(struct room *room, const struct place *place, struct standing *standing)
{
    struct ticket *ticket;
    uint32_t count;
    enum error error = room_meet(room, place, &count, &ticket);

    if (error != ERROR_NONE)
        return error;
    standing_tell(room, count, ticket, standing);
    return finish(room, ERROR_NONE);
}

enum error room_heartbeat(struct room *room, const struct place *place, struct standing *standing)
{
    struct ticket *ticket;
    uint32_t count;
    enum error error = room_meet(room, place, &count, &ticket);

    if (error != ERROR_NONE)
        return error;
    standing_see(room, count, ticket, standing);
    return finish(room, ERROR_NONE);
}

static enum error enter_once(struct room *room, const struct enter *enter, uint32_t count,
                             struct ticket *ticket, struct standing *standing)
{
    bool is_inside = ticket->state == TICKET_ENTERED || ticket->state == TICKET_ACTIVE;

    if (!is_inside && ticket->state != TICKET_CALLED) {
        /* Too early; but whoever asks is there. */
        standing_tell(room, count, ticket, standing);
        room_commit(room);
        return ERROR_NOT_READY;
    }
    if (!is_inside)
        ticket_enter(room, count, ticket, enter);
    if (enter->spends && !ticket->is_spent) {
        memory_keep(&room->memory, ticket, sizeof(*ticket));
        ticket->is_spent = true;
        record_ticket(room, count);
    }
    standing_tell(room, count, ticket, standing);
    standing->is_repeat = is_inside;
    return remember_if_possible(room, &enter->request, count, standing);
}

enum error room_enter(struct room *room, const struct enter *enter, struct standing *standing)
{
    if (enter->request.is_set)
        forget_keys(room, 2);
    const struct key *key = remembered(room, &enter->request);
    struct ticket *ticket;
    uint32_t count;

    if (key != NULL && key->body != keys_body(enter->request.body))
        return ERROR_IDEMPOTENCY_CONFLICT;
    enum error error = room_meet(room, &enter->place, &count, &ticket);
    if (error != ERROR_NONE)
        return error;
    if (enter->spends && ticket->is_spent && key == NULL) {
        room_commit(room); /* whoever came back by it is back */
        return ERROR_IDEMPOTENCY_CONFLICT;
    }
    return finish(room, enter_once(room, enter, count, ticket, standing));
}

enum error room_leave(struct room *room, const struct place *place)
{
    struct ticket *ticket;
    uint32_t count;
    /* Also of one that was lost: or it would come back although it was left. */
    enum error error = room_meet(room, place, &count, &ticket);

    if (error != ERROR_NONE)
        return finish(room, former_close(room, place) ? ERROR_NONE : error);
    ticket_finish(room, count, ticket);
    return finish(room, ERROR_NONE);
}

enum error room_leave_soon(struct room *room, const struct place *place)
{
    uint32_t count;
    struct ticket *ticket = room_find(room, place, &count);
    uint32_t grace = room_later(room, ROOM_LEAVE_GRACE_SEC);

    if (ticket == NULL)
        return ERROR_TOKEN_NOT_FOUND;
    /* Those inside unload the waiting page because they go on to the shop. */
    if (ticket->state == TICKET_ENTERED || ticket->state == TICKET_ACTIVE ||
        (ticket->flags & TICKET_LEAVING) != 0)
        return ERROR_NONE;
    /* Whose end comes sooner needs no other; the time of someone waiting ends in being away, which is not an end. */
    if (ticket->state != TICKET_WAITING && ticket->deadline <= grace)
        return ERROR_NONE;
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    ticket->flags |= TICKET_LEAVING;
    if (ticket->state == TICKET_CALLED)
        ticket->shown = ticket->deadline;
    record_ticket(room, count);
    line_set_deadline(&room->line, &room->memory, count, grace);
    return finish(room, ERROR_NONE);
}

static bool is_inside(const struct ticket *ticket)
{
    return ticket != NULL && (ticket->state == TICKET_ENTERED || ticket->state == TICKET_ACTIVE);
}

enum error room_session_touch(struct room *room, const struct place *place)
{
    uint32_t count;
    struct ticket *ticket = room_find(room, place, &count);
    enum error error = is_inside(ticket) ? ERROR_NONE : session_return(room, place, &count, &ticket);

    if (error != ERROR_NONE)
        return error;
    if (ticket->state == TICKET_ENTERED)
        ticket_arrive(room, count, ticket);
    else if (room->settings.session_renew)
        line_set_deadline(&room->line, &room->memory, count, session_renewed(room, ticket));
    return finish(room, ERROR_NONE);
}

enum error room_session_extend(struct room *room, const struct place *place, uint32_t seconds)
{
    uint32_t count;
    struct ticket *ticket = room_find(room, place, &count);

    if (!is_inside(ticket))
        return ERROR_TOKEN_NOT_FOUND;
    uint32_t deadline = session_deadline(room, ticket, seconds);
    if (deadline <= ticket->deadline)
        return ERROR_NONE;
    memory_keep(&room->memory, ticket, sizeof(*ticket));
    ticket->is_extended = true;
    record_ticket(room, count);
    line_set_deadline(&room->line, &room->memory, count, deadline);
    return finish(room, ERROR_NONE);
}

enum error room_session_end(struct room *room, const struct place *place)
{
    uint32_t count;
    struct ticket *ticket = room_find(room, place, &count);

    if (!is_inside(ticket))
        return ERROR_TOKEN_NOT_FOUND;
    ticket_finish(room, count, ticket);
    return finish(room, ERROR_NONE);
}

/* ---- the pace ---- */

/* The settings, with the rate that follows the shop. */
static struct settings paced(const struct room *room)
{
    struct settings settings = room->settings;

    if (settings.pace == PACE_AUTO) {
        settings.rate_milli = room->follow.rate_milli;
        settings.batch = 0;
    }
    return settings;
}

void room_begin_pace(struct room *room)
{
    follow_init(&room->follow, &room->settings);
    room->paced = paced(room);
    estimate_init(&room->estimate, &room->paced);
}

/* The settings or the rate that follows the shop are other ones now. */
static void change_pace(struct room *room)
{
    struct settings now = paced(room);

    memory_keep(&room->memory, &room->pace, sizeof(room->pace));
    pace_change(&room->pace, &room->paced, &now);
    memory_set(&room->memory, room->paced, now);
}

static void follow_shop(struct room *room, uint32_t elapsed_ms)
{
    if (room->settings.pace == PACE_FIXED)
        return;
    memory_keep(&room->memory, &room->follow, sizeof(room->follow));
    if (room->settings.pace == PACE_HALL)
        follow_thaw(&room->follow, elapsed_ms);
    else if (follow_advance(&room->follow, &room->settings, elapsed_ms)) {
        change_pace(room);
        record_face(room); /* a lower rate may cost credit */
    }
    room_commit(room);
}

enum error room_shop(struct room *room, const struct shop_report *report)
{
    if (room->settings.pace == PACE_FIXED)
        return ERROR_NONE;
    memory_keep(&room->memory, &room->follow, sizeof(room->follow));
    if (room->settings.pace == PACE_HALL)
        follow_freeze(&room->follow, report->left_alone_ms);
    else
        follow_take(&room->follow, report);
    room_commit(room);
    return ERROR_NONE;
}

/* ---- time ---- */

static void advance_clock(struct room *room, uint32_t elapsed_ms)
{
    memory_set(&room->memory, room->clock_ms, room->clock_ms + elapsed_ms);
    memory_keep(&room->memory, &room->pace, sizeof(room->pace));
    pace_advance(&room->pace, &room->paced, elapsed_ms);
    struct estimate_moment moment = {
        .ms = elapsed_ms,
        .standing = line_standing(&room->line),
        .inside = room_slots_used(room),
        .is_calling = room->settings.mode == MODE_QUEUE && room_frozen_ms(room) == 0,
    };
    estimate_advance(&room->estimate, &room->memory, &room->paced, &moment);
    /* So that a journal knows the time, also while nothing happens. */
    if (room->clock_ms - room->recorded_ms >= RECORD_FACE_MS)
        record_face(room);
    room_commit(room);
}

static void expire(struct room *room)
{
    uint32_t over = 0;

    for (int pages = 0; pages < TICK_PAGES && over < TICK_OVER; pages++) {
        uint32_t count = line_overdue(&room->line, &room->memory, room_past(room));
        if (count == LINE_NONE || record_is_full(room))
            return;
        over += tickets_expire(room, count);
    }
}

static uint32_t call(struct room *room)
{
    enum call_ground ground;
    uint32_t called = 0, pages = 0, count;

    while (called < TICK_CALLS && pages < TICK_PAGES &&
           (count = room_next_call(room, &ground)) != LINE_NONE && !record_is_full(room)) {
        struct ticket *ticket = line_find(&room->line, &room->memory, count);
        /* Absent, and only not noticed yet: a call goes to someone who is there. */
        if (ticket->deadline <= room_past(room)) {
            tickets_expire(room, line_page_first(count));
            pages++;
            continue;
        }
        ticket_call(room, count, ticket, ground);
        estimate_count_turn(&room->estimate, &room->memory);
        room_commit(room);
        called++;
    }
    lapse_if_empty(room);
    room_commit(room);
    return called;
}

static void begin_batch(struct room *room)
{
    if (line_standing(&room->line) == 0 || room->settings.mode != MODE_QUEUE)
        return;
    memory_keep(&room->memory, &room->pace, sizeof(room->pace));
    pace_begin(&room->pace, &room->paced);
    room_commit(room);
}

/* What a clear left behind. */
static bool drop_dead(struct room *room)
{
    if (!line_drop(&room->dead_line, &room->memory) && !map_drop(&room->dead_holders, &room->memory))
        return false;
    room_commit(room);
    return true;
}

void room_tick(struct room *room, uint32_t elapsed_ms)
{
    room->outbox.is_cut = false;
    elapsed_ms = elapsed_ms < TICK_MOST_MS ? elapsed_ms : TICK_MOST_MS;
    advance_clock(room, elapsed_ms);
    follow_shop(room, elapsed_ms);
    expire(room);
    begin_batch(room);
    call(room);
    forget_keys(room, TICK_KEYS);
    for (int pages = 0; pages < TICK_DEAD_PAGES && (drop_dead(room) || room_forget_far(room)); pages++)
        ;
}

/* ---- what the operator does ---- */

/* Terms that say what these settings say, else some that nobody uses. ROOM_TERMS if there are none. */
static uint32_t terms_for(const struct room *room, const struct settings *settings)
{
    uint32_t unused = ROOM_TERMS;

    for (uint32_t i = 0; i < ROOM_TERMS; i++) {
        const struct terms *terms = &room->terms[i];
        if (terms->session_max_sec == settings->session_max_sec && terms->tier == settings->tier)
            return i;
        if (terms->users == 0)
            unused = i;
    }
    return unused;
}

/* Whether what was measured before says nothing any more. */
static bool is_other_pace(const struct settings *a, const struct settings *b)
{
    return a->rate_milli != b->rate_milli || a->batch != b->batch || a->interval_sec != b->interval_sec ||
           a->max_active != b->max_active;
}

enum error room_set_settings(struct room *room, const struct settings *settings, const struct texts *texts,
                             bool is_from_api)
{
    struct memory *memory = &room->memory;
    uint32_t terms = terms_for(room, settings);

    if (terms == ROOM_TERMS)
        return ERROR_INVALID_SETTING;
    struct settings paced_before = room->paced;
    memory_keep(memory, &room->follow, sizeof(room->follow));
    follow_change(&room->follow, &room->settings, settings);
    memory_set(memory, room->settings, *settings);
    if (texts != NULL)
        memory_set(memory, room->texts, *texts);
    change_pace(room);
    if (is_other_pace(&paced_before, &room->paced))
        estimate_restart(&room->estimate, memory, &room->paced);
    memory_set(memory, room->settings_version, room->settings_version + 1);
    memory_set(memory, room->is_settings_from_api, is_from_api);
    memory_set(memory, room->terms_now, terms);
    memory_set(memory, room->terms[terms].session_max_sec, settings->session_max_sec);
    memory_set(memory, room->terms[terms].tier, settings->tier);
    record_settings(room);
    finish(room, ERROR_NONE);
    /* In an open room whoever joins is called at once: so those who stood in line before them must be. */
    if (settings->mode == MODE_OPEN)
        call(room);
    return ERROR_NONE;
}

enum error room_advance(struct room *room, uint32_t count, uint32_t *called)
{
    uint32_t standing = line_standing(&room->line);
    enum call_ground ground;

    memory_set(&room->memory, room->advance, count < standing ? count : standing);
    record_face(room);
    room_commit(room);
    *called = call(room);
    /* More than one tick's work is gone on with by the next; what a full room holds back is not kept. */
    if (room_next_call(room, &ground) == LINE_NONE) {
        memory_set(&room->memory, room->advance, 0);
        record_face(room);
        room_commit(room);
    }
    return ERROR_NONE;
}

/* Whoever was lost before a clear does not come back after it. */
static void forget_lost(struct room *room)
{
    memory_keep(&room->memory, room->epoch, sizeof(room->epoch));
    for (uint32_t i = 0; i < room->epochs; i++)
        room->epoch[i].lost_from = 0;
    memory_set(&room->memory, room->former_sec, 0);
    record_epochs(room);
}

enum error room_clear(struct room *room, uint32_t *cleared)
{
    struct memory *memory = &room->memory;

    while (drop_dead(room))
        ;
    *cleared = room->by_holder.entries;
    memory_set(memory, room->dead_line, room->line);
    memory_set(memory, room->dead_holders, room->by_holder);
    memory_set(memory, room->by_holder, (struct map){0});
    memory_keep(memory, &room->line, sizeof(room->line));
    line_init(&room->line);
    room->line.last = room->dead_line.last; /* numbering goes on */
    memory_keep(memory, room->in_state, sizeof(room->in_state));
    memset(room->in_state, 0, sizeof(room->in_state));
    for (int i = 0; i < ROOM_TERMS; i++)
        memory_set(memory, room->terms[i].users, 0);
    memory_set(memory, room->advance, 0);
    record_part(room, PART_CLEARED, SPAN(""), SPAN(""));
    forget_lost(room);
    return finish(room, ERROR_NONE);
}

void room_dissolve(struct room *room)
{
    uint32_t cleared;

    room_clear(room, &cleared);
    while (drop_dead(room))
        ;
    /* One by one, as if the time of each were over: whoever dies in between leaves a room that can go on. */
    while (keys_forget(&room->keys, &room->memory, LINE_NEVER))
        room_commit(room);
}

enum error room_look(const struct room *room, const struct place *place, struct standing *standing)
{
    uint32_t count;
    const struct ticket *ticket = room_find(room, place, &count);

    if (ticket == NULL)
        return ERROR_TOKEN_NOT_FOUND;
    standing_look(room, count, ticket, standing);
    return ERROR_NONE;
}

bool room_is_at_rest(const struct room *room)
{
    for (int state = TICKET_WAITING; state < TICKET_DONE; state++)
        if (room->in_state[state] != 0)
            return false;
    if (room_frozen_ms(room) > 0 || room->clock_ms < room->returns_until_ms)
        return false;
    return room->keys.by_scope.entries == 0 && pace_is_full(&room->pace, &room->paced) &&
           line_pages(&room->dead_line, &room->memory) == 0 && map_pages(&room->dead_holders) == 0;
}

/* ---- looking at it ---- */

static uint32_t last_called(const struct room *room)
{
    uint32_t base = room->epoch[room->epochs - 1].base;

    return room->last_called > base ? room->last_called - base : 0;
}

struct figures room_figures(const struct room *room)
{
    struct figures figures = {
        .epoch = room_epoch(room),
        .clock_ms = room->clock_ms,
        .issued = room->issued,
        .calls = room->calls,
        .refunds = room->refunds,
        .keys_dropped = room->keys.dropped,
        .last_called = last_called(room),
        .eta_checked = room->estimate.checked,
        .eta_kept = room->estimate.kept,
        .newcomer_eta_sec = standing_eta_of_newcomer(room).sec,
        .rate_milli = pace_milli(&room->paced),
        .pace_reason = room->follow.reason,
        .settings_version = room->settings_version,
        .is_settings_from_api = room->is_settings_from_api,
    };
    uint64_t alive = 0;

    if (room->settings.pace == PACE_AUTO) {
        figures.shop_time_ms = room->follow.time_ms;
        figures.shop_target_ms = follow_target_ms(&room->follow, &room->settings);
        figures.shop_failed_permille = room->follow.failed_permille;
    }
    if (!room_is_at_rest(room)) { /* at rest nothing is measured, and nothing happens */
        figures.joined_milli = room->estimate.joined_milli;
        figures.called_milli = room->estimate.called_milli;
    }

    for (int state = TICKET_WAITING; state < TICKET_DONE; state++) {
        figures.in_state[state] = room->in_state[state];
        alive += room->in_state[state];
    }
    figures.in_state[TICKET_DONE] = figures.issued - alive;
    return figures;
}

/* A living ticket is counted where it belongs, and its holder leads to it. */
static void check_ticket(const struct room *room, uint32_t count, const struct ticket *ticket,
                         uint32_t in_state[TICKET_STATES], uint32_t users[ROOM_TERMS])
{
    struct map_owner owner = room_holders(room);

    in_state[ticket->state]++;
    must(map_find(&room->by_holder, &owner, &ticket->holder) == count);
    if (ticket->state == TICKET_ENTERED || ticket->state == TICKET_ACTIVE)
        users[ticket->terms]++;
}

uint32_t room_check(const struct room *room)
{
    uint32_t in_state[TICKET_STATES] = {0}, users[ROOM_TERMS] = {0}, alive = 0;
    uint32_t first = line_page_from(&room->line, &room->memory, 1), tickets;
    struct map_owner owner = room_holders(room);

    must(room->memory.undo_used == 0);
    uint32_t line = line_check(&room->line, &room->memory);
    for (; first != LINE_NONE; first = line_page_after(&room->line, &room->memory, first)) {
        const struct ticket *ticket = line_page(&room->line, &room->memory, first, &tickets);
        for (uint32_t i = 0; i < tickets; i++)
            if (ticket_life(ticket[i].state)->is_alive)
                check_ticket(room, first + i, &ticket[i], in_state, users);
    }
    for (int state = TICKET_WAITING; state < TICKET_DONE; state++) {
        must(in_state[state] == room->in_state[state]);
        alive += in_state[state];
    }
    for (int i = 0; i < ROOM_TERMS; i++)
        must(users[i] == room->terms[i].users);
    must(room->by_holder.entries == alive);
    must(line_standing(&room->line) == room->in_state[TICKET_WAITING]);
    must(room->calls >= room->refunds);
    return line + line_pages(&room->dead_line, &room->memory) + map_pages(&room->by_holder) +
           map_pages(&room->dead_holders) + keys_check(&room->keys, owner.memory) + room->memory.spare_count;
}
