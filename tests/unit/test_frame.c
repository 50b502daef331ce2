/* SPDX-License-Identifier: BSD-2-Clause */
/* Heads and records as bytes: what is written is read, what was changed is seen, and nothing else is taken for a record. */
#include "rig.h"

#include "base/crc32c.h"
#include "base/little.h"
#include "journal/frame.h"

#include <stdlib.h>
#include <string.h>

static struct frame_head head_some(void)
{
    return (struct frame_head){.version = FRAME_VERSION,
                               .first = 0x1122334455667788,
                               .end = 0x1122334455767788,
                               .sequence = 77,
                               .sync = SYNC_ALWAYS,
                               .boot = "0123456789abcde"};
}

static struct span span_from(const void *data, size_t len)
{
    return (struct span){data, len};
}

/* Puts the checksum right after a test changed a byte. */
static void head_resign(unsigned char *bytes)
{
    little_put32(bytes + 12, crc32c(crc32c(0, bytes, 12), bytes + 16, FRAME_HEAD_BYTES - 16));
}

static void record_resign(unsigned char *bytes, size_t len)
{
    little_put32(bytes, crc32c(0, bytes + 4, len - 4));
}

static void a_head_is_laid_out_as_written_down(void **state)
{
    static const unsigned char expected[FRAME_HEAD_BYTES] = {
        'W',  'E',  'I',  'R',  'J',  'R',  'N',  'L',  1,    0,    0,    0,    0,    0,    0,    0,
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x76, 0x55, 0x44, 0x33, 0x22, 0x11,
        77,   0,    0,    0,    0,    0,    0,    0,    2,    0,    0,    0,    0,    0,    0,    0,
        '0',  '1',  '2',  '3',  '4',  '5',  '6',  '7',  '8',  '9',  'a',  'b',  'c',  'd',  'e',  0};
    struct frame_head head = head_some(), read;
    unsigned char bytes[FRAME_HEAD_BYTES];

    (void)state;
    frame_write_head(&head, bytes);
    assert_int_equal(little_get32(bytes + 12), head.crc);
    assert_memory_equal(bytes, expected, 12);
    assert_memory_equal(bytes + 16, expected + 16, FRAME_HEAD_BYTES - 16);
    assert_int_equal(frame_read_head(span_from(bytes, sizeof(bytes)), &read), FRAME_GOOD);
    assert_false(read.is_snapshot);
    assert_int_equal(read.version, FRAME_VERSION);
    assert_int_equal(read.crc, head.crc);
    assert_int_equal(read.first, head.first);
    assert_int_equal(read.end, head.end);
    assert_int_equal(read.sequence, head.sequence);
    assert_int_equal(read.sync, head.sync);
    assert_memory_equal(read.boot, head.boot, sizeof(read.boot));

    head.is_snapshot = true;
    frame_write_head(&head, bytes);
    assert_memory_equal(bytes, "WEIRSNAP", 8);
    assert_int_equal(frame_read_head(span_from(bytes, sizeof(bytes)), &read), FRAME_GOOD);
    assert_true(read.is_snapshot);
}

static void a_head_with_any_bit_changed_or_any_byte_missing_is_bad(void **state)
{
    struct frame_head head = head_some(), read;
    unsigned char bytes[FRAME_HEAD_BYTES];

    (void)state;
    frame_write_head(&head, bytes);
    for (unsigned bit = 0; bit < 8 * FRAME_HEAD_BYTES; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(frame_read_head(span_from(bytes, sizeof(bytes)), &read), FRAME_BAD);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t len = 1; len < FRAME_HEAD_BYTES; len++)
        assert_int_equal(frame_read_head(span_from(bytes, len), &read), FRAME_BAD);
}

