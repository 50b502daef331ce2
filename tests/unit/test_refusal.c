/* SPDX-License-Identifier: BSD-2-Clause */
/* What servers say no with is understood: kept texts of several versions, and those that a real server says in the test. */
#include "redis/refusal.h"

#include "redis_process.h"
#include "rig.h"

#include <hiredis/hiredis.h>

static const struct address asked = {"10.0.0.9", 7000};

static struct refusal refusal_of(const char *text)
{
    return refusal_read(span_of(text), &asked);
}

static void expect(const char *text, enum refusal_deed deed, const char *word)
{
    struct refusal refusal = refusal_of(text);
    if (refusal.deed != deed)
        fail_msg("%s: %d", text, refusal.deed);
    assert_string_equal(refusal.word, word);
}

static void expect_place(const char *text, enum refusal_deed deed, uint16_t slot, const char *host,
                         uint16_t port)
{
    struct refusal refusal = refusal_of(text);
    assert_int_equal(refusal.deed, deed);
    assert_int_equal(refusal.slot, slot);
    assert_string_equal(refusal.address.host, host);
    assert_int_equal(refusal.address.port, port);
}

static void a_moved_slot_is_followed(void **state)
{
    (void)state;
    expect_place("MOVED 3999 127.0.0.1:6381", REFUSAL_FOLLOW, 3999, "127.0.0.1", 6381);
    expect_place("MOVED 0 ::1:6381", REFUSAL_FOLLOW, 0, "::1", 6381);
    expect_place("MOVED 16383 node-1.example.com:6381", REFUSAL_FOLLOW, 16383, "node-1.example.com", 6381);
    expect_place("MOVED 1 :6381", REFUSAL_FOLLOW, 1, "10.0.0.9", 6381);
    expect_place("ASK 3999 127.0.0.1:6381", REFUSAL_ASK, 3999, "127.0.0.1", 6381);
}

static void a_redirect_that_makes_no_sense_is_looked_after(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "MOVED",
        "MOVED ",
        "MOVED 1",
        "MOVED 1 ",
        "MOVED 16384 h:1",
        "MOVED -1 h:1",
        "MOVED x h:1",
        "MOVED 1 h",
        "MOVED 1 h:0",
        "MOVED 1 h:65536",
        "MOVED 1 h:1 more",
        "MOVED 1 ?:1",
        "MOVED 1.0 h:1",
        "MOVED 1 h:x",
        "MOVED 1 :",
        "MOVED 1 h\x01:1",
        "MOVED 99999999999999999999 h:1",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expect(texts[i], REFUSAL_LOOK, "MOVED");
    expect("ASK 1", REFUSAL_LOOK, "ASK");
}

static void each_word_has_its_deed(void **state)
{
    (void)state;
    expect("TRYAGAIN Multiple keys request during rehashing of slot", REFUSAL_WAIT, "TRYAGAIN");
    expect("LOADING Redis is loading the dataset in memory", REFUSAL_WAIT, "LOADING");
    expect("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
           REFUSAL_WAIT, "BUSY");
    expect("CLUSTERDOWN The cluster is down", REFUSAL_LOOK, "CLUSTERDOWN");
    expect("CLUSTERDOWN Hash slot not served", REFUSAL_LOOK, "CLUSTERDOWN");
    expect("READONLY You can't write against a read only replica.", REFUSAL_LOOK, "READONLY");
    expect("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", REFUSAL_LOOK,
           "MASTERDOWN");
    expect("NOSCRIPT No matching script. Please use EVAL.", REFUSAL_LOAD, "NOSCRIPT");
    expect("NOAUTH Authentication required.", REFUSAL_LOGIN, "NOAUTH");
    expect("WRONGPASS invalid username-password pair or user is disabled.", REFUSAL_LOGIN, "WRONGPASS");
    expect("NOPERM this user has no permissions to run the 'evalsha' command", REFUSAL_OPERATOR, "NOPERM");
    expect("DENIED Redis is running in protected mode because …", REFUSAL_OPERATOR, "DENIED");
    expect("OOM command not allowed when used memory > 'maxmemory'.", REFUSAL_OPERATOR, "OOM");
    expect("MISCONF Redis is configured to save RDB snapshots, but …", REFUSAL_OPERATOR, "MISCONF");
    expect("NOREPLICAS Not enough good replicas to write.", REFUSAL_OPERATOR, "NOREPLICAS");
    expect("OOM", REFUSAL_OPERATOR, "OOM");
}

