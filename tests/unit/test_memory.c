/* SPDX-License-Identifier: BSD-2-Clause */
/* The undo log and the pages: what is rolled back was never there. */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define PAGES 40
#define BYTES ((size_t)PAGES * PAGE_BYTES)

/* A block with one memory on page 1 and, after the first `fields` pages, spare pages. */
struct block {
    unsigned char *base;
    struct memory *memory;
};

#define FIELD_PAGES 8
#define FIRST_SPARE (1 + (sizeof(struct memory) + PAGE_BYTES - 1) / PAGE_BYTES + FIELD_PAGES)

static unsigned char *field_page(const struct block *block)
{
    return block->base + (FIRST_SPARE - FIELD_PAGES) * PAGE_BYTES;
}

static struct block block_new(void)
{
    struct block block = {.base = shared_new(BYTES)};

    block.memory = (struct memory *)(block.base + PAGE_BYTES);
    memory_init(block.memory, block.base);
    for (page_ref page = FIRST_SPARE; page < PAGES; page++)
        memory_give(block.memory, page, block.memory);
    memory_commit(block.memory);
    return block;
}

static void what_was_changed_twice_comes_back_as_it_was_first(void **state)
{
    struct block block = block_new();
    uint32_t *field = (uint32_t *)field_page(&block);
    (void)state;

    memory_set(block.memory, *field, 1);
    memory_commit(block.memory);
    memory_set(block.memory, *field, 2);
    memory_keep(block.memory, field, 13);
    memset(field, 0xee, 13);
    memory_rollback(block.memory);
    assert_int_equal(field[0], 1);
    assert_int_equal(field[1] | field[2] | field[3], 0);
    memory_rollback(block.memory);
    assert_int_equal(field[0], 1);
    shared_free(block.base, BYTES);
}

/* A successor may die in the rollback too: the one after it starts again from the whole log. */
static void a_rollback_that_was_broken_off_can_be_repeated(void **state)
{
    struct block block = block_new();
    uint32_t *fields = (uint32_t *)field_page(&block);
    (void)state;

    for (uint32_t i = 0; i < 50; i++)
        memory_set(block.memory, fields[i % 7], i + 1);
    unsigned char *torn = malloc(BYTES);
    memcpy(torn, block.base, BYTES);
    memory_rollback(block.memory);
    unsigned char *expected = image_of(block.base, BYTES, block.memory);
    for (uint32_t done = 0; done < 7; done++) {
        memcpy(block.base, torn, BYTES);
        fields[done] = 0; /* as a rollback that came this far leaves it */
        memory_rollback(block.memory);
        unsigned char *image = image_of(block.base, BYTES, block.memory);
        assert_memory_equal(image, expected, BYTES);
        free(image);
    }
    free(expected);
    free(torn);
    shared_free(block.base, BYTES);
}

static void a_taken_page_is_zero_and_none_is_given_twice(void **state)
{
    struct block block = block_new();
    bool is_taken[PAGES] = {false};
    page_ref page;
    uint32_t taken = 0;
    (void)state;

    while ((page = memory_take(block.memory)) != 0) {
        static const unsigned char zero[PAGE_BYTES];
        assert_true(page >= FIRST_SPARE && page < PAGES && !is_taken[page]);
        is_taken[page] = true;
        assert_memory_equal(memory_page(block.memory, page), zero, PAGE_BYTES);
        memset(memory_page(block.memory, page), 0xaa, PAGE_BYTES);
        memory_commit(block.memory);
        taken++;
    }
    assert_int_equal(taken, PAGES - FIRST_SPARE);
    assert_int_equal(block.memory->spare_count, 0);
    for (page = FIRST_SPARE; page < PAGES; page++)
        memory_free(block.memory, page);
    memory_commit(block.memory);
    assert_int_equal(block.memory->spare_count, taken);
    assert_int_not_equal(memory_take(block.memory), 0);
    shared_free(block.base, BYTES);
}

