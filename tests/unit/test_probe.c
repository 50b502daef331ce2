/* SPDX-License-Identifier: BSD-2-Clause */
/* What is warned of: by texts of INFO, and by real servers in several ways of being set up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "redis/probe.h"
#include "redis_process.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <unistd.h>

#define BIT(warning) (1U << PROBE_##warning)

/* A primary with nothing to complain of, but for what the rows below add or change. */
#define SOUND                                                                                        \
    "redis_version:6.2.0\r\nmaxmemory:1000\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\nrole:" \
    "master\r\n"
#define WITH_REPLICA "connected_slaves:1\r\nmin_slaves_good_slaves:1\r\n"

static struct redis_process servers[2];

static uint32_t probe_text(const char *info, uint32_t replicas)
{
    return probe_read(&(struct probe){.info = span_of(info), .replicas = replicas});
}

static void each_setting_is_judged_by_itself(void **state)
{
    (void)state;
    static const struct {
        const char *info;
        uint32_t replicas, found;
    } rows[] = {
        {SOUND WITH_REPLICA, 1, 0},
        {SOUND WITH_REPLICA, 0, BIT(UNASKED_REPLICAS)},
        {SOUND WITH_REPLICA, 2, BIT(TOO_FEW_REPLICAS)},
        {SOUND "min_slaves_good_slaves:0\r\nconnected_slaves:0\r\n", 0, BIT(NO_REPLICA)},
        {SOUND "min_slaves_good_slaves:0\r\nconnected_slaves:0\r\n", 1,
         BIT(NO_REPLICA) | BIT(TOO_FEW_REPLICAS)},
        {SOUND "connected_slaves:1\r\n", 1, BIT(NO_MIN_REPLICAS)},
        {"aof_enabled:0\r\n" SOUND WITH_REPLICA, 1, BIT(NO_AOF)},
        {"maxmemory_policy:allkeys-lru\r\n" SOUND WITH_REPLICA, 1, BIT(EVICTION)},
        {"maxmemory_policy:volatile-lru\r\n" SOUND WITH_REPLICA, 1, BIT(EVICTION)},
        {"maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n" SOUND WITH_REPLICA, 1, 0},
        {"redis_version:6.0.16\r\n" SOUND WITH_REPLICA, 1, BIT(OLD_SERVER)},
        {"redis_version:5.9.9\r\n" SOUND WITH_REPLICA, 1, BIT(OLD_SERVER)},
        {"redis_version:6.10.0\r\n" SOUND WITH_REPLICA, 1, 0},
        {"redis_version:7.0.15\r\n" SOUND WITH_REPLICA, 1, 0},
        {"redis_version:10.0\r\n" SOUND WITH_REPLICA, 1, 0},
        {"redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n" SOUND WITH_REPLICA, 1, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (probe_text(rows[i].info, rows[i].replicas) != rows[i].found)
            fail_msg("row %zu: %#x", i, probe_text(rows[i].info, rows[i].replicas));
}

static void what_is_not_told_or_makes_no_sense_is_no_warning(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "role:master\r\nmin_slaves_good_slaves:0\r\n",
        "role:master\r\nmin_slaves_good_slaves:\r\nconnected_slaves:x\r\nredis_version:unstable\r\n",
        "role:master\r\nmin_slaves_good_slaves:\r\naof_enabled:2\r\nmaxmemory:5\r\n",
        "role:master\r\nmin_slaves_good_slaves:0\r\nconnected_slaves:99999999999999999999\r\n",
        "role:master\r\nmin_slaves_good_slaves:0\r\nredis_version:\r\n",
        "role:master\r\nmin_slaves_good_slaves:0\r\nredis_version:5\r\nmaxmemory_policy:allkeys-lru\r\n",
        "",
        "\r\n:\r\n::\r\nrole",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(probe_text(texts[i], 1), 0);
}

static void a_replica_and_a_sentinel_are_not_judged(void **state)
{
    (void)state;
    assert_int_equal(
        probe_text("redis_version:5.0\r\naof_enabled:0\r\nrole:slave\r\nconnected_slaves:0\r\n", 1), 0);
    assert_int_equal(probe_text("redis_version:5.0\r\nredis_mode:sentinel\r\n", 1), 0);
}

static void how_often_the_aof_is_synced_is_judged_where_it_is_told(void **state)
{
    (void)state;
    struct probe probe = {.info = SPAN(SOUND WITH_REPLICA), .replicas = 1};
    assert_int_equal(probe_read(&probe), 0);
    probe.appendfsync = SPAN("everysec");
    assert_int_equal(probe_read(&probe), 0);
    probe.appendfsync = SPAN("no");
    assert_int_equal(probe_read(&probe), BIT(AOF_NOT_SYNCED));
    probe.info = SPAN("aof_enabled:0\r\n" SOUND WITH_REPLICA);
    assert_int_equal(probe_read(&probe), BIT(NO_AOF));
}

static void every_warning_has_a_name_of_its_own_and_a_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < PROBE_COUNT; i++) {
        const char *sentence = probe_sentence((enum probe_warning)i);
        assert_int_equal(sentence[strlen(sentence) - 1], '.');
        for (int j = 0; j < i; j++)
            assert_string_not_equal(probe_name((enum probe_warning)i), probe_name((enum probe_warning)j));
    }
}

