/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a primary says of itself. All of it is asked of primaries: they know their replicas and how far each has come, and what
 * a replica says of itself is nothing that anything is decided by.
 */
#include "cli/redis.h"
#include "cli/say.h"
#include "redis/probe.h"
#include "redis/script.h"

#include <stdio.h>
#include <stdlib.h>

#define REPLICAS_MAX 32

enum shard_question { ASK_INFO, ASK_COMMANDS, ASK_SYNC, ASK_KEYS, ASK_SCRIPTS, ASKS };

static json_t *shard_make(struct store_loop *loop, uint16_t place, uint32_t replicas);
static json_t *shard_slots(const struct slot_map *map, uint16_t place, uint16_t *first);
static void shard_ask(struct store_loop *loop, uint16_t slot, struct store_question *questions);
static void scripts_ask(struct store_question *question, uint16_t slot);
static void shard_add_info(json_t *shard, struct span info);
static json_t *replicas_read(struct span info);
static json_t *replica_read(struct span line, uint64_t offset);
static struct span part_find(struct span line, struct span name);
static json_t *runs_count(struct span commands);
static json_t *scripts_read(const redisReply *reply);
static json_t *warnings_read(struct span info, const redisReply *sync, uint32_t replicas);
static json_t *info_number(struct span info, struct span name);

json_t *redis_shards(struct store_loop *loop, uint32_t replicas)
{
    json_t *shards = say_no_memory_if_null(json_array());
    const struct slot_map *map = topology_map(store_topology(store_loop_store(loop)));
    uint16_t count = map->count;
    for (uint16_t i = 0; i < count && i < map->count; i++)
        json_array_append_new(shards, shard_make(loop, i, replicas));
    return shards;
}

static json_t *shard_make(struct store_loop *loop, uint16_t place, uint32_t replicas)
{
    const struct slot_map *map = topology_map(store_topology(store_loop_store(loop)));
    const struct address *address = &map->primaries[place].address;
    struct store_question questions[ASKS];
    char text[ADDRESS_TEXT_MAX];
    const char *why = NULL;
    uint16_t slot = 0;
    address_write(address, text);
    json_t *shard = say_no_memory_if_null(json_pack("{s:s}", "address", text));
    json_object_set_new(shard, "slots", shard_slots(map, place, &slot));
    const struct peer *peer = store_loop_peer(loop, address, &why);
    if (peer == NULL) {
        json_object_set_new(shard, "trouble", json_string(why));
        return shard;
    }
    json_object_set_new(shard, "server", json_string(peer->is_valkey ? "Valkey" : "Redis"));
    json_object_set_new(shard, "version", redis_word(span_of(peer->version)));
    json_object_set_new(shard, "role", json_string(peer->is_primary ? "primary" : "replica"));
    shard_ask(loop, slot, questions);
    struct span info = redis_reply_text(questions[ASK_INFO].reply);
    shard_add_info(shard, info);
    json_object_set_new(shard, "keys", redis_reply_number(questions[ASK_KEYS].reply));
    json_object_set_new(shard, "script_runs", runs_count(redis_reply_text(questions[ASK_COMMANDS].reply)));
    json_object_set_new(shard, "scripts", scripts_read(questions[ASK_SCRIPTS].reply));
    json_object_set_new(shard, "warnings", warnings_read(info, questions[ASK_SYNC].reply, replicas));
    store_questions_free(questions, ASKS);
    return shard;
}

/* How many, and the first of them: whoever keeps that is this shard. */
static json_t *shard_slots(const struct slot_map *map, uint16_t place, uint16_t *first)
{
    uint32_t count = 0;
    for (uint16_t slot = 0; slot < SLOTS; slot++)
        if (map->of_slot[slot] == place && count++ == 0)
            *first = slot;
    return json_integer(count);
}

static void shard_ask(struct store_loop *loop, uint16_t slot, struct store_question *questions)
{
    store_question_write(&questions[ASK_INFO], slot, "INFO");
    store_question_write(&questions[ASK_COMMANDS], slot, "INFO commandstats");
    store_question_write(&questions[ASK_SYNC], slot, "CONFIG GET appendfsync");
    store_question_write(&questions[ASK_KEYS], slot, "DBSIZE");
    scripts_ask(&questions[ASK_SCRIPTS], slot);
    store_loop_ask(loop, questions, ASKS);
}

static void scripts_ask(struct store_question *question, uint16_t slot)
{
    struct script_names names;
    char text[sizeof("SCRIPT EXISTS") + SCRIPT_COUNT * (SCRIPT_SHA_LEN + 1)] = "SCRIPT EXISTS";
    size_t len = strlen(text);
    script_names_init(&names);
    for (int i = 0; i < SCRIPT_COUNT; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " %.*s", SCRIPT_SHA_LEN, names.sha[i]);
    store_question_write(question, slot, text);
}

