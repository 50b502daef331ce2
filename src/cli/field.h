/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_FIELD_H
#define WEIR_CLI_FIELD_H

/* The fields of an answer as people read them. A field that is missing, null or of another type is shown as `-`. */

#include "cli/table.h"

#include <jansson.h>

enum field_kind {
    FIELD_WORD,
    FIELD_FLAG,
    FIELD_COUNT,    /* 1,234 */
    FIELD_NUMBER,   /* 1234: a name more than a count */
    FIELD_LIMIT,    /* the same; 0 = no limit */
    FIELD_DECIMAL,  /* 12.5 */
    FIELD_DURATION, /* 6 min 15 s */
    FIELD_MOMENT,   /* Unix seconds: 2026-11-15 04:36:50 UTC */
};

struct field {
    const char *key, *title;
    enum field_kind kind;
};

#define FIELD_TEXT_MAX 2560 /* the longest is the message of a room */

/* Returns `out`. The text is as the server sent it: a table or say_… cleans it. */
char *field_text(const json_t *object, const struct field *field, char out[FIELD_TEXT_MAX]);

/* 0 where the field is no number or is below 0. */
double field_number(const json_t *object, const char *key);

/* Any value, by its own type: what a setting is shown as. */
char *field_value_text(const json_t *value, char out[FIELD_TEXT_MAX]);

/* Two columns, one row a field of the list that the object has. */
void field_list_print(const json_t *object, const struct field *fields, size_t count);

/* A row an object of the array, a column a field. */
void field_table_print(const json_t *objects, const struct field *fields, size_t count);

#endif
