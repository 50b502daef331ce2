/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls in, commands out, answers back, without any server: the test is the transport. It keeps what it is given and replies what
 * a server might, right or wrong.
 */
#include "rig.h"

#include "redis/ask.h"
#include "redis/rooms.h"
#include "redis/script.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMANDS_MAX 32
#define CALLS_MAX    130
#define GATHERED_MAX 64
#define RUN_ID       "0123456789012345678901234567890123456789"

/* Holder, epoch 7, count 1; waiting, three flags, three ids; and numbers, which end with arrive_ttl_sec. */
#define STANDING                                                                            \
    "$71\r\nAAAAAAAAAAAAAAAA\7\0\0\0\1\0\0\0\1\0\0\0\3\2\0\11\0\0\0\5\0\0\0\0\0\0\0\10\0\0" \
    "\0\6\0\0\0\11\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\264\0\0\0\r\n"
#define OK        "$2\r\nOK\r\n"
#define STANDS    STANDING
#define OTHER     "*2\r\n$13\r\nOTHER_PRIMARY\r\n$6\r\nformer\r\n"
#define NOT_FOUND "*1\r\n$15\r\nTOKEN_NOT_FOUND\r\n"

/* ---- the transport ---- */

struct wire {
    struct transport transport; /* first */
    struct redis_command *command[COMMANDS_MAX];
    uint32_t sent, answered;
    bool is_away;        /* ends every command at once */
    const char *running; /* a primary, or NULL */
};

static void keep_command(struct transport *transport, struct redis_command *command)
{
    struct wire *wire = (struct wire *)transport;

    if (wire->is_away) {
        command->done(command, COMMAND_UNSENT, NULL);
        return;
    }
    assert_true(wire->sent < COMMANDS_MAX);
    wire->command[wire->sent++] = command;
}

static bool is_running(struct transport *transport, const char *run_id)
{
    const char *running = ((struct wire *)transport)->running;

    return running != NULL && strcmp(running, run_id) == 0;
}

static redisReply *read_resp(const char *bytes, size_t len)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    assert_non_null(reader);
    assert_int_equal(redisReaderFeed(reader, bytes, len), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}

static void reply_with_bytes(struct wire *wire, struct span bytes);

/* The oldest command that has none gets this reply; NULL: none comes. */
static void reply_with(struct wire *wire, const char *text)
{
    reply_with_bytes(wire, text == NULL ? SPAN_NONE : span_of(text));
}

static void reply_with_bytes(struct wire *wire, struct span bytes)
{
    redisReply *reply = bytes.len == 0 ? NULL : read_resp(bytes.data, bytes.len);

    assert_true(wire->answered < wire->sent);
    struct redis_command *command = wire->command[wire->answered++];
    command->done(command, reply != NULL ? COMMAND_ANSWERED : COMMAND_UNKNOWN, reply);
    if (reply != NULL)
        freeReplyObject(reply);
}

/* The words of a command, as a server would read them. */
static redisReply *words_of(const struct wire *wire, uint32_t i)
{
    struct redis_command *command = wire->command[i];
    size_t len;
    char *bytes = command->write(command, RUN_ID, &len);
    redisReply *words = read_resp(bytes, len);

    free(bytes);
    return words;
}

static bool word_is(const redisReply *words, size_t i, const char *text)
{
    assert_true(i < words->elements);
    return span_equal((struct span){words->element[i]->str, (size_t)words->element[i]->len}, span_of(text));
}

/* ---- calls ---- */

struct desk {
    struct wire wire;
    struct redis_rooms *rooms;
    struct engine_call call[CALLS_MAX];
    uint32_t done[CALLS_MAX];
    struct room_id listed;
    uint32_t calls;
};

static int set_up(void **state)
{
    struct desk *desk = calloc(1, sizeof(*desk));

    assert_non_null(desk);
    desk->wire.transport = (struct transport){keep_command, is_running};
    desk->rooms = redis_rooms_new(&desk->wire.transport);
    assert_non_null(desk->rooms);
    *state = desk;
    return 0;
}

static int tear_down(void **state)
{
    struct desk *desk = *state;

    redis_rooms_free(desk->rooms);
    free(desk);
    return 0;
}

static void count_done(struct engine_call *call)
{
    (*(uint32_t *)call->context)++;
}

static struct engine_call *ask(struct desk *desk, enum engine_op op, struct span room)
{
    struct engine_call *call = &desk->call[desk->calls];

