/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_SAY_H
#define WEIR_CLI_SAY_H

/*
 * How the command ends when it cannot do what was asked: one line on stderr, and the exit code to return from main.
 *
 *   1  the server refused, could not be reached or made no sense     2  the command line is wrong
 */
#define EXIT_REFUSED 1
#define EXIT_USAGE   2

/* Prints `weir: …` and returns EXIT_REFUSED. What a server sent may stand in it: it is made harmless first. */
int say_refused(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints `weir: …` and returns EXIT_USAGE. */
int say_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For allocations: a person's command has nothing to save when memory is out, so it says so and ends. Never NULL. */
void *say_no_memory_if_null(void *pointer);

#endif
