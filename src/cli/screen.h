/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_SCREEN_H
#define WEIR_CLI_SCREEN_H

/* The whole terminal, for as long as a live view runs; afterwards everything is as it was. One at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct screen {
    int signals; /* where Ctrl-C, a kill, a closed terminal and a new size arrive */
    bool has_keys;
    bool is_over; /* the person is done */
    struct termios before;
};

/* False when the terminal cannot be used so. */
bool screen_open(struct screen *screen);
void screen_close(struct screen *screen);

/* Shows lines of plain text, cut to the terminal's size; the first is a heading, and `heading_line` too (bold). */
void screen_paint(const char *frame, size_t heading_line, bool with_colour);

/* Waits so long, or until a key or signal: true when the person wants to end (q, Ctrl-C) or the process is told to. */
bool screen_wait(struct screen *screen, int milliseconds);

/* How many lines and columns there are. */
size_t screen_height(void);
size_t screen_width(void);

#endif
