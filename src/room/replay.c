/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A room from its records. Every part says what has become, so applying one means taking what is there out of all counts and
 * indexes and putting the new in, whatever the two are: records of a snapshot and of a journal overlap, and may be older than
 * what the room knows.
 *
 * The bytes may be anybody's (a fuzzer's): what would break the room is refused, what merely is untrue is believed.
 */

#include "base/must.h"
#include "room/state.h"

/* Takes the ticket at `count` out of everything that counts it. Its place stays. */
static void take_out(struct room *room, uint32_t count, struct ticket *ticket)
{
    struct memory *memory = &room->memory;
    struct map_owner owner = room_holders(room);
    const struct ticket_life *life = ticket_life(ticket->state);

    if (!life->is_alive)
        return;
    memory_set(memory, room->in_state[ticket->state], room->in_state[ticket->state] - 1);
    if (life->is_in_line)
        line_step_out(&room->line, memory, count);
    if (ticket->state == TICKET_ENTERED || ticket->state == TICKET_ACTIVE)
        memory_set(memory, room->terms[ticket->terms].users, room->terms[ticket->terms].users - 1);
    map_remove(&room->by_holder, &owner, &ticket->holder, count);
    memory_keep(memory, ticket, sizeof(*ticket));
    ticket->state = TICKET_NONE;
}

/* False: no page is spare. */
static bool put_in(struct room *room, uint32_t count, struct ticket *ticket, const struct ticket *image)
{
    struct memory *memory = &room->memory;
    struct map_owner owner = room_holders(room);

    memory_keep(memory, ticket, sizeof(*ticket));
    *ticket = *image;
    memory_set(memory, room->in_state[image->state], room->in_state[image->state] + 1);
    if (ticket_life(image->state)->is_in_line)
        line_stand(&room->line, memory, count);
    if (image->state == TICKET_ENTERED || image->state == TICKET_ACTIVE)
        memory_set(memory, room->terms[image->terms].users, room->terms[image->terms].users + 1);
    line_set_deadline(&room->line, memory, count, image->deadline);
    return map_add(&room->by_holder, &owner, &image->holder, count);
}

static bool put_ticket(struct room *room, uint32_t count, const struct ticket *image)
{
    struct memory *memory = &room->memory;
    struct ticket *ticket = line_put(&room->line, memory, count);

    if (ticket == NULL)
        return false;
    bool was_alive = ticket_life(ticket->state)->is_alive;
    take_out(room, count, ticket);
    memory_commit(memory); /* pages are taken before any is freed, in one operation */
    if (!was_alive)
        line_begin(&room->line, memory, count);
    if (is_lost_place(room, count))
        line_keep_page(&room->line, memory, count);
    bool is_done = put_in(room, count, ticket, image);
    memory_commit(memory);
    return is_done;
}

static bool put_gone(struct room *room, uint32_t count)
{
    struct memory *memory = &room->memory;
    struct ticket *ticket = line_find(&room->line, memory, count);

    if ((ticket == NULL || ticket->state == TICKET_NONE) && !is_lost_place(room, count))
        return true;
    ticket = line_put(&room->line, memory, count);
    if (ticket == NULL)
        return false;
    if (is_lost_place(room, count))
        line_keep_page(&room->line, memory, count);
    bool was_alive = ticket_life(ticket->state)->is_alive;
    take_out(room, count, ticket);
    memory_keep(memory, ticket, sizeof(*ticket));
    *ticket = (struct ticket){.state = TICKET_DONE, .deadline = LINE_NEVER};
    if (was_alive)
        line_finish(&room->line, memory, count);
    memory_commit(memory);
    return true;
}

static bool is_living_state(const struct ticket *image)
{
    return image->state < TICKET_STATES && ticket_life(image->state)->is_alive;
}

static bool is_place(uint32_t count)
{
    return count != LINE_NONE && count != UINT32_MAX;
}

enum applied { APPLIED, APPLIED_BAD, APPLIED_FULL };

#define PREFETCH_AHEAD 8

static void fetch_ahead(const struct room *room, struct span images, uint32_t at)
{
    struct map_owner owner = room_holders(room);
    struct ticket image;

    if ((at + 1) * sizeof(image) > images.len)
        return;
    memcpy(&image, images.data + at * sizeof(image), sizeof(image));
    map_prefetch(&room->by_holder, &owner, &image.holder);
}

static enum applied apply_tickets(struct room *room, struct span data)
{
    struct part_tickets head;
    struct ticket image;

