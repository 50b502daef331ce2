/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir journal verify|show|stat PATH`: what is in the folder that weir_journal names. It reads with the very code that a
 * recovery reads with, so that what it says is what nginx would find; and it only reads, so that it can be asked at any time.
 */
#include "cli/journal.h"

#include "cli/commands.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct form {
    const char *name;
    int (*run)(struct journal *journal, const struct args *args);
    bool is_show; /* takes the options of show */
};

static const struct form forms[] = {
    {"verify", journal_verify, false},
    {"show", journal_show, true},
    {"stat", journal_stat, false},
};

static const struct form *form_find(const struct args *args);
static int journal_open(struct journal *journal, const char *path);
static int files_measure(struct journal *journal);

int journal_run(const struct args *args)
{
    static const enum option of_show[] = {OPTION_ROOM, OPTION_FROM, OPTION_LIMIT};
    const struct form *form = form_find(args);
    struct journal journal = {.folder.fd = -1};

    if (form == NULL)
        return say_usage("journal is used as: weir journal verify|show|stat PATH (weir journal --help)");
    for (size_t i = 0; i < sizeof(of_show) / sizeof(of_show[0]) && !form->is_show; i++)
        if (args_has(args, of_show[i]))
            return say_usage("journal %s does not take --%s: it is for journal show", form->name,
                             option_list[of_show[i]].written);
    int exit_code = journal_open(&journal, args->words[2]);
    if (exit_code == 0)
        exit_code = form->run(&journal, args);
    listing_free(&journal.listing);
    folder_close(&journal.folder);
    return exit_code;
}

static const struct form *form_find(const struct args *args)
{
    for (size_t i = 0; args->count == 3 && i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strcmp(args->words[1], forms[i].name) == 0)
            return &forms[i];
    return NULL;
}

static int journal_open(struct journal *journal, const char *path)
{
    int error = folder_open(&journal->folder, path);

    journal->path = path;
    if (error == -ENOTDIR)
        return say_usage("%.512s is no folder: name the one that holds the journal's files", path);
    if (error == 0)
        error = listing_read(&journal->listing, &journal->folder.disk);
    if (error < 0)
        return say_usage("cannot read %.512s: %s", path, strerror(-error));
    if (journal->listing.segments.count == 0 && journal->listing.snapshots.count == 0)
        return say_usage("there is no journal in %.512s: it has no file journal-… or snapshot-…", path);
    return files_measure(journal);
}

/* Anything but a file is refused before it is opened: a pipe would never end. */
static int file_measure(struct journal *journal, bool is_snapshot, uint64_t first)
{
    char name[FRAME_NAME_BYTES];
    struct stat info;

    frame_name(is_snapshot, first, name);
    if (fstatat(journal->folder.fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : say_usage("cannot read %s: %s", name, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return say_usage("%s in %.512s is no file", name, journal->path);
    journal->bytes += (uint64_t)info.st_size;
    return 0;
}

static int files_measure(struct journal *journal)
{
    const struct listing_files *kinds[] = {&journal->listing.segments, &journal->listing.snapshots};
    int exit_code = 0;

    journal->bytes = 0;
    for (int is_snapshot = 0; is_snapshot < 2; is_snapshot++)
        for (size_t i = 0; i < kinds[is_snapshot]->count && exit_code == 0; i++)
            exit_code = file_measure(journal, is_snapshot == 1, kinds[is_snapshot]->firsts[i]);
    return exit_code;
}

int journal_exit_code(enum scan_result result, bool is_full)
{
    if (result == SCAN_GOOD)
        return 0;
    return result == SCAN_DAMAGED || (result == SCAN_STOPPED && !is_full) ? EXIT_REFUSED : EXIT_USAGE;
}

int journal_refuse(const struct journal *journal, enum scan_result result, bool is_full, const char *why)
{
    say_refused("%.512s: %s", journal->path,
                is_full ? "this machine has not the memory for the state that is in it" : why);
    return journal_exit_code(result, is_full);
}

static bool files_equal(const struct listing_files *a, const struct listing_files *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->firsts, b->firsts, a->count * sizeof(a->firsts[0])) == 0);
}

bool journal_has_moved(struct journal *journal)
{
    struct listing before = journal->listing;
    bool has_moved = listing_read(&journal->listing, &journal->folder.disk) == 0 &&
                     !(files_equal(&before.segments, &journal->listing.segments) &&
                       files_equal(&before.snapshots, &journal->listing.snapshots));

    listing_free(&before);
    return has_moved && files_measure(journal) == 0;
}

/* ---- figures ---- */

/* Until the year 9999: what says it is later is no time. */
#define TIME_MOST_MS UINT64_C(253402300799999)

char *journal_time(uint64_t time_ms, char out[NUMBER_TEXT_MAX])
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm utc;

    if (time_ms == 0 || time_ms > TIME_MOST_MS || gmtime_r(&seconds, &utc) == NULL) {
        snprintf(out, NUMBER_TEXT_MAX, "-");
        return out;
    }
    size_t len = strftime(out, NUMBER_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + len, NUMBER_TEXT_MAX - len, ".%03uZ", (unsigned)(time_ms % 1000));
    return out;
}

json_t *journal_time_json(uint64_t time_ms)
{
    char text[NUMBER_TEXT_MAX];

    return strcmp(journal_time(time_ms, text), "-") == 0 ? json_null()
                                                         : say_no_memory_if_null(json_string(text));
}

json_t *journal_count_json(uint64_t count)
{
    return count > INT64_MAX ? json_null() : say_no_memory_if_null(json_integer((json_int_t)count));
}
