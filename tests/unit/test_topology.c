/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who keeps what is found out by asking: in memory, where the test is every server and the clock, and of real servers of all
 * four kinds (standalone, replica, cluster, sentinel).
 */
#include "redis/topology.h"

#include "redis_process.h"
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* ---- replies ---- */

static redisReply *reply_of(const char *resp)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    assert_int_equal(redisReaderFeed(reader, resp, strlen(resp)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}

static const struct address asked = {"10.0.0.9", 7000};

static const char *map_of(struct slot_map *map, const char *resp)
{
    redisReply *reply = reply_of(resp);
    const char *refusal = slot_map_read(map, reply, &asked);
    freeReplyObject(reply);
    return refusal;
}

#define NODE(host, port, id) "*3\r\n" host ":" port "\r\n" id
#define HOST_A               "$1\r\na\r\n"
#define HOST_B               "$1\r\nb\r\n"
#define ID_A                 "$2\r\nia\r\n"
#define ID_B                 "$2\r\nib\r\n"
#define RANGE(first, last)   "*3\r\n:" first "\r\n:" last "\r\n"
#define HALVES \
    "*2\r\n" RANGE("0", "8191") NODE(HOST_A, "1", ID_A) RANGE("8192", "16383") NODE(HOST_B, "2", ID_B)

/* ---- maps ---- */

static void every_slot_has_the_primary_that_a_cluster_says(void **state)
{
    (void)state;
    static struct slot_map map;
    assert_null(map_of(&map, HALVES));
    assert_int_equal(map.count, 2);
    for (uint16_t slot = 0; slot < SLOTS; slot++)
        assert_string_equal(slot_map_find(&map, slot)->node_id, slot < 8192 ? "ia" : "ib");
    assert_string_equal(slot_map_find(&map, 0)->address.host, "a");
    assert_int_equal(slot_map_find(&map, 16383)->address.port, 2);
}

static void a_host_that_a_server_leaves_out_is_its_own(void **state)
{
    (void)state;
    static struct slot_map map;
    assert_null(map_of(&map, "*2\r\n" RANGE("0", "0") NODE("$-1\r\n", "1", ID_A) RANGE("5", "6")
                                 NODE("$0\r\n\r\n", "2", ID_B)));
    assert_string_equal(slot_map_find(&map, 0)->address.host, "10.0.0.9");
    assert_string_equal(slot_map_find(&map, 6)->address.host, "10.0.0.9");
    assert_int_equal(slot_map_find(&map, 6)->address.port, 2);
    assert_null(slot_map_find(&map, 1));
    assert_null(slot_map_find(&map, 7));
}

static void a_primary_without_an_address_keeps_nothing(void **state)
{
    (void)state;
    static struct slot_map map;
    assert_null(map_of(&map, "*2\r\n" RANGE("0", "0") NODE("$1\r\n?\r\n", "0", ID_A) RANGE("1", "1")
                                 NODE(HOST_B, "2", ID_B)));
    assert_null(slot_map_find(&map, 0));
    assert_non_null(slot_map_find(&map, 1));
}

static void of_a_map_that_makes_no_sense_nothing_is_believed(void **state)
{
    (void)state;
    static struct slot_map map;
    static const char *const texts[] = {
        "-ERR This instance has cluster support disabled\r\n",
        ":1\r\n",
        "+OK\r\n",
        "$-1\r\n",
        "*0\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*0\r\n",
        "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n" RANGE("0", "1") ":1\r\n",
        "*1\r\n" RANGE("0", "1") "*0\r\n",
        "*1\r\n" RANGE("0", "1") "*1\r\n" HOST_A,
        "*1\r\n" RANGE("0", "16384") NODE(HOST_A, "1", ID_A),
        "*1\r\n" RANGE("-1", "1") NODE(HOST_A, "1", ID_A),
        "*1\r\n" RANGE("2", "1") NODE(HOST_A, "1", ID_A),
        "*1\r\n" RANGE("0", "1") NODE(HOST_A, "0", ID_A),
        "*1\r\n" RANGE("0", "1") NODE(HOST_A, "65536", ID_A),
        "*1\r\n" RANGE("0", "1") NODE(":5\r\n", "1", ID_A),
        "*1\r\n" RANGE("0", "1") NODE("$3\r\na b\r\n", "1", ID_A),
        "*1\r\n" RANGE("4294967296", "4294967297") NODE(HOST_A, "1", ID_A),
        "*2\r\n" RANGE("0", "5") NODE(HOST_A, "1", ID_A) RANGE("5", "9") NODE(HOST_B, "1", ID_B),
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (map_of(&map, texts[i]) == NULL)
            fail_msg("%s", texts[i]);
}

static void a_map_holds_256_primaries_and_no_more(void **state)
{
    (void)state;
    static struct slot_map map;
    for (int count = 256; count <= 257; count++) {
        char *text = malloc(65536), *at = text + sprintf(text, "*%d\r\n", count);
        for (int i = 0; i < count; i++)
            at += sprintf(at, "*3\r\n:%d\r\n:%d\r\n*2\r\n$1\r\na\r\n:%d\r\n", i, i, i + 1);
        assert_int_equal(map_of(&map, text) == NULL, count == 256);
        free(text);
    }
    assert_false(slot_map_move(&map, 0, &asked));
    assert_true(slot_map_move(&map, 0, &map.primaries[7].address));
    assert_int_equal(slot_map_find(&map, 0)->address.port, 8);
}

/* ---- what servers say of themselves ---- */

static void a_server_says_who_it_is(void **state)
{
    (void)state;
    struct peer peer;
    assert_null(
        peer_read(SPAN("# Server\r\nredis_version:7.0.15\r\nredis_mode:cluster\r\nrun_id:" RUN_A "\r\n"),
                  SPAN("# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"), &peer));
    assert_int_equal(peer.mode, PEER_CLUSTER);
    assert_true(peer.is_primary && !peer.is_valkey);
    assert_int_equal(peer.replicas, 2);
    assert_string_equal(peer.run_id, RUN_A);
    assert_string_equal(peer.version, "7.0.15");
    assert_null(peer_read(SPAN("redis_version:7.2.4\r\nvalkey_version:8.0.1\r\nserver_mode:standalone\r\n"),
                          SPAN("role:slave\r\n"), &peer));
    assert_int_equal(peer.mode, PEER_STANDALONE);
    assert_true(peer.is_valkey && !peer.is_primary);
    assert_string_equal(peer.version, "8.0.1");
    assert_string_equal(peer.run_id, "");
    assert_null(peer_read(SPAN("redis_mode:sentinel"), SPAN(""), &peer));
    assert_int_equal(peer.mode, PEER_SENTINEL);
}

static void a_server_that_does_not_say_what_it_is_is_refused(void **state)
{
    (void)state;
    struct peer peer;
    assert_non_null(peer_read(SPAN(""), SPAN("role:master"), &peer));
    assert_non_null(peer_read(SPAN("redis_mode:other\r\n"), SPAN("role:master"), &peer));
    assert_non_null(peer_read(SPAN("xredis_mode:cluster\r\nredis_mode\r\nredis_mode=cluster\r\n"),
                              SPAN("role:master"), &peer));
    assert_non_null(peer_read(SPAN("redis_mode:cluster\r\n"), SPAN("# Replication\r\n"), &peer));
    assert_null(peer_read(SPAN("redis_mode:cluster\r\nrun_id:" RUN_A "1\r\nredis_version:a\x01\r\n"),
                          SPAN("role:master\r\nconnected_slaves:-1\r\n"), &peer));
    assert_string_equal(peer.run_id, "");
    assert_string_equal(peer.version, "");
    assert_int_equal(peer.replicas, 0);
}

/* ---- finding out, in memory ---- */

static const struct peer primary = {.mode = PEER_STANDALONE, .is_primary = true, .run_id = RUN_A};
static const struct peer replica = {.mode = PEER_STANDALONE};
static const struct peer node = {.mode = PEER_CLUSTER, .is_primary = true};
static const struct peer sentinel = {.mode = PEER_SENTINEL};

static struct store_url url;

static struct topology *topology_of(const char *text)
{
    assert_null(store_url_read(span_of(text), &url));
    struct topology *topology = topology_new(&url, 1000);
    assert_non_null(topology);
    return topology;
}

static void expect_question(struct topology *topology, uint64_t now_ms, enum question_kind kind,
                            const char *host)
{
    struct question question = topology_question(topology, now_ms);
    assert_int_equal(question.kind, kind);
    if (kind != QUESTION_NONE)
        assert_string_equal(question.address.host, host);
}

static void answer(struct topology *topology, uint64_t now_ms, const char *resp)
{
    redisReply *reply = reply_of(resp);
    topology_answered(topology, reply, now_ms, 0);
    freeReplyObject(reply);
}

/* A cluster of a:1 and b:2, learned at 1000. */
static struct topology *halves(void)
{
    struct topology *topology = topology_of("redis://seed");
    expect_question(topology, 1000, QUESTION_GREET, "seed");
    topology_greeted(topology, &node, 1000, 0);
    answer(topology, 1000, HALVES);
    assert_int_equal(topology_version(topology), 1);
    return topology;
}

static void a_standalone_primary_keeps_everything(void **state)
{
    (void)state;
    struct topology *topology = topology_of("redis://one");
    assert_null(topology_find(topology, 0));
    assert_int_equal(topology_version(topology), 0);
    expect_question(topology, 1000, QUESTION_GREET, "one");
    assert_int_equal(topology_due_ms(topology), UINT64_MAX);
    topology_greeted(topology, &primary, 1010, 0);
    assert_string_equal(topology_find(topology, 0)->address.host, "one");
    assert_string_equal(topology_find(topology, 16383)->address.host, "one");
    assert_false(topology_is_cluster(topology));
    assert_int_equal(topology_version(topology), 1);
    expect_question(topology, 1011, QUESTION_NONE, "");
    topology_free(topology);
}

static void a_single_address_may_be_a_cluster(void **state)
{
    (void)state;
    struct topology *topology = topology_of("redis://seed");
    expect_question(topology, 1000, QUESTION_GREET, "seed");
    topology_greeted(topology, &node, 1010, 0);
    expect_question(topology, 1010, QUESTION_SLOTS, "seed");
    char *command;
    size_t len = topology_format(topology, &command);
    assert_int_equal(len, strlen("*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n"));
    assert_memory_equal(command, "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n", len);
    redisFreeCommand(command);
    answer(topology, 1020, HALVES);
    assert_true(topology_is_cluster(topology));
    assert_string_equal(topology_find(topology, 3998)->address.host, "a");
    topology_free(topology);
}

static void several_addresses_are_tried_until_one_is_a_primary(void **state)
{
    (void)state;
    struct topology *topology = topology_of("redis://one,two,three");
    expect_question(topology, 1000, QUESTION_GREET, "one");
    topology_failed(topology, "Nobody there.", 1000, 0);
    expect_question(topology, 1000, QUESTION_GREET, "two");
    topology_greeted(topology, &replica, 1000, 0);
    expect_question(topology, 1000, QUESTION_GREET, "three");
    topology_greeted(topology, &primary, 1000, 0);
    assert_string_equal(topology_find(topology, 0)->address.host, "three");
    assert_null(topology_trouble(topology));
    expect_question(topology, topology_due_ms(topology), QUESTION_GREET,
                    "three"); /* who knew last is asked first */
    topology_free(topology);
}

static void sentinels_name_a_primary_that_must_say_so_itself(void **state)
{
    (void)state;
    struct topology *topology = topology_of("redis+sentinel://s1,s2/my%20master");
    expect_question(topology, 1000, QUESTION_GREET, "s1");
    assert_true(topology_question(topology, 1000).is_of_sentinel);
    topology_greeted(topology, &sentinel, 1000, 0);
    expect_question(topology, 1000, QUESTION_MASTER, "s1");
    char *command;
    size_t len = topology_format(topology, &command);
    static const char expected[] =
        "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$9\r\nmy master\r\n";
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(command, expected, len);
    redisFreeCommand(command);
    answer(topology, 1000, "*2\r\n$3\r\nold\r\n$4\r\n6379\r\n");
    expect_question(topology, 1000, QUESTION_GREET, "old");
    assert_false(topology_question(topology, 1000).is_of_sentinel);
    topology_greeted(topology, &replica, 1000, 0); /* a failover, and s1 has not heard of it */
    expect_question(topology, 1000, QUESTION_GREET, "s2");
    topology_greeted(topology, &sentinel, 1000, 0);
    answer(topology, 1000, "*2\r\n$3\r\nnew\r\n$4\r\n6380\r\n");
    topology_greeted(topology, &primary, 1000, 0);
    assert_string_equal(topology_find(topology, 5)->address.host, "new");
    assert_int_equal(topology_find(topology, 5)->address.port, 6380);
    topology_free(topology);
}

static void a_kind_of_server_that_does_not_fit_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        const struct peer *peer;
        const char *resp, *part;
    } rows[] = {
        {"redis://h", &sentinel, NULL, "is a sentinel"},
        {"redis://h/1", &node, NULL, "no database but 0"},
        {"redis://h", &replica, NULL, "is a primary"},
        {"redis+sentinel://h/m", &primary, NULL, "no sentinel"},
        {"redis+sentinel://h/m", &sentinel, "*-1\r\n", "do not know"},
        {"redis+sentinel://h/m", &sentinel, "-ERR no\r\n", "makes no sense"},
        {"redis+sentinel://h/m", &sentinel, "*2\r\n$1\r\na\r\n:1\r\n", "makes no sense"},
        {"redis+sentinel://h/m", &sentinel, "*2\r\n$1\r\na\r\n$1\r\n0\r\n", "makes no sense"},
        {"redis+sentinel://h/m", &sentinel, "*1\r\n$1\r\na\r\n", "makes no sense"},
        {"redis://h", &node, "-ERR no\r\n", "makes no sense"},
        {"redis://h", &node, "*0\r\n", "to nobody"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct topology *topology = topology_of(rows[i].url);
        expect_question(topology, 1000, QUESTION_GREET, "h");
        topology_greeted(topology, rows[i].peer, 1000, 0);
        if (rows[i].resp != NULL)
            answer(topology, 1000, rows[i].resp);
        assert_non_null(topology_trouble(topology));
        assert_non_null(strstr(topology_trouble(topology), rows[i].part));
        expect_question(topology, 1000, QUESTION_NONE, "");
        assert_null(topology_find(topology, 0));
        topology_free(topology);
    }
}

static void when_nobody_knows_each_rest_is_longer_up_to_an_end(void **state)
{
    (void)state;
    struct topology *topology = topology_of("redis://one,two");
    uint64_t now_ms = 1000, rest_ms = TOPOLOGY_REST_MS;
    for (int round = 0; round < 10; round++) {
        expect_question(topology, now_ms, QUESTION_GREET, "one");
        topology_failed(topology, "No.", now_ms, 0);
        assert_true(round > 0 || topology_trouble(topology) == NULL);
        expect_question(topology, now_ms, QUESTION_GREET, "two");
        topology_failed(topology, "Neither.", now_ms, 0);
        assert_string_equal(topology_trouble(topology), "Neither.");
        assert_int_equal(topology_due_ms(topology), now_ms + rest_ms);
        expect_question(topology, now_ms + rest_ms - 1, QUESTION_NONE, "");
        now_ms += rest_ms;
        rest_ms = rest_ms < 1600 ? 2 * rest_ms : 1600;
    }
    topology_free(topology);
}

static void what_is_known_stays_known_while_nobody_answers(void **state)
{
    (void)state;
    struct topology *topology = halves();
    uint64_t now_ms = topology_due_ms(topology);
    assert_true(now_ms > 1000 + TOPOLOGY_REFRESH_MS / 2 && now_ms <= 1000 + TOPOLOGY_REFRESH_MS);
    /* The primaries, and then what the operator wrote. */
    static const char *const hosts[] = {"a", "b", "seed"};
    for (int i = 0; i < 3; i++) {
        expect_question(topology, now_ms, QUESTION_GREET, hosts[i]);
        topology_failed(topology, "No.", now_ms, 0);
    }
    expect_question(topology, now_ms, QUESTION_NONE, "");
    assert_string_equal(topology_trouble(topology), "No.");
    assert_string_equal(topology_find(topology, 0)->address.host, "a");
    topology_free(topology);
}

static void a_moved_slot_is_where_it_was_said_to_be_at_once(void **state)
{
    (void)state;
    struct topology *topology = halves();
    const struct address third = {"c", 3};
    topology_follow(topology, 7, &third, 2000, 0);
    assert_string_equal(topology_find(topology, 7)->address.host, "c");
    assert_string_equal(topology_find(topology, 8)->address.host, "a");
    assert_int_equal(topology_version(topology), 2);
    expect_question(topology, 2000, QUESTION_GREET, "a");
    topology_follow(topology, 7, &third, 2000, 0);
    assert_int_equal(topology_version(topology), 2);
    topology_free(topology);
}

static void a_map_is_whole_when_somebody_was_asked_after_the_last_move(void **state)
{
    (void)state;
    struct topology *topology = halves();
    const struct peer peer = {.mode = PEER_CLUSTER, .is_primary = true};
    const struct address third = {"c", 3}, fourth = {"d", 4};
    assert_true(topology_is_whole(topology));
    topology_follow(topology, 7, &third, 2000, 0);
    assert_false(topology_is_whole(topology));
    expect_question(topology, 2000, QUESTION_GREET, "a");
    topology_greeted(topology, &peer, 2000, 0);
    topology_follow(topology, 8, &fourth, 2000, 0); /* and the answer may be from before */
    answer(topology, 2000, HALVES);
    assert_false(topology_is_whole(topology));
    assert_true(topology_due_ms(topology) < 3000);
    topology_hurry(topology, 2001);
    assert_int_equal(topology_due_ms(topology), 2001);
    assert_int_equal(topology_question(topology, 2001).kind, QUESTION_GREET);
    topology_greeted(topology, &peer, 2001, 0);
    topology_follow(topology, 0, &(struct address){"a", 1}, 2001, 0); /* which the map said already */
    answer(topology, 2001, HALVES);
    assert_true(topology_is_whole(topology));
    uint64_t due_ms = topology_due_ms(topology);
    topology_hurry(topology, 2002);
    assert_int_equal(topology_due_ms(topology), due_ms);
    topology_free(topology);
}

static void a_thousand_doubts_are_one_look_and_the_next_one_waits(void **state)
{
    (void)state;
    struct topology *topology = halves();
    uint64_t now_ms = 2000, rest_ms = 0;
    for (int look = 0; look < 8; look++) {
        for (int i = 0; i < 1000; i++)
            topology_doubt(topology, now_ms, 0);
        assert_int_equal(topology_due_ms(topology), now_ms + rest_ms);
        now_ms += rest_ms;
        expect_question(topology, now_ms, QUESTION_GREET, "a");
        topology_greeted(topology, &node, now_ms, 0);
        answer(topology, now_ms, HALVES);
        assert_int_equal(topology_version(topology), 1);
        rest_ms = rest_ms == 0 ? 200 : rest_ms < 1600 ? 2 * rest_ms : 1600;
    }
    /* A look that nobody asked for ends the row. */
    now_ms = topology_due_ms(topology);
    expect_question(topology, now_ms, QUESTION_GREET, "a");
    topology_greeted(topology, &node, now_ms, 0);
    answer(topology, now_ms, HALVES);
    topology_doubt(topology, now_ms, 0);
    assert_int_equal(topology_due_ms(topology), now_ms);
    topology_free(topology);
}

static void a_look_is_never_put_off_by_a_doubt(void **state)
{
    (void)state;
    struct topology *topology = halves();
    uint64_t due_ms = topology_due_ms(topology);
    topology_doubt(topology, due_ms - 5, 0);
    expect_question(topology, due_ms - 5, QUESTION_GREET, "a");
    topology_greeted(topology, &node, due_ms - 5, 0);
    answer(topology, due_ms - 5, HALVES);
    due_ms = topology_due_ms(topology);
    topology_doubt(topology, due_ms - 5, 0); /* which would rest 200 ms */
    assert_int_equal(topology_due_ms(topology), due_ms);
    topology_free(topology);
}

/* ---- real servers ---- */

static redisReply *ask(redisContext *connection, const char *command)
{
    redisReply *reply = redisCommand(connection, command);
    assert_non_null(reply);
    return reply;
}

static struct peer peer_of(redisContext *connection)
{
    redisReply *server = ask(connection, "INFO server"), *replication = ask(connection, "INFO replication");
    struct peer peer;
    assert_null(peer_read((struct span){server->str, server->len},
                          (struct span){replication->str, replication->len}, &peer));
    freeReplyObject(server);
    freeReplyObject(replication);
    return peer;
}

/* Answers every question of the topology until it has none. */
static void look(struct topology *topology, uint64_t now_ms)
{
    for (struct question question; (question = topology_question(topology, now_ms)).kind != QUESTION_NONE;) {
        redisContext *connection = redisConnect(question.address.host, question.address.port);
        assert_non_null(connection);
        if (connection->err != 0)
            topology_failed(topology, "Nobody there.", now_ms, 0);
        else if (question.kind == QUESTION_GREET) {
            struct peer peer = peer_of(connection);
            topology_greeted(topology, &peer, now_ms, 0);
        } else {
            char *command;
            void *reply;
            size_t len = topology_format(topology, &command);
            assert_int_equal(redisAppendFormattedCommand(connection, command, len), REDIS_OK);
            assert_int_equal(redisGetReply(connection, &reply), REDIS_OK);
            topology_answered(topology, reply, now_ms, 0);
            freeReplyObject(reply);
            redisFreeCommand(command);
        }
        redisFree(connection);
    }
}

static void order(const struct redis_process *server, const char *command)
{
    redisContext *connection = redisConnectUnix(server->socket);
    redisReply *reply = ask(connection, command);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", command, reply->str);
    freeReplyObject(reply);
    redisFree(connection);
}

static struct redis_process servers[3];

static int servers_stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        redis_process_stop(&servers[i]);
    return 0;
}

