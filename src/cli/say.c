/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One door for everything the command says on stderr, so that it is always one line, always starts with the name of the
 * command, and never carries control characters to the terminal, whoever wrote the words.
 */
#include "cli/say.h"

#include "cli/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void say_line(const char *format, va_list values) __attribute__((format(printf, 1, 0)));

int say_refused(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    say_line(format, values);
    va_end(values);
    return EXIT_REFUSED;
}

int say_usage(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    say_line(format, values);
    va_end(values);
    return EXIT_USAGE;
}

void *say_no_memory_if_null(void *pointer)
{
    if (pointer == NULL)
        exit(say_refused("out of memory"));
    return pointer;
}

static void say_line(const char *format, va_list values)
{
    char line[2048];

    vsnprintf(line, sizeof(line), format, values);
    text_clean(line);
    fprintf(stderr, "weir: %s\n", line);
}