/* ---- real servers ---- */

static int servers_stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
        redis_process_stop(&servers[i]);
    return 0;
}

static redisReply *ask(const struct redis_process *server, const char *command)
{
    redisContext *connection = redisConnectUnix(server->socket);
    assert_true(connection != NULL && connection->err == 0);
    redisReply *reply = redisCommand(connection, command);
    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    redisFree(connection);
    return reply;
}

static void tell(const struct redis_process *server, const char *command)
{
    freeReplyObject(ask(server, command));
}

static uint32_t probe_server(const struct redis_process *server, uint32_t replicas)
{
    redisReply *info = ask(server, "INFO"), *sync = ask(server, "CONFIG GET appendfsync");
    assert_int_equal(sync->elements, 2);
    uint32_t found = probe_read(&(struct probe){
        .info = {info->str, info->len},
        .appendfsync = {sync->element[1]->str, sync->element[1]->len},
        .replicas = replicas,
    });
    freeReplyObject(info);
    freeReplyObject(sync);
    return found;
}

/* Until the primary counts it, and so does `WAIT`. */
static void replica_await(const struct redis_process *server)
{
    for (long long know = 0; know == 0;) {
        tell(server, "SET known 1");
        redisReply *reply = ask(server, "WAIT 1 100");
        know = reply->integer;
        freeReplyObject(reply);
    }
}

static void a_server_as_it_comes_is_warned_of(void **state)
{
    (void)state;
    redis_process_start(&servers[0], NULL);
    assert_int_equal(probe_server(&servers[0], 0), BIT(NO_REPLICA) | BIT(NO_MIN_REPLICAS) | BIT(NO_AOF));
    assert_int_equal(probe_server(&servers[0], 1),
                     BIT(NO_REPLICA) | BIT(TOO_FEW_REPLICAS) | BIT(NO_MIN_REPLICAS) | BIT(NO_AOF));
    tell(&servers[0], "CONFIG SET maxmemory-policy allkeys-lfu");
    assert_int_equal(probe_server(&servers[0], 0), BIT(NO_REPLICA) | BIT(NO_MIN_REPLICAS) | BIT(NO_AOF));
    tell(&servers[0], "CONFIG SET maxmemory 100mb");
    assert_int_equal(probe_server(&servers[0], 0),
                     BIT(NO_REPLICA) | BIT(NO_MIN_REPLICAS) | BIT(NO_AOF) | BIT(EVICTION));
}

static void of_a_server_that_is_set_up_for_it_nothing_is_said(void **state)
{
    (void)state;
    char port[8];
    static const char *const sound[] = {"--appendonly", "yes", "--min-replicas-to-write", "1", "--maxmemory",
                                        "100mb",        NULL};
    const char *const replica[] = {"--replicaof", "127.0.0.1", port, NULL};
    redis_process_start(&servers[0], sound);
    (void)snprintf(port, sizeof(port), "%u", servers[0].port);
    assert_int_equal(probe_server(&servers[0], 0), BIT(NO_REPLICA));
    tell(&servers[0], "CONFIG SET min-replicas-to-write 0");
    redis_process_start(&servers[1], replica);
    replica_await(&servers[0]);
    assert_int_equal(probe_server(&servers[0], 1), BIT(NO_MIN_REPLICAS));
    tell(&servers[0], "CONFIG SET min-replicas-to-write 1");
    assert_int_equal(probe_server(&servers[0], 1), 0);
    assert_int_equal(probe_server(&servers[0], 0), BIT(UNASKED_REPLICAS));
    assert_int_equal(probe_server(&servers[0], 2), BIT(TOO_FEW_REPLICAS));
    assert_int_equal(probe_server(&servers[1], 1), 0);
    tell(&servers[0], "CONFIG SET appendfsync no");
    assert_int_equal(probe_server(&servers[0], 1), BIT(AOF_NOT_SYNCED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_setting_is_judged_by_itself),
        cmocka_unit_test(what_is_not_told_or_makes_no_sense_is_no_warning),
        cmocka_unit_test(a_replica_and_a_sentinel_are_not_judged),
        cmocka_unit_test(how_often_the_aof_is_synced_is_judged_where_it_is_told),
        cmocka_unit_test(every_warning_has_a_name_of_its_own_and_a_sentence),
        cmocka_unit_test_teardown(a_server_as_it_comes_is_warned_of, servers_stop),
        cmocka_unit_test_teardown(of_a_server_that_is_set_up_for_it_nothing_is_said, servers_stop),
    };

    return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