static void the_primary_among_real_servers_is_found_and_its_successor(void **state)
{
    (void)state;
    char text[64];
    for (size_t i = 0; i < 2; i++)
        redis_process_start(&servers[i], NULL);
    (void)snprintf(text, sizeof(text), "REPLICAOF 127.0.0.1 %u", servers[1].port);
    order(&servers[0], text);
    (void)snprintf(text, sizeof(text), "redis://127.0.0.1:%u,127.0.0.1:%u", servers[0].port, servers[1].port);
    struct topology *topology = topology_of(text);
    look(topology, 1000);
    assert_int_equal(topology_find(topology, 1)->address.port, servers[1].port);

    redis_process_kill(&servers[1]);
    order(&servers[0], "REPLICAOF NO ONE");
    topology_doubt(topology, 2000, 0);
    look(topology, 2000);
    assert_int_equal(topology_find(topology, 1)->address.port, servers[0].port);
    topology_free(topology);
}

static void a_real_cluster_is_found_out_by_asking_its_one_address(void **state)
{
    (void)state;
    static const char *const options[] = {"--cluster-enabled", "yes", NULL};
    char text[64];
    redis_process_start(&servers[0], options);
    (void)snprintf(text, sizeof(text), "redis://127.0.0.1:%u", servers[0].port);
    struct topology *topology = topology_of(text);
    look(topology, 1000);
    assert_int_equal(topology_version(topology), 0);
    assert_non_null(strstr(topology_trouble(topology), "to nobody"));

    order(&servers[0], "CLUSTER ADDSLOTSRANGE 0 3998 5000 16383");
    look(topology, topology_due_ms(topology));
    assert_null(topology_trouble(topology));
    assert_true(topology_is_cluster(topology));
    assert_int_equal(topology_find(topology, 3998)->address.port, servers[0].port);
    assert_int_equal(strlen(topology_find(topology, 3998)->node_id), SLOT_MAP_NODE_ID_MAX);
    assert_null(topology_find(topology, 3999));
    topology_free(topology);
}