static void zeros_are_nothing_neither_a_head_nor_a_record(void **state)
{
    unsigned char zeros[FRAME_HEAD_BYTES] = {0};
    struct frame_chain chain = {0};
    struct frame_record record;
    struct frame_head head;

    (void)state;
    for (size_t len = 0; len <= FRAME_HEAD_BYTES; len++) {
        assert_int_equal(frame_read_head(span_from(zeros, len), &head), FRAME_NOTHING);
        assert_int_equal(frame_read_record(span_from(zeros, len), &chain, &record), FRAME_NOTHING);
        assert_false(frame_is_later_record(span_from(zeros, len), &chain, &record));
    }
    zeros[20] = 1;
    assert_int_equal(frame_read_head(span_from(zeros, sizeof(zeros)), &head), FRAME_BAD);
    assert_int_equal(frame_read_record(span_from(zeros, sizeof(zeros)), &chain, &record), FRAME_BAD);
}

static void a_newer_version_is_told_from_damage_to_the_version(void **state)
{
    struct frame_head head = head_some(), read;
    unsigned char bytes[FRAME_HEAD_BYTES];

    (void)state;
    head.version = FRAME_VERSION + 1;
    frame_write_head(&head, bytes);
    memset(bytes + 16, 0xee, FRAME_HEAD_BYTES - 16); /* whatever the newer one keeps there */
    head_resign(bytes);
    assert_int_equal(frame_read_head(span_from(bytes, sizeof(bytes)), &read), FRAME_NEWER);
    assert_int_equal(read.version, FRAME_VERSION + 1);
    bytes[8] ^= 4;
    assert_int_equal(frame_read_head(span_from(bytes, sizeof(bytes)), &read), FRAME_BAD);
}

static void a_head_that_nobody_writes_is_bad_even_with_a_good_checksum(void **state)
{
    struct frame_head head = head_some(), read;
    unsigned char bytes[FRAME_HEAD_BYTES];

    (void)state;
    head.version = 0;
    frame_write_head(&head, bytes);
    assert_int_equal(frame_read_head(span_from(bytes, sizeof(bytes)), &read), FRAME_BAD);
    head.version = FRAME_VERSION;
    frame_write_head(&head, bytes);
    bytes[40] = SYNC_ALWAYS + 1;
    head_resign(bytes);
    assert_int_equal(frame_read_head(span_from(bytes, sizeof(bytes)), &read), FRAME_BAD);
}

static void a_record_is_laid_out_as_written_down(void **state)
{
    static const unsigned char expected[40] = {
        0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, 5,    0,    0,    0,    1,   0,   0,   0,   9,   0, 0, 0,
        0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 'h', 'e', 'l', 'l', 'o', 0, 0, 0};
    struct frame_chain chain = {.crc = 0x11223344, .sequence = 9}, follow = chain;
    struct frame_record record;
    unsigned char bytes[40];

    (void)state;
    memset(bytes, 0xee, sizeof(bytes));
    assert_int_equal(frame_record_bytes(5), sizeof(bytes));
    frame_write_record(bytes, RECORD_ROOM, SPAN("hello"), 0x1122334455667788, &chain);
    assert_memory_equal(bytes + 4, expected + 4, sizeof(bytes) - 4);
    assert_int_equal(little_get32(bytes), crc32c(0, bytes + 4, sizeof(bytes) - 4));
    assert_int_equal(frame_read_record(span_from(bytes, sizeof(bytes)), &follow, &record), FRAME_GOOD);
    assert_int_equal(record.type, RECORD_ROOM);
    assert_int_equal(record.crc, little_get32(bytes));
    assert_int_equal(record.sequence, 9);
    assert_int_equal(record.time_ms, 0x1122334455667788);
    assert_true(span_equal(record.body, SPAN("hello")));
    assert_int_equal(follow.crc, chain.crc);
    assert_int_equal(follow.sequence, 10);
    assert_int_equal(chain.sequence, 10);
}

