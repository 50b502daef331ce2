/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each warning is a question to one line or two of the text, and a line that is not there, or says what nobody expects, is no
 * answer. So the fields are looked for one at a time, over the whole text: it is some kilobytes, and read once a connection.
 */
#include "redis/probe.h"

#include "base/decimal.h"
#include "base/must.h"
#include "redis/peer.h"

#define OLDEST_MAJOR 6
#define OLDEST_MINOR 2

static bool is_old(struct span info);
static uint32_t replicas_judge(const struct probe *probe);
static uint32_t disk_judge(const struct probe *probe);
static bool may_evict(struct span info);
static bool says(struct span info, struct span name, struct span word);
static struct span part_take(struct span *text);

static const struct {
    const char *name, *sentence;
} warnings[PROBE_COUNT] = {
#define PROBE_ROW(name, written, sentence) [PROBE_##name] = {written, sentence},
    PROBE_LIST(PROBE_ROW)
#undef PROBE_ROW
};

const char *probe_name(enum probe_warning warning)
{
    must(warning < PROBE_COUNT);
    return warnings[warning].name;
}

const char *probe_sentence(enum probe_warning warning)
{
    must(warning < PROBE_COUNT);
    return warnings[warning].sentence;
}

uint32_t probe_read(const struct probe *probe)
{
    uint32_t found = 0;
    if (!says(probe->info, SPAN("role"), SPAN("master")))
        return 0;
    if (is_old(probe->info))
        found |= 1U << PROBE_OLD_SERVER;
    if (may_evict(probe->info))
        found |= 1U << PROBE_EVICTION;
    return found | replicas_judge(probe) | disk_judge(probe);
}

/* Valkey goes on saying the version of Redis that it grew out of, which is new enough. */
static bool is_old(struct span info)
{
    uint64_t major, minor;
    struct span text;
    if (!peer_find(info, SPAN("redis_version"), &text) || !decimal_read(part_take(&text), 0, &major) ||
        !decimal_read(part_take(&text), 0, &minor))
        return false;
    return major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR);
}

/* What stands before the next dot. */
static struct span part_take(struct span *text)
{
    struct span part = {text->data, 0};
    while (part.len < text->len && text->data[part.len] != '.')
        part.len++;
    size_t taken = part.len + (part.len < text->len);
    *text = (struct span){text->data + taken, text->len - taken};
    return part;
}

static uint32_t replicas_judge(const struct probe *probe)
{
    struct span text;
    uint64_t connected;
    uint32_t found = 0;
    /* The line is there only while min-replicas-to-write and min-replicas-max-lag are both on. */
    if (!peer_find(probe->info, SPAN("min_slaves_good_slaves"), &text))
        found |= 1U << PROBE_NO_MIN_REPLICAS;
    if (!peer_find(probe->info, SPAN("connected_slaves"), &text) || !decimal_read(text, 0, &connected))
        return found;
    if (connected == 0)
        found |= 1U << PROBE_NO_REPLICA;
    if (connected < probe->replicas)
        found |= 1U << PROBE_TOO_FEW_REPLICAS;
    if (connected > 0 && probe->replicas == 0)
        found |= 1U << PROBE_UNASKED_REPLICAS;
    return found;
}

static uint32_t disk_judge(const struct probe *probe)
{
    if (says(probe->info, SPAN("aof_enabled"), SPAN("0")))
        return 1U << PROBE_NO_AOF;
    if (says(probe->info, SPAN("aof_enabled"), SPAN("1")) && span_equal(probe->appendfsync, SPAN("no")))
        return 1U << PROBE_AOF_NOT_SYNCED;
    return 0;
}

/* Without a bound memory is never full. */
static bool may_evict(struct span info)
{
    struct span bound, policy;
    return peer_find(info, SPAN("maxmemory"), &bound) && !span_equal(bound, SPAN("0")) &&
           peer_find(info, SPAN("maxmemory_policy"), &policy) && !span_equal(policy, SPAN("noeviction"));
}

static bool says(struct span info, struct span name, struct span word)
{
    struct span value;
    return peer_find(info, name, &value) && span_equal(value, word);
}