    assert_true(desk->calls < CALLS_MAX);
    *call = (struct engine_call){
        .op = op, .room = room, .done = count_done, .context = &desk->done[desk->calls++]};
    if (op == ENGINE_PUT)
        call->put.settings = settings_default();
    if (op == ENGINE_ROOMS)
        call->list = (struct engine_list){.ids = &desk->listed, .size = 1};
    redis_submit(desk->rooms, call);
    return call;
}

static void all_are_answered_once(const struct desk *desk)
{
    for (uint32_t i = 0; i < desk->calls; i++)
        assert_int_equal(desk->done[i], 1);
}

/* ---- what is sent ---- */

static void calls_of_a_kind_and_a_room_travel_together(void **state)
{
    struct desk *desk = *state;

    for (int i = 0; i < 3; i++)
        ask(desk, ENGINE_STATUS, SPAN("a"));
    ask(desk, ENGINE_STATUS, SPAN("b"));
    ask(desk, ENGINE_JOIN, SPAN("b"));
    assert_int_equal(desk->wire.sent, 2); /* the last may still be joined by others */
    redis_flush(desk->rooms);
    redis_flush(desk->rooms);
    assert_int_equal(desk->wire.sent, 3);
    reply_with_bytes(&desk->wire, SPAN("*4\r\n" OK STANDS NOT_FOUND STANDS));
    assert_int_equal(desk->call[0].error, ERROR_NONE);
    assert_int_equal(desk->call[0].standing.place.epoch, 7);
    assert_int_equal(desk->call[0].standing.eta_high_sec, 9);
    assert_int_equal(desk->call[0].standing.arrive_ttl_sec, 180);
    assert_int_equal(desk->call[1].error, ERROR_TOKEN_NOT_FOUND);
    assert_int_equal(desk->call[2].error, ERROR_NONE);
    reply_with(&desk->wire, NOT_FOUND); /* for the whole room */
    assert_int_equal(desk->call[3].error, ERROR_TOKEN_NOT_FOUND);
    reply_with(&desk->wire, "*2\r\n" OK "*2\r\n$10\r\nQUEUE_FULL\r\n:17\r\n");
    assert_int_equal(desk->call[4].error, ERROR_QUEUE_FULL);
    assert_int_equal(desk->call[4].retry_after_sec, 17);
    all_are_answered_once(desk);
}

static void whoever_comes_while_their_kind_is_under_way_goes_with_the_next(void **state)
{
    struct desk *desk = *state;

    ask(desk, ENGINE_STATUS, SPAN("a"));
    redis_gather(desk->rooms);
    assert_int_equal(desk->wire.sent, 1); /* at once */
    for (int i = 0; i < 3; i++) {
        ask(desk, ENGINE_STATUS, SPAN("a"));
        redis_gather(desk->rooms);
    }
    assert_int_equal(desk->wire.sent, 1);
    reply_with_bytes(&desk->wire, SPAN("*2\r\n" OK STANDS));
    redis_gather(desk->rooms);
    assert_int_equal(desk->wire.sent, 2);
    for (int i = 0; i < 2; i++) { /* who can travel only alone, and those of another room, need not wait */
        ask(desk, ENGINE_FIGURES, SPAN("a"));
        redis_gather(desk->rooms);
    }
    ask(desk, ENGINE_STATUS, SPAN("b"));
    redis_gather(desk->rooms);
    assert_int_equal(desk->wire.sent, 5);
    ask(desk, ENGINE_STATUS, SPAN("a"));
    redis_flush(desk->rooms);
    assert_int_equal(desk->wire.sent, 6);
    reply_with_bytes(&desk->wire, SPAN("*4\r\n" OK STANDS STANDS STANDS));
    while (desk->wire.answered < desk->wire.sent)
        reply_with(&desk->wire, NULL);
    assert_int_equal(desk->call[3].error, ERROR_NONE);
    all_are_answered_once(desk);
}

/* An enter whose arguments are as long as they can be. */
static const struct enter longest_enter = {
    .place = {.epoch = UINT32_MAX,
              .count = UINT32_MAX,
              .issue = {true, true, UINT8_MAX, UINT32_MAX},
              .grant = {true, UINT8_MAX, UINT8_MAX, UINT32_MAX}},
    .key_id = UINT8_MAX,
    .wall_sec = UINT32_MAX,
    .request = {.is_set = true},
};

