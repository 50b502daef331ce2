/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_JOURNAL_H
#define WEIR_CLI_JOURNAL_H

/*
 * What the forms of `weir journal` share. Nothing here ever writes to the folder, or takes its lock: nginx may be running on it.
 */

#include "base/room_id.h"
#include "cli/args.h"
#include "cli/number.h"
#include "engine/local.h"
#include "journal/folder.h"
#include "journal/listing.h"
#include "room/record.h"

#include <jansson.h>
#include <stdio.h>

struct journal {
    const char *path;
    struct folder folder;
    struct listing listing;
    uint64_t bytes; /* of its segments and snapshots */
};

/* The forms. Each prints, and returns the exit code. */
int journal_verify(struct journal *journal, const struct args *args);
int journal_show(struct journal *journal, const struct args *args);
int journal_stat(struct journal *journal, const struct args *args);

/* ---- journal.c ---- */

/* 1: it is damaged. 2: it cannot be read. */
int journal_exit_code(enum scan_result result, bool is_full);

/* Says what is wrong, and returns the exit code. */
int journal_refuse(const struct journal *journal, enum scan_result result, bool is_full, const char *why);

/*
 * Lists the folder anew, and says whether other files are there than before: then a reading that failed may have failed
 * over files that nginx removed meanwhile.
 */
bool journal_has_moved(struct journal *journal);

/* How often a reading is begun anew over that. */
#define JOURNAL_TRIES 5

/* 2026-11-15T07:51:03.123Z, or `-`. Returns `out`. */
char *journal_time(uint64_t time_ms, char out[NUMBER_TEXT_MAX]);

/* The same for JSON: null where it is none. And counts: null beyond what JSON's integers here hold. */
json_t *journal_time_json(uint64_t time_ms);
json_t *journal_count_json(uint64_t count);

/* ---- journal_state.c ---- */

/* What a recovery would find. */
struct journal_state {
    struct local_recovery recovery;
    uint64_t people[TICKET_STATES]; /* in all rooms */
    uint64_t hash;
};

/* Replays everything in memory. Look at state->recovery.result first. */
void journal_replay(struct journal *journal, struct journal_state *state);

/* ---- journal_rooms.c ---- */

/* A room as records speak of it: a name that was deleted and made again is two of them. */
struct journal_room {
    uint32_t number;
    char name[ROOM_ID_MAX + 1]; /* `#number` where nothing tells it */
    struct settings settings;   /* as the records up to now say */
    struct texts texts;
    uint64_t records, bytes;
};

struct journal_rooms {
    struct journal_room *rooms; /* in the order of their numbers */
    size_t count, capacity;
};

/* The room of a record's body; one that is new is added. Valid until the next call. NULL: it is no room's. */
struct journal_room *journal_rooms_take(struct journal_rooms *rooms, struct span body);

/* Once a record is dealt with: what it leaves behind for the words of the next. */
void journal_room_follow(struct journal_room *room, struct span body);
void journal_rooms_free(struct journal_rooms *rooms);

/* ---- journal_words.c ---- */

/* What a record of each type is called. */
const char *journal_type(enum record_type type);

/* What changed. `room` is as the records before left it; NULL for records that are no room's. */
void journal_words(FILE *out, const struct frame_record *record, const struct journal_room *room,
                   bool is_snapshot);

/* The settings of such a part. False: they cannot be read. */
bool journal_settings_read(struct span data, struct part_settings *head, struct settings *settings,
                           struct texts *texts);

/* What a part of each kind is called. */
const char *journal_part(enum part_kind kind);

/* ---- journal_json.c ---- */

/* The same, and all of it: members for the JSON object of a record. */
void journal_json(json_t *object, const struct frame_record *record);

#endif
