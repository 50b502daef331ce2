/* SPDX-License-Identifier: BSD-2-Clause */
/* The slot of a key is what a real server says it is. */
#include "redis/slots.h"

#include "redis_process.h"
#include "rig.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

static struct redis_process server;
static redisContext *connection;

static int server_start(void **state)
{
    (void)state;
    static const char *const options[] = {"--cluster-enabled", "yes", NULL};
    redis_process_start(&server, options);
    connection = redisConnectUnix(server.socket);
    return connection == NULL || connection->err != 0;
}

static int server_stop(void **state)
{
    (void)state;
    redisFree(connection);
    redis_process_stop(&server);
    return 0;
}

static void expect_as_server(struct span key)
{
    redisReply *reply = redisCommand(connection, "CLUSTER KEYSLOT %b", key.data, key.len);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(slot_of_key(key), reply->integer);
    freeReplyObject(reply);
}

static void the_room_of_the_seeds_is_in_slot_3998(void **state)
{
    (void)state;
    assert_int_equal(slot_of_tag(SPAN("evt_2025_1001")), 3998);
    assert_int_equal(slot_of_key(SPAN("queue:event:{evt_2025_1001}")), 3998);
    assert_int_equal(slot_of_tag(SPAN("123456789")), 0x31c3); /* the check value of the CRC */
}

static void braces_decide_as_a_server_says(void **state)
{
    (void)state;
    static const char *const keys[] = {"",         "a",        "{a}",   "{}a",    "{}{a}",
                                       "x{a}y{b}", "x{a",      "a}b{c", "{{a}}b", "x{a}b}",
                                       "{",        "}",        "}{",    "{a}{",   "x{}",
                                       "a{}b{c}",  "foo{bar}", "{a}x{", "}{a}",   "queue:event:{r:1.a-b_}"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        expect_as_server(span_of(keys[i]));
}

static void any_key_is_where_a_server_says(void **state)
{
    (void)state;
    struct dice dice = {20251001};
    for (int n = 0; n < 2000; n++) {
        char key[64];
        size_t len = dice_below(&dice, sizeof(key));
        for (size_t i = 0; i < len; i++)
            key[i] = dice_below(&dice, 8) == 0 ? "{}"[dice_below(&dice, 2)] : (char)dice_below(&dice, 256);
        expect_as_server((struct span){key, len});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_room_of_the_seeds_is_in_slot_3998),
        cmocka_unit_test(braces_decide_as_a_server_says),
        cmocka_unit_test(any_key_is_where_a_server_says),
    };

    return cmocka_run_group_tests_name("slots", tests, server_start, server_stop);
}
