/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes are put and got one field at a time at written-down offsets, never by laying a struct over them: the file is the same
 * whatever the compiler and the machine. A reader trusts nothing but a checksum, and looks at the length only to find out how
 * many bytes that covers.
 *
 * What every version of the format will keep: the first 16 bytes of a head, and that its checksum covers the rest of its 64.
 * So a newer version is told from a damaged one. Within a version there is nothing to guess: a record of an unknown type is
 * bad, whatever its checksum says.
 */
#include "journal/frame.h"

#include "base/crc32c.h"
#include "base/little.h"
#include "base/must.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC_BYTES    8
#define MAGIC_SEGMENT  "WEIRJRNL"
#define MAGIC_SNAPSHOT "WEIRSNAP"

/* Where things stand in a head. */
enum {
    HEAD_MAGIC = 0,
    HEAD_VERSION = 8,
    HEAD_CRC = 12,
    HEAD_FIRST = 16,
    HEAD_END = 24,
    HEAD_SEQUENCE = 32,
    HEAD_SYNC = 40,
    HEAD_BOOT = 48,
};

/* ... and before a body. */
enum {
    AT_CRC = 0,
    AT_CHAIN = 4,
    AT_LENGTH = 8,
    AT_TYPE = 12,
    AT_ZERO = 14,
    AT_SEQUENCE = 16,
    AT_TIME = 24,
};

_Static_assert(HEAD_BOOT + DISK_BOOT_BYTES == FRAME_HEAD_BYTES, "the boot id ends the head");
_Static_assert(AT_TIME + 8 == FRAME_RECORD_BYTES, "the time stands right before the body");

bool frame_trusts_checksums;

static uint32_t head_crc(const unsigned char *bytes)
{
    uint32_t crc = crc32c(0, bytes, HEAD_CRC);

    return crc32c(crc, bytes + HEAD_FIRST, FRAME_HEAD_BYTES - HEAD_FIRST);
}

void frame_write_head(struct frame_head *head, unsigned char out[FRAME_HEAD_BYTES])
{
    memset(out, 0, FRAME_HEAD_BYTES);
    memcpy(out + HEAD_MAGIC, head->is_snapshot ? MAGIC_SNAPSHOT : MAGIC_SEGMENT, MAGIC_BYTES);
    little_put32(out + HEAD_VERSION, head->version);
    little_put64(out + HEAD_FIRST, head->first);
    little_put64(out + HEAD_END, head->end);
    little_put64(out + HEAD_SEQUENCE, head->sequence);
    little_put32(out + HEAD_SYNC, head->sync);
    memcpy(out + HEAD_BOOT, head->boot, DISK_BOOT_BYTES);
    head->crc = head_crc(out);
    little_put32(out + HEAD_CRC, head->crc);
}