static void a_command_is_about_64_people_at_most(void **state)
{
    struct desk *desk = *state;
    redisReply *words;

    for (int i = 0; i < 2 * GATHERED_MAX + 1; i++)
        ask(desk, ENGINE_ENTER, SPAN("a-room-with-the-longest-name-that-there-can-be-of-64-characters!"))
            ->enter = longest_enter;
    redis_flush(desk->rooms);
    assert_int_equal(desk->wire.sent, 3);
    words = words_of(&desk->wire, 0);
    assert_int_equal(words->elements, 15 + 10 * GATHERED_MAX);
    freeReplyObject(words);
    for (int i = 0; i < 3; i++)
        reply_with(&desk->wire, NULL);
    all_are_answered_once(desk);
}

/* FAILURES 34: nothing but the room's name decides the slot. */
static void every_key_carries_its_room_in_braces(void **state)
{
    for (int op = ENGINE_JOIN; op <= ENGINE_CLEAR; op++) {
        struct desk *desk = *state;
        if (op == ENGINE_SHOP || op == ENGINE_ROOMS) /* neither is about the keys of a room */
            continue;
        ask(desk, (enum engine_op)op, SPAN("evt_2025_1001"));
        redis_flush(desk->rooms);
        redisReply *words = words_of(&desk->wire, 0);
        assert_true(word_is(words, 0, "EVALSHA"));
        assert_int_equal(words->element[1]->len, SCRIPT_SHA_LEN);
        long keys = strtol(words->element[2]->str, NULL, 10);
        assert_in_range(keys, 1, (long)words->elements - 3);
        for (long i = 0; i < keys; i++)
            assert_non_null(strstr(words->element[3 + i]->str, ":{evt_2025_1001}"));
        assert_true(word_is(words, 3 + (size_t)keys, RUN_ID)); /* whoever runs it knows who it is */
        freeReplyObject(words);
        assert_int_equal(desk->wire.command[0]->slot, 3998);
        assert_int_equal(desk->wire.command[0]->is_confirmed, op == ENGINE_ENTER);
        reply_with(&desk->wire, NULL);
        all_are_answered_once(desk);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void a_server_that_does_not_know_a_script_is_told_its_text(void **state)
{
    struct desk *desk = *state;
    redisReply *words;

    ask(desk, ENGINE_LEAVE, SPAN("a"));
    redis_flush(desk->rooms);
    reply_with(&desk->wire, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    assert_int_equal(desk->wire.sent, 2);
    words = words_of(&desk->wire, 1);
    assert_true(word_is(words, 0, "EVAL"));
    assert_int_equal(words->element[1]->len, script_text(SCRIPT_LEAVE).len);
    assert_memory_equal(words->element[1]->str, script_text(SCRIPT_LEAVE).data,
                        script_text(SCRIPT_LEAVE).len);
    freeReplyObject(words);
    reply_with(&desk->wire, "*2\r\n" OK "*1\r\n" OK);
    assert_int_equal(desk->call[0].error, ERROR_NONE);
    all_are_answered_once(desk);
}

static void a_server_that_never_learns_is_not_told_again(void **state)
{
    struct desk *desk = *state;

    ask(desk, ENGINE_LEAVE, SPAN("a"));
    redis_flush(desk->rooms);
    reply_with(&desk->wire, "-NOSCRIPT\r\n");
    reply_with(&desk->wire, "-NOSCRIPT\r\n");
    assert_int_equal(desk->wire.sent, 2);
    assert_int_equal(desk->call[0].error, ERROR_ENGINE_UNAVAILABLE);
    all_are_answered_once(desk);
}

/* ---- what comes back ---- */

static void a_reply_that_cannot_be_read_is_an_engine_that_is_away(void **state)
{
    static const struct {
        enum engine_op op;
        const char *reply;
    } rows[] = {
        {ENGINE_STATUS, NULL},
        {ENGINE_STATUS, "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
        {ENGINE_STATUS, "-LOADING Redis is loading the dataset in memory\r\n"},
        {ENGINE_STATUS, "$-1\r\n"},
        {ENGINE_STATUS, ":1\r\n"},
        {ENGINE_STATUS, "*0\r\n"},
        {ENGINE_STATUS, "*1\r\n" OK},
        {ENGINE_STATUS, "*2\r\n" OK OK},
        {ENGINE_STATUS, "*2\r\n" OK "*0\r\n"},
        {ENGINE_STATUS, "*2\r\n" OK "*1\r\n" OK},
        {ENGINE_STATUS, "*2\r\n" OK "*2\r\n" OK ":1\r\n"},
        {ENGINE_STATUS, "*2\r\n" OK "*2\r\n" OK "$16\r\nAAAAAAAAAAAAAAAA\r\n"},
        {ENGINE_STATUS, "*2\r\n" OK "*2\r\n" OK "$-1\r\n"},
        {ENGINE_STATUS, "*2\r\n" OK "*2\r\n" OK "*0\r\n"},
        {ENGINE_STATUS, "*1\r\n$7\r\nNOTHING\r\n"},
        {ENGINE_STATUS, "*1\r\n$13\r\nOTHER_PRIMARY\r\n"},
        {ENGINE_STATUS, "*2\r\n$13\r\nOTHER_PRIMARY\r\n:1\r\n"},
        {ENGINE_STATUS, "*2\r\n$13\r\nOTHER_PRIMARY\r\n$41\r\n01234567890123456789012345678901234567890\r\n"},
        {ENGINE_JOIN, "*2\r\n" OK "*2\r\n$10\r\nQUEUE_FULL\r\n:-1\r\n"},
        {ENGINE_JOIN, "*2\r\n" OK "*2\r\n$10\r\nQUEUE_FULL\r\n:4294967296\r\n"},
        {ENGINE_CLEAR, "*1\r\n" OK},
        {ENGINE_CLEAR, "*3\r\n" OK ":1\r\n:1\r\n"},
        {ENGINE_SETTINGS, "*2\r\n" OK "*1\r\n$4\r\nmode\r\n"},
        {ENGINE_SETTINGS, "*2\r\n" OK "*2\r\n$4\r\nmode\r\n$5\r\nwrong\r\n"},
        {ENGINE_ROOMS, "*1\r\n" OK},
        {ENGINE_ROOMS, "*2\r\n" OK ":1\r\n"},
        {ENGINE_ROOMS, "*2\r\n" OK "*1\r\n:1\r\n"},
        {ENGINE_ROOMS, "*2\r\n" OK "*1\r\n$3\r\na/b\r\n"},
        {ENGINE_FIGURES, "*3\r\n" OK "*1\r\n:1\r\n*0\r\n"},
    };
    struct desk *desk = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        desk->wire.sent = desk->wire.answered = 0;
        struct engine_call *call = ask(desk, rows[i].op, SPAN("a"));
        redis_flush(desk->rooms);
        reply_with(&desk->wire, rows[i].reply);
        assert_int_equal(call->error, ERROR_ENGINE_UNAVAILABLE);
        assert_true(call->retry_after_sec > 0);
    }
    all_are_answered_once(desk);
}

/* Of the holder every byte, then the state and the flags: one that is none. The rest are numbers of any size. */
static void no_field_of_a_standing_is_believed_unseen(void **state)
{
    static const char good[] = "*2\r\n" OK "*2\r\n" OK STANDING;
    const size_t begin = sizeof("*2\r\n" OK "*2\r\n" OK "$71\r\n") - 1;
    struct desk *desk = *state;
    char text[sizeof(good)];

    for (size_t at = 0; at < 28; at++) {
        bool is_number = at >= 16 && at < 24;
        memcpy(text, good, sizeof(good));
        text[begin + at] = '+';
        desk->wire.sent = desk->wire.answered = 0;
        struct engine_call *call = ask(desk, ENGINE_HEARTBEAT, SPAN("a"));
        redis_flush(desk->rooms);
        reply_with_bytes(&desk->wire, (struct span){text, sizeof(text) - 1});
        assert_int_equal(call->error, is_number ? ERROR_NONE : ERROR_ENGINE_UNAVAILABLE);
    }
}

/* A pass could not be signed for it. */
static void a_standing_of_no_tier_is_not_believed(void **state)
{
    struct desk *desk = *state;

    for (char tier = 0; tier <= 3; tier += 3) {
        char text[] = "*2\r\n" OK "*2\r\n" OK STANDING;
        text[sizeof("*2\r\n" OK "*2\r\n" OK "$71\r\n") - 1 + 29] = tier;
        struct engine_call *call = ask(desk, ENGINE_ENTER, SPAN("a"));
        redis_flush(desk->rooms);
        reply_with_bytes(&desk->wire, (struct span){text, sizeof(text) - 1});
        assert_int_equal(call->error, ERROR_ENGINE_UNAVAILABLE);
    }
}

static void settings_of_another_version_are_passed_over(void **state)
{
    struct desk *desk = *state;
    struct engine_call *call = ask(desk, ENGINE_SETTINGS, SPAN("a"));

    redis_flush(desk->rooms);
    reply_with(&desk->wire, "*2\r\n" OK "*4\r\n$6\r\nfuture\r\n$1\r\n1\r\n$4\r\nrate\r\n$3\r\n2.5\r\n");
    assert_int_equal(call->error, ERROR_NONE);
    assert_int_equal(call->settings.rate_milli, 2500);
}

/* A reply with so many rooms. */
static char *list_of(uint32_t rooms)
{
    char *text = malloc(64 + (size_t)rooms * 8);
    int len;

    assert_non_null(text);
    len = sprintf(text, "*2\r\n" OK "*%u\r\n", rooms);
    for (uint32_t i = 0; i < rooms; i++)
        len += sprintf(text + len, "$1\r\na\r\n");
    return text;
}

static void a_list_that_is_longer_than_a_reply_comes_in_pages(void **state)
{
    enum { ROOMS = 2 * ASK_ROOMS_MAX + 5, LISTED = ASK_ROOMS_MAX + 7 };
    struct desk *desk = *state;
    uint32_t done = 0;
    struct engine_call call = {.op = ENGINE_ROOMS, .done = count_done, .context = &done};
    char *page = list_of(ASK_ROOMS_MAX), *rest = list_of(7);

    call.list = (struct engine_list){calloc(ROOMS, sizeof(*call.list.ids)), ROOMS, 99};
    assert_non_null(call.list.ids);
    redis_submit(desk->rooms, &call);
    redis_flush(desk->rooms);
    reply_with(&desk->wire, page);
    assert_int_equal(done, 0);
    redisReply *words = words_of(&desk->wire, 1);
    assert_true(word_is(words, words->elements - 2, "40000") && word_is(words, words->elements - 1, "40000"));
    freeReplyObject(words);
    reply_with(&desk->wire, rest);
    assert_int_equal(done, 1);
    assert_int_equal(call.error, ERROR_NONE);
    assert_int_equal(call.list.count, LISTED);
    assert_int_equal(desk->wire.sent, 2);
    free(call.list.ids);
    free(page);
    free(rest);
}

static void ask_again(struct engine_call *call)
{
    struct desk *desk = call->context;

    ask(desk, ENGINE_LEAVE, SPAN("b"));
}

static void who_is_answered_may_ask_at_once(void **state)
{
    struct desk *desk = *state;
    struct engine_call call = {.op = ENGINE_LEAVE, .room = SPAN("a"), .done = ask_again, .context = desk};

    redis_submit(desk->rooms, &call);
    redis_flush(desk->rooms);
    reply_with(&desk->wire, "*2\r\n" OK "*1\r\n" OK);
    redis_flush(desk->rooms);
    assert_int_equal(desk->wire.sent, 2);
    reply_with(&desk->wire, NULL);
    all_are_answered_once(desk);
}

static void who_is_answered_by_a_submit_may_ask_at_once(void **state)
{
    struct desk *desk = *state;
    struct engine_call call = {.op = ENGINE_LEAVE, .room = SPAN("a"), .done = ask_again, .context = desk};

    desk->wire.is_away = true;
    redis_submit(desk->rooms, &call);
    ask(desk, ENGINE_STATUS, SPAN("a")); /* sends the first, which asks again */
    redis_flush(desk->rooms);
    assert_int_equal(desk->calls, 2);
    all_are_answered_once(desk);
}

static void note_tick(struct redis_chore *tick)
{
    (*(int *)tick->context)++;
}

/* The beginning of a tick; and what it says of a shop, the report last. */
#define TICK(wait)   OK ":" wait "\r\n:4200\r\n:3\r\n:1\r\n:0\r\n:0\r\n"
#define NO_SHOP      "*0\r\n"
#define SHOP(report) "*10\r\n:6\r\n:4200\r\n:30\r\n:0\r\n:50000\r\n:1000\r\n:90000\r\n:0\r\n$0\r\n\r\n" report
#define EPOCHS       "$4\r\nword\r\n"

/* ---- a shop that is followed ---- */

static void what_follows_from_a_tick_is_handed_back(void **state)
{
    struct desk *desk = *state;
    int done = 0;
    char name[] = "a";
    struct redis_chore tick = {
        .kind = CHORE_TICK, .room = span_of(name), .done = note_tick, .context = &done};

    redis_submit_chore(desk->rooms, &tick);
    reply_with(&desk->wire, "*9\r\n" TICK("0") EPOCHS SHOP("*2\r\n$1\r\n7\r\n$2\r\n12\r\n"));
    assert_int_equal(tick.error, ERROR_NONE);
    assert_int_equal(done, 1);
    name[0] = '!'; /* nobody needs the tick any more */
    assert_int_equal(desk->wire.sent, 2);
    redisReply *words = words_of(&desk->wire, 1);
    assert_non_null(strstr(words->element[3]->str, "{a}"));
    assert_true(word_is(words, words->elements - 3, "6"));
    assert_int_equal(words->element[words->elements - 2]->len,
                     FOLLOWER_BYTES); /* begun anew: it was unreadable */
    assert_true(word_is(words, words->elements - 1, "50000"));
    freeReplyObject(words);
    reply_with(&desk->wire, "-NOSCRIPT\r\n");
    reply_with(&desk->wire, OTHER); /* the next tick says so too */
    assert_int_equal(desk->wire.sent, 3);
    assert_int_equal(done, 1);
}

static void only_what_was_seen_of_the_shop_is_told(void **state)
{
    struct desk *desk = *state;
    int done = 0;
    struct shop_report seen = {.failures = 2, .times[59] = UINT32_MAX, .ages_sec = 40, .left_alone_ms = 500};
    struct redis_chore shop = {
        .kind = CHORE_SHOP, .room = SPAN("a"), .shop = &seen, .done = note_tick, .context = &done};
    static const char *const expected[] = {"500", "failures", "2", "ages_sec", "40", "59", "4294967295"};

    redis_submit_chore(desk->rooms, &shop);
    redisReply *words = words_of(&desk->wire, 0);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_true(word_is(words, words->elements - 7 + i, expected[i]));
    freeReplyObject(words);
    reply_with(&desk->wire, "*1\r\n" OK);
    assert_int_equal(shop.error, ERROR_NONE);
}

/* ---- another process keeps the room ---- */

static bool is_renewal(const struct wire *wire, uint32_t i, const char *is_moved)
{
    redisReply *words = words_of(wire, i);
    bool is_so =
        word_is(words, words->elements - 2, "former") && word_is(words, words->elements - 1, is_moved);

    freeReplyObject(words);
    return is_so && wire->command[i]->needs_map;
}

static void those_who_ask_wait_for_one_renewal(void **state)
{
    struct desk *desk = *state;
    struct wire *wire = &desk->wire;

    ask(desk, ENGINE_LEAVE, SPAN("a"));
    ask(desk, ENGINE_STATUS, SPAN("a"));
    ask(desk, ENGINE_LEAVE, SPAN("b"));
    ask(desk, ENGINE_ENTER, SPAN("a"));
    redis_flush(desk->rooms);
    for (int i = 0; i < 4; i++)
        reply_with(wire, OTHER);
    assert_int_equal(wire->sent, 6); /* one for each room */
    assert_true(is_renewal(wire, 4, "0") && is_renewal(wire, 5, "0"));
    reply_with(wire, "*1\r\n" OK);
    assert_int_equal(wire->sent, 9); /* those of the one room, and in their order */
    assert_ptr_equal(wire->command[6], wire->command[0]);
    assert_ptr_equal(wire->command[7], wire->command[1]);
    assert_ptr_equal(wire->command[8], wire->command[3]);
    reply_with(wire, NULL); /* nobody knows whether the other was renewed */
    assert_int_equal(desk->call[2].error, ERROR_ENGINE_UNAVAILABLE);
    reply_with(wire, "*2\r\n" OK "*1\r\n" OK);
    reply_with_bytes(wire, SPAN("*2\r\n" OK STANDS));
    reply_with_bytes(wire, SPAN("*2\r\n" OK STANDS));
    assert_int_equal(desk->call[0].error, ERROR_NONE);
    assert_int_equal(desk->call[3].error, ERROR_NONE);
    assert_int_equal(wire->sent, wire->answered);
    all_are_answered_once(desk);
}

static void a_room_has_moved_if_its_former_keeper_is_there(void **state)
{
    struct desk *desk = *state;

    desk->wire.running = "former";
    ask(desk, ENGINE_LEAVE, SPAN("a"));
    redis_flush(desk->rooms);
    reply_with(&desk->wire, OTHER);
    assert_true(is_renewal(&desk->wire, 1, "1"));
    reply_with(&desk->wire, "-NOSCRIPT\r\n");
    assert_true(is_renewal(&desk->wire, 2, "1"));
    reply_with(&desk->wire,
               "*1\r\n$14\r\nROOM_NOT_FOUND\r\n"); /* deleted meanwhile: they are told themselves */
    reply_with(&desk->wire, "*1\r\n$14\r\nROOM_NOT_FOUND\r\n");
    assert_int_equal(desk->call[0].error, ERROR_ROOM_NOT_FOUND);
    all_are_answered_once(desk);
}

static void a_room_that_is_never_renewed_is_away(void **state)
{
    static const char *const reply[] = {
        OTHER,       "*1\r\n" OK, /* renewed */
        OTHER,       OTHER,       /* and again, while yet another takes over */
        "*1\r\n" OK,              /* then it must be good */
        OTHER,
    };
    struct desk *desk = *state;

    ask(desk, ENGINE_LEAVE, SPAN("a"));
    redis_flush(desk->rooms);
    for (size_t i = 0; i < sizeof(reply) / sizeof(reply[0]); i++)
        reply_with(&desk->wire, reply[i]);
    assert_int_equal(desk->call[0].error, ERROR_ENGINE_UNAVAILABLE);
    assert_int_equal(desk->wire.sent, 6);
    ask(desk, ENGINE_LEAVE, SPAN("a"));
    redis_flush(desk->rooms);
    for (int i = 0; i < 3; i++)
        reply_with(&desk->wire, OTHER);
    assert_int_equal(desk->call[1].error, ERROR_ENGINE_UNAVAILABLE);
    assert_int_equal(desk->wire.sent, 9);
    all_are_answered_once(desk);
}

static void a_tick_is_sent_behind_what_was_submitted_before_it(void **state)
{
    struct desk *desk = *state;
    int done = 0;
    struct redis_chore tick = {.kind = CHORE_TICK, .room = SPAN("a"), .done = note_tick, .context = &done};

    ask(desk, ENGINE_LEAVE, SPAN("a"));
    redis_submit_chore(desk->rooms, &tick);
    assert_int_equal(desk->wire.sent, 2);
    reply_with(&desk->wire, NULL);
    reply_with(&desk->wire, "*9\r\n" OK ":0\r\n:4200\r\n:3\r\n:1\r\n:0\r\n:0\r\n" EPOCHS NO_SHOP);
    assert_int_equal(done, 1);
    assert_int_equal(tick.error, ERROR_NONE);
    assert_int_equal(tick.clock_ms, 4200);
    assert_int_equal(tick.called, 3);
    assert_true(tick.is_behind && !tick.is_at_rest && !tick.is_empty);
}

static void a_node_is_told_how_long_another_ticks_and_what_to_keep_in_mind(void **state)
{
    struct desk *desk = *state;
    int done = 0;
    struct redis_epochs epochs = {0};
    struct redis_chore tick = {.kind = CHORE_TICK,
                               .room = SPAN("a"),
                               .node = UINT64_MAX,
                               .epochs = &epochs,
                               .done = note_tick,
                               .context = &done};

    redis_submit_chore(desk->rooms, &tick);
    redisReply *words = words_of(&desk->wire, 0);
    assert_true(word_is(words, words->elements - 1, "18446744073709551615"));
    freeReplyObject(words);
    reply_with(&desk->wire, "*9\r\n" OK ":1000\r\n:4200\r\n:0\r\n:0\r\n:0\r\n:1\r\n" EPOCHS NO_SHOP);
    assert_int_equal(tick.error, ERROR_NONE);
    assert_int_equal(tick.wait_ms, 1000);
    assert_int_equal(epochs.len, 4);
    assert_memory_equal(epochs.bytes, "word", 4);
}

static void a_tick_that_cannot_be_read_leaves_in_mind_what_was_there(void **state)
{
    static const char *const replies[] = {
        NULL,
        "*8\r\n" TICK("0") EPOCHS,
        "*9\r\n" TICK("1001") EPOCHS NO_SHOP,
        "*9\r\n" TICK("0") ":4\r\n" NO_SHOP,
        "*9\r\n" TICK("0") EPOCHS ":0\r\n",
        "*9\r\n" TICK("0") EPOCHS "*1\r\n:1\r\n",
        "*9\r\n" TICK("0") EPOCHS SHOP("*1\r\n$1\r\n7\r\n"),
        "*9\r\n" TICK("0") EPOCHS SHOP(":1\r\n"),
        "*10\r\n" TICK("0") EPOCHS NO_SHOP ":0\r\n",
    };
    struct desk *desk = *state;
    int done = 0;
    struct redis_epochs epochs = {.len = 1, .bytes = "x"};
    struct redis_chore tick = {
        .kind = CHORE_TICK, .room = SPAN("a"), .epochs = &epochs, .done = note_tick, .context = &done};
    char longest[1024];

    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        redis_submit_chore(desk->rooms, &tick);
        reply_with(&desk->wire, replies[i]);
        assert_int_equal(tick.error, ERROR_ENGINE_UNAVAILABLE);
        assert_true(epochs.len == 1 && epochs.bytes[0] == 'x');
    }
    snprintf(longest, sizeof(longest), "*9\r\n" TICK("0") "$%d\r\n%0*d\r\n" NO_SHOP, CHORE_EPOCHS_MAX + 1,
             CHORE_EPOCHS_MAX + 1, 7);
    redis_submit_chore(desk->rooms, &tick);
    reply_with(&desk->wire, longest);
    assert_int_equal(tick.error, ERROR_ENGINE_UNAVAILABLE);
}

static void a_room_that_another_node_made_is_made(void **state)
{
    struct desk *desk = *state;
    int done = 0;
    struct settings settings = settings_default();
    struct redis_epochs epochs = {.len = 4, .bytes = "word"};
    struct redis_chore make = {.kind = CHORE_MAKE,
                               .room = SPAN("a"),
                               .settings = &settings,
                               .epochs = &epochs,
                               .done = note_tick,
                               .context = &done};

    redis_submit_chore(desk->rooms, &make);
    redisReply *words = words_of(&desk->wire, 0);
    assert_true(word_is(words, words->elements - 2 * setting_numbers - 2, "word"));
    freeReplyObject(words);
    reply_with(&desk->wire, "*1\r\n$8\r\nCONFLICT\r\n");
    assert_int_equal(make.error, ERROR_NONE);
    make.epochs = NULL;
    redis_submit_chore(desk->rooms, &make);
    reply_with(&desk->wire, "*2\r\n" OK ":1\r\n");
    assert_int_equal(make.error, ERROR_ENGINE_UNAVAILABLE);
    redis_submit_chore(desk->rooms, &make);
    reply_with(&desk->wire, "*1\r\n" OK);
    assert_int_equal(make.error, ERROR_NONE);
    assert_int_equal(done, 3);
}

#define DESK_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DESK_TEST(calls_of_a_kind_and_a_room_travel_together),
        DESK_TEST(whoever_comes_while_their_kind_is_under_way_goes_with_the_next),
        DESK_TEST(a_command_is_about_64_people_at_most),
        DESK_TEST(every_key_carries_its_room_in_braces),
        DESK_TEST(a_server_that_does_not_know_a_script_is_told_its_text),
        DESK_TEST(a_server_that_never_learns_is_not_told_again),
        DESK_TEST(a_reply_that_cannot_be_read_is_an_engine_that_is_away),
        DESK_TEST(no_field_of_a_standing_is_believed_unseen),
        DESK_TEST(a_standing_of_no_tier_is_not_believed),
        DESK_TEST(settings_of_another_version_are_passed_over),
        DESK_TEST(a_list_that_is_longer_than_a_reply_comes_in_pages),
        DESK_TEST(who_is_answered_may_ask_at_once),
        DESK_TEST(who_is_answered_by_a_submit_may_ask_at_once),
        DESK_TEST(what_follows_from_a_tick_is_handed_back),
        DESK_TEST(only_what_was_seen_of_the_shop_is_told),
        DESK_TEST(those_who_ask_wait_for_one_renewal),
        DESK_TEST(a_room_has_moved_if_its_former_keeper_is_there),
        DESK_TEST(a_room_that_is_never_renewed_is_away),
        DESK_TEST(a_tick_is_sent_behind_what_was_submitted_before_it),
        DESK_TEST(a_node_is_told_how_long_another_ticks_and_what_to_keep_in_mind),
        DESK_TEST(a_tick_that_cannot_be_read_leaves_in_mind_what_was_there),
        DESK_TEST(a_room_that_another_node_made_is_made),
    };
    return cmocka_run_group_tests_name("redis_rooms", tests, NULL, NULL);
}
