/* SPDX-License-Identifier: BSD-2-Clause */
/* The map against a plain array, growing and shrinking, with unlucky hashes and without memory. */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define PAGES 3000

struct fixture {
    unsigned char *base;
    size_t bytes;
    struct memory *memory;
    struct map *map;
    struct holder *keys; /* by number */
    struct map_owner owner;
};

static const struct holder *key_by_number(const void *owner, uint32_t number)
{
    const struct holder *keys = owner;

    return &keys[number];
}

/* Key `n` belongs to number n + 1. */
static struct fixture fixture_new(uint32_t pages, uint32_t keys)
{
    struct fixture f = {.bytes = (size_t)(pages + 8) * PAGE_BYTES};

    f.base = shared_new(f.bytes);
    f.memory = (struct memory *)(f.base + PAGE_BYTES);
    f.map = (struct map *)(f.base + 6 * PAGE_BYTES);
    memory_init(f.memory, f.base);
    for (page_ref page = 8; page < 8 + pages; page++) {
        memory_give(f.memory, page, f.memory);
        memory_commit(f.memory);
    }
    f.keys = calloc(keys + 1, sizeof(*f.keys));
    assert_non_null(f.keys);
    for (uint32_t number = 1; number <= keys; number++)
        f.keys[number] = holder_of(number);
    f.owner = (struct map_owner){f.memory, key_by_number, f.keys};
    return f;
}

static void fixture_free(struct fixture *f)
{
    free(f->keys);
    shared_free(f->base, f->bytes);
}

static bool add(struct fixture *f, uint32_t number)
{
    bool is_added = map_add(f->map, &f->owner, &f->keys[number], number);

    if (is_added)
        memory_commit(f->memory);
    else
        memory_rollback(f->memory);
    return is_added;
}

static void take_out(struct fixture *f, uint32_t number)
{
    map_remove(f->map, &f->owner, &f->keys[number], number);
    memory_commit(f->memory);
}

static uint32_t find(const struct fixture *f, uint32_t number)
{
    return map_find(f->map, &f->owner, &f->keys[number]);
}

static void every_key_is_found_while_the_map_grows_and_shrinks(void **state)
{
    enum { KEYS = 300000 };
    struct fixture f = fixture_new(PAGES, KEYS);
    (void)state;

    assert_int_equal(find(&f, 1), MAP_NONE);
    for (uint32_t n = 1; n <= KEYS; n++) {
        assert_true(add(&f, n));
        assert_int_equal(find(&f, n), n);
        assert_int_equal(find(&f, 1 + n / 2), 1 + n / 2);
    }
    for (uint32_t n = 1; n <= KEYS; n++)
        assert_int_equal(find(&f, n), n);
    /* More than one page of bucket addresses was needed; six bytes an entry at two thirds full is about ten. */
    assert_true(f.map->buckets > 1024);
    assert_true(map_pages(f.map) * (uint64_t)PAGE_BYTES / KEYS <= 16);
    for (uint32_t n = 1; n <= KEYS; n++) {
        take_out(&f, n);
        assert_int_equal(find(&f, n), MAP_NONE);
        if (n < KEYS)
            assert_int_equal(find(&f, KEYS), KEYS);
        assert_int_equal(map_pages(f.map) + f.memory->spare_count, PAGES);
    }
    assert_int_equal(map_pages(f.map), 0);
    fixture_free(&f);
}

static void random_adds_and_removes_agree_with_an_array(void **state)
{
    enum { KEYS = 20000, STEPS = 400000 };
    struct fixture f = fixture_new(200, KEYS);
    bool *is_in = calloc(KEYS + 1, sizeof(*is_in));
    struct dice dice = {2};
    uint32_t entries = 0;
    (void)state;

    for (uint32_t step = 0; step < STEPS; step++) {
        /* The tide comes and goes, so that buckets are split and merged over and over. */
        bool is_flood = step / 50000 % 2 == 0;
        uint32_t n = 1 + dice_below(&dice, KEYS);
        if (!is_in[n] && dice_below(&dice, 10) < (is_flood ? 8U : 3U)) {
            assert_true(add(&f, n));
            is_in[n] = true;
            entries++;
        } else if (is_in[n] && dice_below(&dice, 10) < (is_flood ? 2U : 9U)) {
            take_out(&f, n);
            is_in[n] = false;
            entries--;
        }
        uint32_t other = 1 + dice_below(&dice, KEYS);
        assert_int_equal(find(&f, n), is_in[n] ? n : MAP_NONE);
        assert_int_equal(find(&f, other), is_in[other] ? other : MAP_NONE);
        assert_int_equal(f.map->entries, entries);
    }
    assert_int_equal(map_pages(f.map) + f.memory->spare_count, 200);
    free(is_in);
    fixture_free(&f);
}

