/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The new text is made in memory, read back by the reader that the server uses, and put in place by a rename. The file that is
 * renamed is created with O_EXCL beside the old one before that is read: so it is a lock too, and of two rotations at once
 * one is refused instead of lost.
 */
/* realpath is not in plain C. */
#define _GNU_SOURCE

#include "cli/key_rotate.h"

#include "base/must.h"
#include "base/words.h"
#include "cli/api.h"
#include "cli/say.h"
#include "cli/secret_text.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_BYTES 32 /* of chance: 64 characters */

/* What is to become of which line. */
struct rotation {
    struct secret_text text, made;
    struct secret_file file;
    const struct secret_line *promoted; /* it was next, and signs now; NULL: a new key comes */
    const struct secret_line *dropped;  /* NULL: none */
    bool is_next;                       /* the new key is */
    uint8_t new_id;
};

static int rotation_plan(const struct args *args, const char *path, struct rotation *rotation);
static const struct secret_line *next_find(const struct secret_file *file);
static const struct secret_line *oldest_find(const struct secret_file *file);
static uint8_t id_choose(const struct secret_file *file);
static bool rotation_write(struct rotation *rotation);
static bool line_write(struct rotation *rotation, struct span line);
static bool key_write(struct rotation *rotation);
static bool add(struct secret_text *out, struct span text);
static int file_replace(const char *path, struct rotation *rotation, const struct args *args);
static int file_fill(int fd, const char *path, struct rotation *rotation);
static bool file_settle(int fd, const char *from, const char *to);
static void rotation_tell(const char *path, const struct rotation *rotation, bool as_json);

int key_rotate(const struct args *args, const char *path)
{
    struct rotation *rotation = say_no_memory_if_null(calloc(1, sizeof(*rotation)));
    char *whole = realpath(path, NULL); /* a link stays a link */
    int exit_code = whole == NULL ? say_refused("cannot read %s: %s", path, strerror(errno))
                                  : file_replace(whole, rotation, args);

    if (exit_code == 0)
        rotation_tell(path, rotation, args_has(args, OPTION_JSON));
    explicit_bzero(rotation, sizeof(*rotation));
    free(rotation);
    free(whole);
    return exit_code;
}

static int file_replace(const char *path, struct rotation *rotation, const struct args *args)
{
    char beside[PATH_MAX + 8];
    int fd, exit_code;

    snprintf(beside, sizeof(beside), "%s.new", path);
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd == -1 && errno == EEXIST)
        return say_refused(
            "%s is there already: another rotation is at work, or one was cut short; then remove it", beside);
    if (fd == -1)
        return say_refused("cannot write %s: %s", beside, strerror(errno));
    exit_code = rotation_plan(args, path, rotation);
    if (exit_code == 0)
        exit_code = file_fill(fd, path, rotation);
    if (exit_code == 0 && !file_settle(fd, beside, path))
        exit_code = say_refused("cannot replace %s: %s", path, strerror(errno));
    if (exit_code != 0)
        unlink(beside);
    close(fd);
    return exit_code;
}

/* The new file is its owner's alone, whoever's the old one was: a secret of root's stays root's. */
static int file_fill(int fd, const char *path, struct rotation *rotation)
{
    struct stat old;
    const char *bytes = rotation->made.bytes;
    size_t left = rotation->made.len;
    ssize_t written;

    if (stat(path, &old) != 0 || fchmod(fd, 0600) != 0)
        return say_refused("cannot write beside %s: %s", path, strerror(errno));
    if ((old.st_uid != geteuid() || old.st_gid != getegid()) && fchown(fd, old.st_uid, old.st_gid) != 0)
        return say_refused("cannot give the new %s to the owner of the old one: %s", path, strerror(errno));
    for (; left > 0; bytes += written, left -= (size_t)written) {
        written = write(fd, bytes, left);
        if (written < 0)
            return say_refused("cannot write beside %s: %s", path, strerror(errno));
    }
    return 0;
}

/* On disk before it has the name, and the name on disk before we say so. */
static bool file_settle(int fd, const char *from, const char *to)
{
    char folder[PATH_MAX + 8];
    int folder_fd;

    snprintf(folder, sizeof(folder), "%s", to);
    if (fsync(fd) != 0 || rename(from, to) != 0)
        return false;
    folder_fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd == -1 || fsync(folder_fd) != 0)
        return false;
    close(folder_fd);
    return true;
}

/* --- what is to be done ------------------------------------------------------------------------------------------- */

static int rotation_plan(const struct args *args, const char *path, struct rotation *rotation)
{
    char reason[SECRET_REASON_MAX];
    struct secret_file *file = &rotation->file;
    const struct secret_line *next;
    int exit_code = secret_text_read(path, &rotation->text);

    if (exit_code != 0)
        return exit_code;
    if (!secret_file_read(secret_text_span(&rotation->text), file, reason))
        return say_refused("%s is no secret file: %s", path, reason);
    next = next_find(file);
    rotation->is_next = args_has(args, OPTION_NEXT);
    if (rotation->is_next && next != NULL)
        return say_refused("key %d is next already: rotate without --next makes it sign", next->id);
    rotation->promoted = next;
    rotation->new_id = next != NULL ? next->id : id_choose(file);
    if (args_has(args, OPTION_DROP_OLDEST) && (rotation->dropped = oldest_find(file)) == NULL)
        return say_refused(
            "key %d is the only one that verifies: all tokens would end; rotate first without --drop-oldest",
            secret_file_signing(file)->id);
    if (next == NULL && rotation->dropped == NULL && file->key_count == SECRET_KEYS_MAX)
        return say_refused("there are %d keys already: add --drop-oldest", SECRET_KEYS_MAX);
    return rotation_write(rotation) ? 0
                                    : say_refused("%s would be longer than %d bytes", path, SECRET_TEXT_MAX);
}