static void shard_add_info(json_t *shard, struct span info)
{
    json_object_set_new(shard, "memory_bytes", info_number(info, SPAN("used_memory")));
    json_object_set_new(shard, "memory_limit_bytes", info_number(info, SPAN("maxmemory")));
    json_object_set_new(shard, "clients", info_number(info, SPAN("connected_clients")));
    json_object_set_new(shard, "uptime_sec", info_number(info, SPAN("uptime_in_seconds")));
    json_object_set_new(shard, "commands", info_number(info, SPAN("total_commands_processed")));
    json_object_set_new(shard, "commands_per_sec", info_number(info, SPAN("instantaneous_ops_per_sec")));
    json_object_set_new(shard, "replicas", replicas_read(info));
}

static json_t *info_number(struct span info, struct span name)
{
    struct span value;
    return peer_find(info, name, &value) ? redis_number(value) : json_null();
}

/* ---- replicas: slave0:ip=10.0.0.7,port=6379,state=online,offset=3290,lag=1 ---- */

static json_t *replicas_read(struct span info)
{
    json_t *replicas = say_no_memory_if_null(json_array()),
           *offset = info_number(info, SPAN("master_repl_offset"));
    for (int i = 0; i < REPLICAS_MAX; i++) {
        char name[24];
        struct span line;
        (void)snprintf(name, sizeof(name), "slave%d", i);
        if (peer_find(info, span_of(name), &line))
            json_array_append_new(replicas, replica_read(line, (uint64_t)json_integer_value(offset)));
    }
    json_decref(offset);
    return replicas;
}

static json_t *replica_read(struct span line, uint64_t offset)
{
    char text[ADDRESS_TEXT_MAX];
    struct span host = part_find(line, SPAN("ip"));
    json_t *replica = say_no_memory_if_null(json_object()),
           *port = redis_number(part_find(line, SPAN("port"))),
           *known = redis_number(part_find(line, SPAN("offset")));
    struct address address;
    bool is_there = address_make(host, (uint64_t)json_integer_value(port), &address);
    json_object_set_new(replica, "address",
                        is_there ? redis_word((struct span){text, address_write(&address, text)})
                                 : json_null());
    json_object_set_new(replica, "state", redis_word(part_find(line, SPAN("state"))));
    json_object_set_new(replica, "lag_sec", redis_number(part_find(line, SPAN("lag"))));
    uint64_t reached = (uint64_t)json_integer_value(known);
    json_object_set_new(replica, "lag_bytes",
                        json_is_integer(known)
                            ? json_integer((json_int_t)(offset > reached ? offset - reached : 0))
                            : json_null());
    json_decref(port);
    json_decref(known);
    return replica;
}

/* The value of `name=value`, of several with commas between them. */
static struct span part_find(struct span line, struct span name)
{
    while (line.len > 0) {
        const char *comma = memchr(line.data, ',', line.len);
        size_t len = comma == NULL ? line.len : (size_t)(comma - line.data);
        if (len > name.len && line.data[name.len] == '=' && memcmp(line.data, name.data, name.len) == 0)
            return (struct span){line.data + name.len + 1, len - name.len - 1};
        size_t taken = comma == NULL ? len : len + 1;
        line = (struct span){line.data + taken, line.len - taken};
    }
    return SPAN_NONE;
}

/* ---- scripts ---- */

/* cmdstat_evalsha:calls=12,usec=… and the same of eval, which is the first time only. */
static json_t *runs_count(struct span commands)
{
    static const struct span names[] = {SPAN("cmdstat_evalsha"), SPAN("cmdstat_eval")};
    json_int_t runs = 0;
    struct span line;
    if (commands.len == 0)
        return json_null();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (peer_find(commands, names[i], &line)) {
            json_t *calls = redis_number(part_find(line, SPAN("calls")));
            runs += json_integer_value(calls);
            json_decref(calls);
        }
    return json_integer(runs);
}

static json_t *scripts_read(const redisReply *reply)
{
    json_t *missing = say_no_memory_if_null(json_array());
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements != SCRIPT_COUNT) {
        json_decref(missing);
        return json_null();
    }
    for (size_t i = 0; i < SCRIPT_COUNT; i++)
        if (reply->element[i]->type != REDIS_REPLY_INTEGER || reply->element[i]->integer != 1)
            json_array_append_new(missing, json_string(script_file((enum script)i)));
    return say_no_memory_if_null(json_pack("{s:I,s:i,s:o}", "known",
                                           (json_int_t)(SCRIPT_COUNT - json_array_size(missing)), "of",
                                           SCRIPT_COUNT, "missing", missing));
}

/* ---- warnings ---- */

static json_t *warnings_read(struct span info, const redisReply *sync, uint32_t replicas)
{
    bool is_said = replicas != REDIS_REPLICAS_UNSAID;
    struct probe probe = {.info = info, .replicas = is_said ? replicas : 0};
    json_t *warnings = say_no_memory_if_null(json_array());
    if (sync != NULL && sync->type == REDIS_REPLY_ARRAY && sync->elements == 2)
        probe.appendfsync = redis_reply_text(sync->element[1]);
    uint32_t found = probe_read(&probe);
    if (!is_said)
        found &= ~(1U << PROBE_UNASKED_REPLICAS);
    for (int i = 0; i < PROBE_COUNT; i++)
        if ((found >> i & 1) != 0)
            json_array_append_new(warnings, json_pack("{s:s,s:s}", "name", probe_name((enum probe_warning)i),
                                                      "sentence", probe_sentence((enum probe_warning)i)));
    return warnings;
}