static void all_else_is_an_error_of_the_command(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        " ",
        "ERR",
        "ERR no such key",
        "WRONGTYPE Operation against a key",
        "CROSSSLOT Keys in request don't hash",
        "oom small letters",
        "OOMish",
        "MOVEDX 1 h:1",
        "ERR MOVED 1 h:1",
        "BUSYGROUP Consumer Group name already exists",
        "ERR user_script:1: told -READONLY",
        "NOTBUSY No scripts in execution right now.",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expect(texts[i], REFUSAL_FAILED, "ERR");
}

static void what_an_old_server_wraps_is_unwrapped(void **state)
{
    (void)state;
#define WRAP "ERR Error running script (call to f_d70c4bdeac3dac0b4d1b4d0cfc9fb6a3b2ae5c1d): @user_script:1: "
    expect(WRAP "@user_script: 1: -READONLY You can't write against a read only replica.", REFUSAL_LOOK,
           "READONLY");
    expect(WRAP "@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.", REFUSAL_OPERATOR,
           "OOM");
    expect(WRAP "@user_script: 1: -NOREPLICAS Not enough good replicas to write.", REFUSAL_OPERATOR,
           "NOREPLICAS");
    expect(WRAP "@user_script: 1: -MOVED 1 h:1", REFUSAL_FAILED, "ERR");
    expect(WRAP "attempt to index a nil value", REFUSAL_FAILED, "ERR");
    expect(WRAP ": -", REFUSAL_FAILED, "ERR");
#undef WRAP
}

/* ---- a real server ---- */

static struct redis_process server;
static redisContext *connection;

static int server_start(void **state)
{
    (void)state;
    redis_process_start(&server, NULL);
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

static void ask(const char *command)
{
    redisReply *reply = redisCommand(connection, command);
    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

static void expect_from_server(enum refusal_deed deed, const char *word, redisReply *reply)
{
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    expect(reply->str, deed, word);
    freeReplyObject(reply);
}

static void a_real_server_is_understood(void **state)
{
    (void)state;
    expect_from_server(REFUSAL_LOAD, "NOSCRIPT",
                       redisCommand(connection, "EVALSHA %s 0", "0123456789012345678901234567890123456789"));
    expect_from_server(REFUSAL_LOGIN, "WRONGPASS", redisCommand(connection, "AUTH nobody nothing"));
    expect_from_server(REFUSAL_FAILED, "ERR",
                       redisCommand(connection, "EVAL %s 0", "return redis.call('GET')"));

    ask("CONFIG SET min-replicas-to-write 1");
    expect_from_server(REFUSAL_OPERATOR, "NOREPLICAS", redisCommand(connection, "SET a b"));
    expect_from_server(REFUSAL_OPERATOR, "NOREPLICAS",
                       redisCommand(connection, "EVAL %s 1 a", "return redis.call('SET', KEYS[1], 'b')"));
    ask("CONFIG SET min-replicas-to-write 0");

    ask("CONFIG SET maxmemory 1");
    expect_from_server(REFUSAL_OPERATOR, "OOM", redisCommand(connection, "SET a b"));
    expect_from_server(REFUSAL_OPERATOR, "OOM",
                       redisCommand(connection, "EVAL %s 1 a", "return redis.call('SET', KEYS[1], 'b')"));
    ask("CONFIG SET maxmemory 0");

    ask("CONFIG SET replica-serve-stale-data no");
    ask("REPLICAOF 127.0.0.1 1");
    expect_from_server(REFUSAL_LOOK, "MASTERDOWN", redisCommand(connection, "GET a"));
    ask("CONFIG SET replica-serve-stale-data yes");
    expect_from_server(REFUSAL_LOOK, "READONLY", redisCommand(connection, "SET a b"));
    expect_from_server(REFUSAL_LOOK, "READONLY",
                       redisCommand(connection, "EVAL %s 1 a", "return redis.call('SET', KEYS[1], 'b')"));
    ask("REPLICAOF NO ONE");

    ask("ACL SETUSER weak on >weak +auth +get ~*");
    ask("AUTH weak weak");
    expect_from_server(REFUSAL_OPERATOR, "NOPERM", redisCommand(connection, "SET a b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moved_slot_is_followed),
        cmocka_unit_test(a_redirect_that_makes_no_sense_is_looked_after),
        cmocka_unit_test(each_word_has_its_deed),
        cmocka_unit_test(all_else_is_an_error_of_the_command),
        cmocka_unit_test(what_an_old_server_wraps_is_unwrapped),
        cmocka_unit_test_setup_teardown(a_real_server_is_understood, server_start, server_stop),
    };

    return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
