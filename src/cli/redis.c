/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir redis check`: looks at the servers of a store as nginx would, by the same URL and the same client, and changes nothing.
 *
 * The URL may come from the environment: it may hold a password, and an argument shows in `ps`.
 */
#include "cli/redis.h"
#include "base/room_id.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/number.h"
#include "cli/say.h"

#include <stdlib.h>

#define REPLICAS_MOST 64

static int url_read(const struct args *args, struct store_url *url);
static int options_check(const struct args *args, uint32_t *replicas);
static int store_check(const struct args *args, const struct store_url *url, uint32_t replicas);
static json_t *report_make(struct store_loop *loop, const struct args *args, const struct store_url *url,
                           uint32_t replicas);
static const char *mode_of(const struct store_loop *loop, bool is_sentinel);
static int report_judge(const json_t *report);

int redis_run(const struct args *args)
{
    static struct store_url url;
    uint32_t replicas = REDIS_REPLICAS_UNSAID;
    int exit_code;

    if (args->count < 2 || args->count > 3 || strcmp(args->words[1], "check") != 0)
        return say_usage("redis is used as: weir redis check [URL] (weir redis --help)");
    exit_code = url_read(args, &url);
    if (exit_code == 0)
        exit_code = options_check(args, &replicas);
    if (exit_code == 0)
        exit_code = store_check(args, &url, replicas);
    store_url_forget(&url);
    return exit_code;
}

static int url_read(const struct args *args, struct store_url *url)
{
    const char *text = args->count == 3 ? args->words[2] : getenv("WEIR_STORE"), *refusal;

    if (text == NULL || *text == '\0')
        return say_usage("no store: name its URL, or set WEIR_STORE to it");
    refusal = store_url_read(span_of(text), url);
    return refusal == NULL ? 0 : say_usage("that is no store: %s", refusal);
}

static int options_check(const struct args *args, uint32_t *replicas)
{
    const char *rooms = args->values[OPTION_ROOM], *number = args->values[OPTION_REPLICAS];
    uint64_t read;

    if (number != NULL) {
        if (!number_read_whole(number, &read) || read > REPLICAS_MOST)
            return say_usage("--replicas must be a whole number up to %d", REPLICAS_MOST);
        *replicas = (uint32_t)read;
    }
    while (rooms != NULL && *rooms != '\0') {
        size_t len = strcspn(rooms, ",");
        if (!room_id_is_valid((struct span){rooms, len}))
            return say_usage("--room must be ids of 1 to 64 of A-Z a-z 0-9 _ . : - with commas between them");
        rooms += len + (rooms[len] == ',');
    }
    return 0;
}

static int store_check(const struct args *args, const struct store_url *url, uint32_t replicas)
{
    static char printed[STORE_PRINTED_MAX];
    const char *why;
    struct store_loop *loop = store_loop_new(url, &why);
    json_t *report;
    int exit_code;

    (void)store_url_print(url, printed);
    if (loop == NULL)
        return say_refused("%s: %s", printed, why);
    why = store_loop_find(loop);
    report = why == NULL ? report_make(loop, args, url, replicas) : NULL;
    store_loop_free(loop);
    if (report == NULL)
        return say_refused("%s: %s", printed, why);
    exit_code = report_judge(report);
    if (!args_has(args, OPTION_JSON))
        redis_print(report);
    else
        (void)api_print_json(json_incref(report));
    json_decref(report);
    return exit_code;
}

static json_t *report_make(struct store_loop *loop, const struct args *args, const struct store_url *url,
                           uint32_t replicas)
{
    static char printed[STORE_PRINTED_MAX];
    json_t *report;

    (void)store_url_print(url, printed);
    report = say_no_memory_if_null(
        json_pack("{s:s,s:s}", "url", printed, "mode", mode_of(loop, url->is_sentinel)));

    json_object_set_new(report, "shards", redis_shards(loop, replicas));
    json_object_set_new(report, "rooms", redis_rooms(loop, args->values[OPTION_ROOM]));
    return report;
}

static const char *mode_of(const struct store_loop *loop, bool is_sentinel)
{
    if (is_sentinel)
        return "sentinel";
    return topology_is_cluster(store_topology(store_loop_store(loop))) ? "cluster" : "standalone";
}

/* A shard that was not reached is a failure, though there is a report of the others. */
static int report_judge(const json_t *report)
{
    json_t *shard;
    size_t place;
    int exit_code = 0;

    json_array_foreach (json_object_get(report, "shards"), place, shard) {
        const json_t *trouble = json_object_get(shard, "trouble");
        if (json_is_string(trouble))
            exit_code = say_refused("%s: %s", json_string_value(json_object_get(shard, "address")),
                                    json_string_value(trouble));
    }
    return exit_code;
}
