/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-16/XMODEM (polynomial 0x1021, from 0, high bit first), four bits at a time: the names are short and the table is a line. */
#include "redis/slots.h"

uint16_t slot_of_key(struct span key)
{
    const char *end = key.data + key.len;
    const char *open = key.len == 0 ? NULL : memchr(key.data, '{', key.len);
    if (open == NULL)
        return slot_of_tag(key);
    const char *close = memchr(open, '}', (size_t)(end - open));
    if (close == NULL || close == open + 1)
        return slot_of_tag(key);
    return slot_of_tag((struct span){open + 1, (size_t)(close - open - 1)});
}

uint16_t slot_of_tag(struct span tag)
{
    static const uint16_t table[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                       0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    uint16_t crc = 0;
    for (size_t i = 0; i < tag.len; i++) {
        uint8_t byte = (uint8_t)tag.data[i];
        crc = (uint16_t)(crc << 4 ^ table[crc >> 12 ^ byte >> 4]);
        crc = (uint16_t)(crc << 4 ^ table[crc >> 12 ^ (byte & 15)]);
    }
    return crc % SLOTS;
}
