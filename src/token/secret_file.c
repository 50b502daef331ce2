/* SPDX-License-Identifier: BSD-2-Clause */
/* Read apart from the keys that are made of it, because the command line edits such a file and needs no key for that. */
#include "token/secret_file.h"

#include "base/ascii.h"
#include "base/must.h"
#include "base/words.h"

#include <stdio.h>

static const char *line_read(struct span text, struct secret_line *line);
static const char *line_add(struct secret_file *file, struct secret_line line);
static const char *file_problem(const struct secret_file *file);
static bool id_read(struct span text, uint8_t *id);

bool secret_file_read(struct span text, struct secret_file *out, char reason[SECRET_REASON_MAX])
{
    struct span line;
    unsigned number = 0;
    *out = (struct secret_file){0};
    while (words_next_line(&text, &number, &line)) {
        struct secret_line read;
        const char *problem = line_read(line, &read);
        if (problem == NULL)
            problem = line_add(out, read);
        if (problem != NULL) {
            snprintf(reason, SECRET_REASON_MAX, "line %u: %s", number, problem);
            return false;
        }
    }
    const char *problem = file_problem(out);
    if (problem != NULL)
        snprintf(reason, SECRET_REASON_MAX, "%s", problem);
    return problem == NULL;
}

const struct secret_line *secret_file_signing(const struct secret_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        if (file->list[i].id != SECRET_HOLDER_ID && !file->list[i].is_next)
            return &file->list[i];
    return NULL;
}

const struct secret_line *secret_file_holder(const struct secret_file *file)
{
    const struct secret_line *last = NULL;
    for (size_t i = 0; i < file->count; i++) {
        if (file->list[i].id == SECRET_HOLDER_ID)
            return &file->list[i];
        if (!file->list[i].is_next)
            last = &file->list[i];
    }
    return last;
}

/* NULL, or what is wrong with the line. */
static const char *line_read(struct span text, struct secret_line *line)
{
    *line = (struct secret_line){.line = text};
    struct span id = words_take(&text);
    line->secret = words_take(&text);
    struct span word = words_take(&text);
    line->is_next = span_equal(word, SPAN("next"));
    if (!span_equal(id, SPAN("holder")) && !id_read(id, &line->id))
        return "a key begins with its id, a number from 1 to 255, or with the word holder";
    if ((word.len != 0 && !line->is_next) || words_take(&text).len != 0)
        return "a key is an id and a secret, and nothing else but the word next";
    if (line->is_next && line->id == SECRET_HOLDER_ID)
        return "the holder line cannot be next: it never signs";
    if (line->secret.len < SECRET_MIN)
        return "the secret is too short: it needs at least 32 characters";
    if (line->secret.len > SECRET_MAX)
        return "the secret is too long: it may have 256 characters";
    return ascii_all_visible(line->secret) ? NULL : "the secret has a character that is not printable ASCII";
}

/* NULL, or why the line cannot stand beside the others. */
static const char *line_add(struct secret_file *file, struct secret_line line)
{
    bool is_holder = line.id == SECRET_HOLDER_ID;
    for (size_t i = 0; i < file->count; i++) {
        if (file->list[i].id == line.id)
            return is_holder ? "there is a holder line already" : "the id is taken by an earlier line";
        if (span_equal(file->list[i].secret, line.secret))
            return "the secret is that of an earlier line";
    }
    if (!is_holder && file->key_count == SECRET_KEYS_MAX)
        return "there are more than 8 keys";
    must(file->count <= SECRET_KEYS_MAX);
    file->list[file->count++] = line;
    file->key_count += is_holder ? 0 : 1;
    return NULL;
}

static const char *file_problem(const struct secret_file *file)
{
    if (file->key_count == 0)
        return "there is no key: write a line with a number from 1 to 255, a space and a secret";
    if (secret_file_signing(file) == NULL)
        return "there is no key that signs: every one is to be the next";
    return NULL;
}

/* A number from 1 to 255 in its one spelling, without leading zeros. */
static bool id_read(struct span text, uint8_t *id)
{
    unsigned number = 0;
    if (text.len < 1 || text.len > 3 || text.data[0] == '0')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (unsigned)(text.data[i] - '0');
    }
    *id = (uint8_t)number;
    return number <= 255;
}