static bool is_zeros(const unsigned char *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

static bool magic_read(const unsigned char *bytes, bool *is_snapshot)
{
    *is_snapshot = memcmp(bytes, MAGIC_SNAPSHOT, MAGIC_BYTES) == 0;
    return *is_snapshot || memcmp(bytes, MAGIC_SEGMENT, MAGIC_BYTES) == 0;
}

enum frame_found frame_read_head(struct span bytes, struct frame_head *head)
{
    const unsigned char *in = (const unsigned char *)bytes.data;
    size_t seen = bytes.len < FRAME_HEAD_BYTES ? bytes.len : FRAME_HEAD_BYTES;

    if (is_zeros(in, seen))
        return FRAME_NOTHING;
    if (seen < FRAME_HEAD_BYTES || !magic_read(in, &head->is_snapshot))
        return FRAME_BAD;
    head->version = little_get32(in + HEAD_VERSION);
    head->crc = little_get32(in + HEAD_CRC);
    if (!frame_trusts_checksums && head->crc != head_crc(in))
        return FRAME_BAD;
    if (head->version > FRAME_VERSION)
        return FRAME_NEWER;
    uint32_t sync = little_get32(in + HEAD_SYNC);
    if (head->version == 0 || sync > SYNC_ALWAYS)
        return FRAME_BAD;
    head->first = little_get64(in + HEAD_FIRST);
    head->end = little_get64(in + HEAD_END);
    head->sequence = little_get64(in + HEAD_SEQUENCE);
    head->sync = (enum sync_mode)sync;
    memcpy(head->boot, in + HEAD_BOOT, DISK_BOOT_BYTES);
    return FRAME_GOOD;
}

void frame_write_record(unsigned char *out, enum record_type type, struct span body, uint64_t time_ms,
                        struct frame_chain *chain)
{
    size_t len = frame_record_bytes(body.len);

    must(body.len <= FRAME_BODY_MAX);
    little_put32(out + AT_CHAIN, chain->crc);
    little_put32(out + AT_LENGTH, (uint32_t)body.len);
    little_put16(out + AT_TYPE, (uint16_t)type);
    little_put16(out + AT_ZERO, 0);
    little_put64(out + AT_SEQUENCE, chain->sequence);
    little_put64(out + AT_TIME, time_ms);
    if (body.len > 0)
        memmove(out + FRAME_RECORD_BYTES, body.data, body.len); /* it may lie there already */
    memset(out + FRAME_RECORD_BYTES + body.len, 0, len - FRAME_RECORD_BYTES - body.len);
    chain->crc = crc32c(0, out + AT_CHAIN, len - AT_CHAIN);
    chain->sequence++;
    little_put32(out + AT_CRC, chain->crc);
}

static bool type_is_known(uint16_t type)
{
    switch (type) {
#define TYPE_CASE(name, number, word) case number:
        RECORD_LIST(TYPE_CASE)
#undef TYPE_CASE
        return true;
    }
    return false;
}

/* A whole record by its own account. The cheap checks come first: the search of a damaged file asks this every 8 bytes. */
static bool record_read(struct span bytes, struct frame_record *record)
{
    const unsigned char *in = (const unsigned char *)bytes.data;

    if (bytes.len < FRAME_RECORD_BYTES || !type_is_known(little_get16(in + AT_TYPE)) ||
        little_get16(in + AT_ZERO) != 0)
        return false;
    uint32_t body_len = little_get32(in + AT_LENGTH);
    if (body_len > FRAME_BODY_MAX || frame_record_bytes(body_len) > bytes.len)
        return false;
    record->crc = little_get32(in + AT_CRC);
    if (!frame_trusts_checksums &&
        record->crc != crc32c(0, in + AT_CHAIN, frame_record_bytes(body_len) - AT_CHAIN))
        return false;
    record->type = (enum record_type)little_get16(in + AT_TYPE);
    record->sequence = little_get64(in + AT_SEQUENCE);
    record->time_ms = little_get64(in + AT_TIME);
    record->body = (struct span){bytes.data + FRAME_RECORD_BYTES, body_len};
    return true;
}

enum frame_found frame_read_record(struct span bytes, struct frame_chain *chain, struct frame_record *record)
{
    const unsigned char *in = (const unsigned char *)bytes.data;

    if (!record_read(bytes, record)) {
        size_t seen = bytes.len < FRAME_RECORD_BYTES ? bytes.len : FRAME_RECORD_BYTES;
        return is_zeros(in, seen) ? FRAME_NOTHING : FRAME_BAD;
    }
    bool is_chained = frame_trusts_checksums || little_get32(in + AT_CHAIN) == chain->crc;
    if (!is_chained || record->sequence != chain->sequence)
        return FRAME_BAD;
    chain->crc = record->crc;
    chain->sequence++;
    return FRAME_GOOD;
}

bool frame_is_later_record(struct span bytes, const struct frame_chain *chain, struct frame_record *record)
{
    return record_read(bytes, record) && record->sequence >= chain->sequence;
}

#define NAME_SEGMENT  "journal-"
#define NAME_SNAPSHOT "snapshot-"
#define NAME_DIGITS   16

void frame_name(bool is_snapshot, uint64_t first, char out[FRAME_NAME_BYTES])
{
    snprintf(out, FRAME_NAME_BYTES, "%s%016" PRIx64, is_snapshot ? NAME_SNAPSHOT : NAME_SEGMENT, first);
}

/* Exactly 16 digits, as frame_name writes them: two names never mean the same. */
static bool digits_read(const char *text, uint64_t *number)
{
    *number = 0;
    for (int n = 0; n < NAME_DIGITS; n++) {
        bool is_digit = text[n] >= '0' && text[n] <= '9';
        if (!is_digit && !(text[n] >= 'a' && text[n] <= 'f'))
            return false;
        *number = *number << 4 | (uint64_t)(is_digit ? text[n] - '0' : text[n] - 'a' + 10);
    }
    return text[NAME_DIGITS] == '\0';
}

bool frame_name_read(const char *name, bool *is_snapshot, uint64_t *first)
{
    *is_snapshot = strncmp(name, NAME_SNAPSHOT, strlen(NAME_SNAPSHOT)) == 0;
    if (*is_snapshot)
        return digits_read(name + strlen(NAME_SNAPSHOT), first);
    return strncmp(name, NAME_SEGMENT, strlen(NAME_SEGMENT)) == 0 &&
           digits_read(name + strlen(NAME_SEGMENT), first);
}
