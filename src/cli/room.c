/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir room ID …`: one room, and everything an operator does to it. Each verb is a row of a table and one call; whether a
 * setting exists and what it may be is the server's to say, so that an older command can set what a newer server knows.
 */
#include "base/room_id.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/number.h"
#include "cli/say.h"
#include "cli/text.h"
#include "room/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_BYTES (ROOM_ID_MAX + 32)

/* One call to come: what is sent, and which field of the answer says how many it touched. */
struct deed {
    const char *method, *path_end;
    json_t *body;
    const char *counted, *done;
};

static int room_show(struct api *api, const char *id, bool as_json);
static int room_do(struct api *api, const char *id, struct deed *deed, bool as_json);
static int deed_read(const struct args *args, struct deed *deed);

int room_run(const struct args *args)
{
    bool as_json = args_has(args, OPTION_JSON);
    struct deed deed = {0};
    struct api *api;
    int exit_code;

    if (args->count < 2)
        return say_usage("room needs the id of a room (weir room --help)");
    if (!room_id_is_valid(span_of(args->words[1])))
        return say_usage("\"%s\" cannot be a room: ids are 1 to 64 of A-Z a-z 0-9 _ . : -", args->words[1]);
    exit_code = args->count > 2 ? deed_read(args, &deed) : 0;
    if (exit_code != 0)
        return exit_code;
    api = api_new(args, &exit_code);
    if (api == NULL)
        json_decref(deed.body);
    else if (deed.method == NULL)
        exit_code = room_show(api, args->words[1], as_json);
    else
        exit_code = room_do(api, args->words[1], &deed, as_json);
    if (api != NULL)
        api_free(api);
    return exit_code;
}

/* --- showing ------------------------------------------------------------------------------------------------------ */

static const struct field figures[] = {
    {"waiting", "waiting", FIELD_COUNT},
    {"away", "away", FIELD_COUNT},
    {"called", "called", FIELD_COUNT},
    {"entered", "entered", FIELD_COUNT},
    {"active", "active", FIELD_COUNT},
    {"inside", "inside (called + entered + active)", FIELD_COUNT},
    {"max_active", "slots", FIELD_LIMIT},
    {"rate", "pace, calls per second", FIELD_DECIMAL},
    {"pace_reason", "why this pace", FIELD_WORD},
    {"shop_ms", "shop's time to the first byte, ms", FIELD_COUNT},
    {"shop_target_ms", "target of that, ms", FIELD_COUNT},
    {"shop_failed_percent", "shop's answers that fail, %", FIELD_DECIMAL},
    {"joined_per_sec", "joined per second, last 10 s", FIELD_DECIMAL},
    {"called_per_sec", "called per second, last 10 s", FIELD_DECIMAL},
    {"eta_sec", "wait of someone joining now", FIELD_DURATION},
    {"issued", "tickets issued", FIELD_COUNT},
    {"done", "tickets done", FIELD_COUNT},
    {"calls", "calls", FIELD_COUNT},
    {"refunds", "calls given back", FIELD_COUNT},
    {"last_called", "highest count called", FIELD_COUNT},
    {"epoch", "epoch", FIELD_COUNT},
    {"eta_inside_band", "called inside the band shown", FIELD_COUNT},
    {"eta_checked", "of so many checked", FIELD_COUNT},
    {"keys_dropped", "idempotency keys dropped", FIELD_COUNT},
};

static json_t *room_get(struct api *api, const char *id, const char *path_end);
static void settings_print(json_t *settings);

static int room_show(struct api *api, const char *id, bool as_json)
{
    json_t *room = room_get(api, id, "");
    json_t *known = room == NULL ? NULL : room_get(api, id, "/figures");
    int exit_code = 0;

    if (known == NULL)
        exit_code = say_refused("%s", api_reason(api));
    else if (as_json) {
        json_object_set(room, "figures", known);
        api_print_json(json_incref(room));
    } else if (!json_is_object(json_object_get(room, "settings")))
        exit_code = api_say_strange(api);
    else {
        field_list_print(known, figures, sizeof(figures) / sizeof(figures[0]));
        putchar('\n');
        settings_print(json_object_get(room, "settings"));
        if (json_is_string(json_object_get(room, "source")))
            printf("\nSettings come from the %s.\n",
                   strcmp(json_string_value(json_object_get(room, "source")), "api") == 0 ? "API" : "file");
    }
    json_decref(room);
    json_decref(known);
    return exit_code;
}

static json_t *room_get(struct api *api, const char *id, const char *path_end)
{
    char path[PATH_MAX_BYTES];

    snprintf(path, sizeof(path), "rooms/%s%s", id, path_end);
    return api_call(api, "GET", path, NULL);
}

static void settings_print(json_t *settings)
{
    static const struct column columns[] = {{"SETTING", false}, {"VALUE", false}};
    struct table *table = table_new(columns, 2);
    char text[FIELD_TEXT_MAX];
    const char *name;
    json_t *value;

    json_object_foreach (settings, name, value) {
        table_add(table, name);
        table_add(table, field_value_text(value, text));
    }
    table_print(table, stdout, text_may_colour(stdout));
    table_free(table);
}

/* --- reading what to do ------------------------------------------------------------------------------------------- */

static int settings_read(const struct args *args, struct deed *deed);
static int count_read(const struct args *args, struct deed *deed);

struct verb {
    const char *word;
    const char *method, *path_end;
    const char *mode;           /* what the verb sets the mode to */
    const char *counted, *done; /* see struct deed */
    int (*read)(const struct args *args,
                struct deed *deed); /* reads the words after the verb; NULL = there are none */
};

static const struct verb verbs[] = {
    {"set", "PATCH", "", NULL, NULL, NULL, settings_read},
    {"hold", "PATCH", "", "hold", NULL, NULL, NULL},
    {"open", "PATCH", "", "open", NULL, NULL, NULL},
    {"close", "PATCH", "", "closed", NULL, NULL, NULL},
    {"queue", "PATCH", "", "queue", NULL, NULL, NULL},
    {"advance", "POST", "/advance", NULL, "called", "called", count_read},
    {"clear", "POST", "/clear", NULL, "cleared", "cleared", NULL},
    {"delete", "DELETE", "", NULL, NULL, "deleted", NULL},
};

static int deed_read(const struct args *args, struct deed *deed)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        const struct verb *verb = &verbs[i];
        if (strcmp(args->words[2], verb->word) != 0)
            continue;
        if (verb->read == NULL && args->count > 3)
            return say_usage("room %s takes no further words (weir room --help)", verb->word);
        *deed = (struct deed){verb->method, verb->path_end, NULL, verb->counted, verb->done};
        if (verb->mode != NULL)
            deed->body = say_no_memory_if_null(json_pack("{s:s}", "mode", verb->mode));
        return verb->read == NULL ? 0 : verb->read(args, deed);
    }
    return say_usage("a room can be set, hold, open, close, queue, advance, clear or delete, not \"%s\"",
                     args->words[2]);
}

static json_t *value_read(const char *name, const char *text);

static int settings_read(const struct args *args, struct deed *deed)
{
    char name[64];

    if (args->count < 4)
        return say_usage("room set needs NAME=VALUE (weir room --help)");
    deed->body = say_no_memory_if_null(json_object());
    for (size_t i = 3; i < args->count; i++) {
        const char *word = args->words[i];
        size_t len = strcspn(word, "=");
        snprintf(name, sizeof(name), "%.*s", (int)len, word);
        if (word[len] != '=' || len == 0 || len >= sizeof(name) ||
            json_object_get(deed->body, name) != NULL ||
            json_object_set_new(deed->body, name, value_read(name, word + len + 1)) != 0) {
            json_decref(deed->body);
            return say_usage("room set needs NAME=VALUE once for each setting, not \"%s\"", word);
        }
    }
    return 0;
}

static bool is_word(const char *name);

/*
 * Nothing = back to the default. Otherwise what it looks like, unless the setting is known to be a word or a text. NULL where
 * that is not UTF-8.
 */
static json_t *value_read(const char *name, const char *text)
{
    uint64_t whole, milli;

    if (*text == '\0')
        return json_null();
    if (is_word(name))
        return json_string(text);
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return json_boolean(*text == 't');
    if (number_read_whole(text, &whole))
        return json_integer((json_int_t)whole);
    if (number_read_milli(text, &milli))
        return json_real((double)milli / 1000);
    return json_string(text);
}

static bool is_word(const char *name)
{
    const struct setting_info *info = setting_find(span_of(name));

    return info != NULL && (setting_is_word(info) || setting_is_text(info));
}

static int count_read(const struct args *args, struct deed *deed)
{
    uint64_t count;

    if (args->count != 4 || !number_read_whole(args->words[3], &count) || count == 0)
        return say_usage("room advance needs how many people to call, a whole number from 1");
    deed->body = say_no_memory_if_null(json_pack("{s:I}", "count", (json_int_t)count));
    return 0;
}

/* --- doing -------------------------------------------------------------------------------------------------------- */

static void changed_print(const char *id, json_t *body, const json_t *answer);

static int room_do(struct api *api, const char *id, struct deed *deed, bool as_json)
{
    char path[PATH_MAX_BYTES], count[FIELD_TEXT_MAX];
    json_t *sent = json_incref(deed->body);
    json_t *answer;
    int exit_code = 0;

    snprintf(path, sizeof(path), "rooms/%s%s", id, deed->path_end);
    answer = api_call(api, deed->method, path, deed->body);
    if (answer == NULL)
        exit_code = say_refused("%s", api_reason(api));
    else if (as_json)
        api_print_json(json_incref(answer));
    else if (deed->counted != NULL)
        printf("%s: %s %s\n", id, field_text(answer, &(struct field){deed->counted, "", FIELD_COUNT}, count),
               deed->done);
    else if (deed->done != NULL)
        printf("%s: %s\n", id, deed->done);
    else
        changed_print(id, sent, answer);
    json_decref(answer);
    json_decref(sent);
    return exit_code;
}

/* What the server now says of each setting that was sent: `concert: rate 10, burst 1`. */
static void changed_print(const char *id, json_t *body, const json_t *answer)
{
    char text[FIELD_TEXT_MAX];
    const char *name, *between = " ";
    json_t *value;

    printf("%s:", id);
    json_object_foreach (body, name, value) {
        field_value_text(json_object_get(json_object_get(answer, "settings"), name), text);
        text_clean(text);
        printf("%s%s %s", between, name, text);
        between = ", ";
    }
    putchar('\n');
}
