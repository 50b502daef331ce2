/* SPDX-License-Identifier: BSD-2-Clause */
/* `weir rooms`: every room in one table, a row each, in the order the server gives them. */
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/say.h"

#include <stdio.h>

static const struct field fields[] = {
    {"id", "ROOM", FIELD_WORD},
    {"mode", "MODE", FIELD_WORD},
    {"waiting", "WAITING", FIELD_COUNT},
    {"away", "AWAY", FIELD_COUNT},
    {"called", "CALLED", FIELD_COUNT},
    {"inside", "INSIDE", FIELD_COUNT},
    {"max_active", "SLOTS", FIELD_LIMIT},
    {"rate", "PACE/s", FIELD_DECIMAL},
    {"joined_per_sec", "IN/s", FIELD_DECIMAL},
    {"called_per_sec", "OUT/s", FIELD_DECIMAL},
    {"eta_sec", "WAIT NOW", FIELD_DURATION},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static void rooms_print(const json_t *rooms);

int rooms_run(const struct args *args)
{
    int exit_code;
    struct api *api;
    json_t *answer;

    if (args->count > 1)
        return say_usage("rooms takes no words (weir rooms --help)");
    api = api_new(args, &exit_code);
    if (api == NULL)
        return exit_code;
    answer = api_call(api, "GET", "rooms", NULL);
    if (answer == NULL)
        exit_code = say_refused("%s", api_reason(api));
    else if (args_has(args, OPTION_JSON))
        exit_code = api_print_json(json_incref(answer));
    else if (!json_is_array(json_object_get(answer, "rooms")))
        exit_code = api_say_strange(api);
    else
        rooms_print(json_object_get(answer, "rooms"));
    json_decref(answer);
    api_free(api);
    return exit_code;
}

static void rooms_print(const json_t *rooms)
{
    if (json_array_size(rooms) == 0)
        puts("There are no rooms.");
    else
        field_table_print(rooms, fields, FIELDS);
}