static void a_real_sentinel_names_the_primary(void **state)
{
    (void)state;
    char text[128], path[64];
    redis_process_start(&servers[0], NULL);
    (void)snprintf(path, sizeof(path), "%s/sentinel.conf", servers[0].folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "sentinel monitor shop 127.0.0.1 %u 1\n", servers[0].port) > 0);
    assert_int_equal(fclose(file), 0);
    const char *const options[] = {path, "--sentinel", NULL};
    redis_process_start(&servers[1], options);

    (void)snprintf(text, sizeof(text), "redis+sentinel://127.0.0.1:%u/shop", servers[1].port);
    struct topology *topology = topology_of(text);
    look(topology, 1000);
    assert_null(topology_trouble(topology));
    assert_int_equal(topology_find(topology, 1)->address.port, servers[0].port);
    topology_free(topology);

    (void)snprintf(text, sizeof(text), "redis+sentinel://127.0.0.1:%u/shoe", servers[1].port);
    topology = topology_of(text);
    look(topology, 1000);
    assert_non_null(strstr(topology_trouble(topology), "do not know"));
    topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slot_has_the_primary_that_a_cluster_says),
        cmocka_unit_test(a_host_that_a_server_leaves_out_is_its_own),
        cmocka_unit_test(a_primary_without_an_address_keeps_nothing),
        cmocka_unit_test(of_a_map_that_makes_no_sense_nothing_is_believed),
        cmocka_unit_test(a_map_holds_256_primaries_and_no_more),
        cmocka_unit_test(a_server_says_who_it_is),
        cmocka_unit_test(a_server_that_does_not_say_what_it_is_is_refused),
        cmocka_unit_test(a_standalone_primary_keeps_everything),
        cmocka_unit_test(a_single_address_may_be_a_cluster),
        cmocka_unit_test(several_addresses_are_tried_until_one_is_a_primary),
        cmocka_unit_test(sentinels_name_a_primary_that_must_say_so_itself),
        cmocka_unit_test(a_kind_of_server_that_does_not_fit_is_named),
        cmocka_unit_test(when_nobody_knows_each_rest_is_longer_up_to_an_end),
        cmocka_unit_test(what_is_known_stays_known_while_nobody_answers),
        cmocka_unit_test(a_moved_slot_is_where_it_was_said_to_be_at_once),
        cmocka_unit_test(a_map_is_whole_when_somebody_was_asked_after_the_last_move),
        cmocka_unit_test(a_thousand_doubts_are_one_look_and_the_next_one_waits),
        cmocka_unit_test(a_look_is_never_put_off_by_a_doubt),
        cmocka_unit_test_teardown(the_primary_among_real_servers_is_found_and_its_successor, servers_stop),
        cmocka_unit_test_teardown(a_real_cluster_is_found_out_by_asking_its_one_address, servers_stop),
        cmocka_unit_test_teardown(a_real_sentinel_names_the_primary, servers_stop),
    };

    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
