/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir top`: what is going on, in one screen, the longest line first. A frame is plain text made of one answer, so that
 * what a pipe gets and what the terminal shows are the same, but that long names do not push the figures off a screen. It asks once a second rather than listening to the stream: a
 * server that restarts, or a network that goes away and returns, is then just a frame that says so.
 */
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "cli/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REFRESH_MS 1000
#define BAR_CELLS  10

/* A live view gives names a quarter of the screen, and at least this much. */
#define NAME_COLUMNS_MIN 12

/* Lines of a frame around its rooms: heading, empty line, titles; and the line that says how many did not fit. */
#define FRAME_TITLES 2
#define FRAME_AROUND 5

static const struct field fields[] = {
    {"id", "ROOM", FIELD_WORD},
    {"mode", "MODE", FIELD_WORD},
    {"waiting", "WAITING", FIELD_COUNT},
    {"called", "CALLED", FIELD_COUNT},
    {"inside", "INSIDE", FIELD_COUNT},
    {"joined_per_sec", "IN/s", FIELD_DECIMAL},
    {"called_per_sec", "OUT/s", FIELD_DECIMAL},
    {"eta_sec", "ETA", FIELD_DURATION},
};

#define FIELDS  (sizeof(fields) / sizeof(fields[0]))
#define COLUMNS (FIELDS + 2)

static int top_live(struct api *api, json_t *answer);
static char *frame_of(struct api *api, json_t *answer, size_t rooms_max, size_t name_columns);

int top_run(const struct args *args)
{
    int exit_code;
    struct api *api;
    json_t *answer;

    if (args->count > 1)
        return say_usage("top takes no words (weir top --help)");
    api = api_new(args, &exit_code);
    if (api == NULL)
        return exit_code;
    answer = api_call(api, "GET", "rooms", NULL);
    if (answer == NULL) {
        exit_code = say_refused("%s", api_reason(api));
    } else if (args_has(args, OPTION_JSON)) {
        exit_code = api_print_json(json_incref(answer));
    } else if (!json_is_array(json_object_get(answer, "rooms"))) {
        exit_code = api_say_strange(api);
    } else if (!args_has(args, OPTION_ONCE) && isatty(STDOUT_FILENO)) {
        exit_code = top_live(api, json_incref(answer));
    } else {
        char *frame = frame_of(api, answer, SIZE_MAX, SIZE_MAX);
        fputs(frame, stdout);
        free(frame);
    }
    json_decref(answer);
    api_free(api);
    return exit_code;
}

/* --- the live view ------------------------------------------------------------------------------------------------ */

static bool is_over(void *context)
{
    return screen_wait(context, 0);
}

/* Consumes the first answer. One that fails later is a line in the frame: the next may come. */
static int top_live(struct api *api, json_t *answer)
{
    bool with_colour = text_may_colour(stdout);
    struct screen screen;

    if (!screen_open(&screen)) {
        json_decref(answer);
        return say_refused("this terminal cannot show a live view; try --once");
    }
    api_set_interrupt(api, is_over, &screen);
    do {
        size_t height = screen_height(), quarter = screen_width() / 4;
        char *frame = frame_of(api, answer, height > FRAME_AROUND ? height - FRAME_AROUND : 1,
                               quarter > NAME_COLUMNS_MIN ? quarter : NAME_COLUMNS_MIN);
        screen_paint(frame, FRAME_TITLES, with_colour);
        free(frame);
        if (screen_wait(&screen, REFRESH_MS))
            break;
        json_decref(answer);
        answer = api_call(api, "GET", "rooms", NULL);
    } while (!screen_wait(&screen, 0));
    screen_close(&screen);
    json_decref(answer);
    return 0;
}

/* --- a frame ------------------------------------------------------------------------------------------------------ */

static json_t *rooms_sorted(json_t *rooms);
static void rooms_print(json_t *rooms, size_t rooms_max, size_t name_columns, FILE *out);

/* The text of one frame, the caller's to free. `answer` is NULL when the call failed. */
static char *frame_of(struct api *api, json_t *answer, size_t rooms_max, size_t name_columns)
{
    json_t *rooms = rooms_sorted(json_object_get(answer, "rooms"));
    size_t size, count = json_array_size(rooms);
    char *frame = NULL, clock[32], *heading;
    FILE *out = say_no_memory_if_null(open_memstream(&frame, &size));
    time_t now = time(NULL);
    struct tm local;

    strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
    heading = text_copy(answer == NULL ? api_reason(api) : api_url(api));
    text_clean(heading);
    if (answer == NULL)
        fprintf(out, "weir top  %s  %s; trying again, q ends\n", clock, heading);
    else
        fprintf(out, "weir top  %s  %s  %zu %s\n", clock, heading, count, count == 1 ? "room" : "rooms");
    free(heading);
    if (count > 0)
        rooms_print(rooms, rooms_max, name_columns, out);
    json_decref(rooms);
    fclose(out);
    return say_no_memory_if_null(frame);
}

static int by_waiting(const void *a, const void *b)
{
    const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
    double difference = field_number(right, "waiting") - field_number(left, "waiting");
    const char *name = json_string_value(json_object_get(left, "id"));
    const char *other = json_string_value(json_object_get(right, "id"));

    if (difference != 0)
        return difference > 0 ? 1 : -1;
    return strcmp(name == NULL ? "" : name, other == NULL ? "" : other);
}

/* A new list of the same rooms, the longest line first. */
static json_t *rooms_sorted(json_t *rooms)
{
    size_t count = json_array_size(rooms);
    json_t **order = say_no_memory_if_null(calloc(count + 1, sizeof(json_t *)));
    json_t *sorted = say_no_memory_if_null(json_array());

    for (size_t i = 0; i < count; i++)
        order[i] = json_array_get(rooms, i);
    qsort(order, count, sizeof(json_t *), by_waiting);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, order[i]);
    free(order);
    return sorted;
}

static void name_shorten(char *name, size_t columns);
static void bar_add(struct table *table, double part, double whole);

/* The bar of the line is as long as its share of the longest one; that of the slots, as they are filled. */
static void rooms_print(json_t *rooms, size_t rooms_max, size_t name_columns, FILE *out)
{
    double longest = field_number(json_array_get(rooms, 0), "waiting");
    struct column columns[COLUMNS] = {[FIELDS] = {"LINE", false}, [FIELDS + 1] = {"SLOTS", false}};
    struct table *table = table_new(columns, COLUMNS);
    char text[FIELD_TEXT_MAX];
    json_t *room;
    size_t row;

    for (size_t i = 0; i < FIELDS; i++)
        columns[i] = (struct column){fields[i].title, fields[i].kind >= FIELD_COUNT};
    json_array_foreach (rooms, row, room) {
        if (row == rooms_max)
            break;
        name_shorten(field_text(room, &fields[0], text), name_columns);
        table_add(table, text);
        for (size_t i = 1; i < FIELDS; i++)
            table_add(table, field_text(room, &fields[i], text));
        bar_add(table, field_number(room, "waiting"), longest);
        bar_add(table, field_number(room, "inside"), field_number(room, "max_active"));
    }
    fputc('\n', out);
    table_print(table, out, false);
    if (json_array_size(rooms) > rooms_max)
        fprintf(out, "and %zu more\n", json_array_size(rooms) - rooms_max);
    table_free(table);
}

/* Out of its middle, since names of one family differ at their ends. */
static void name_shorten(char *name, size_t columns)
{
    size_t len = strlen(name), head = columns / 2, tail = columns - head - 1;

    if (len <= columns)
        return;
    name[head] = '~';
    memmove(name + head + 1, name + len - tail, tail + 1);
}

/* `######....  60%`; nothing where there is no whole (no line anywhere, a room without a limit). */
static void bar_add(struct table *table, double part, double whole)
{
    char text[BAR_CELLS + 16] = "";
    double share = whole > 0 ? part / whole : 0;
    size_t filled = share >= 1 ? BAR_CELLS : (size_t)(share * BAR_CELLS);

    /* A little is not nothing. */
    filled += filled == 0 && part > 0;
    if (whole > 0) {
        memset(text, '#', filled);
        memset(text + filled, '.', BAR_CELLS - filled);
        snprintf(text + BAR_CELLS, sizeof(text) - BAR_CELLS, " %3.0f%%", share > 9.99 ? 999 : share * 100);
    }
    table_add(table, text);
}
