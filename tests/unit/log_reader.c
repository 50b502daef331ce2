/* SPDX-License-Identifier: BSD-2-Clause */
#include "log_reader.h"

#include "base/little.h"
#include "rig.h"

#include <string.h>

/* A place in it follows from the number, so that two records are never alike. */
static const char *noise_of(uint64_t number)
{
    static char noise[FRAME_BODY_MAX + 256];

    if (noise[0] == 0)
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (char)(i * i / 7 + i + 1);
    return noise + number % 251;
}

struct span body_of(uint64_t number, size_t len)
{
    static char body[FRAME_BODY_MAX];

    assert_true(len >= 8 && len <= sizeof(body));
    little_put64((unsigned char *)body, number);
    memcpy(body + 8, noise_of(number), len - 8);
    return (struct span){body, len};
}

uint64_t number_of(struct span body)
{
    assert_true(body.len >= 8);
    uint64_t number = little_get64((const unsigned char *)body.data);
    assert_memory_equal(body.data + 8, noise_of(number), body.len - 8);
    return number;
}

struct segment {
    unsigned char bytes[4 * LOG_SEGMENT_LEAST];
    size_t len;
    struct frame_head head;
};

static bool segment_read(struct disk *disk, uint64_t first, struct segment *segment)
{
    char name[FRAME_NAME_BYTES];

    frame_name(false, first, name);
    int file = disk->open(disk, name, DISK_READ);
    if (file < 0)
        return false;
    int64_t len = disk->read(disk, file, segment->bytes, sizeof(segment->bytes), 0);
    disk->close(disk, file);
    assert_true(len >= 0);
    segment->len = (size_t)len;
    struct span bytes = {(const char *)segment->bytes, segment->len};
    return frame_read_head(bytes, &segment->head) == FRAME_GOOD;
}

struct reader {
    struct log_reading reading;
    void (*each)(void *context, uint64_t number);
    void *context;
};

static void note(struct reader *reader, const struct frame_record *record)
{
    struct log_reading *reading = &reader->reading;

    if (record->type == RECORD_ROOM) {
        reading->numbers++;
        reader->each(reader->context, number_of(record->body));
    }
    if (record->type == RECORD_SYNCED) {
        reading->noted = little_get64((const unsigned char *)record->body.data);
        assert_true(reading->noted <= reading->position);
    }
    reading->last = record->type;
}

/* True if another segment follows. */
static bool segment_walk(struct reader *reader, const struct segment *segment)
{
    struct log_reading *reading = &reader->reading;
    struct frame_chain chain = {segment->head.crc, reading->sequence};
    struct frame_record record;

    assert_int_equal(segment->head.first, reading->position);
    assert_int_equal(segment->head.sequence, reading->sequence);
    reading->segments++;
    reading->first = segment->head.first;
    reading->sync = segment->head.sync;
    for (size_t at = FRAME_HEAD_BYTES;; at += frame_record_bytes(record.body.len)) {
        reading->position = segment->head.first + at;
        reading->sequence = chain.sequence;
        struct span rest = {(const char *)segment->bytes + at, segment->len - at};
        if (frame_read_record(rest, &chain, &record) != FRAME_GOOD)
            return false;
        if (record.type == RECORD_END)
            break;
        note(reader, &record);
    }
    reading->position = little_get64((const unsigned char *)record.body.data);
    reading->sequence = chain.sequence;
    assert_true(reading->position <= segment->head.end);
    return true;
}

struct log_reading log_read_any(struct disk *disk, struct log_start start,
                                void (*each)(void *context, uint64_t number), void *context)
{
    static struct segment segment;
    struct reader reader = {{.position = start.position, .sequence = start.sequence}, each, context};

    while (segment_read(disk, reader.reading.position, &segment) && segment_walk(&reader, &segment))
        continue;
    return reader.reading;
}

static void expect_next(void *context, uint64_t number)
{
    uint64_t *last = context;

    assert_int_equal(number, ++*last);
}

struct log_reading log_read_back(struct disk *disk, struct log_start start)
{
    uint64_t last = 0;

    return log_read_any(disk, start, expect_next, &last);
}

bool disk_has(struct disk *disk, const char *name)
{
    int file = disk->open(disk, name, DISK_READ);

    if (file >= 0)
        disk->close(disk, file);
    return file >= 0;
}

int64_t disk_size_of(struct disk *disk, const char *name)
{
    int file = disk->open(disk, name, DISK_READ);

    assert_true(file >= 0);
    int64_t size = disk->size(disk, file);
    disk->close(disk, file);
    return size;
}

struct frame_head log_head_of(struct disk *disk, uint64_t first)
{
    static struct segment segment;

    assert_true(segment_read(disk, first, &segment));
    assert_int_equal(segment.head.first, first);
    assert_int_equal(segment.len, segment.head.end - first);
    return segment.head;
}
