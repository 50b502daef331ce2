/* SPDX-License-Identifier: BSD-2-Clause */
/* Printable ASCII is all that a token can be; anything else is a mistake in pasting. */
#include "cli/token_word.h"

#include "base/ascii.h"
#include "cli/say.h"

#include <stdio.h>
#include <string.h>

int token_word_read(const char *word, char token[TOKEN_WORD_MAX])
{
    if (strcmp(word, "-") == 0) {
        if (fgets(token, TOKEN_WORD_MAX, stdin) == NULL)
            return say_usage("there is no token on stdin");
        token[strcspn(token, "\r\n")] = '\0';
    } else {
        snprintf(token, TOKEN_WORD_MAX, "%s", word);
    }
    if (*token == '\0' || strlen(token) == TOKEN_WORD_MAX - 1)
        return say_usage("a token has 1 to %d characters", TOKEN_WORD_MAX - 2);
    if (!ascii_all_visible(span_of(token)))
        return say_usage("a token has no spaces and nothing but printable ASCII in it");
    return 0;
}
