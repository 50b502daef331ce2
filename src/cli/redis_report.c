/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of `weir redis check` for people: three tables and the warnings, from the same JSON that programs get. */
#include "cli/field.h"
#include "cli/redis.h"
#include "cli/say.h"

#include <stdio.h>

static void shards_print(const json_t *shards);
static json_t *shard_row(const json_t *shard);
static void replicas_print(const json_t *shards);
static void rooms_print(const json_t *rooms);
static void warnings_print(const json_t *shards);

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

void redis_print(const json_t *report)
{
    const json_t *shards = json_object_get(report, "shards");
    printf("%s: %s\n", json_string_value(json_object_get(report, "url")),
           json_string_value(json_object_get(report, "mode")));
    shards_print(shards);
    replicas_print(shards);
    rooms_print(json_object_get(report, "rooms"));
    warnings_print(shards);
}

static void shards_print(const json_t *shards)
{
    static const struct field fields[] = {
        {"address", "SHARD", FIELD_WORD},
        {"version", "VERSION", FIELD_WORD},
        {"role", "ROLE", FIELD_WORD},
        {"slots", "SLOTS", FIELD_COUNT},
        {"replica_count", "REPLICAS", FIELD_COUNT},
        {"keys", "KEYS", FIELD_COUNT},
        {"memory_bytes", "BYTES", FIELD_COUNT},
        {"commands", "COMMANDS", FIELD_COUNT},
        {"commands_per_sec", "NOW/s", FIELD_COUNT},
        {"script_runs", "SCRIPTS RUN", FIELD_COUNT},
        {"scripts", "SCRIPTS KNOWN", FIELD_WORD},
    };
    json_t *rows = say_no_memory_if_null(json_array()), *shard;
    size_t place;
    json_array_foreach (shards, place, shard)
        json_array_append_new(rows, shard_row(shard));
    field_table_print(rows, fields, COUNT(fields));
    json_decref(rows);
}

/* What is a list or a pair in the JSON, as one word. */
static json_t *shard_row(const json_t *shard)
{
    json_t *row = say_no_memory_if_null(json_copy((json_t *)(uintptr_t)shard));
    const json_t *scripts = json_object_get(shard, "scripts"), *trouble = json_object_get(shard, "trouble");
    const char *server = json_string_value(json_object_get(shard, "server")),
               *version = json_string_value(json_object_get(shard, "version"));
    if (json_is_string(trouble))
        json_object_set_new(row, "role", json_string("not reached"));
    if (server != NULL)
        json_object_set_new(row, "version", json_sprintf("%s %s", server, version == NULL ? "-" : version));
    if (json_is_object(scripts))
        json_object_set_new(row, "scripts",
                            json_sprintf("%lld of %lld",
                                         (long long)json_integer_value(json_object_get(scripts, "known")),
                                         (long long)json_integer_value(json_object_get(scripts, "of"))));
    if (json_is_array(json_object_get(shard, "replicas")))
        json_object_set_new(row, "replica_count",
                            json_integer((json_int_t)json_array_size(json_object_get(shard, "replicas"))));
    return row;
}

static void replicas_print(const json_t *shards)
{
    static const struct field fields[] = {
        {"address", "REPLICA", FIELD_WORD},      {"of", "OF", FIELD_WORD},
        {"state", "STATE", FIELD_WORD},          {"lag_sec", "LAG s", FIELD_COUNT},
        {"lag_bytes", "LAG BYTES", FIELD_COUNT},
    };
    json_t *rows = say_no_memory_if_null(json_array()), *shard, *replica;
    size_t place, number;
    json_array_foreach (shards, place, shard)
        json_array_foreach (json_object_get(shard, "replicas"), number, replica) {
            json_t *row = say_no_memory_if_null(json_copy(replica));
            json_object_set(row, "of", json_object_get(shard, "address"));
            json_array_append_new(rows, row);
        }
    if (json_array_size(rows) > 0) {
        putchar('\n');
        field_table_print(rows, fields, COUNT(fields));
    }
    json_decref(rows);
}

static void rooms_print(const json_t *rooms)
{
    static const struct field fields[] = {
        {"id", "ROOM", FIELD_WORD},          {"slot", "SLOT", FIELD_NUMBER},
        {"shard", "SHARD", FIELD_WORD},      {"waiting", "WAITING", FIELD_COUNT},
        {"away", "AWAY", FIELD_COUNT},       {"called", "CALLED", FIELD_COUNT},
        {"entered", "ENTERED", FIELD_COUNT}, {"active", "ACTIVE", FIELD_COUNT},
        {"issued", "TICKETS", FIELD_COUNT},  {"calls", "CALLS", FIELD_COUNT},
        {"keys", "KEYS", FIELD_COUNT},       {"memory_bytes", "BYTES", FIELD_COUNT},
    };
    putchar('\n');
    if (json_array_size(rooms) == 0)
        puts("There are no rooms.");
    else
        field_table_print(rooms, fields, COUNT(fields));
}

static void warnings_print(const json_t *shards)
{
    json_t *shard, *warning;
    size_t place, number;
    bool is_first = true;
    json_array_foreach (shards, place, shard)
        json_array_foreach (json_object_get(shard, "warnings"), number, warning) {
            printf("%sWarning: %s: %s: %s\n", is_first ? "\n" : "",
                   json_string_value(json_object_get(shard, "address")),
                   json_string_value(json_object_get(warning, "name")),
                   json_string_value(json_object_get(warning, "sentence")));
            is_first = false;
        }
}
