/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A bucket is one page, an open-addressed table with linear probing. An entry's home follows from its tag alone, so that a
 * removal can close the gap without asking for keys. With on average at most BUCKET_MEAN entries per bucket, a bucket that waits
 * for its turn to be split holds up to twice that: a load of 0.8, six standard deviations below full.
 */

#include "base/map.h"

#include "base/must.h"

#include <string.h>

#define BUCKET_ENTRIES 680
#define BUCKET_MEAN    272
#define MERGE_MEAN     100

struct bucket {
    uint32_t used;
    uint16_t tag[BUCKET_ENTRIES]; /* 0 = free */
    uint32_t number[BUCKET_ENTRIES];
};

_Static_assert(sizeof(struct bucket) <= PAGE_BYTES, "a bucket is a page");

#define DIRECTORY_REFS (PAGE_BYTES / sizeof(page_ref))
#define BUCKETS_MAX    (MAP_DIRECTORIES * DIRECTORY_REFS)

static uint32_t bucket_of(const struct map *map, const struct holder *key);
static uint16_t tag_of(const struct holder *key);
static uint32_t home_of(uint16_t tag);
static struct bucket *bucket_at(const struct map *map, const struct map_owner *owner, uint32_t index);
static uint32_t slot_find(const struct bucket *bucket, const struct map_owner *owner,
                          const struct holder *key, uint32_t number);
static void slot_add(struct bucket *bucket, struct memory *log, uint16_t tag, uint32_t number);
static void slot_remove(struct bucket *bucket, struct memory *memory, uint32_t slot);
static bool bucket_new(struct map *map, const struct map_owner *owner);
static bool bucket_split(struct map *map, const struct map_owner *owner);
static void bucket_merge(struct map *map, const struct map_owner *owner);
static void bucket_free(struct map *map, struct memory *memory);

uint32_t map_find(const struct map *map, const struct map_owner *owner, const struct holder *key)
{
    if (map->buckets == 0)
        return MAP_NONE;
    const struct bucket *bucket = bucket_at(map, owner, bucket_of(map, key));
    uint32_t slot = slot_find(bucket, owner, key, MAP_NONE);
    return slot == BUCKET_ENTRIES ? MAP_NONE : bucket->number[slot];
}

bool map_add(struct map *map, const struct map_owner *owner, const struct holder *key, uint32_t number)
{
    must(number != MAP_NONE);
    if (map->buckets == 0 && !bucket_new(map, owner))
        return false;
    if (map->entries >= map->buckets * BUCKET_MEAN && !bucket_split(map, owner))
        return false;
    struct bucket *bucket = bucket_at(map, owner, bucket_of(map, key));
    if (bucket->used >= BUCKET_ENTRIES - 1)
        return false;
    slot_add(bucket, owner->memory, tag_of(key), number);
    memory_set(owner->memory, map->entries, map->entries + 1);
    return true;
}

void map_remove(struct map *map, const struct map_owner *owner, const struct holder *key, uint32_t number)
{
    must(map->entries > 0);
    struct bucket *bucket = bucket_at(map, owner, bucket_of(map, key));
    uint32_t slot = slot_find(bucket, owner, key, number);
    must(slot < BUCKET_ENTRIES);
    slot_remove(bucket, owner->memory, slot);
    memory_set(owner->memory, map->entries, map->entries - 1);
    if (map->entries < (map->buckets - 1) * MERGE_MEAN || map->entries == 0)
        bucket_merge(map, owner);
}

bool map_grow(struct map *map, const struct map_owner *owner, uint32_t entries)
{
    if (entries / BUCKET_MEAN < map->buckets)
        return false;
    return map->buckets == 0 ? bucket_new(map, owner) : bucket_split(map, owner);
}

void map_prefetch(const struct map *map, const struct map_owner *owner, const struct holder *key)
{
    if (map->buckets == 0)
        return;
    const struct bucket *bucket = bucket_at(map, owner, bucket_of(map, key));
    uint32_t slot = home_of(tag_of(key));
    __builtin_prefetch(&bucket->used, 1);
    __builtin_prefetch(&bucket->tag[slot], 1);
    __builtin_prefetch(&bucket->number[slot], 1);
}

