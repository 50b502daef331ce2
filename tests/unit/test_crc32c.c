/* SPDX-License-Identifier: BSD-2-Clause */
/* The checksum against RFC 3720, and both ways of computing it against the definition, bit by bit. */
#include "rig.h"

#include "base/crc32c.h"

#include <string.h>

static uint32_t crc32c_by_definition(const unsigned char *data, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t n = 0; n < len; n++) {
        crc ^= data[n];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void check(const unsigned char *data, size_t len, uint32_t expected)
{
    assert_int_equal(crc32c(0, data, len), expected);
    assert_int_equal(crc32c_portable(0, data, len), expected);
    assert_int_equal(crc32c_by_definition(data, len), expected);
}

/* RFC 3720, B.4 */
static void the_vectors_of_the_rfc_hold(void **state)
{
    static const unsigned char read_command[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
                                                   0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                                   0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
    unsigned char bytes[32];

    (void)state;
    check(memset(bytes, 0, sizeof(bytes)), sizeof(bytes), 0x8a9136aa);
    check(memset(bytes, 0xff, sizeof(bytes)), sizeof(bytes), 0x62a8ab43);
    for (unsigned n = 0; n < sizeof(bytes); n++)
        bytes[n] = (unsigned char)n;
    check(bytes, sizeof(bytes), 0x46dd794e);
    for (unsigned n = 0; n < sizeof(bytes); n++)
        bytes[n] = (unsigned char)(31 - n);
    check(bytes, sizeof(bytes), 0x113fdb5c);
    check(read_command, sizeof(read_command), 0xd9963a56);
    check((const unsigned char *)"123456789", 9, 0xe3069283);
    check(bytes, 0, 0);
}

static void both_ways_agree_with_the_definition_at_any_length_address_and_cut(void **state)
{
    unsigned char bytes[320];
    uint32_t dice = 1;

    (void)state;
    for (unsigned n = 0; n < sizeof(bytes); n++) {
        dice = dice * 1664525 + 1013904223;
        bytes[n] = (unsigned char)(dice >> 24);
    }
    for (size_t start = 0; start < 9; start++) {
        for (size_t len = 0; len < 300; len++) {
            const unsigned char *data = bytes + start;
            size_t cut = len * 7 / 11;
            uint32_t expected = crc32c_by_definition(data, len);
            assert_int_equal(crc32c(0, data, len), expected);
            assert_int_equal(crc32c_portable(0, data, len), expected);
            assert_int_equal(crc32c(crc32c(0, data, cut), data + cut, len - cut), expected);
            assert_int_equal(crc32c_portable(crc32c_portable(0, data, cut), data + cut, len - cut), expected);
        }
    }
}

static void every_entry_of_the_tables_is_right(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 8; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            unsigned char bytes[8] = {0};
            bytes[at] = (unsigned char)byte;
            assert_int_equal(crc32c_portable(0, bytes, 8), crc32c_by_definition(bytes, 8));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_rfc_hold),
        cmocka_unit_test(both_ways_agree_with_the_definition_at_any_length_address_and_cut),
        cmocka_unit_test(every_entry_of_the_tables_is_right),
    };
    return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
