/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir journal verify`: everything is read and replayed, as a recovery does it, and what a recovery would find is told. The hash
 * is that of the state: the same of a copy of the folder, and after the next start of nginx too if nothing was lost.
 */
#include "cli/journal.h"

#include "cli/api.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void verify_print(const struct journal *journal, const struct journal_state *state);
static json_t *verify_json(const struct journal_state *state);
static const char *loss_words(const struct local_recovery *recovery);

int journal_verify(struct journal *journal, const struct args *args)
{
    struct journal_state state;

    journal_replay(journal, &state);
    bool is_whole = state.recovery.result == SCAN_GOOD;
    int exit_code = journal_exit_code(state.recovery.result, state.recovery.is_full);
    if (args_has(args, OPTION_JSON) && exit_code != EXIT_USAGE)
        api_print_json(verify_json(&state));
    else if (is_whole)
        verify_print(journal, &state);
    return is_whole
               ? 0
               : journal_refuse(journal, state.recovery.result, state.recovery.is_full, state.recovery.why);
}

/* ---- what it means ---- */

static const char *const sync_words[] = {
    [SYNC_OFF] = "off", [SYNC_INTERVAL] = "interval", [SYNC_ALWAYS] = "always"};

static const char *loss_words(const struct local_recovery *recovery)
{
    const struct scan_report *scan = &recovery->scan;

    if (scan->had_lost)
        return "something is missing, and a recovery that had found that did not come to its end";
    if (scan->is_short)
        return "the last segment is shorter than it was made: somebody cut it";
    if (scan->dropped_records > 0)
        return "whole records lie behind a gap, and would be dropped";
    if (recovery->has_lost)
        return scan->had_failed ? "a sync had failed: nobody knows what of the last moments is on the disk"
                                : "the machine was started anew, and what was not yet synced is gone";
    if (scan->is_closed)
        return "nginx was stopped in good order";
    if (scan->sync == SYNC_ALWAYS)
        return "every answer waited for the disk";
    return "the machine has been running on, so all that was written is there";
}

/* ---- for people ---- */

static void row(struct table *table, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void row(struct table *table, const char *name, const char *format, ...)
{
    char text[512];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    table_add(table, name);
    table_add(table, text);
}

static void read_rows(struct table *table, const struct scan_report *scan)
{
    char file[FRAME_NAME_BYTES], records[NUMBER_TEXT_MAX], bytes[NUMBER_TEXT_MAX], time[NUMBER_TEXT_MAX];

    frame_name(true, scan->snapshot_first, file);
    if (scan->has_snapshot)
        row(table, "snapshot", "%s: %s records, %s bytes", file,
            number_group(scan->snapshot_records, records), number_group(scan->snapshot_bytes, bytes));
    else
        row(table, "snapshot", "none");
    row(table, "segments", "%" PRIu32, scan->segments);
    row(table, "records", "%s", number_group(scan->journal_records, records));
    row(table, "bytes", "%s", number_group(scan->journal_bytes, bytes));
    row(table, "last record", "%s", journal_time(scan->time_ms, time));
    row(table, "next sequence", "%" PRIu64, scan->sequence);
    row(table, "sync", "%s", scan->segments > 0 ? sync_words[scan->sync] : "-");
    if (scan->torn_bytes > 0)
        row(table, "torn tail", "%s from byte %" PRIu64 ": %s bytes",
            scan->tail.file[0] == '\0' ? "the first segment" : scan->tail.file, scan->tail.offset,
            number_group(scan->torn_bytes, bytes));
    else
        row(table, "torn tail", "none");
    if (scan->dropped_records > 0)
        row(table, "dropped", "%s whole records", number_group(scan->dropped_records, records));
}

static void state_rows(struct table *table, const struct journal_state *state)
{
    char number[NUMBER_TEXT_MAX];

    row(table, "a loss", "%s: %s", state->recovery.has_lost ? "yes" : "no", loss_words(&state->recovery));
    row(table, "rooms", "%s", number_group(state->recovery.rooms, number));
    row(table, "people", "%s", number_group(state->recovery.tickets, number));
    for (int i = TICKET_WAITING; i < TICKET_DONE; i++) {
        char name[32];
        snprintf(name, sizeof(name), "  %s", ticket_life((enum ticket_state)i)->name);
        row(table, name, "%s", number_group(state->people[i], number));
    }
    row(table, "state hash", "%016" PRIx64, state->hash);
}

static void verify_print(const struct journal *journal, const struct journal_state *state)
{
    static const struct column columns[] = {{"FIGURE", false}, {"VALUE", false}};
    struct table *table = table_new(columns, 2);
    char *path = text_copy(journal->path);

    text_clean(path);
    printf("The journal in %s is whole.\n", path);
    if (state->recovery.scan.torn_bytes > 0)
        puts("It ends in a torn tail, which nobody was answered for: a recovery cuts it. If nginx is running "
             "on "
             "it,\nthat is what it was writing at this moment.");
    putchar('\n');
    read_rows(table, &state->recovery.scan);
    state_rows(table, state);
    table_print(table, stdout, text_may_colour(stdout));
    table_free(table);
    free(path);
}

/* ---- for programs ---- */

static json_t *torn_json(const struct scan_report *scan)
{
    return scan->torn_bytes == 0 ? json_null()
                                 : json_pack("{s:s, s:o, s:o, s:o}", "file", scan->tail.file, "offset",
                                             journal_count_json(scan->tail.offset), "bytes",
                                             journal_count_json(scan->torn_bytes), "dropped_records",
                                             journal_count_json(scan->dropped_records));
}

static json_t *snapshot_json(const struct scan_report *scan)
{
    char file[FRAME_NAME_BYTES];

    frame_name(true, scan->snapshot_first, file);
    return !scan->has_snapshot ? json_null()
                               : json_pack("{s:s, s:o, s:o}", "file", file, "records",
                                           journal_count_json(scan->snapshot_records), "bytes",
                                           journal_count_json(scan->snapshot_bytes));
}

static json_t *people_json(const struct journal_state *state)
{
    json_t *people = say_no_memory_if_null(json_object());

    for (int i = TICKET_WAITING; i < TICKET_DONE; i++)
        json_object_set_new(people, ticket_life((enum ticket_state)i)->name,
                            journal_count_json(state->people[i]));
    return people;
}

static json_t *whole_json(const struct journal_state *state)
{
    const struct local_recovery *recovery = &state->recovery;
    const struct scan_report *scan = &recovery->scan;
    char hash[24];

    snprintf(hash, sizeof(hash), "%016" PRIx64, state->hash);
    return json_pack("{s:b, s:o, s:i, s:o, s:o, s:o, s:o, s:s, s:b, s:o, s:b, s:s, s:o, s:o, s:s}", "whole",
                     true, "snapshot", snapshot_json(scan), "segments", (int)scan->segments, "records",
                     journal_count_json(scan->journal_records), "bytes",
                     journal_count_json(scan->journal_bytes), "last_time", journal_time_json(scan->time_ms),
                     "next_sequence", journal_count_json(scan->sequence), "sync", sync_words[scan->sync],
                     "closed", scan->is_closed, "torn", torn_json(scan), "loss", recovery->has_lost,
                     "loss_why", loss_words(recovery), "rooms", journal_count_json(recovery->rooms), "people",
                     people_json(state), "hash", hash);
}

/* Where a record is whole but cannot be taken over, the reason alone says where it lies. */
static json_t *damaged_json(const struct local_recovery *recovery)
{
    const struct scan_report *scan = &recovery->scan;
    bool has_place = recovery->result == SCAN_DAMAGED;

    return json_pack("{s:b, s:s?, s:o, s:s, s:o, s:o}", "whole", false, "file",
                     has_place ? scan->place.file : NULL, "offset",
                     has_place ? journal_count_json(scan->place.offset) : json_null(), "why", recovery->why,
                     "records", journal_count_json(scan->journal_records), "bytes",
                     journal_count_json(scan->journal_bytes));
}

static json_t *verify_json(const struct journal_state *state)
{
    return say_no_memory_if_null(state->recovery.result == SCAN_GOOD ? whole_json(state)
                                                                     : damaged_json(&state->recovery));
}