uint32_t map_pages(const struct map *map)
{
    return map->buckets + (map->buckets + DIRECTORY_REFS - 1) / DIRECTORY_REFS;
}

static uint32_t key_word(const struct holder *key, size_t at)
{
    uint32_t word;

    memcpy(&word, key->id + at, sizeof(word));
    return word;
}

static uint32_t top_bit(uint32_t value)
{
    return 1U << (31 - __builtin_clz(value));
}

/* Buckets at or past the split one of this round still share the bucket that half their hash names. */
static uint32_t bucket_of(const struct map *map, const struct holder *key)
{
    uint32_t half = top_bit(map->buckets);
    uint32_t index = key_word(key, 0) & (2 * half - 1);

    return index < map->buckets ? index : index - half;
}

static uint16_t tag_of(const struct holder *key)
{
    uint16_t tag = (uint16_t)key_word(key, 4);

    return tag == 0 ? 1 : tag;
}

static page_ref *bucket_ref(const struct map *map, const struct map_owner *owner, uint32_t index)
{
    page_ref *refs = memory_page(owner->memory, map->directory[index / DIRECTORY_REFS]);

    return &refs[index % DIRECTORY_REFS];
}

static struct bucket *bucket_at(const struct map *map, const struct map_owner *owner, uint32_t index)
{
    must(index < map->buckets);
    return memory_page(owner->memory, *bucket_ref(map, owner, index));
}

static uint32_t home_of(uint16_t tag)
{
    return (uint32_t)tag * BUCKET_ENTRIES >> 16;
}

static uint32_t slot_after(uint32_t slot)
{
    return slot + 1 == BUCKET_ENTRIES ? 0 : slot + 1;
}

/* The slot of `key` (and of `number`, if given), or BUCKET_ENTRIES. A bucket is never full, so the walk ends. */
static uint32_t slot_find(const struct bucket *bucket, const struct map_owner *owner,
                          const struct holder *key, uint32_t number)
{
    uint16_t tag = tag_of(key);

    for (uint32_t slot = home_of(tag); bucket->tag[slot] != 0; slot = slot_after(slot)) {
        if (bucket->tag[slot] != tag)
            continue;
        if (number != MAP_NONE ? bucket->number[slot] == number
                               : holder_equal(owner->key_of(owner->owner, bucket->number[slot]), key))
            return slot;
    }
    return BUCKET_ENTRIES;
}

/* `log` NULL: the bucket is a page of this operation, or kept as a whole already. */
static void slot_add(struct bucket *bucket, struct memory *log, uint16_t tag, uint32_t number)
{
    uint32_t slot = home_of(tag);

    must(bucket->used < BUCKET_ENTRIES - 1);
    while (bucket->tag[slot] != 0)
        slot = slot_after(slot);
    if (log != NULL) {
        memory_keep(log, &bucket->tag[slot], sizeof(bucket->tag[slot]));
        memory_keep(log, &bucket->number[slot], sizeof(bucket->number[slot]));
        memory_keep(log, &bucket->used, sizeof(bucket->used));
    }
    bucket->tag[slot] = tag;
    bucket->number[slot] = number;
    bucket->used++;
}

/* Keeps what closing the gap at `slot` may change: the run of entries from there on. */
static void keep_run(const struct bucket *bucket, struct memory *memory, uint32_t slot)
{
    uint32_t end = slot;

    while (end < BUCKET_ENTRIES && bucket->tag[end] != 0)
        end++;
    if (end == BUCKET_ENTRIES) { /* goes on at the front */
        memory_keep(memory, bucket, sizeof(*bucket));
        return;
    }
    memory_keep(memory, &bucket->tag[slot], (end - slot) * sizeof(bucket->tag[0]));
    memory_keep(memory, &bucket->number[slot], (end - slot) * sizeof(bucket->number[0]));
    memory_keep(memory, &bucket->used, sizeof(bucket->used));
}

