/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers are shown by lists of (key, title, kind) and never by code of their own, so that a field a server does not have
 * yet, or has as another type, is a dash and not a crash.
 */
#include "cli/field.h"

#include "cli/number.h"
#include "cli/say.h"
#include "cli/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Up to here a double holds every whole number; figures beyond are not figures. */
#define NUMBER_MAX 9007199254740992.0

static char *number_text(const json_t *value, enum field_kind kind, char out[FIELD_TEXT_MAX]);
static void moment_text(double seconds, char out[FIELD_TEXT_MAX]);

char *field_text(const json_t *object, const struct field *field, char out[FIELD_TEXT_MAX])
{
    const json_t *value = json_object_get(object, field->key);

    snprintf(out, FIELD_TEXT_MAX, "-");
    if (field->kind == FIELD_WORD && json_is_string(value))
        snprintf(out, FIELD_TEXT_MAX, "%s", json_string_value(value));
    else if (field->kind == FIELD_FLAG && json_is_boolean(value))
        snprintf(out, FIELD_TEXT_MAX, "%s", json_is_true(value) ? "yes" : "no");
    else if (field->kind >= FIELD_COUNT && json_is_number(value))
        number_text(value, field->kind, out);
    return out;
}

double field_number(const json_t *object, const char *key)
{
    double number = json_number_value(json_object_get(object, key));

    return number > 0 ? fmin(number, NUMBER_MAX) : 0;
}

char *field_value_text(const json_t *value, char out[FIELD_TEXT_MAX])
{
    char *dump;

    if (json_is_string(value)) {
        snprintf(out, FIELD_TEXT_MAX, "%s", json_string_value(value));
    } else if (json_is_number(value)) {
        number_text(value, FIELD_DECIMAL, out);
    } else if (value == NULL || json_is_null(value)) {
        snprintf(out, FIELD_TEXT_MAX, "-");
    } else {
        dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        snprintf(out, FIELD_TEXT_MAX, "%s", dump == NULL ? "-" : dump);
        free(dump);
    }
    return out;
}

void field_list_print(const json_t *object, const struct field *fields, size_t count)
{
    static const struct column columns[] = {{"FIGURE", false}, {"VALUE", false}};
    struct table *table = table_new(columns, 2);
    char text[FIELD_TEXT_MAX];

    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object, fields[i].key);
        if (value == NULL || json_is_null(value))
            continue;
        table_add(table, fields[i].title);
        table_add(table, field_text(object, &fields[i], text));
    }
    table_print(table, stdout, text_may_colour(stdout));
    table_free(table);
}

void field_table_print(const json_t *objects, const struct field *fields, size_t count)
{
    struct column *columns = say_no_memory_if_null(calloc(count, sizeof(*columns)));
    char text[FIELD_TEXT_MAX];
    struct table *table;
    json_t *object;
    size_t row;

    for (size_t i = 0; i < count; i++)
        columns[i] = (struct column){fields[i].title, fields[i].kind >= FIELD_COUNT};
    table = table_new(columns, count);
    json_array_foreach (objects, row, object)
        for (size_t i = 0; i < count; i++)
            table_add(table, field_text(object, &fields[i], text));
    table_print(table, stdout, text_may_colour(stdout));
    table_free(table);
    free(columns);
}

static char *number_text(const json_t *value, enum field_kind kind, char out[FIELD_TEXT_MAX])
{
    double number = json_number_value(value);

    if (!(number >= 0 && number <= NUMBER_MAX))
        snprintf(out, FIELD_TEXT_MAX, "-");
    else if (kind == FIELD_NUMBER)
        snprintf(out, FIELD_TEXT_MAX, "%.0f", number);
    else if (kind == FIELD_LIMIT && number == 0)
        snprintf(out, FIELD_TEXT_MAX, "no limit");
    else if (kind == FIELD_DECIMAL)
        number_milli((uint64_t)llround(fmin(number, NUMBER_MAX / 1000) * 1000), out);
    else if (kind == FIELD_DURATION)
        number_duration((uint64_t)number, out);
    else if (kind == FIELD_MOMENT)
        moment_text(number, out);
    else
        number_group((uint64_t)number, out);
    return out;
}

static void moment_text(double seconds, char out[FIELD_TEXT_MAX])
{
    time_t moment = (time_t)seconds;
    struct tm utc;

    if (gmtime_r(&moment, &utc) == NULL || strftime(out, FIELD_TEXT_MAX, "%Y-%m-%d %H:%M:%S UTC", &utc) == 0)
        snprintf(out, FIELD_TEXT_MAX, "-");
}
