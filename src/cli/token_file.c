/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file, and not an option or a variable with the token in it: those show in `ps`, in the shell's history and in
 * /proc/PID/environ.
 */
#include "cli/token_file.h"

#include "base/ascii.h"
#include "base/words.h"
#include "cli/say.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

static bool token_find(FILE *file, char *token);
static bool token_of_line(struct span line, char *token);

int token_file_read(const char *path, char *token)
{
    FILE *file;
    bool is_found;

    if (path == NULL)
        path = getenv("WEIR_TOKEN_FILE");
    if (path == NULL || *path == '\0')
        return say_usage("no admin token: name its file with --token-file or WEIR_TOKEN_FILE");
    file = fopen(path, "re");
    if (file == NULL)
        return say_refused("cannot read the token file %s: %s", path, strerror(errno));
    is_found = token_find(file, token);
    fclose(file);
    return is_found ? 0 : say_refused("the token file %s does not start with a line `NAME TOKEN`", path);
}

/* The first line that is neither empty nor a comment decides: a broken one is not passed over for the next. */
static bool token_find(FILE *file, char *token)
{
    char line[LINE_MAX_BYTES];
    bool is_found = false, is_decided = false;
    unsigned number = 0;

    /* The token shall not stay behind in a buffer of stdio. */
    setvbuf(file, NULL, _IONBF, 0);
    while (!is_decided && fgets(line, sizeof(line), file) != NULL) {
        struct span text = span_of(line), entry;
        is_decided = words_next_line(&text, &number, &entry);
        is_found = is_decided && token_of_line(entry, token);
    }
    explicit_bzero(line, sizeof(line));
    return is_found;
}

static bool token_of_line(struct span line, char *token)
{
    struct span name = words_take(&line), second = words_take(&line);

    if (name.len == 0 || second.len == 0 || second.len > TOKEN_MAX || words_take(&line).len != 0 ||
        !ascii_all_visible(second))
        return false;
    memcpy(token, second.data, second.len);
    token[second.len] = '\0';
    return true;
}
