/* SPDX-License-Identifier: BSD-2-Clause */
/* hiredis lets its owner make the objects of a reply: ours are its own, but an array asks first. */
#include "redis/reader.h"

#include <stdlib.h>

struct reader {
    redisReader *hiredis;
    redisReplyObjectFunctions functions;
    void *(*array_make)(const redisReadTask *task, int elements);
    size_t bytes; /* fed since the last reply was whole */
    int elements; /* announced since then */
    bool is_broken;
};

static void *array_make(const redisReadTask *task, int elements);

struct reader *reader_new(void)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL)
        return NULL;
    reader->hiredis = redisReaderCreate();
    if (reader->hiredis == NULL) {
        free(reader);
        return NULL;
    }
    reader->functions = *reader->hiredis->fn;
    reader->array_make = reader->functions.createArray;
    reader->functions.createArray = array_make;
    reader->hiredis->fn = &reader->functions;
    reader->hiredis->privdata = reader;
    return reader;
}

void reader_free(struct reader *reader)
{
    if (reader == NULL)
        return;
    redisReaderFree(reader->hiredis);
    free(reader);
}

/* NULL, which hiredis takes for "no memory", for more than there may be. */
static void *array_make(const redisReadTask *task, int elements)
{
    struct reader *reader = task->privdata;
    if (elements > READER_ELEMENTS_MAX - reader->elements)
        return NULL;
    reader->elements += elements;
    return reader->array_make(task, elements);
}

void reader_feed(struct reader *reader, struct span bytes)
{
    reader->bytes += bytes.len;
    if (reader->is_broken || redisReaderFeed(reader->hiredis, bytes.data, bytes.len) != REDIS_OK)
        reader->is_broken = true;
}

enum reader_result reader_next(struct reader *reader, redisReply **reply)
{
    void *object = NULL;
    if (reader->is_broken || redisReaderGetReply(reader->hiredis, &object) != REDIS_OK) {
        reader->is_broken = true;
        return READER_BROKEN;
    }
    if (object == NULL) {
        reader->is_broken = reader->bytes > READER_BYTES_MAX;
        return reader->is_broken ? READER_BROKEN : READER_MORE;
    }
    reader->bytes = reader->hiredis->len - reader->hiredis->pos;
    reader->elements = 0;
    *reply = object;
    return READER_REPLY;
}
