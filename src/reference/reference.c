/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Writes the reference pages from the tables that the code itself uses: reference FOLDER. A test runs it and compares, so
 * that the pages cannot say anything that is not so.
 */

#include "base/error.h"
#include "nginx/directives.h"
#include "room/follow.h"
#include "room/settings.h"

#include <stdio.h>
#include <stdlib.h>

struct directive {
    const char *name, *syntax, *initially, *contexts, *help;
};

static const struct directive directives[] = {
#define DIRECTIVE_ROW(name, syntax, initially, contexts, flags, level, set, help) \
    {name, syntax, initially, contexts, help},
    DIRECTIVE_LIST(DIRECTIVE_ROW)
#undef DIRECTIVE_ROW
};

static void write_directives(FILE *out)
{
    fputs("# Directives\n\nEvery directive of the nginx module.\n", out);
    for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++) {
        const struct directive *row = &directives[i];
        fprintf(out,
                "\n## %s\n\n| | |\n|---|---|\n| Syntax | `%s` |\n| Default | %s |\n| Context | %s |\n\n%s\n",
                row->name, row->syntax, row->initially, row->contexts, row->help);
    }
}

static const char *kind_name(enum setting_kind kind)
{
    switch (kind) {
    case SETTING_WHOLE:
        return "whole number";
    case SETTING_MILLI:
        return "number, up to three decimals";
    case SETTING_FLAG:
        return "`true` or `false`";
    case SETTING_MODE:
    case SETTING_PACE:
    case SETTING_PRESET:
        return "word";
    case SETTING_LINE:
        return "text";
    case SETTING_LOGO:
        return "address";
    case SETTING_COLOUR:
        return "colour";
    case SETTING_LANG:
        return "language";
    }
    return "";
}

static void write_range(FILE *out, const struct setting_info *info)
{
    char lowest[32], highest[32];

    if (info->kind == SETTING_LINE || info->kind == SETTING_LOGO) {
        fprintf(out, "up to %u characters", (unsigned)info->highest);
        return;
    }
    if (info->kind != SETTING_WHOLE && info->kind != SETTING_MILLI) {
        fputs("–", out);
        return;
    }
    setting_format(info, info->lowest, lowest, sizeof(lowest));
    setting_format(info, info->highest, highest, sizeof(highest));
    fprintf(out, "%s to %s", lowest, highest);
}

static void write_settings(FILE *out)
{
    fputs("# Room settings\n\nGiven as `name=value` to `weir_room` and `weir_rooms auto`, and as JSON to the "
          "operator's API. A text is one line; in nginx.conf one with spaces needs quotes around the whole "
          "parameter: `\"title=Winter sale\"`.\n\n"
          "| name | kind | range | default | meaning |\n|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting_info *info = &setting_list[i];
        char value[SETTING_NUMBER_MAX];

        fprintf(out, "| `%s` | %s | ", info->name, kind_name(info->kind));
        write_range(out, info);
        if (!setting_is_text(info))
            setting_format(info, info->value, value, sizeof(value));
        fprintf(out, " | %s%s%s | %s |\n", setting_is_text(info) ? "" : "`",
                setting_is_text(info) ? "–" : value, setting_is_text(info) ? "" : "`", info->help);
    }
    fputs("\n## The reasons of a pace\n\nWhat `pace_reason` says in a room's figures: see "
          "[a pace that follows the shop](../pace.md).\n\n| reason | meaning |\n|---|---|\n",
          out);
#define REASON_ROW(name, word, help) fputs("| `" word "` | " help " |\n", out);
    FOLLOW_REASON_LIST(REASON_ROW)
#undef REASON_ROW
}

static void write_errors(FILE *out)
{
    fputs("# Errors\n\nEvery error of the queue API and of the operator's API has the shape "
          "`{\"error\":{\"code\",\"message\",\"trace_id\"}}`, with "
          "`retry_after` (seconds) inside `error` and a `Retry-After` header where waiting helps. Codes are "
          "stable; messages "
          "are for people.\n\n| code | status | message | meaning |\n|---|---|---|---|\n",
          out);
    for (int error = ERROR_NONE + 1; error < ERROR_COUNT; error++) {
        const struct error_info *info = error_info(error);
        fprintf(out, "| `%s` | %d | %s | %s |\n", info->code, info->http_status, info->message,
                info->meaning);
    }
}

static void write_page(const char *folder, const char *name, void (*write)(FILE *out))
{
    char path[4096];
    FILE *out = NULL;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path))
        out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        exit(1);
    }
    fputs("<!-- Made by `make docs` from the tables in the code. Changes belong there. -->\n\n", out);
    write(out);
    if (fclose(out) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: reference FOLDER\n");
        return 2;
    }
    write_page(argv[1], "directives.md", write_directives);
    write_page(argv[1], "settings.md", write_settings);
    write_page(argv[1], "errors.md", write_errors);
    return 0;
}