    if (data.len < sizeof(head))
        return APPLIED_BAD;
    memcpy(&head, data.data, sizeof(head));
    if (data.len != sizeof(head) + (uint64_t)head.number * sizeof(image))
        return APPLIED_BAD;
    struct span images = {data.data + sizeof(head), data.len - sizeof(head)};
    for (uint32_t i = 0; i < head.number; i++) {
        fetch_ahead(room, images, i + PREFETCH_AHEAD);
        memcpy(&image, data.data + sizeof(head) + i * sizeof(image), sizeof(image));
        if (!is_place(head.first + i) || !is_living_state(&image))
            return APPLIED_BAD;
        if (!put_ticket(room, head.first + i, &image))
            return APPLIED_FULL;
    }
    return APPLIED;
}

static enum applied apply_gone(struct room *room, struct span data)
{
    uint32_t words[2];

    if (data.len != sizeof(words))
        return APPLIED_BAD;
    memcpy(words, data.data, sizeof(words));
    if (!is_place(words[0]))
        return APPLIED_BAD;
    return put_gone(room, words[0]) ? APPLIED : APPLIED_FULL;
}

/* Whoever does not wait any more, in a state that is newer than this record, is left alone. */
static enum applied apply_away(struct room *room, struct span data)
{
    struct part_away away;

    if (data.len != sizeof(away))
        return APPLIED_BAD;
    memcpy(&away, data.data, sizeof(away));
    uint32_t first = away.first - away.first % LINE_PAGE_COUNT;
    for (uint32_t slot = 0; slot < LINE_PAGE_COUNT; slot++) {
        if ((away.who[slot / 64] >> slot % 64 & 1) == 0)
            continue;
        const struct ticket *ticket = line_find(&room->line, &room->memory, first + slot);
        if (ticket == NULL || ticket->state != TICKET_WAITING)
            continue;
        struct ticket image = *ticket;
        image.state = TICKET_AWAY;
        image.deadline = away.deadline;
        if (!put_ticket(room, first + slot, &image))
            return APPLIED_FULL;
    }
    return APPLIED;
}

static enum applied apply_key(struct room *room, struct span data)
{
    struct key key;

    if (data.len != sizeof(key))
        return APPLIED_BAD;
    memcpy(&key, data.data, sizeof(key));
    for (int i = 0; i < 2 && keys_forget(&room->keys, &room->memory, room_past(room)); i++)
        memory_commit(&room->memory);
    struct key *known = keys_find(&room->keys, &room->memory, &key.scope);
    if (known != NULL)
        *known = key;
    else if (!keys_add(&room->keys, &room->memory, &key))
        return APPLIED_FULL;
    memory_commit(&room->memory);
    return APPLIED;
}

static enum applied apply_face(struct room *room, struct span data)
{
    struct part_face face;

    if (data.len != sizeof(face))
        return APPLIED_BAD;
    memcpy(&face, data.data, sizeof(face));
    if (face.clock_ms / 100 >= LINE_NEVER / 2 || face.refunds > face.calls)
        return APPLIED_BAD;
    if (face.last > room->line.last && !line_skip(&room->line, &room->memory, face.last))
        return APPLIED_BAD;
    memory_commit(&room->memory);
    room->clock_ms = face.clock_ms;
    room->pace = (struct pace){face.credit, face.wait_ms};
    room->issued = face.issued;
    room->calls = face.calls;
    room->refunds = face.refunds;
    room->advance = face.advance;
    room->last_called = face.last_called;
    return APPLIED;
}

static enum applied apply_settings(struct room *room, struct span data)
{
    struct part_settings head;
    struct settings settings;
    struct texts texts;

    if (data.len < sizeof(head))
        return APPLIED_BAD;
    memcpy(&head, data.data, sizeof(head));
    if (head.terms_now >= ROOM_TERMS ||
        !settings_from_text(&settings, &texts,
                            (struct span){data.data + sizeof(head), data.len - sizeof(head)}))
        return APPLIED_BAD;
    room->settings = settings;
    room->texts = texts;
    room->settings_version = head.version;
    room->is_settings_from_api = head.is_from_api != 0;
    room->terms_now = head.terms_now;
    room->terms[head.terms_now].session_max_sec = settings.session_max_sec;
    room->terms[head.terms_now].tier = settings.tier;
    room_begin_pace(room);
    return APPLIED;
}

static enum applied apply_people(struct room *room, struct span data)
{
    if (data.len != 2 * sizeof(uint32_t))
        return APPLIED_BAD;
    memcpy(&room->expected, data.data, sizeof(room->expected));
    return APPLIED;
}