static void bodies_of_every_size_up_to_the_largest_come_back(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 40, 4096, FRAME_BODY_MAX - 1, FRAME_BODY_MAX};
    unsigned char *bytes = malloc(frame_record_bytes(FRAME_BODY_MAX));
    char *body = malloc(FRAME_BODY_MAX);
    struct frame_chain chain = {0}, follow = {0};

    (void)state;
    assert_non_null(bytes);
    assert_non_null(body);
    memset(body, 'b', FRAME_BODY_MAX);
    for (unsigned n = 0; n < sizeof(sizes) / sizeof(*sizes); n++) {
        struct frame_record record;
        size_t len = frame_record_bytes(sizes[n]);
        frame_write_record(bytes, RECORD_ROOM, (struct span){body, sizes[n]}, n, &chain);
        assert_int_equal(frame_read_record(span_from(bytes, len - 1), &follow, &record), FRAME_BAD);
        assert_int_equal(frame_read_record(span_from(bytes, len), &follow, &record), FRAME_GOOD);
        assert_true(span_equal(record.body, (struct span){body, sizes[n]}));
    }
    assert_int_equal(follow.crc, chain.crc);
    free(bytes);
    free(body);
}

static void a_record_with_any_bit_changed_or_any_byte_missing_is_bad(void **state)
{
    struct frame_chain chain = {.crc = 5, .sequence = 9}, before = chain;
    struct frame_record record;
    unsigned char bytes[64];

    (void)state;
    frame_write_record(bytes, RECORD_ROOM, SPAN("thirty bytes that mean nothing"), 1, &chain);
    for (unsigned bit = 0; bit < 8 * sizeof(bytes); bit++) {
        struct frame_chain follow = before;
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(frame_read_record(span_from(bytes, sizeof(bytes)), &follow, &record), FRAME_BAD);
        assert_memory_equal(&follow, &before, sizeof(follow));
        assert_false(frame_is_later_record(span_from(bytes, sizeof(bytes)), &follow, &record));
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t len = 1; len < sizeof(bytes); len++)
        assert_int_equal(frame_read_record(span_from(bytes, len), &before, &record), FRAME_BAD);
}

static void a_whole_record_that_does_not_follow_is_bad_but_recognised_as_later(void **state)
{
    struct frame_chain chain = {.crc = 5, .sequence = 9};
    struct frame_chain other_crc = {.crc = 6, .sequence = 9};
    struct frame_chain earlier = {.crc = 5, .sequence = 8}, later = {.crc = 5, .sequence = 10};
    struct frame_record record;
    unsigned char bytes[40];

    (void)state;
    frame_write_record(bytes, RECORD_SYNCED, SPAN("12345678"), 1, &chain);
    struct span all = span_from(bytes, sizeof(bytes));
    assert_int_equal(frame_read_record(all, &other_crc, &record), FRAME_BAD);
    assert_int_equal(frame_read_record(all, &earlier, &record), FRAME_BAD);
    assert_int_equal(frame_read_record(all, &later, &record), FRAME_BAD);
    assert_true(frame_is_later_record(all, &earlier, &record));
    assert_true(frame_is_later_record(all, &other_crc, &record));
    assert_int_equal(record.type, RECORD_SYNCED);
    assert_true(span_equal(record.body, SPAN("12345678")));
    assert_false(frame_is_later_record(all, &later, &record));
}

static void a_record_that_nobody_writes_is_bad_even_with_a_good_checksum(void **state)
{
    struct frame_chain chain = {.sequence = 1}, before = chain;
    struct frame_record record;
    unsigned char bytes[40], changed[40];

    (void)state;
    frame_write_record(bytes, RECORD_ZONE, SPAN("12345678"), 1, &chain);
    static const struct {
        size_t at;
        unsigned char value;
    } changes[] = {{12, 0}, {12, 6}, {13, 1}, {14, 1}, {15, 1}, {8, 9}, {10, 2}, {11, 0xff}};
    for (unsigned n = 0; n < sizeof(changes) / sizeof(*changes); n++) {
        memcpy(changed, bytes, sizeof(bytes));
        changed[changes[n].at] = changes[n].value;
        record_resign(changed, sizeof(changed));
        assert_int_equal(frame_read_record(span_from(changed, 40), &before, &record), FRAME_BAD);
    }
}

