/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rooms are known by the registry and by name: nothing here scans keys, so that it may be asked of a server under load. Memory is
 * what MEMORY USAGE says, which looks at a few members of a large key and multiplies.
 *
 * Redis does not count requests by key. What a room itself counts is shown instead: tickets issued and people called, ever.
 */
#include "base/must.h"
#include "base/room_id.h"
#include "cli/redis.h"
#include "cli/say.h"
#include "redis/ask.h"

#include <stdio.h>
#include <stdlib.h>

#define KEYS_MAX     16
#define KEY_TEXT_MAX (ROOM_ID_MAX + 40)
#define FIGURES      "epoch away called entered active issued calls"

struct names {
    size_t count, room;
    char (*ids)[ROOM_ID_MAX + 1];
};

enum room_question { ASK_FIGURES, ASK_LINE, ASK_KEYS, ASK_MEMORY };

static void names_add_list(struct names *names, const char *list);
static void names_add_registry(struct names *names, struct store_loop *loop);
static void names_add(struct names *names, struct span id);
static void names_sort(struct names *names);
static int name_compare(const void *a, const void *b);
static json_t *room_make(struct store_loop *loop, const char *id);
static size_t room_ask(struct store_loop *loop, const char *id, uint16_t slot,
                       struct store_question *questions);
static void figures_add(json_t *room, const redisReply *reply);
static json_t *memory_sum(const struct store_question *questions, size_t count);

json_t *redis_rooms(struct store_loop *loop, const char *named)
{
    json_t *rooms = say_no_memory_if_null(json_array());
    struct names names = {0};
    names_add_list(&names, named == NULL ? "" : named);
    names_add_registry(&names, loop);
    names_sort(&names);
    for (size_t i = 0; i < names.count; i++)
        if (i == 0 || strcmp(names.ids[i], names.ids[i - 1]) != 0)
            json_array_append_new(rooms, room_make(loop, names.ids[i]));
    free(names.ids);
    return rooms;
}

/* ---- which rooms ---- */

static void names_add_list(struct names *names, const char *list)
{
    while (*list != '\0') {
        size_t len = strcspn(list, ",");
        names_add(names, (struct span){list, len});
        list += len + (list[len] == ',');
    }
}

static void names_add_registry(struct names *names, struct store_loop *loop)
{
    struct store_question question;
    store_question_write(&question, slot_of_key(SPAN(ASK_REGISTRY)), "ZRANGEBYSCORE " ASK_REGISTRY " 0 0");
    store_loop_ask(loop, &question, 1);
    if (question.reply != NULL && question.reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i < question.reply->elements; i++)
            names_add(names, redis_reply_text(question.reply->element[i]));
    store_questions_free(&question, 1);
}

static void names_add(struct names *names, struct span id)
{
    if (!room_id_is_valid(id))
        return;
    if (names->count == names->room) {
        names->room = 2 * names->room + 16;
        names->ids = say_no_memory_if_null(realloc(names->ids, names->room * sizeof(*names->ids)));
    }
    memcpy(names->ids[names->count], id.data, id.len);
    names->ids[names->count++][id.len] = '\0';
}

static void names_sort(struct names *names)
{
    if (names->count > 0)
        qsort(names->ids, names->count, sizeof(*names->ids), name_compare);
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* ---- one room ---- */

static json_t *room_make(struct store_loop *loop, const char *id)
{
    struct store_question questions[ASK_MEMORY + KEYS_MAX];
    uint16_t slot = slot_of_tag(span_of(id));
    const struct primary *primary = topology_find(store_topology(store_loop_store(loop)), slot);
    char address[ADDRESS_TEXT_MAX] = "";
    if (primary != NULL)
        address_write(&primary->address, address);
    json_t *room = say_no_memory_if_null(
        json_pack("{s:s,s:i,s:o}", "id", id, "slot", slot, "shard", redis_word(span_of(address))));
    size_t count = room_ask(loop, id, slot, questions);
    figures_add(room, questions[ASK_FIGURES].reply);
    json_object_set_new(room, "waiting",
                        json_is_true(json_object_get(room, "exists"))
                            ? redis_reply_number(questions[ASK_LINE].reply)
                            : json_null());
    json_object_set_new(room, "keys", redis_reply_number(questions[ASK_KEYS].reply));
    json_object_set_new(room, "memory_bytes", memory_sum(questions + ASK_MEMORY, count - ASK_MEMORY));
    store_questions_free(questions, count);
    return room;
}

/* Returns how many questions that are. */
static size_t room_ask(struct store_loop *loop, const char *id, uint16_t slot,
                       struct store_question *questions)
{
    char key[KEY_TEXT_MAX], all[KEYS_MAX * KEY_TEXT_MAX + 8] = "EXISTS";
    size_t count = ASK_MEMORY, len = strlen(all);
    store_question_write(&questions[ASK_FIGURES], slot, "HMGET queue:room:{%s} " FIGURES, id);
    store_question_write(&questions[ASK_LINE], slot, "ZCARD queue:event:{%s}", id);
    for (size_t i = 0; ask_key(i) != NULL; i++, count++) {
        must(i < KEYS_MAX);
        (void)snprintf(key, sizeof(key), "%s:{%s}", ask_key(i), id);
        len += (size_t)snprintf(all + len, sizeof(all) - len, " %s", key);
        store_question_write(&questions[count], slot, "MEMORY USAGE %s", key);
    }
    store_question_write(&questions[ASK_KEYS], slot, all);
    store_loop_ask(loop, questions, count);
    return count;
}

/* Of a room that is not there all of them are null, and `exists` says so. */
static void figures_add(json_t *room, const redisReply *reply)
{
    static const char *const names[] = {"epoch", "away", "called", "entered", "active", "issued", "calls"};
    const size_t count = sizeof(names) / sizeof(names[0]);
    bool is_told = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == count;
    json_object_set_new(room, "exists",
                        is_told ? json_boolean(reply->element[0]->type != REDIS_REPLY_NIL) : json_null());
    for (size_t i = 0; i < count; i++)
        json_object_set_new(room, names[i],
                            redis_number(redis_reply_text(is_told ? reply->element[i] : NULL)));
}

/* A key that is not there has none; null if any of them may not be asked about. */
static json_t *memory_sum(const struct store_question *questions, size_t count)
{
    json_int_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const redisReply *reply = questions[i].reply;
        if (reply == NULL || (reply->type != REDIS_REPLY_INTEGER && reply->type != REDIS_REPLY_NIL))
            return json_null();
        bytes += reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    }
    return json_integer(bytes);
}
