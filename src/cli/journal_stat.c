/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir journal stat`: how much of what is in the folder, for whoever asks why it is so large. It is read twice: once to count and
 * to see how fast that goes, once to know how many people are alive in it, which the disk should be in proportion to.
 */
#include "cli/journal.h"

#include "cli/api.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define ROOMS_SHOWN 20

struct tally {
    uint64_t records, bytes;
};

/* Of a type of record or a kind of part. */
struct kind {
    unsigned number;
    const char *word;
    struct tally journal, snapshot;
};

struct file {
    char name[FRAME_NAME_BYTES];
    uint64_t bytes, disk_bytes, records;
};

#define KIND_ROW(name, number, word) {number, word, {0, 0}, {0, 0}},
#define KIND_ONE(name, number, word) +1

#define TYPES (0 RECORD_LIST(KIND_ONE))
#define PARTS (0 PART_LIST(KIND_ONE))

struct count {
    struct progress progress;
    struct kind types[TYPES], parts[PARTS];
    struct journal_rooms rooms;
    struct file *files;
    size_t files_count, file; /* the one under way */
    struct tally journal, snapshot;
    uint64_t first_ms, last_ms, took_ns;
    struct scan_report report;
    enum scan_result result;
    struct journal_state state;
};

static void count_begin(struct count *count, struct journal *journal);
static void count_read(struct count *count, struct journal *journal);
static void count_free(struct count *count);
static void count_print(const struct count *count);
static json_t *count_json(const struct count *count);

int journal_stat(struct journal *journal, const struct args *args)
{
    struct count count = {.files = NULL};
    int exit_code = 0, tries = 0;

    do {
        count_free(&count);
        count_begin(&count, journal);
        count_read(&count, journal);
    } while (count.result != SCAN_GOOD && ++tries < JOURNAL_TRIES && journal_has_moved(journal));
    if (count.result == SCAN_GOOD)
        journal_replay(journal, &count.state);

    const struct local_recovery *recovery = &count.state.recovery;
    if (count.result != SCAN_GOOD)
        exit_code = journal_refuse(journal, count.result, false, count.report.why);
    else if (recovery->result != SCAN_GOOD)
        exit_code = journal_refuse(journal, recovery->result, recovery->is_full, recovery->why);
    else if (args_has(args, OPTION_JSON))
        api_print_json(count_json(&count));
    else
        count_print(&count);
    count_free(&count);
    return exit_code;
}

/* ---- counting ---- */

static void file_add(struct count *count, const struct journal *journal, const char *name)
{
    struct file *file = &count->files[count->files_count];
    struct stat info;

    if (fstatat(journal->folder.fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    *file = (struct file){.bytes = (uint64_t)info.st_size, .disk_bytes = (uint64_t)info.st_blocks * 512};
    snprintf(file->name, sizeof(file->name), "%s", name);
    count->files_count++;
}

static void files_add(struct count *count, const struct journal *journal, bool is_snapshot)
{
    const struct listing_files *files =
        is_snapshot ? &journal->listing.snapshots : &journal->listing.segments;
    char name[FRAME_NAME_BYTES];

    for (size_t i = 0; i < files->count; i++) {
        frame_name(is_snapshot, files->firsts[i], name);
        file_add(count, journal, name);
    }
}

static void count_begin(struct count *count, struct journal *journal)
{
    static const char *const others[] = {SNAPSHOT_NEW, LOG_NEXT, LOG_FAILED, LOG_LOST};
    size_t others_count = sizeof(others) / sizeof(others[0]);
    size_t most = journal->listing.segments.count + journal->listing.snapshots.count + others_count;

    *count = (struct count){.types = {RECORD_LIST(KIND_ROW)},
                            .parts = {PART_LIST(KIND_ROW)},
                            .files = say_no_memory_if_null(calloc(most, sizeof(count->files[0])))};
    progress_init(&count->progress, true);
    files_add(count, journal, true);
    files_add(count, journal, false);
    for (size_t i = 0; i < others_count; i++)
        file_add(count, journal, others[i]);
}

static void count_free(struct count *count)
{
    journal_rooms_free(&count->rooms);
    free(count->files);
    count->files = NULL;
}

static void tally_add(struct tally *tally, uint64_t bytes)
{
    tally->records++;
    tally->bytes += bytes;
}

static void kind_add(struct kind *kinds, size_t kinds_count, unsigned number, bool is_snapshot,
                     uint64_t bytes)
{
    for (size_t i = 0; i < kinds_count; i++)
        if (kinds[i].number == number)
            tally_add(is_snapshot ? &kinds[i].snapshot : &kinds[i].journal, bytes);
}

/* Records come file by file, so it is nearly always the one of the record before. */
static void file_count(struct count *count, const char *name)
{
    for (size_t i = 0; i < count->files_count && strcmp(count->files[count->file].name, name) != 0; i++)
        count->file = (count->file + 1) % count->files_count;
    if (count->files_count > 0 && strcmp(count->files[count->file].name, name) == 0)
        count->files[count->file].records++;
}

static void room_add(struct count *count, struct span body, bool is_snapshot, uint64_t bytes)
{
    struct journal_room *room = journal_rooms_take(&count->rooms, body);
    struct record_head head;
    struct span parts;
    struct part part;
    bool is_bad;

    if (room == NULL || !record_read_head(body, &head, &parts))
        return;
    room->records++;
    room->bytes += bytes;
    while (record_read_part(&parts, &part, &is_bad))
        kind_add(count->parts, PARTS, part.kind, is_snapshot, PART_BYTES(part.data.len));
}

static bool record_take(void *context, const struct frame_record *record, const struct scan_place *place,
                        bool is_snapshot)
{
    struct count *count = context;
    uint64_t bytes = frame_record_bytes(record->body.len);

    tally_add(is_snapshot ? &count->snapshot : &count->journal, bytes);
    kind_add(count->types, TYPES, record->type, is_snapshot, bytes);
    file_count(count, place->file);
    if (record->type == RECORD_ROOM)
        room_add(count, record->body, is_snapshot, bytes);
    if (count->first_ms == 0 || record->time_ms < count->first_ms)
        count->first_ms = record->time_ms;
    if (record->time_ms > count->last_ms)
        count->last_ms = record->time_ms;
    return true;
}

static void tell(void *context, uint64_t done, uint64_t total)
{
    struct count *count = context;

    progress_tell(&count->progress, done, total);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void count_read(struct count *count, struct journal *journal)
{
    struct scan_reader reader = {record_take, count, tell};
    uint64_t began = now_ns();

    count->result = journal_scan(&journal->folder.disk, &reader, &count->report);
    count->took_ns = now_ns() - began;
    progress_end(&count->progress);
}

/* ---- what follows ---- */

static uint64_t records_per_sec(const struct count *count)
{
    double records = (double)(count->journal.records + count->snapshot.records);

    return count->took_ns == 0 ? 0 : (uint64_t)(records * 1e9 / (double)count->took_ns);
}

static uint64_t disk_bytes(const struct count *count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count->files_count; i++)
        bytes += count->files[i].disk_bytes;
    return bytes;
}

/* The tickets that are alive: what a snapshot would mostly consist of. */
static uint64_t live_bytes(const struct count *count)
{
    return count->state.recovery.tickets * sizeof(struct ticket);
}

static int by_bytes(const void *a, const void *b)
{
    const struct journal_room *left = a, *right = b;

    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    return strcmp(left->name, right->name);
}

/* ---- for people ---- */

static void number_add(struct table *table, uint64_t number)
{
    char text[NUMBER_TEXT_MAX];

    table_add(table, number_group(number, text));
}

static void table_end(struct table *table)
{
    table_print(table, stdout, text_may_colour(stdout));
    table_free(table);
}

static void figures_print(const struct count *count)
{
    static const struct column columns[] = {{"FIGURE", false}, {"VALUE", true}};
    struct table *table = table_new(columns, 2);
    char time[NUMBER_TEXT_MAX];

    table_add(table, "first record");
    table_add(table, journal_time(count->first_ms, time));
    table_add(table, "last record");
    table_add(table, journal_time(count->last_ms, time));
    table_add(table, "records of the journal");
    number_add(table, count->journal.records);
    table_add(table, "records of the snapshot");
    number_add(table, count->snapshot.records);
    table_add(table, "records read per second");
    number_add(table, records_per_sec(count));
    table_add(table, "people alive");
    number_add(table, count->state.recovery.tickets);
    table_add(table, "bytes of their tickets");
    number_add(table, live_bytes(count));
    table_add(table, "bytes on the disk");
    number_add(table, disk_bytes(count));
    table_end(table);
}

static void files_print(const struct count *count)
{
    static const struct column columns[] = {
        {"FILE", false}, {"BYTES", true}, {"ON DISK", true}, {"RECORDS", true}};
    struct table *table = table_new(columns, 4);

    for (size_t i = 0; i < count->files_count; i++) {
        table_add(table, count->files[i].name);
        number_add(table, count->files[i].bytes);
        number_add(table, count->files[i].disk_bytes);
        number_add(table, count->files[i].records);
    }
    putchar('\n');
    table_end(table);
}

static void kinds_print(const char *title, const struct kind *kinds, size_t kinds_count)
{
    const struct column columns[] = {
        {title, false}, {"JOURNAL", true}, {"BYTES", true}, {"SNAPSHOT", true}, {"BYTES", true}};
    struct table *table = table_new(columns, 5);

    for (size_t i = 0; i < kinds_count; i++) {
        if (kinds[i].journal.records == 0 && kinds[i].snapshot.records == 0)
            continue;
        table_add(table, kinds[i].word);
        number_add(table, kinds[i].journal.records);
        number_add(table, kinds[i].journal.bytes);
        number_add(table, kinds[i].snapshot.records);
        number_add(table, kinds[i].snapshot.bytes);
    }
    putchar('\n');
    table_end(table);
}

static void rooms_print(const struct count *count)
{
    static const struct column columns[] = {{"ROOM", false}, {"RECORDS", true}, {"BYTES", true}};
    struct table *table = table_new(columns, 3);

    qsort(count->rooms.rooms, count->rooms.count, sizeof(count->rooms.rooms[0]), by_bytes);
    for (size_t i = 0; i < count->rooms.count && i < ROOMS_SHOWN; i++) {
        table_add(table, count->rooms.rooms[i].name);
        number_add(table, count->rooms.rooms[i].records);
        number_add(table, count->rooms.rooms[i].bytes);
    }
    putchar('\n');
    table_end(table);
    if (count->rooms.count > ROOMS_SHOWN)
        printf("and %zu more\n", count->rooms.count - ROOMS_SHOWN);
}

static void count_print(const struct count *count)
{
    figures_print(count);
    files_print(count);
    kinds_print("TYPE", count->types, TYPES);
    kinds_print("PART", count->parts, PARTS);
    if (count->rooms.count > 0)
        rooms_print(count);
}

/* ---- for programs ---- */

static void item(json_t *array, json_t *value)
{
    if (json_array_append_new(array, say_no_memory_if_null(value)) != 0)
        say_no_memory_if_null(NULL);
}

static json_t *files_json(const struct count *count)
{
    json_t *list = say_no_memory_if_null(json_array());

    for (size_t i = 0; i < count->files_count; i++) {
        const struct file *file = &count->files[i];
        item(list,
             json_pack("{s:s, s:o, s:o, s:o}", "file", file->name, "bytes", journal_count_json(file->bytes),
                       "disk_bytes", journal_count_json(file->disk_bytes), "records",
                       journal_count_json(file->records)));
    }
    return list;
}

static json_t *kinds_json(const char *title, const struct kind *kinds, size_t kinds_count)
{
    json_t *list = say_no_memory_if_null(json_array());

    for (size_t i = 0; i < kinds_count; i++)
        item(list, json_pack("{s:s, s:o, s:o, s:o, s:o}", title, kinds[i].word, "records",
                             journal_count_json(kinds[i].journal.records), "bytes",
                             journal_count_json(kinds[i].journal.bytes), "snapshot_records",
                             journal_count_json(kinds[i].snapshot.records), "snapshot_bytes",
                             journal_count_json(kinds[i].snapshot.bytes)));
    return list;
}

static json_t *rooms_json(const struct count *count)
{
    json_t *list = say_no_memory_if_null(json_array());

    for (size_t i = 0; i < count->rooms.count; i++) {
        const struct journal_room *room = &count->rooms.rooms[i];
        item(list, json_pack("{s:s, s:o, s:o, s:o}", "room", room->name, "number",
                             journal_count_json(room->number), "records", journal_count_json(room->records),
                             "bytes", journal_count_json(room->bytes)));
    }
    return list;
}

static json_t *count_json(const struct count *count)
{
    return say_no_memory_if_null(
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "first_time",
                  journal_time_json(count->first_ms), "last_time", journal_time_json(count->last_ms),
                  "records", journal_count_json(count->journal.records), "snapshot_records",
                  journal_count_json(count->snapshot.records), "records_per_sec",
                  journal_count_json(records_per_sec(count)), "people",
                  journal_count_json(count->state.recovery.tickets), "live_bytes",
                  journal_count_json(live_bytes(count)), "disk_bytes", journal_count_json(disk_bytes(count)),
                  "files", files_json(count), "types", kinds_json("type", count->types, TYPES), "parts",
                  kinds_json("part", count->parts, PARTS), "rooms", rooms_json(count)));
}
