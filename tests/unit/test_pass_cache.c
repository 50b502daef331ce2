/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache of verified passes: it may forget, it never makes one up. */
#include "token/pass_cache.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOW   1000
#define LATER 2000

static struct pass_cache *cache;

static int cache_setup(void **state)
{
    (void)state;
    cache = pass_cache_new(1024);
    return cache != NULL ? 0 : -1;
}

static int cache_teardown(void **state)
{
    (void)state;
    pass_cache_free(cache);
    return 0;
}

struct key {
    uint8_t bytes[PASS_CACHE_KEY_SIZE];
};

/* Keys of one set differ behind the bits that choose it. */
static struct key key_of(uint32_t set, uint32_t number)
{
    struct key key = {0};
    memcpy(key.bytes, &set, sizeof(set));
    memcpy(key.bytes + 28, &number, sizeof(number));
    return key;
}

static bool has(struct key key, uint64_t now_sec)
{
    return pass_cache_has(cache, key.bytes, now_sec);
}

static void add(struct key key, uint64_t exp_sec)
{
    pass_cache_add(cache, key.bytes, exp_sec, NOW);
}

static void what_was_added_is_known_until_its_time_is_over(void **state)
{
    struct key key = key_of(7, 1);
    (void)state;
    assert_false(has(key, NOW));
    add(key, LATER);
    assert_true(has(key, NOW));
    assert_true(has(key, LATER - 1));
    assert_false(has(key, LATER));
    assert_false(has(key, UINT64_MAX));
    assert_true(has(key, NOW));
}

static void what_is_over_is_not_added(void **state)
{
    (void)state;
    add(key_of(7, 1), NOW);
    add(key_of(7, 2), 0);
    assert_false(has(key_of(7, 1), 0));
    assert_false(has(key_of(7, 2), 0));
}

static void a_key_that_differs_in_any_bit_is_another(void **state)
{
    struct key key = key_of(7, 1);
    (void)state;
    add(key, LATER);
    for (size_t bit = 0; bit < sizeof(key.bytes) * 8; bit++) {
        struct key other = key;
        other.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(has(other, NOW));
    }
}

static void an_empty_table_knows_no_key_of_zeros(void **state)
{
    struct key zeros = {0};
    (void)state;
    assert_false(has(zeros, 0));
    assert_false(has(zeros, NOW));
}

static void a_full_set_forgets_who_was_not_seen_for_longest(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= PASS_CACHE_WAYS; number++)
        add(key_of(7, number), LATER);
    assert_true(has(key_of(7, 1), NOW)); /* seen again: 2 is the oldest now */
    add(key_of(7, PASS_CACHE_WAYS + 1), LATER);
    assert_false(has(key_of(7, 2), NOW));
    for (uint32_t number = 1; number <= PASS_CACHE_WAYS + 1; number++)
        assert_int_equal(has(key_of(7, number), NOW), number != 2);
    add(key_of(8, 1), LATER);
    assert_true(has(key_of(7, 1), NOW) && has(key_of(8, 1), NOW));
}

static void those_whose_time_is_over_make_place_first(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= PASS_CACHE_WAYS; number++)
        add(key_of(7, number), number == 3 ? NOW + 1 : LATER);
    pass_cache_add(cache, key_of(7, PASS_CACHE_WAYS + 1).bytes, LATER, NOW + 1);
    for (uint32_t number = 1; number <= PASS_CACHE_WAYS + 1; number++)
        assert_int_equal(has(key_of(7, number), NOW + 1), number != 3);
}

static void adding_again_takes_no_second_place(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        add(key_of(7, 1), LATER);
    for (uint32_t number = 2; number <= PASS_CACHE_WAYS; number++)
        add(key_of(7, number), LATER);
    for (uint32_t number = 1; number <= PASS_CACHE_WAYS; number++)
        assert_true(has(key_of(7, number), NOW));
}

static void the_key_is_the_sha256_of_the_token(void **state)
{
    /* FIPS 180-2, appendix B.1 */
    static const uint8_t expected[PASS_CACHE_KEY_SIZE] = {
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
        0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t key[PASS_CACHE_KEY_SIZE];
    (void)state;
    for (int round = 0; round < 2; round++) {
        pass_cache_key(cache, SPAN("abc"), key);
        assert_memory_equal(key, expected, sizeof(key));
    }
}

static uint32_t random_below(uint32_t bound)
{
    static uint64_t bits = 0x9E3779B97F4A7C15;
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    return (uint32_t)(bits >> 32) % bound;
}

/* A few hundred keys over a small table, so that sets overflow all the time. */
static void it_never_knows_what_was_not_added_or_is_over(void **state)
{
    enum { KEYS = 512 };
    uint64_t exp_sec[KEYS] = {0}, now_sec = NOW, known = 0;
    struct pass_cache *small = pass_cache_new(64);
    (void)state;
    assert_non_null(small);
    for (int i = 0; i < 200000; i++) {
        uint32_t number = random_below(KEYS);
        struct key key = key_of(number * 2654435761u, number);
        now_sec += random_below(8) == 0;
        if (random_below(2) == 0) {
            exp_sec[number] = now_sec + 1 + random_below(40);
            pass_cache_add(small, key.bytes, exp_sec[number], now_sec);
        } else if (pass_cache_has(small, key.bytes, now_sec)) {
            assert_true(exp_sec[number] > now_sec);
            known++;
        }
    }
    assert_true(known > 1000);
    pass_cache_free(small);
}

static void the_table_holds_what_it_was_made_for(void **state)
{
    struct pass_cache *large = pass_cache_new(PASS_CACHE_ENTRIES);
    size_t held = 0;
    (void)state;
    assert_non_null(large);
    for (uint32_t number = 0; number < PASS_CACHE_ENTRIES; number++)
        pass_cache_add(large, key_of(number, number).bytes, LATER, NOW);
    for (uint32_t number = 0; number < PASS_CACHE_ENTRIES; number++)
        held += pass_cache_has(large, key_of(number, number).bytes, NOW);
    assert_int_equal(held, PASS_CACHE_ENTRIES);
    pass_cache_free(large);
    pass_cache_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, cache_setup, cache_teardown)
        TEST(what_was_added_is_known_until_its_time_is_over),
        TEST(what_is_over_is_not_added),
        TEST(a_key_that_differs_in_any_bit_is_another),
        TEST(an_empty_table_knows_no_key_of_zeros),
        TEST(a_full_set_forgets_who_was_not_seen_for_longest),
        TEST(those_whose_time_is_over_make_place_first),
        TEST(adding_again_takes_no_second_place),
        TEST(the_key_is_the_sha256_of_the_token),
        TEST(it_never_knows_what_was_not_added_or_is_over),
        TEST(the_table_holds_what_it_was_made_for),
#undef TEST
    };
    return cmocka_run_group_tests_name("pass_cache", tests, NULL, NULL);
}
