/* SPDX-License-Identifier: BSD-2-Clause */
/* A server may be of any version, a proxy, or hostile: every value is taken only in the form that is expected. */
#include "base/decimal.h"
#include "cli/redis.h"
#include "cli/say.h"

struct span redis_reply_text(const redisReply *reply)
{
    if (reply == NULL || (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS))
        return SPAN_NONE;
    return (struct span){reply->str, reply->len};
}

json_t *redis_reply_number(const redisReply *reply)
{
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer < 0)
        return json_null();
    return say_no_memory_if_null(json_integer(reply->integer));
}

json_t *redis_number(struct span text)
{
    uint64_t number;
    if (!decimal_read(text, 0, &number))
        return json_null();
    return say_no_memory_if_null(json_integer((json_int_t)number));
}

json_t *redis_word(struct span text)
{
    json_t *word = text.len > 0 ? json_stringn(text.data, text.len) : NULL;
    return word != NULL ? word : json_null();
}
