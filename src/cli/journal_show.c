/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir journal show`: one line a record, printed as it is read. So of a damaged journal everything up to the damage is
 * shown, and one of any size takes no memory.
 */
#include "cli/journal.h"

#include "cli/api.h"
#include "cli/progress.h"
#include "cli/say.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct show {
    struct progress progress;
    struct journal_rooms rooms;
    const char *room; /* NULL = all */
    uint64_t from;    /* 0 = all, the snapshot too */
    uint64_t limit, shown;
    bool is_json;
};

static int show_read_options(struct show *show, const struct args *args);
static bool record_take(void *context, const struct frame_record *record, const struct scan_place *place,
                        bool is_snapshot);
static void tell(void *context, uint64_t done, uint64_t total);

int journal_show(struct journal *journal, const struct args *args)
{
    struct show show = {.is_json = args_has(args, OPTION_JSON)};
    struct scan_reader reader = {record_take, &show, tell};
    struct scan_report report;
    int exit_code = show_read_options(&show, args);

    if (exit_code != 0)
        return exit_code;
    progress_init(&show.progress, isatty(STDOUT_FILENO) == 0);
    enum scan_result result = journal_scan(&journal->folder.disk, &reader, &report);
    progress_end(&show.progress);
    journal_rooms_free(&show.rooms);
    if (result == SCAN_GOOD || result == SCAN_STOPPED)
        return 0;
    fflush(stdout);
    if (journal_has_moved(journal))
        return say_usage("%.512s was compacted while it was read: try again", journal->path);
    return journal_refuse(journal, result, false, report.why);
}

static bool number_read(const struct args *args, enum option option, uint64_t *out)
{
    const char *text = args->values[option];

    if (text == NULL || (number_read_whole(text, out) && *out > 0))
        return true;
    say_usage("--%s must be a whole number from 1 on, not \"%s\"", option_list[option].written, text);
    return false;
}

static int show_read_options(struct show *show, const struct args *args)
{
    show->room = args->values[OPTION_ROOM];
    show->limit = UINT64_MAX;
    if (show->room != NULL && !room_id_is_valid(span_of(show->room)))
        return say_usage("--room must be 1 to %d of A-Z a-z 0-9 _ . : -", ROOM_ID_MAX);
    if (!number_read(args, OPTION_FROM, &show->from) || !number_read(args, OPTION_LIMIT, &show->limit))
        return EXIT_USAGE;
    return 0;
}

static void tell(void *context, uint64_t done, uint64_t total)
{
    struct show *show = context;

    progress_tell(&show->progress, done, total);
}

static void record_print(const struct frame_record *record, const struct journal_room *room, bool is_snapshot)
{
    char sequence[NUMBER_TEXT_MAX], time[NUMBER_TEXT_MAX];

    snprintf(sequence, sizeof(sequence), "%s%" PRIu64, is_snapshot ? "S" : "", record->sequence);
    printf("%8s  %-24s  %-6s  %-12s  ", sequence, journal_time(record->time_ms, time),
           journal_type(record->type), room == NULL ? "-" : room->name);
    journal_words(stdout, record, room, is_snapshot);
    putchar('\n');
}

static void record_print_json(const struct frame_record *record, const struct journal_room *room,
                              const struct scan_place *place, bool is_snapshot)
{
    json_t *object = say_no_memory_if_null(
        json_pack("{s:o, s:o, s:s, s:s, s:o, s:b, s:s?}", "sequence", journal_count_json(record->sequence),
                  "time", journal_time_json(record->time_ms), "type", journal_type(record->type), "file",
                  place->file, "offset", journal_count_json(place->offset), "snapshot", is_snapshot, "room",
                  room == NULL ? NULL : room->name));

    journal_json(object, record);
    api_print_json(object);
}

static bool is_asked_for(const struct show *show, const struct frame_record *record,
                         const struct journal_room *room, bool is_snapshot)
{
    if (show->from > 0 && (is_snapshot || record->sequence < show->from))
        return false;
    return show->room == NULL || (room != NULL && strcmp(room->name, show->room) == 0);
}

static bool record_take(void *context, const struct frame_record *record, const struct scan_place *place,
                        bool is_snapshot)
{
    struct show *show = context;
    struct journal_room *room =
        record->type == RECORD_ROOM ? journal_rooms_take(&show->rooms, record->body) : NULL;

    bool is_shown = is_asked_for(show, record, room, is_snapshot);
    if (is_shown && show->is_json)
        record_print_json(record, room, place, is_snapshot);
    else if (is_shown)
        record_print(record, room, is_snapshot);
    if (room != NULL)
        journal_room_follow(room, record->body);
    show->shown += is_shown;
    return show->shown < show->limit && ferror(stdout) == 0;
}
