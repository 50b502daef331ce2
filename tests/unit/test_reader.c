/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies come in whatever pieces; and whatever a server announces, no more is believed than what there may be. */
#include "redis/reader.h"

#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

static void feed(struct reader *reader, const char *text)
{
    reader_feed(reader, span_of(text));
}

static void replies_come_in_any_pieces(void **state)
{
    (void)state;
    static const char text[] = "*3\r\n:1\r\n$4\r\na\r\nb\r\n*1\r\n+OK\r\n-ERR no\r\n$-1\r\n";
    static const int types[] = {REDIS_REPLY_ARRAY, REDIS_REPLY_ERROR, REDIS_REPLY_NIL};
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        struct reader *reader = reader_new();
        size_t count = 0;
        for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
            redisReply *reply;
            size_t left = sizeof(text) - 1 - at;
            reader_feed(reader, (struct span){text + at, left < piece ? left : piece});
            enum reader_result result;
            while ((result = reader_next(reader, &reply)) == READER_REPLY) {
                assert_true(count < 3);
                assert_int_equal(reply->type, types[count % 3]);
                count++;
                freeReplyObject(reply);
            }
            assert_int_equal(result, READER_MORE);
        }
        assert_int_equal(count, 3);
        reader_free(reader);
    }
}

static void expect_broken(const char *text)
{
    struct reader *reader = reader_new();
    redisReply *reply;
    feed(reader, text);
    assert_int_equal(reader_next(reader, &reply), READER_BROKEN);
    feed(reader, "+OK\r\n"); /* for good */
    assert_int_equal(reader_next(reader, &reply), READER_BROKEN);
    reader_free(reader);
}

static void what_is_no_resp_ends_it(void **state)
{
    (void)state;
    expect_broken("HTTP/1.1 400 Bad Request\r\n");
    expect_broken("\x15\x03\x01\x00\x02\x02\x46\r\n");
    expect_broken("*-2\r\n");
    expect_broken(":abc\r\n");
    expect_broken("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
}

static void an_array_that_is_announced_too_large_is_not_made(void **state)
{
    (void)state;
    expect_broken("*1000000000\r\n");
    expect_broken("*65537\r\n");
    expect_broken("*65536\r\n*1\r\n");
}

static void the_largest_array_is_read_and_then_another(void **state)
{
    (void)state;
    struct reader *reader = reader_new();
    redisReply *reply;
    for (int round = 0; round < 2; round++) {
        feed(reader, "*65536\r\n");
        for (int i = 0; i < 65536; i++)
            feed(reader, ":1\r\n");
        assert_int_equal(reader_next(reader, &reply), READER_REPLY);
        assert_int_equal(reply->elements, 65536);
        freeReplyObject(reply);
    }
    reader_free(reader);
}

static void a_reply_without_an_end_is_given_up(void **state)
{
    (void)state;
    struct reader *reader = reader_new();
    char *piece = calloc(1, 65536);
    redisReply *reply;
    int fed = 0;
    feed(reader, "$500000000\r\n");
    while (reader_next(reader, &reply) == READER_MORE && fed < 1000) {
        reader_feed(reader, (struct span){piece, 65536});
        fed++;
    }
    assert_int_equal(fed, READER_BYTES_MAX / 65536);
    free(piece);
    reader_free(reader);
}

static void many_small_replies_never_end(void **state)
{
    (void)state;
    struct reader *reader = reader_new();
    char *piece = malloc(65535);
    redisReply *reply;
    for (int i = 0; i < 65535; i += 5)
        memcpy(piece + i, "+OK\r\n", 5);
    for (int i = 0; i < 2 * READER_BYTES_MAX / 65535; i++) {
        reader_feed(reader, (struct span){piece, 65535});
        int count = 0;
        while (reader_next(reader, &reply) == READER_REPLY) {
            freeReplyObject(reply);
            count++;
        }
        assert_int_equal(count, 65535 / 5);
    }
    free(piece);
    reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_come_in_any_pieces),
        cmocka_unit_test(what_is_no_resp_ends_it),
        cmocka_unit_test(an_array_that_is_announced_too_large_is_not_made),
        cmocka_unit_test(the_largest_array_is_read_and_then_another),
        cmocka_unit_test(a_reply_without_an_end_is_given_up),
        cmocka_unit_test(many_small_replies_never_end),
    };

    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
