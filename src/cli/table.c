/* SPDX-License-Identifier: BSD-2-Clause */
/* Cells in one growing list: a row is just the next `count` of them, so a table can be read off any loop. */
#include "cli/table.h"

#include "cli/say.h"
#include "cli/text.h"

#include <stdlib.h>

struct table {
    const struct column *columns;
    size_t count;
    char **cells;
    size_t cells_used, cells_held;
};

static size_t column_width(const struct table *table, size_t column);
static void cell_print(const char *text, size_t width, bool to_the_right, bool is_last, FILE *out);

struct table *table_new(const struct column *columns, size_t count)
{
    struct table *table = say_no_memory_if_null(calloc(1, sizeof(*table)));

    table->columns = columns;
    table->count = count;
    return table;
}

void table_free(struct table *table)
{
    for (size_t i = 0; i < table->cells_used; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

void table_add(struct table *table, const char *text)
{
    if (table->cells_used == table->cells_held) {
        table->cells_held = table->cells_held * 2 + 64;
        table->cells =
            say_no_memory_if_null(reallocarray(table->cells, table->cells_held, sizeof(table->cells[0])));
    }
    table->cells[table->cells_used] = text_copy(text);
    text_clean(table->cells[table->cells_used++]);
}

void table_print(const struct table *table, FILE *out, bool with_colour)
{
    size_t *widths = say_no_memory_if_null(calloc(table->count, sizeof(widths[0])));

    for (size_t i = 0; i < table->count; i++)
        widths[i] = column_width(table, i);
    fputs(with_colour ? "\033[1m" : "", out);
    for (size_t i = 0; i < table->count; i++)
        cell_print(table->columns[i].title, widths[i], table->columns[i].to_the_right, i + 1 == table->count,
                   out);
    fputs(with_colour ? "\033[0m\n" : "\n", out);
    for (size_t i = 0; i < table->cells_used; i++) {
        size_t column = i % table->count;
        bool is_last = column + 1 == table->count;
        cell_print(table->cells[i], widths[column], table->columns[column].to_the_right, is_last, out);
        if (is_last)
            fputc('\n', out);
    }
    free(widths);
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t widest = text_width(table->columns[column].title);

    for (size_t i = column; i < table->cells_used; i += table->count) {
        size_t width = text_width(table->cells[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void cell_print(const char *text, size_t width, bool to_the_right, bool is_last, FILE *out)
{
    int padding = (int)(width - text_width(text));

    if (to_the_right)
        fprintf(out, "%*s%s", padding, "", text);
    else
        fprintf(out, "%s%*s", text, is_last ? 0 : padding, "");
    if (!is_last)
        fputs("  ", out);
}