static void the_fuzzer_may_take_every_checksum_for_right(void **state)
{
    struct frame_head head = head_some(), read;
    struct frame_chain chain = {.sequence = 1}, follow = {.crc = 99, .sequence = 1};
    struct frame_record record;
    unsigned char bytes[FRAME_HEAD_BYTES];

    (void)state;
    frame_trusts_checksums = true;
    frame_write_head(&head, bytes);
    bytes[50] ^= 1;
    assert_int_equal(frame_read_head(span_from(bytes, sizeof(bytes)), &read), FRAME_GOOD);
    frame_write_record(bytes, RECORD_ZONE, SPAN("12345678"), 1, &chain);
    bytes[33] ^= 1;
    assert_int_equal(frame_read_record(span_from(bytes, 40), &follow, &record), FRAME_GOOD);
    frame_trusts_checksums = false;
    follow.sequence = 1;
    assert_int_equal(frame_read_record(span_from(bytes, 40), &follow, &record), FRAME_BAD);
}

static void names_come_back_and_no_other_name_is_taken(void **state)
{
    static const uint64_t firsts[] = {0, 1, 0xabc, UINT64_MAX};
    static const char *const foreign[] = {"",
                                          "journal-",
                                          "journal-next",
                                          "journal-failed",
                                          "snapshot-new",
                                          "journal-00000000000000000",
                                          "journal-000000000000000",
                                          "journal-000000000000000A",
                                          "journal-000000000000000g",
                                          "journal-0000000000000000~",
                                          "Journal-0000000000000000",
                                          "snapshot-0000000000000x00",
                                          " journal-0000000000000000"};
    char name[FRAME_NAME_BYTES];
    bool is_snapshot;
    uint64_t first;

    (void)state;
    for (unsigned n = 0; n < 2 * sizeof(firsts) / sizeof(*firsts); n++) {
        frame_name(n % 2, firsts[n / 2], name);
        assert_true(frame_name_read(name, &is_snapshot, &first));
        assert_int_equal(is_snapshot, n % 2);
        assert_int_equal(first, firsts[n / 2]);
    }
    frame_name(false, 0xabc, name);
    assert_string_equal(name, "journal-0000000000000abc");
    frame_name(true, 0xabc, name);
    assert_string_equal(name, "snapshot-0000000000000abc");
    for (unsigned n = 0; n < sizeof(foreign) / sizeof(*foreign); n++)
        assert_false(frame_name_read(foreign[n], &is_snapshot, &first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_laid_out_as_written_down),
        cmocka_unit_test(a_head_with_any_bit_changed_or_any_byte_missing_is_bad),
        cmocka_unit_test(zeros_are_nothing_neither_a_head_nor_a_record),
        cmocka_unit_test(a_newer_version_is_told_from_damage_to_the_version),
        cmocka_unit_test(a_head_that_nobody_writes_is_bad_even_with_a_good_checksum),
        cmocka_unit_test(a_record_is_laid_out_as_written_down),
        cmocka_unit_test(bodies_of_every_size_up_to_the_largest_come_back),
        cmocka_unit_test(a_record_with_any_bit_changed_or_any_byte_missing_is_bad),
        cmocka_unit_test(a_whole_record_that_does_not_follow_is_bad_but_recognised_as_later),
        cmocka_unit_test(a_record_that_nobody_writes_is_bad_even_with_a_good_checksum),
        cmocka_unit_test(the_fuzzer_may_take_every_checksum_for_right),
        cmocka_unit_test(names_come_back_and_no_other_name_is_taken),
    };
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
