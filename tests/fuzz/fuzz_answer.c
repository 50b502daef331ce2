/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as the reply of a server, to any kind of call: everybody is answered, and with an error that the kind can have. What
 * was read as good is within its bounds.
 */
#include "base/must.h"
#include "redis/answer.h"
#include "redis/ask.h"
#include "redis/peer.h"
#include "redis/reader.h"

#include <stdint.h>

#define CALLS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer_try(const redisReply *reply, enum engine_op op)
{
    struct engine_call call[CALLS], *calls[CALLS];
    struct room_id ids[CALLS];
    struct texts texts;
    uint32_t count = ask_may_gather(op) ? CALLS : 1;

    for (uint32_t i = 0; i < count; i++) {
        call[i] = (struct engine_call){
            .op = op, .list = {.ids = ids, .size = CALLS}, .texts = &texts, .error = ERROR_COUNT};
        calls[i] = &call[i];
    }
    answer_calls(reply, calls, count);
    for (uint32_t i = 0; i < count; i++) {
        must(call[i].error < ERROR_COUNT);
        must(call[i].error != ERROR_ENGINE_UNAVAILABLE || call[i].retry_after_sec > 0 || op == ENGINE_JOIN);
        if (call[i].error == ERROR_NONE && op == ENGINE_STATUS)
            must(call[i].standing.state <= TICKET_DONE);
        if (call[i].error == ERROR_NONE && op == ENGINE_ROOMS)
            must(call[i].list.count <= CALLS && (call[i].list.count == 0 || ids[0].len <= ROOM_ID_MAX));
        if (call[i].error == ERROR_NONE && op == ENGINE_FIGURES)
            must(call[i].settings.mode < MODE_COUNT &&
                 call[i].figures.in_state[TICKET_DONE] <= call[i].figures.issued &&
                 memchr(texts.message, '\0', sizeof(texts.message)) != NULL);
    }
}

static void reply_try(const redisReply *reply)
{
    for (int op = ENGINE_JOIN; op <= ENGINE_CLEAR; op++)
        if (ask_has_script((enum engine_op)op))
            answer_try(reply, (enum engine_op)op);
    for (int kind = CHORE_TICK; kind <= CHORE_SHOP; kind++) {
        struct redis_epochs epochs = {0};
        struct redis_chore chore = {.kind = (enum redis_chore_kind)kind, .epochs = &epochs};
        answer_chore(reply, &chore);
        must(chore.error < ERROR_COUNT && chore.clock_ms <= INT64_MAX && chore.wait_ms <= CHORE_LEASE_MS);
        must(epochs.len <= CHORE_EPOCHS_MAX && (epochs.len == 0 || chore.error == ERROR_NONE));
    }
    struct follower follower;
    if (answer_follow(reply, &follower))
        follower_step(&follower);
    struct span former;
    if (answer_is_other_primary(reply, &former))
        must(former.len <= PEER_RUN_ID_MAX);
    must(!answer_is_noscript(reply) || !answer_is_renewed(reply));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader *reader = reader_new();
    redisReply *reply;

    must(reader != NULL);
    reader_feed(reader, (struct span){(const char *)data, size});
    while (reader_next(reader, &reply) == READER_REPLY) {
        reply_try(reply);
        freeReplyObject(reply);
    }
    reader_free(reader);
    return 0;
}
