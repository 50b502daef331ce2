/* SPDX-License-Identifier: BSD-2-Clause */

/* hiredis writes the RESP: it is the format's own library, and its formatter needs no connection. */

#include "redis/resp.h"

#include "base/base64url.h"
#include "base/must.h"

#include <hiredis/hiredis.h>

void resp_begin(struct resp *resp)
{
    resp->count = resp->used = 0;
}

void resp_add(struct resp *resp, struct span text)
{
    must(resp->count < RESP_WORDS_MAX);
    resp->word[resp->count] = text.data;
    resp->len[resp->count] = text.len;
    resp->count++;
}

void resp_add_copy(struct resp *resp, struct span text)
{
    must(text.len <= RESP_TEXT_MAX - resp->used);
    memcpy(resp->text + resp->used, text.data, text.len);
    resp_add(resp, (struct span){resp->text + resp->used, text.len});
    resp->used += (uint32_t)text.len;
}

void resp_add_number(struct resp *resp, uint64_t number)
{
    char digits[24], *at = digits + sizeof(digits);

    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    resp_add_copy(resp, (struct span){at, (size_t)(digits + sizeof(digits) - at)});
}

void resp_add_holder(struct resp *resp, const struct holder *holder)
{
    char text[BASE64URL_LEN(sizeof(holder->id))];

    resp_add_copy(resp,
                  (struct span){text, base64url_encode(holder->id, sizeof(holder->id), text, sizeof(text))});
}

char *resp_bytes(const struct resp *resp, size_t *len)
{
    char *bytes;
    const char **words = (const char **)(uintptr_t)resp->word;
    int written = redisFormatCommandArgv(&bytes, (int)resp->count, words, resp->len);

    if (written < 0)
        return NULL;
    *len = (size_t)written;
    return bytes;
}
