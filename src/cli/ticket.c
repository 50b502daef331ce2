/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir ticket show TOKEN`: what the server knows of a ticket, for whoever answers "I was in line and now I am not".
 * The token opens someone's place, so it can come on stdin, out of the shell's history.
 */
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/say.h"
#include "cli/token_word.h"

#include <stdio.h>
#include <string.h>

static const struct field fields[] = {
    {"kind", "kind", FIELD_WORD},
    {"room", "room", FIELD_WORD},
    {"state", "state", FIELD_WORD},
    {"position", "position", FIELD_COUNT},
    {"ready_for_entry", "may enter now", FIELD_FLAG},
    {"waited_sec", "waited", FIELD_DURATION},
    {"eta_sec", "wait ahead", FIELD_DURATION},
    {"eta_low_sec", "wait ahead, at least", FIELD_DURATION},
    {"eta_high_sec", "wait ahead, at most", FIELD_DURATION},
    {"issued_at", "issued", FIELD_MOMENT},
    {"expires_at", "expires", FIELD_MOMENT},
    {"epoch", "epoch", FIELD_COUNT},
    {"count", "count", FIELD_COUNT},
    {"trusted", "of a trusted identity", FIELD_FLAG},
};

int ticket_run(const struct args *args)
{
    char token[TOKEN_WORD_MAX];
    struct api *api;
    json_t *answer;
    int exit_code;

    if (args->count != 3 || strcmp(args->words[1], "show") != 0)
        return say_usage("ticket is used as: weir ticket show TOKEN, or - to read the token from stdin");
    exit_code = token_word_read(args->words[2], token);
    if (exit_code != 0)
        return exit_code;
    api = api_new(args, &exit_code);
    if (api == NULL)
        return exit_code;
    answer = api_call(api, "POST", "ticket", say_no_memory_if_null(json_pack("{s:s}", "token", token)));
    if (answer == NULL)
        exit_code = say_refused("%s", api_reason(api));
    else if (args_has(args, OPTION_JSON))
        api_print_json(json_incref(answer));
    else
        field_list_print(answer, fields, sizeof(fields) / sizeof(fields[0]));
    json_decref(answer);
    api_free(api);
    return exit_code;
}