/* As many buckets as will be needed, before they are full: with what pages the tickets of this record will not take. */
static void grow_ahead(struct room *room)
{
    struct map_owner owner = room_holders(room);

    while (room->memory.spare_count > ROOM_APPLY_PAGES / 2 &&
           map_grow(&room->by_holder, &owner, room->expected))
        memory_commit(&room->memory);
}

static enum applied apply_terms(struct room *room, struct span data)
{
    uint32_t terms[ROOM_TERMS][2];

    if (data.len != sizeof(terms))
        return APPLIED_BAD;
    memcpy(terms, data.data, sizeof(terms));
    for (int i = 0; i < ROOM_TERMS; i++) {
        room->terms[i].session_max_sec = terms[i][0];
        room->terms[i].tier = terms[i][1];
    }
    return APPLIED;
}

static enum applied apply_epochs(struct room *room, struct span data)
{
    struct epoch epoch[ROOM_EPOCHS];
    uint32_t epochs = (uint32_t)(data.len / sizeof(epoch[0]));

    if (data.len > sizeof(epoch) || data.len != epochs * sizeof(epoch[0]) || epochs == 0)
        return APPLIED_BAD;
    memcpy(epoch, data.data, data.len);
    for (uint32_t i = 1; i < epochs; i++)
        if (epoch[i].base < epoch[i - 1].base || epoch[i].epoch <= epoch[i - 1].epoch)
            return APPLIED_BAD;
    memcpy(room->epoch, epoch, data.len);
    room->epochs = epochs;
    return APPLIED;
}

static enum applied apply_part(struct room *room, const struct part *part)
{
    uint32_t cleared;

    switch (part->kind) {
    case PART_FACE:
        return apply_face(room, part->data);
    case PART_TICKETS:
        return apply_tickets(room, part->data);
    case PART_GONE:
        return apply_gone(room, part->data);
    case PART_AWAY:
        return apply_away(room, part->data);
    case PART_KEY:
        return apply_key(room, part->data);
    case PART_SETTINGS:
        return apply_settings(room, part->data);
    case PART_PEOPLE:
        return apply_people(room, part->data);
    case PART_TERMS:
        return apply_terms(room, part->data);
    case PART_EPOCHS:
        return apply_epochs(room, part->data);
    case PART_CLEARED:
        room_clear(room, &cleared);
        return APPLIED;
    case PART_MADE: /* for the owner of rooms */
    case PART_OVER:
        return APPLIED;
    }
    return APPLIED_BAD;
}

/* A snapshot's later pieces are of later moments than its first, from which the journal is read on. */
static bool sets_change(struct span body, bool is_snapshot)
{
    struct span name;
    uint32_t epoch;

    return !is_snapshot || record_makes_room(body, &name, &epoch);
}

bool room_apply(struct room *room, struct span body, bool is_snapshot, bool *is_full)
{
    struct record_head head;
    struct span parts;
    struct part part;
    bool is_bad;

    must(!room->is_recorded);
    *is_full = false;
    if (!record_read_head(body, &head, &parts) || head.room != room->number)
        return false;
    if (!is_snapshot && head.change <= room->change)
        return true;
    if (is_snapshot)
        grow_ahead(room);
    while (record_read_part(&parts, &part, &is_bad)) {
        enum applied applied = apply_part(room, &part);
        if (applied == APPLIED)
            continue;
        *is_full = applied == APPLIED_FULL;
        room_rollback(room);
        return false;
    }
    while (room_forget_far(room))
        ;
    if (sets_change(body, is_snapshot))
        room->change = head.change;
    return !is_bad;
}

/* ---- after the last record ---- */

/* When somebody was last seen is not recorded; so they are given the whole time anew. */
static void resume_ticket(struct room *room, struct ticket *ticket)
{
    const struct settings *settings = &room->settings;
    uint32_t told_sec = 3U * poll_recorded(ticket->poll_sec);

    if (ticket->state == TICKET_WAITING && (ticket->flags & TICKET_LEAVING) == 0)
        ticket->deadline =
            room_later(room, told_sec > settings->seen_ttl_sec ? told_sec : settings->seen_ttl_sec);
    if (ticket->state == TICKET_ACTIVE)
        ticket->deadline = session_renewed(room, ticket);
}

