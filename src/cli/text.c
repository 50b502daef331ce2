/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages and names come from a server, and a server may be anyone's: an escape sequence in the name of a room must
 * not reach the terminal of the operator. So everything is cleaned before it is shown, letter by letter, and widths are
 * counted in columns, not in bytes.
 */
/* wcwidth is not in plain C. */
#define _GNU_SOURCE

#include "cli/text.h"

#include "cli/say.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

static size_t letter_read(const char *text, wchar_t *letter);
static bool letter_is_harmless(wchar_t letter);
static size_t letter_width(wchar_t letter);

void text_clean(char *text)
{
    char *out = text;
    wchar_t letter;

    for (size_t len; *text != '\0'; text += len) {
        len = letter_read(text, &letter);
        if (letter == L'\n') {
            *out++ = ' ';
        } else if (letter_is_harmless(letter)) {
            memmove(out, text, len);
            out += len;
        } else {
            *out++ = '?';
        }
    }
    *out = '\0';
}

size_t text_width(const char *text)
{
    size_t width = 0;
    wchar_t letter;

    while (*text != '\0') {
        text += letter_read(text, &letter);
        width += letter_width(letter);
    }
    return width;
}

size_t text_fit(const char *text, size_t columns)
{
    const char *at = text;
    wchar_t letter;

    while (*at != '\0') {
        size_t len = letter_read(at, &letter);
        if (letter_width(letter) > columns)
            break;
        columns -= letter_width(letter);
        at += len;
    }
    return (size_t)(at - text);
}

char *text_copy(const char *text)
{
    return say_no_memory_if_null(strdup(text));
}

bool text_may_colour(FILE *stream)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return isatty(fileno(stream)) && (no_colour == NULL || *no_colour == '\0') &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

/* Length of the first letter; a byte that starts none stands for itself, as a letter that is not harmless. */
static size_t letter_read(const char *text, wchar_t *letter)
{
    mbstate_t state = {0};
    size_t len = mbrtowc(letter, text, strlen(text), &state);

    if (len != (size_t)-1 && len != (size_t)-2 && len != 0)
        return len;
    *letter = L'\x7f';
    return 1;
}

static bool letter_is_harmless(wchar_t letter)
{
    bool turns_direction = (letter >= 0x202a && letter <= 0x202e) || (letter >= 0x2066 && letter <= 0x2069);

    return letter >= L' ' && !iswcntrl((wint_t)letter) && !turns_direction;
}

static size_t letter_width(wchar_t letter)
{
    int width = wcwidth(letter);

    return width < 0 ? 1 : (size_t)width;
}