/* Entries behind the gap move up unless that would bring them before their home. */
static void slot_remove(struct bucket *bucket, struct memory *memory, uint32_t slot)
{
    keep_run(bucket, memory, slot);
    bucket->used--;
    for (uint32_t next = slot_after(slot); bucket->tag[next] != 0; next = slot_after(next)) {
        uint32_t home = home_of(bucket->tag[next]);
        bool is_between = slot < next ? home > slot && home <= next : home > slot || home <= next;
        if (is_between)
            continue;
        bucket->tag[slot] = bucket->tag[next];
        bucket->number[slot] = bucket->number[next];
        slot = next;
    }
    bucket->tag[slot] = 0;
}

/* Adds an empty bucket at the end. */
static bool bucket_new(struct map *map, const struct map_owner *owner)
{
    struct memory *memory = owner->memory;
    page_ref *directory = &map->directory[map->buckets / DIRECTORY_REFS];

    if (map->buckets == BUCKETS_MAX)
        return false;
    if (map->buckets % DIRECTORY_REFS == 0) {
        page_ref page = memory_take(memory);
        if (page == 0)
            return false;
        memory_set(memory, *directory, page);
    }
    page_ref page = memory_take(memory);
    if (page == 0)
        return false;
    memory_set(memory, *bucket_ref(map, owner, map->buckets), page);
    memory_set(memory, map->buckets, map->buckets + 1);
    return true;
}

/* Bucket `old` gives those entries to the new last bucket whose hash has the next bit set. */
static bool bucket_split(struct map *map, const struct map_owner *owner)
{
    if (map->buckets == BUCKETS_MAX)
        return map->entries < BUCKETS_MAX * (uint64_t)(2 * BUCKET_MEAN);
    if (!bucket_new(map, owner))
        return false;

    uint32_t new_index = map->buckets - 1;
    struct bucket *old = bucket_at(map, owner, new_index - top_bit(new_index));
    struct bucket *new = bucket_at(map, owner, new_index);
    struct bucket all;

    memory_keep(owner->memory, old, sizeof(*old));
    all = *old;
    memset(old, 0, sizeof(*old));
    for (uint32_t slot = 0; slot < BUCKET_ENTRIES; slot++) {
        if (all.tag[slot] == 0)
            continue;
        const struct holder *key = owner->key_of(owner->owner, all.number[slot]);
        slot_add(bucket_of(map, key) == new_index ? new : old, NULL, all.tag[slot], all.number[slot]);
    }
    return true;
}

/* The last bucket goes back into the one it was split from; the very last goes when the map is empty. */
static void bucket_merge(struct map *map, const struct map_owner *owner)
{
    struct memory *memory = owner->memory;
    uint32_t last_index = map->buckets - 1;
    const struct bucket *last = bucket_at(map, owner, last_index);

    if (last_index > 0) {
        struct bucket *into = bucket_at(map, owner, last_index - top_bit(last_index));
        if (into->used + last->used >= BUCKET_ENTRIES - 1)
            return;
        memory_keep(memory, into, sizeof(*into));
        for (uint32_t slot = 0; slot < BUCKET_ENTRIES; slot++)
            if (last->tag[slot] != 0)
                slot_add(into, NULL, last->tag[slot], last->number[slot]);
    }
    bucket_free(map, memory);
}

/* The last bucket's page, and the directory's page if it was the first on it. */
static void bucket_free(struct map *map, struct memory *memory)
{
    uint32_t index = map->buckets - 1;
    page_ref directory = map->directory[index / DIRECTORY_REFS];
    const page_ref *refs = memory_page(memory, directory);

    memory_set(memory, map->buckets, index);
    memory_free(memory, refs[index % DIRECTORY_REFS]);
    if (index % DIRECTORY_REFS == 0)
        memory_free(memory, directory);
}

bool map_drop(struct map *map, struct memory *memory)
{
    if (map->buckets == 0)
        return false;
    bucket_free(map, memory);
    return true;
}