/* Keys that meet in one tag, and keys whose home is the last slot of a bucket so that their run goes on at the front. */
static void keys_that_collide_are_told_apart(void **state)
{
    enum { KEYS = 500 };
    struct fixture f = fixture_new(20, KEYS);
    bool is_in[KEYS + 1] = {false};
    struct dice dice = {3};
    (void)state;

    for (uint32_t n = 1; n <= KEYS; n++) {
        static const uint16_t tags[] = {0, 1, 0xffff, 0xfffe, 0xff00, 7};
        memcpy(f.keys[n].id + 4, &tags[n % 6], sizeof(tags[0]));
        memset(f.keys[n].id, n % 2, 4);
    }
    for (int step = 0; step < 40000; step++) {
        uint32_t n = 1 + dice_below(&dice, KEYS);
        if (is_in[n])
            take_out(&f, n);
        else if (!add(&f, n))
            continue;
        is_in[n] = !is_in[n];
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t other = 1 + dice_below(&dice, KEYS);
            assert_int_equal(find(&f, other), is_in[other] ? other : MAP_NONE);
        }
    }
    for (uint32_t n = 1; n <= KEYS; n++)
        assert_int_equal(find(&f, n), is_in[n] ? n : MAP_NONE);
    fixture_free(&f);
}

/* All in one bucket: the map refuses instead of walking in circles, and nothing is lost. */
static void a_bucket_that_cannot_be_split_refuses_when_it_is_full(void **state)
{
    enum { KEYS = 1000 };
    struct fixture f = fixture_new(50, KEYS);
    uint32_t added = 0;
    (void)state;

    for (uint32_t n = 1; n <= KEYS; n++)
        memset(f.keys[n].id, 0, 4);
    while (added < KEYS && add(&f, added + 1))
        added++;
    assert_true(added > 600 && added < KEYS);
    for (uint32_t n = 1; n <= KEYS; n++)
        assert_int_equal(find(&f, n), n <= added ? n : MAP_NONE);
    for (uint32_t n = 1; n <= added; n++)
        take_out(&f, n);
    assert_int_equal(map_pages(f.map), 0);
    fixture_free(&f);
}

static void without_memory_an_add_is_refused_and_leaves_no_trace(void **state)
{
    enum { KEYS = 20000 };
    struct fixture f = fixture_new(30, KEYS);
    uint32_t added = 0;
    (void)state;

    while (add(&f, added + 1))
        added++;
    unsigned char *before = image_of(f.base, f.bytes, f.memory);
    assert_false(add(&f, added + 1));
    unsigned char *after = image_of(f.base, f.bytes, f.memory);
    assert_memory_equal(before, after, f.bytes);
    for (uint32_t n = 1; n <= added; n++)
        assert_int_equal(find(&f, n), n);
    take_out(&f, 1);
    assert_true(add(&f, added + 1));
    free(before);
    free(after);
    fixture_free(&f);
}

static void every_operation_rolled_back_leaves_no_trace(void **state)
{
    enum { KEYS = 3000 };
    struct fixture f = fixture_new(30, KEYS);
    uint32_t splits = 0, merges = 0;
    (void)state;

    for (uint32_t n = 1; n <= 2 * KEYS; n++) {
        uint32_t number = n <= KEYS ? n : n - KEYS;
        uint32_t buckets = f.map->buckets;
        unsigned char *before = image_of(f.base, f.bytes, f.memory);
        for (int is_for_real = 0; is_for_real < 2; is_for_real++) {
            if (n <= KEYS)
                assert_true(map_add(f.map, &f.owner, &f.keys[number], number));
            else
                map_remove(f.map, &f.owner, &f.keys[number], number);
            if (is_for_real) {
                memory_commit(f.memory);
                continue;
            }
            memory_rollback(f.memory);
            unsigned char *after = image_of(f.base, f.bytes, f.memory);
            if (memcmp(before, after, f.bytes) != 0)
                fail_msg("step %u left a trace", n);
            free(after);
        }
        splits += f.map->buckets > buckets;
        merges += f.map->buckets < buckets;
        free(before);
    }
    assert_true(splits > 8 && merges == splits);
    fixture_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_found_while_the_map_grows_and_shrinks),
        cmocka_unit_test(random_adds_and_removes_agree_with_an_array),
        cmocka_unit_test(keys_that_collide_are_told_apart),
        cmocka_unit_test(a_bucket_that_cannot_be_split_refuses_when_it_is_full),
        cmocka_unit_test(without_memory_an_add_is_refused_and_leaves_no_trace),
        cmocka_unit_test(every_operation_rolled_back_leaves_no_trace),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
