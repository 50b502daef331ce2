/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_WORDS_H
#define WEIR_BASE_WORDS_H

/* Small files that people write: lines, and words in them. What is taken is a part of the text, which moves behind it. */

#include "base/span.h"

/* A file that was edited elsewhere may end its lines with a carriage return. */
static inline bool words_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The text must not be empty. The line has no newline. */
static inline struct span words_take_line(struct span *text)
{
    const char *end = memchr(text->data, '\n', text->len);
    struct span line = {text->data, end != NULL ? (size_t)(end - text->data) : text->len};
    size_t taken = end != NULL ? line.len + 1 : line.len;
    *text = (struct span){text->data + taken, text->len - taken};
    return line;
}

/* Empty: there is none left. */
static inline struct span words_take(struct span *line)
{
    size_t start = 0;
    while (start < line->len && words_is_blank(line->data[start]))
        start++;
    size_t end = start;
    while (end < line->len && !words_is_blank(line->data[end]))
        end++;
    struct span word = {line->data + start, end - start};
    *line = (struct span){line->data + end, line->len - end};
    return word;
}

/*
 * The next line that is neither blank nor a comment, which begins with '#'. `number` is that of the line before, 0 at first,
 * and becomes that of this one. False: there is none left.
 */
static inline bool words_next_line(struct span *text, unsigned *number, struct span *line)
{
    while (text->len > 0) {
        *line = words_take_line(text);
        struct span rest = *line, first = words_take(&rest);
        ++*number;
        if (first.len > 0 && first.data[0] != '#')
            return true;
    }
    return false;
}

#endif
