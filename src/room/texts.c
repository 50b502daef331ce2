/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A text is judged once, where it is set; whoever shows it escapes it for where it stands. What no escape makes harmless is
 * refused here: bytes that are no UTF-8, what breaks a line or turns the direction of everything behind it, and addresses that
 * a browser would run or fetch from anybody.
 */

#include "room/texts.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* Those that the page is written in. */
static const char *const languages[] = {"ko", "en", "ja", "zh", "es", "de", "fr"};

#define LANGUAGES (sizeof(languages) / sizeof(languages[0]))

static bool is_line(struct span text, size_t most);
static bool is_address(struct span text, size_t most);
static bool is_colour(struct span text);
static bool is_language(struct span text);

bool text_is_valid(const struct setting_info *info, struct span value)
{
    switch (info->kind) {
    case SETTING_LINE:
        return is_line(value, info->highest);
    case SETTING_LOGO:
        return is_address(value, info->highest);
    case SETTING_COLOUR:
        return is_colour(value);
    case SETTING_LANG:
        return is_language(value);
    default:
        return false;
    }
}

/* Controls, line and paragraph separators; embeddings, overrides and isolates of a direction. */
static bool is_unfit(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character < 0xA0) ||
           (character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

static bool is_line(struct span text, size_t most)
{
    const char *at = text.data, *end = text.data + text.len;

    for (size_t characters = 0; at < end; characters++) {
        size_t bytes = utf8_length(at, end);
        if (bytes == 0 || characters == most || is_unfit(utf8_decode(at, bytes)))
            return false;
        at += bytes;
    }
    return true;
}

static bool begins_with(struct span text, struct span start)
{
    return text.len >= start.len && memcmp(text.data, start.data, start.len) == 0;
}

static bool is_of_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* What RFC 3986 lets an address consist of. A backslash is none of it: browsers take one for a slash. */
static bool is_of_address(char c)
{
    return is_of_name(c) || (c != '\0' && strchr("-._~:/?#[]@!$&'()*+,;=%", c) != NULL);
}

/* Two slashes would begin the name of another site. */
static bool is_address(struct span text, size_t most)
{
    struct span https = SPAN("https://");
    bool is_elsewhere = begins_with(text, https) && text.len > https.len &&
                        (is_of_name(text.data[https.len]) || text.data[https.len] == '[');
    bool is_path = begins_with(text, SPAN("/")) && !begins_with(text, SPAN("//"));

    for (size_t i = 0; i < text.len && i < most; i++)
        if (!is_of_address(text.data[i]))
            return false;
    return (is_elsewhere || is_path) && text.len <= most;
}

static bool is_colour(struct span text)
{
    for (size_t i = 1; i < text.len && i < 7; i++)
        if (strchr("0123456789abcdefABCDEF", text.data[i]) == NULL || text.data[i] == '\0')
            return false;
    return text.len == 7 && text.data[0] == '#';
}

static bool is_language(struct span text)
{
    for (size_t i = 0; i < LANGUAGES; i++)
        if (span_equal(text, span_of(languages[i])))
            return true;
    return false;
}

static void say_languages(char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < LANGUAGES && used < size; i++) {
        const char *before = i == 0 ? "" : i + 1 == LANGUAGES ? " or " : ", ";
        used += (size_t)snprintf(out + used, size - used, "%s%s", before, languages[i]);
    }
}

void text_say_allowed(const struct setting_info *info, char *out, size_t size)
{
    switch (info->kind) {
    case SETTING_LINE:
        snprintf(out, size,
                 "text of at most %u characters in UTF-8, without line breaks, control characters and those "
                 "that change the direction of writing",
                 (unsigned)info->highest);
        break;
    case SETTING_LOGO:
        snprintf(out, size,
                 "an address that begins with https:// or a path on the same site that begins with one /, of "
                 "at most %u characters",
                 (unsigned)info->highest);
        break;
    case SETTING_COLOUR:
        snprintf(out, size, "#rrggbb, with six hexadecimal digits");
        break;
    default:
        say_languages(out, size);
        break;
    }
}
