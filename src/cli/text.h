/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_TEXT_H
#define WEIR_CLI_TEXT_H

/* Text on its way to a terminal. All of it is UTF-8; main sets a UTF-8 locale before anything here is called. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Makes text from elsewhere harmless, in place: control characters, direction overrides and broken UTF-8 become `?`, a
 * line break a space. The text never grows.
 */
void text_clean(char *text);

/* Columns that the text takes on a terminal: a Korean letter takes two. */
size_t text_width(const char *text);

/* Bytes at the start of `text` that fit into so many columns. */
size_t text_fit(const char *text, size_t columns);

/* A copy that the caller frees. Never NULL. */
char *text_copy(const char *text);

/* May this stream be given colours? Only a terminal, and not where NO_COLOR is set (to anything but nothing). */
bool text_may_colour(FILE *stream);

#endif