/* The first that waits to sign, or NULL. */
static const struct secret_line *next_find(const struct secret_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        if (file->list[i].is_next)
            return &file->list[i];
    return NULL;
}

/* The last key that is neither to come nor the one that signed until now; NULL: there is none. */
static const struct secret_line *oldest_find(const struct secret_file *file)
{
    const struct secret_line *signing = secret_file_signing(file);

    for (size_t i = file->count; i-- > 0;) {
        const struct secret_line *line = &file->list[i];
        if (line->id != SECRET_HOLDER_ID && !line->is_next && line != signing)
            return line;
    }
    return NULL;
}

/* Above all others while there is room, so that an id that was dropped does not come back soon. */
static uint8_t id_choose(const struct secret_file *file)
{
    bool is_taken[256] = {true};
    int highest = 0, id = 1;

    for (size_t i = 0; i < file->count; i++) {
        is_taken[file->list[i].id] = true;
        highest = file->list[i].id > highest ? file->list[i].id : highest;
    }
    while (is_taken[id])
        id++;
    return (uint8_t)(highest < 255 ? highest + 1 : id);
}

/* --- the new text ------------------------------------------------------------------------------------------------- */

/* False: it does not fit. What comes of it must be a secret file with the key where it should be. */
static bool rotation_write(struct rotation *rotation)
{
    struct span rest = secret_text_span(&rotation->text);
    struct secret_file made;
    char reason[SECRET_REASON_MAX];
    bool is_written = true;

    while (rest.len > 0 && is_written)
        is_written = line_write(rotation, words_take_line(&rest));
    if (!is_written)
        return false;
    must(secret_file_read(secret_text_span(&rotation->made), &made, reason));
    must((secret_file_signing(&made)->id == rotation->new_id) == !rotation->is_next);
    must(span_equal(secret_file_holder(&made)->secret, secret_file_holder(&rotation->file)->secret));
    return true;
}

static bool line_write(struct rotation *rotation, struct span line)
{
    const struct secret_line *first = &rotation->file.list[0], *dropped = rotation->dropped;
    bool keeps_holder = dropped != NULL && secret_file_holder(&rotation->file) == dropped;

    if (line.data == first->line.data && !key_write(rotation))
        return false;
    if (rotation->promoted != NULL && line.data == rotation->promoted->line.data)
        return true;
    if (dropped == NULL || line.data != dropped->line.data)
        return add(&rotation->made, line) && add(&rotation->made, SPAN("\n"));
    return !keeps_holder || (add(&rotation->made, SPAN("holder ")) && add(&rotation->made, dropped->secret) &&
                             add(&rotation->made, SPAN("\n")));
}

static bool key_write(struct rotation *rotation)
{
    uint8_t chance[NEW_BYTES];
    char id[8], secret[2 * NEW_BYTES + 1];
    bool is_written;

    must(RAND_bytes(chance, sizeof(chance)) == 1);
    for (size_t i = 0; i < sizeof(chance); i++)
        snprintf(secret + 2 * i, 3, "%02x", chance[i]);
    snprintf(id, sizeof(id), "%d ", rotation->new_id);
    is_written =
        add(&rotation->made, span_of(id)) &&
        add(&rotation->made, rotation->promoted != NULL ? rotation->promoted->secret : span_of(secret)) &&
        add(&rotation->made, rotation->is_next ? SPAN(" next\n") : SPAN("\n"));
    explicit_bzero(chance, sizeof(chance));
    explicit_bzero(secret, sizeof(secret));
    return is_written;
}

static bool add(struct secret_text *out, struct span text)
{
    if (text.len > sizeof(out->bytes) - out->len)
        return false;
    memcpy(out->bytes + out->len, text.data, text.len);
    out->len += text.len;
    return true;
}

/* --- saying it ---------------------------------------------------------------------------------------------------- */

static void rotation_tell(const char *path, const struct rotation *rotation, bool as_json)
{
    struct secret_file made;
    char reason[SECRET_REASON_MAX];
    json_t *ids = say_no_memory_if_null(json_array()), *id;
    size_t index;

    must(secret_file_read(secret_text_span(&rotation->made), &made, reason));
    for (size_t i = 0; i < made.count; i++)
        if (made.list[i].id != SECRET_HOLDER_ID)
            json_array_append_new(ids, json_integer(made.list[i].id));
    if (as_json) {
        json_t *said = json_pack("{s:s,s:i,s:i,s:o}", "file", path, "new", (int)rotation->new_id, "signs",
                                 (int)secret_file_signing(&made)->id, "verify", ids);
        if (rotation->dropped != NULL)
            json_object_set_new(said, "dropped", json_integer(rotation->dropped->id));
        api_print_json(say_no_memory_if_null(said));
        return;
    }
    printf("%s: after the next reload key %d signs", path, secret_file_signing(&made)->id);
    if (rotation->is_next)
        printf(", key %d is next", rotation->new_id);
    printf(", and these verify:");
    json_array_foreach (ids, index, id)
        printf("%s %d", index > 0 ? "," : "", (int)json_integer_value(id));
    if (rotation->dropped != NULL)
        printf("; what key %d signed ends", rotation->dropped->id);
    putchar('\n');
    json_decref(ids);
}
