/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record in words. Places that stand in a row and have become the same are one phrase, and of a long list only the beginning
 * is named: a line is for the eye. The room's figures are the last part of nearly every record and are said only where they are
 * all there is.
 *
 * Of a holder, which is a keyed hash to begin with, no more than a third is shown: enough to follow one through the lines.
 */
#include "cli/journal.h"

#include "base/little.h"
#include "room/line.h"

#include <inttypes.h>
#include <string.h>

#define PHRASES_MOST 8
#define HOLDER_BYTES 4

/* What is said of the places of one record, as far as it goes. */
struct words {
    FILE *out;
    struct settings settings; /* before the next part that has some */
    struct texts texts;
    unsigned phrases;
    uint64_t unsaid; /* places */

    /* the run that is not said yet */
    uint32_t first, last;
    const char *state; /* NULL = none */
    struct ticket ticket;
};

static void words_of_room(struct words *words, struct span body);
static void words_of_number(FILE *out, const struct frame_record *record, bool is_snapshot);

const char *journal_type(enum record_type type)
{
    switch (type) {
#define TYPE_WORD(name, number, word) \
    case name:                        \
        return word;
        RECORD_LIST(TYPE_WORD)
#undef TYPE_WORD
    }
    return "unknown";
}

const char *journal_part(enum part_kind kind)
{
    switch (kind) {
#define PART_WORD(name, number, word) \
    case name:                        \
        return word;
        PART_LIST(PART_WORD)
#undef PART_WORD
    }
    return "unknown";
}

void journal_words(FILE *out, const struct frame_record *record, const struct journal_room *room,
                   bool is_snapshot)
{
    struct words words = {.out = out};

    if (room != NULL) {
        words.settings = room->settings;
        words.texts = room->texts;
    }
    if (record->type == RECORD_ROOM)
        words_of_room(&words, record->body);
    else
        words_of_number(out, record, is_snapshot);
}

static void words_of_number(FILE *out, const struct frame_record *record, bool is_snapshot)
{
    const char *body = record->body.data;

    if (record->type == RECORD_CLOSED)
        fputs("nginx was stopped, and everything before this is on the disk", out);
    else if (record->body.len != 8)
        fputs("unreadable", out);
    else if (record->type == RECORD_SYNCED)
        fprintf(out, "on the disk up to position %" PRIu64, little_get64(body));
    else if (record->type == RECORD_END && is_snapshot)
        fprintf(out, "counts together with the journal up to position %" PRIu64, little_get64(body));
    else if (record->type == RECORD_END)
        fprintf(out, "goes on at position %" PRIu64, little_get64(body));
    else
        fprintf(out, "next epoch %" PRIu32, little_get32(body));
}

/* ---- of a room ---- */

static void say_part(struct words *words, const struct part *part);
static void run_say(struct words *words);

/* Between two phrases. */
static void phrase_begin(struct words *words)
{
    if (words->phrases++ > 0)
        fputs(", ", words->out);
}

static void face_say(struct words *words, struct span data)
{
    struct part_face face;

    phrase_begin(words);
    if (data.len != sizeof(face)) {
        fputs("unreadable figures", words->out);
        return;
    }
    memcpy(&face, data.data, sizeof(face));
    fprintf(words->out,
            "clock %" PRIu64 ".%03u s, %" PRIu64 " issued, %" PRIu64 " calls, %" PRIu64 " refunds",
            face.clock_ms / 1000, (unsigned)(face.clock_ms % 1000), face.issued, face.calls, face.refunds);
}

static void words_of_room(struct words *words, struct span body)
{
    struct span face = SPAN_NONE, parts;
    struct record_head head;
    struct part part;
    bool is_bad = !record_read_head(body, &head, &parts);

    while (!is_bad && record_read_part(&parts, &part, &is_bad)) {
        if (part.kind == PART_FACE)
            face = part.data;
        else
            say_part(words, &part);
    }
    run_say(words);
    if (words->unsaid > 0)
        fprintf(words->out, ", and %" PRIu64 " more places", words->unsaid);
    if (words->phrases == 0 && face.data != NULL)
        face_say(words, face);
    if (is_bad) {
        phrase_begin(words);
        fputs("unreadable", words->out);
    }
    if (words->phrases == 0)
        fputs("nothing", words->out);
}

static void run_say(struct words *words)
{
    const struct ticket *ticket = &words->ticket;

    if (words->state == NULL)
        return;
    if (words->phrases >= PHRASES_MOST) {
        words->unsaid += words->last - words->first + 1;
    } else if (words->first < words->last) {
        phrase_begin(words);
        fprintf(words->out, "places %" PRIu32 "-%" PRIu32 " %s", words->first, words->last, words->state);
    } else {
        phrase_begin(words);
        fprintf(words->out, "place %" PRIu32 " %s%s%s", words->first, words->state,
                (ticket->flags & TICKET_LEAVING) != 0 ? ", leaving" : "",
                ticket->state == TICKET_CALLED && (ticket->flags & TICKET_TOLD) != 0 ? " and told" : "");
        if (ticket->state != TICKET_NONE) {
            fputs(" (", words->out);
            for (int i = 0; i < HOLDER_BYTES; i++)
                fprintf(words->out, "%02x", ticket->holder.id[i]);
            fputc(')', words->out);
        }
    }
    words->state = NULL;
}

/* `ticket` is what stands there; NULL where the record does not say. */
static void place_say(struct words *words, uint32_t place, const char *state, const struct ticket *ticket)
{
    if (words->state == state && place == words->last + 1) {
        words->last = place;
        return;
    }
    run_say(words);
    words->first = words->last = place;
    words->state = state;
    words->ticket = ticket == NULL ? (struct ticket){.state = TICKET_NONE} : *ticket;
}

