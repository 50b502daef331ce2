/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_TABLE_H
#define WEIR_CLI_TABLE_H

/* Rows of text in columns as wide as their widest cell. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct column {
    const char *title;
    bool to_the_right; /* numbers */
};

struct table;

/* `columns` outlives the table. Never NULL. */
struct table *table_new(const struct column *columns, size_t count);
void table_free(struct table *table);

/* Appends a cell, row by row, left to right. The text is copied, and cleaned for the terminal. */
void table_add(struct table *table, const char *text);

/* Titles, then rows. Two spaces between columns, none at the end of a line. */
void table_print(const struct table *table, FILE *out, bool with_colour);

#endif