void room_resume(struct room *room)
{
    uint32_t first = line_page_from(&room->line, &room->memory, 1), tickets;

    pace_settle(&room->pace, &room->paced);
    if (room->in_state[TICKET_WAITING] == 0) { /* as at the end of every operation, recorded or not */
        pace_lapse(&room->pace, &room->paced);
        room->advance = 0;
    }
    for (; first != LINE_NONE; first = line_page_after(&room->line, &room->memory, first)) {
        struct ticket *ticket = line_page(&room->line, &room->memory, first, &tickets);
        for (uint32_t i = 0; i < tickets; i++)
            resume_ticket(room, &ticket[i]);
        line_look_again(&room->line, &room->memory, first);
        memory_commit(&room->memory);
    }
}

/* ---- hash ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

static uint64_t mix_holder(uint64_t hash, const struct holder *holder)
{
    uint64_t words[2] = {0, 0};

    memcpy(words, holder->id, sizeof(holder->id));
    return mix(mix(hash, words[0]), words[1]);
}

static uint64_t mix_ticket(uint64_t hash, const struct room *room, uint32_t count,
                           const struct ticket *ticket)
{
    bool is_inside = ticket->state == TICKET_ENTERED || ticket->state == TICKET_ACTIVE;

    hash = mix_holder(mix(hash, count), &ticket->holder);
    hash = mix(hash, (uint64_t)ticket->issued_sec << 32 | ticket->joined);
    hash = mix(hash, (uint64_t)ticket->state << 24 | ticket->is_spent << 18 | ticket->has_alias << 17 |
                         ticket->is_extended << 16 | ticket->flags << 8 | ticket->key_id);
    if (is_inside) {
        const struct terms *terms = &room->terms[ticket->terms];
        hash = mix(hash, (uint64_t)ticket->entered << 32 | ticket->pass_key_id);
        hash = mix(hash, (uint64_t)terms->session_max_sec << 32 | terms->tier);
    }
    return hash;
}

static uint64_t mix_tickets(uint64_t hash, const struct room *room)
{
    uint32_t first = line_page_from(&room->line, &room->memory, 1), tickets;

    for (; first != LINE_NONE; first = line_page_after(&room->line, &room->memory, first)) {
        const struct ticket *ticket = line_page(&room->line, &room->memory, first, &tickets);
        for (uint32_t i = 0; i < tickets; i++)
            if (ticket_life(ticket[i].state)->is_alive)
                hash = mix_ticket(hash, room, first + i, &ticket[i]);
    }
    return hash;
}

/* Of keys that still stand for something, by the clock that both the living room and its journal know. */
static uint64_t mix_keys(uint64_t hash, const struct room *room)
{
    uint64_t clock_ms = room->is_recorded ? room->recorded_ms : room->clock_ms, sum = 0;
    uint32_t number = 0;
    const struct key *key;

    while ((key = keys_next(&room->keys, &room->memory, &number)) != NULL) {
        const struct ticket *ticket = line_find(&room->line, &room->memory, key->count);
        if (key_is_over(key, (uint32_t)(clock_ms / 100)) || ticket == NULL ||
            !ticket_life(ticket->state)->is_alive)
            continue;
        uint64_t one = mix(mix_holder(0, &key->scope), (uint64_t)key->count << 32 | key->at);
        sum += mix(mix(one, key->body), (uint64_t)key->position << 32 | key->poll_sec << 1 | key->is_ready);
    }
    return mix(hash, sum);
}

static uint64_t mix_texts(uint64_t hash, const struct texts *texts)
{
    for (size_t i = setting_numbers; i < setting_count; i++) {
        struct span text = setting_text(texts, &setting_list[i]);
        for (size_t at = 0; at < text.len; at++)
            hash = mix(hash, (unsigned char)text.data[at]);
        hash = mix(hash, text.len);
    }
    return hash;
}

uint64_t room_hash(const struct room *room, uint64_t seed)
{
    uint64_t hash = seed;

    for (uint32_t i = 0; i < room->name_len; i++)
        hash = mix(hash, (unsigned char)room->name[i]);
    for (uint32_t i = 0; i < room->epochs; i++)
        hash = mix(mix(hash, (uint64_t)room->epoch[i].epoch << 32 | room->epoch[i].base),
                   room->epoch[i].lost_from);
    for (size_t i = 0; i < setting_numbers; i++)
        hash = mix(hash, setting_value(&room->settings, &setting_list[i]));
    hash = mix_texts(hash, &room->texts);
    hash = mix(hash, (uint64_t)room->settings_version << 32 | room->is_settings_from_api);
    hash = mix(mix(mix(hash, room->issued), room->calls), room->refunds);
    hash = mix(hash, (uint64_t)room->line.last << 32 | room->last_called);
    return mix_keys(mix_tickets(hash, room), room);
}
