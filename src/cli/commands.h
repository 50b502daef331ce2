/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_COMMANDS_H
#define WEIR_CLI_COMMANDS_H

/*
 * The commands. Each is given the whole line, its own name as the first word, and returns the exit code; options that it
 * does not take were refused before.
 */

#include "cli/args.h"

int plan_run(const struct args *args);
int rooms_run(const struct args *args);
int room_run(const struct args *args);
int ticket_run(const struct args *args);
int top_run(const struct args *args);
int journal_run(const struct args *args);
int key_run(const struct args *args);
int pass_run(const struct args *args);
int redis_run(const struct args *args);

#endif