static bool tickets_say(struct words *words, struct span data)
{
    struct part_tickets head;
    struct ticket ticket;

    if (data.len < sizeof(head))
        return false;
    memcpy(&head, data.data, sizeof(head));
    if (data.len != sizeof(head) + (uint64_t)head.number * sizeof(ticket))
        return false;
    for (uint32_t i = 0; i < head.number; i++) {
        memcpy(&ticket, data.data + sizeof(head) + i * sizeof(ticket), sizeof(ticket));
        if (ticket.state >= TICKET_STATES)
            return false;
        place_say(words, head.first + i, ticket_life(ticket.state)->name, &ticket);
    }
    return true;
}

static bool gone_say(struct words *words, struct span data)
{
    if (data.len != 8)
        return false;
    place_say(words, little_get32(data.data), ticket_life(TICKET_DONE)->name, NULL);
    return true;
}

static bool away_say(struct words *words, struct span data)
{
    struct part_away away;

    if (data.len != sizeof(away))
        return false;
    memcpy(&away, data.data, sizeof(away));
    for (uint32_t i = 0; i < LINE_PAGE_COUNT; i++)
        if ((away.who[i / 64] >> i % 64 & 1) != 0)
            place_say(words, away.first - away.first % LINE_PAGE_COUNT + i, ticket_life(TICKET_AWAY)->name,
                      NULL);
    return true;
}

static bool key_say(struct words *words, struct span data)
{
    if (data.len != 32)
        return false;
    phrase_begin(words);
    fprintf(words->out, "a key for place %" PRIu32, little_get32(data.data + sizeof(struct holder)));
    return true;
}

static bool made_say(struct words *words, struct span data)
{
    if (data.len < 8)
        return false;
    phrase_begin(words);
    fprintf(words->out, "made with epoch %" PRIu32, little_get32(data.data));
    return true;
}

bool journal_settings_read(struct span data, struct part_settings *head, struct settings *settings,
                           struct texts *texts)
{
    if (data.len < sizeof(*head))
        return false;
    memcpy(head, data.data, sizeof(*head));
    return settings_from_text(settings, texts,
                              (struct span){data.data + sizeof(*head), data.len - sizeof(*head)});
}

/* Those that are not as before; before the first, everything has its default. */
static bool settings_say(struct words *words, struct span data)
{
    struct part_settings head;
    struct settings settings;
    struct texts texts;

    if (!journal_settings_read(data, &head, &settings, &texts))
        return false;
    phrase_begin(words);
    fprintf(words->out, "settings %" PRIu32 "%s:", head.version, head.is_from_api != 0 ? " of the API" : "");
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting_info *info = &setting_list[i];
        char before[SETTING_NUMBER_MAX], now[SETTING_NUMBER_MAX];
        struct span value = setting_written(info, &settings, &texts, now);
        const char *quote = setting_is_text(info) ? "\"" : "";
        if (span_equal(value, setting_written(info, &words->settings, &words->texts, before)))
            continue;
        fprintf(words->out, " %s=%s%.*s%s", info->name, quote, (int)value.len, value.data, quote);
    }
    if (memcmp(&settings, &words->settings, sizeof(settings)) == 0 &&
        memcmp(&texts, &words->texts, sizeof(texts)) == 0)
        fputs(" as before", words->out);
    words->settings = settings;
    words->texts = texts;
    return true;
}

#define EPOCH_BYTES 12

static bool epochs_say(struct words *words, struct span data)
{
    if (data.len % EPOCH_BYTES != 0)
        return false;
    for (; data.len > 0; data.data += EPOCH_BYTES, data.len -= EPOCH_BYTES) {
        uint32_t lost_from = little_get32(data.data + 8);
        phrase_begin(words);
        fprintf(words->out, "epoch %" PRIu32 " behind place %" PRIu32, little_get32(data.data),
                little_get32(data.data + 4));
        if (lost_from > 0)
            fprintf(words->out, " with a loss from count %" PRIu32 " on", lost_from);
    }
    return true;
}

static bool people_say(struct words *words, struct span data)
{
    if (data.len != 8)
        return false;
    phrase_begin(words);
    fprintf(words->out, "%" PRIu32 " tickets follow", little_get32(data.data));
    return true;
}

static bool over_say(struct words *words, struct span data)
{
    (void)data;
    phrase_begin(words);
    fputs("deleted", words->out);
    return true;
}

static bool (*const sayers[])(struct words *words, struct span data) = {
    [PART_TICKETS] = tickets_say, [PART_GONE] = gone_say,     [PART_AWAY] = away_say,
    [PART_KEY] = key_say,         [PART_MADE] = made_say,     [PART_SETTINGS] = settings_say,
    [PART_EPOCHS] = epochs_say,   [PART_PEOPLE] = people_say, [PART_OVER] = over_say,
};

/* A kind without words of its own is called by its name. */
static void say_part(struct words *words, const struct part *part)
{
    bool has_words = part->kind < sizeof(sayers) / sizeof(sayers[0]) && sayers[part->kind] != NULL;
    bool is_of_place = part->kind == PART_TICKETS || part->kind == PART_GONE || part->kind == PART_AWAY;

    if (!is_of_place)
        run_say(words);
    if (has_words && sayers[part->kind](words, part->data))
        return;
    run_say(words);
    phrase_begin(words);
    fprintf(words->out, "%s%s", has_words ? "unreadable " : "", journal_part(part->kind));
}
