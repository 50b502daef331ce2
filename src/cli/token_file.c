/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file, and not an option or a variable with the token in it: those show in `ps`, in the shell's history and in
 * /proc/PID/environ.
 */
#include "cli/token_file.h"

#include "cli/say.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024
#define BLANKS         " \t\r\n"

static bool token_find(FILE *file, char *token);
static bool token_of_line(char *line, char *token);

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
    bool is_found = false;

    /* The token shall not stay behind in a buffer of stdio. */
    setvbuf(file, NULL, _IONBF, 0);
    while (fgets(line, sizeof(line), file) != NULL)
        if (line[0] != '#' && line[strspn(line, BLANKS)] != '\0') {
            is_found = token_of_line(line, token);
            break;
        }
    explicit_bzero(line, sizeof(line));
    return is_found;
}

static bool token_of_line(char *line, char *token)
{
    char *rest = NULL;
    const char *name = strtok_r(line, BLANKS, &rest);
    const char *second = strtok_r(NULL, BLANKS, &rest);

    if (name == NULL || second == NULL || strtok_r(NULL, BLANKS, &rest) != NULL || strlen(second) > TOKEN_MAX)
        return false;
    for (const char *at = second; *at != '\0'; at++)
        if (*at < '!' || *at > '~')
            return false;
    memcpy(token, second, strlen(second) + 1);
    return true;
}