/* One random operation: takes, then changes, then frees, as the contract asks. */
static void act_at_random(struct block *block, struct dice *dice, page_ref *held, uint32_t *count)
{
    uint32_t before = *count;

    for (uint32_t n = dice_below(dice, 4); n > 0; n--) {
        page_ref page = memory_take(block->memory);
        if (page != 0) {
            memset(memory_page(block->memory, page), (int)dice_below(dice, 256), PAGE_BYTES);
            held[(*count)++] = page;
        }
    }
    for (uint32_t n = dice_below(dice, 20); n > 0; n--) {
        uint32_t len = 1 + dice_below(dice, 300);
        unsigned char *at = field_page(block) + dice_below(dice, FIELD_PAGES * PAGE_BYTES - len);
        if (before > 0 && dice_below(dice, 3) == 0) /* a page of an earlier operation */
            at = (unsigned char *)memory_page(block->memory, held[dice_below(dice, before)]) +
                 dice_below(dice, PAGE_BYTES - len);
        memory_keep(block->memory, at, len);
        memset(at, (int)dice_below(dice, 256), len);
    }
    for (uint32_t n = dice_below(dice, 4); n > 0 && *count > 0; n--) {
        uint32_t which = dice_below(dice, *count);
        memory_free(block->memory, held[which]);
        held[which] = held[--*count];
    }
}

static void random_operations_rolled_back_leave_no_trace(void **state)
{
    struct block block = block_new();
    struct dice dice = {1};
    page_ref held[PAGES];
    uint32_t count = 0;
    (void)state;

    for (int round = 0; round < 3000; round++) {
        unsigned char *before = image_of(block.base, BYTES, block.memory);
        page_ref held_before[PAGES];
        uint32_t count_before = count;
        memcpy(held_before, held, sizeof(held));

        act_at_random(&block, &dice, held, &count);
        if (dice_below(&dice, 2) == 0) {
            memory_commit(block.memory);
        } else {
            memory_rollback(block.memory);
            unsigned char *after = image_of(block.base, BYTES, block.memory);
            if (memcmp(before, after, BYTES) != 0)
                fail_msg("round %d left a trace", round);
            free(after);
            memcpy(held, held_before, sizeof(held));
            count = count_before;
        }
        assert_int_equal(block.memory->spare_count + count, PAGES - FIRST_SPARE);
        free(before);
    }
    shared_free(block.base, BYTES);
}

/* Pages go from one memory to another under the log of one of them: rolled back, both are as they were. */
static void a_page_on_its_way_between_two_memories_is_never_lost(void **state)
{
    struct block block = block_new();
    struct memory *other = (struct memory *)field_page(&block);
    (void)state;

    memory_init(other, block.base);
    uint32_t all = block.memory->spare_count;
    memory_give(other, memory_take_back(block.memory, block.memory), block.memory);
    memory_rollback(block.memory);
    assert_int_equal(block.memory->spare_count, all);
    assert_int_equal(other->spare_count, 0);
    assert_int_equal(other->spare, 0);
    memory_give(other, memory_take_back(block.memory, block.memory), block.memory);
    memory_commit(block.memory);
    assert_int_equal(block.memory->spare_count, all - 1);
    assert_int_equal(other->spare_count, 1);
    memory_give(block.memory, memory_take_back(other, block.memory), block.memory);
    memory_rollback(block.memory);
    assert_int_equal(other->spare_count, 1);
    assert_int_equal(memory_take_back(other, other), FIRST_SPARE + all - 1);
    assert_int_equal(memory_take_back(other, other), 0);
    shared_free(block.base, BYTES);
}

static void keep_too_much(void)
{
    struct block block = block_new();

    for (int i = 0; i < 4; i++)
        memory_keep(block.memory, field_page(&block), PAGE_BYTES);
}

static void take_what_was_freed(void)
{
    struct block block = block_new();

    memory_free(block.memory, memory_take(block.memory));
    memory_take(block.memory);
}

static void free_no_page(void)
{
    struct block block = block_new();

    memory_free(block.memory, 0);
}

static void misuse_ends_the_process_instead_of_tearing_the_zone(void **state)
{
    (void)state;
    assert_true(dies(keep_too_much));
    assert_true(dies(take_what_was_freed));
    assert_true(dies(free_no_page));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_changed_twice_comes_back_as_it_was_first),
        cmocka_unit_test(a_rollback_that_was_broken_off_can_be_repeated),
        cmocka_unit_test(a_taken_page_is_zero_and_none_is_given_twice),
        cmocka_unit_test(random_operations_rolled_back_leave_no_trace),
        cmocka_unit_test(a_page_on_its_way_between_two_memories_is_never_lost),
        cmocka_unit_test(misuse_ends_the_process_instead_of_tearing_the_zone),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
