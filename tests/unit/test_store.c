/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Orders reach whoever keeps their slot: real servers, alone, in a cluster whose slots move, and with one that takes over from
 * another, behind a small driver that waits. What no server can be brought to say in a test is said by one that the test plays.
 */
#define _GNU_SOURCE
#include "redis/store.h"

#include "redis_process.h"
#include "rig.h"
#include "store_owner.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- orders that remember how they ended ---- */

struct ask {
    struct store_order order; /* first */
    int ended;
    enum link_outcome outcome;
    char text[96];
    char *bytes;
    char written_for[PEER_RUN_ID_MAX + 1];
};

static void ask_done(struct store_order *order, enum link_outcome outcome, const redisReply *reply)
{
    struct ask *ask = (struct ask *)order;
    ask->ended++;
    ask->outcome = outcome;
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        (void)snprintf(ask->text, sizeof(ask->text), "%lld", reply->integer);
    else if (reply != NULL && reply->str != NULL)
        (void)snprintf(ask->text, sizeof(ask->text), "%s", reply->str);
}

static struct ask ask_of(const char *key, const char *command)
{
    struct ask ask = {.order = {.slot = slot_of_key(span_of(key)), .done = ask_done}};
    int len = redisFormatCommand(&ask.bytes, command);
    assert_true(len > 0);
    ask.order.bytes = (struct span){ask.bytes, (size_t)len};
    ask.order.deadline_ms = owner_clock_ms() + 8000;
    return ask;
}

static void ask_free(struct ask *ask)
{
    redisFreeCommand(ask->bytes);
}

static void expect_answer(const struct ask *ask, const char *text)
{
    assert_int_equal(ask->ended, 1);
    assert_int_equal(ask->outcome, LINK_ANSWERED);
    assert_string_equal(ask->text, text);
}

/* ---- the owner of the sockets ---- */

static struct store_url url;
static struct store *store;

static const char *password_read(void *context, const struct store_login *login, struct store_text *out)
{
    (void)context;
    *out = login->secret;
    return NULL;
}

static const struct store_options options = {
    .url = &url,
    .password = password_read,
    .name = "weir",
    .dial_ms = 2000,
    .silence_ms = 5000,
    .in_flight_max = 64,
    .out_bytes_max = 4096,
    .waiting_max = 32,
};

static void store_open(const char *text)
{
    assert_null(store_url_read(span_of(text), &url));
    store = store_new(&options, 5, owner_clock_ms());
    assert_non_null(store);
}

static void turn(void)
{
    owner_turn(store, NULL);
}

static void answer_wait(const struct ask *ask)
{
    uint64_t end_ms = owner_clock_ms() + 12000;
    while (ask->ended == 0) {
        assert_true(owner_clock_ms() < end_ms);
        turn();
    }
}

static void run(struct ask *ask)
{
    store_send(store, &ask->order, owner_clock_ms());
    answer_wait(ask);
}

static void expect_run(const char *key, const char *command, const char *text)
{
    struct ask ask = ask_of(key, command);
    run(&ask);
    expect_answer(&ask, text);
    ask_free(&ask);
}

static void store_close(void)
{
    owner_close_lines(store);
    store_free(store);
}

/* ---- servers ---- */

static struct redis_process servers[3];

static int servers_stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        redis_process_stop(&servers[i]);
    return 0;
}

/* What the server says, in memory that the next call uses again. */
static const char *order(const struct redis_process *server, const char *format, ...)
{
    static char text[4096];
    redisContext *connection = redisConnectUnix(server->socket);
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(connection, format, arguments);
    va_end(arguments);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply->str);
    (void)snprintf(text, sizeof(text), "%s", reply->str == NULL ? "" : reply->str);
    freeReplyObject(reply);
    redisFree(connection);
    return text;
}

static void store_open_at(const struct redis_process *server)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "redis://127.0.0.1:%u", server->port);
    store_open(text);
}

/* Until all of them agree that all is well. */
static void cluster_wait(void)
{
    uint64_t end_ms = owner_clock_ms() + 20000;
    for (int i = 0; i < 2; i++)
        while (strstr(order(&servers[i], "CLUSTER INFO"), "cluster_state:ok") == NULL ||
               strstr(order(&servers[i], "CLUSTER INFO"), "cluster_known_nodes:2") == NULL) {
            assert_true(owner_clock_ms() < end_ms);
            assert_int_equal(poll(NULL, 0, 10), 0);
        }
}

static char node_ids[2][64];

static void cluster_start(void)
{
    static const char *const enabled[] = {"--cluster-enabled", "yes", NULL};
    for (int i = 0; i < 2; i++) {
        redis_process_start(&servers[i], enabled);
        (void)snprintf(node_ids[i], sizeof(node_ids[i]), "%s", order(&servers[i], "CLUSTER MYID"));
    }
    (void)order(&servers[0], "CLUSTER ADDSLOTSRANGE 0 8191");
    (void)order(&servers[1], "CLUSTER ADDSLOTSRANGE 8192 16383");
    (void)order(&servers[1], "CLUSTER SET-CONFIG-EPOCH 2");
    (void)order(&servers[0], "CLUSTER MEET 127.0.0.1 %d", servers[1].port);
    cluster_wait();
}

/* ---- tests ---- */

static void orders_given_before_anything_is_known_are_answered(void **state)
{
    (void)state;
    redis_process_start(&servers[0], NULL);
    store_open_at(&servers[0]);
    struct ask asks[3] = {ask_of("a", "INCR a"), ask_of("a", "INCR a"), ask_of("a", "LPUSH a 1")};
    for (int i = 0; i < 3; i++)
        store_send(store, &asks[i].order, owner_clock_ms());
    for (int i = 0; i < 3; i++)
        answer_wait(&asks[i]);
    expect_answer(&asks[0], "1");
    expect_answer(&asks[1], "2");
    assert_non_null(strstr(asks[2].text, "WRONGTYPE")); /* its own error is its answer */
    assert_int_equal(strlen(store_peer(store, 0)->run_id), PEER_RUN_ID_MAX);
    assert_true(store_is_running(store, store_peer(store, 0)->run_id));
    for (int i = 0; i < 3; i++)
        ask_free(&asks[i]);
    store_close();
}

static void each_lane_is_a_connection_of_its_own(void **state)
{
    (void)state;
    redis_process_start(&servers[0], NULL);
    store_open_at(&servers[0]);
    struct ask slow = ask_of("a", "BLPOP nothing 0"), quick = ask_of("a", "INCR a");
    slow.order.lane = STORE_LANE_CONFIRMED;
    store_send(store, &slow.order, owner_clock_ms());
    while (strstr(order(&servers[0], "INFO clients"), "blocked_clients:1") == NULL)
        turn();
    run(&quick);
    expect_answer(&quick, "1");
    assert_int_equal(slow.ended, 0);
    store_close();
    assert_int_equal(slow.outcome, LINK_UNKNOWN);
    ask_free(&slow);
    ask_free(&quick);
}

static void a_slot_that_moves_is_followed_and_no_order_fails(void **state)
{
    (void)state;
    cluster_start();
    store_open_at(&servers[0]);
    expect_run("a", "INCR a", "1"); /* slot 15495, on the second */
    expect_run("b", "INCR b", "1"); /* slot 3300, on the first */
    assert_true(topology_is_cluster(store_topology(store)));
    char run_id[PEER_RUN_ID_MAX + 1];
    (void)snprintf(run_id, sizeof(run_id), "%s", store_peer(store, 3300)->run_id);

    /* The slot is moving: a key that is not here any more is asked for over there, */
    (void)order(&servers[1], "CLUSTER SETSLOT 3300 IMPORTING %s", node_ids[0]);
    (void)order(&servers[0], "CLUSTER SETSLOT 3300 MIGRATING %s", node_ids[1]);
    expect_run("b", "INCR {b}new", "1");
    expect_run("b", "INCR b", "2");
    assert_int_equal(topology_find(store_topology(store), 3300)->address.port, servers[0].port);
    (void)order(&servers[0], "MIGRATE 127.0.0.1 %d b 0 5000", servers[1].port);
    expect_run("b", "INCR b", "3");

    /* and it has moved: whoever asks the first is sent on. */
    (void)order(&servers[1], "CLUSTER SETSLOT 3300 NODE %s", node_ids[1]);
    (void)order(&servers[0], "CLUSTER SETSLOT 3300 NODE %s", node_ids[1]);
    expect_run("b", "INCR b", "4");
    assert_int_equal(topology_find(store_topology(store), 3300)->address.port, servers[1].port);
    assert_string_not_equal(store_peer(store, 3300)->run_id, run_id);
    while (!topology_is_whole(store_topology(store)))
        turn();
    assert_true(store_is_running(store, run_id)); /* it moved, and nobody died */
    store_close();
}

static void a_replica_that_takes_over_is_found_and_orders_wait_for_it(void **state)
{
    (void)state;
    char text[64];
    for (size_t i = 0; i < 2; i++)
        redis_process_start(&servers[i], NULL);
    (void)order(&servers[1], "REPLICAOF 127.0.0.1 %d", servers[0].port);
    (void)snprintf(text, sizeof(text), "redis://127.0.0.1:%u,127.0.0.1:%u", servers[1].port, servers[0].port);
    store_open(text);
    expect_run("a", "INCR a", "1");
    char run_id[PEER_RUN_ID_MAX + 1];
    (void)snprintf(run_id, sizeof(run_id), "%s", store_peer(store, 0)->run_id);

    /* Nobody told us: the first is a replica now, and says so. */
    (void)order(&servers[1], "REPLICAOF NO ONE");
    (void)order(&servers[1], "FLUSHALL");
    (void)order(&servers[0], "REPLICAOF 127.0.0.1 %d", servers[1].port);
    expect_run("a", "INCR a", "1");
    assert_int_equal(topology_find(store_topology(store), 0)->address.port, servers[1].port);
    assert_false(store_is_running(store, run_id));

    /* And back, with a death. */
    redis_process_kill(&servers[1]);
    while (store_peer(store, 0) != NULL)
        turn();
    struct ask ask = ask_of("a", "SET b 7");
    ask.order.deadline_ms = owner_clock_ms() + 3000; /* sooner than anybody would look without a doubt */
    store_send(store, &ask.order, owner_clock_ms());
    turn();
    assert_int_equal(ask.ended, 0);
    (void)order(&servers[0], "REPLICAOF NO ONE");
    answer_wait(&ask);
    expect_answer(&ask, "OK");
    ask_free(&ask);
    store_close();
}

static void sentinels_are_asked_with_a_login_of_their_own(void **state)
{
    (void)state;
    char text[192], path[64];
    static const char *const locked[] = {"--requirepass", "inner", NULL};
    redis_process_start(&servers[0], locked);
    (void)snprintf(path, sizeof(path), "%s/sentinel.conf", servers[0].folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(
        fprintf(file,
                "sentinel monitor shop 127.0.0.1 %u 1\nsentinel auth-pass shop inner\nrequirepass outer\n",
                servers[0].port) > 0);
    assert_int_equal(fclose(file), 0);
    const char *const sentinel[] = {path, "--sentinel", NULL};
    redis_process_start(&servers[1], sentinel);
    /* The first of them is nobody. */
    (void)snprintf(text, sizeof(text),
                   "redis+sentinel://:inner@127.0.0.1:1,127.0.0.1:%u/shop/3?sentinel_password_env=outer",
                   servers[1].port);
    store_open(text);
    expect_run("a", "INCR a", "1");
    assert_int_equal(topology_find(store_topology(store), 0)->address.port, servers[0].port);
    store_close();
}

static void nobody_there_is_told_by_the_deadline(void **state)
{
    (void)state;
    redis_process_start(&servers[0], NULL);
    store_open_at(&servers[0]);
    redis_process_kill(&servers[0]);
    struct ask ask = ask_of("a", "INCR a");
    uint64_t start_ms = owner_clock_ms();
    ask.order.deadline_ms = start_ms + 300;
    run(&ask);
    assert_int_equal(ask.outcome, LINK_UNSENT);
    assert_true(owner_clock_ms() >= start_ms + 300 && owner_clock_ms() < start_ms + 2000);
    assert_non_null(topology_trouble(store_topology(store)));
    ask_free(&ask);
    store_close();
}

static void no_more_orders_wait_than_may(void **state)
{
    (void)state;
    store_open("redis://127.0.0.1:1");
    struct ask asks[33];
    for (int i = 0; i < 33; i++) {
        asks[i] = ask_of("a", "INCR a");
        store_send(store, &asks[i].order, owner_clock_ms());
        assert_int_equal(asks[i].ended, i == 32);
    }
    assert_int_equal(asks[32].outcome, LINK_UNSENT);
    store_close();
    for (int i = 0; i < 33; i++) {
        assert_int_equal(asks[i].ended, 1);
        assert_int_equal(asks[i].outcome, LINK_UNSENT);
        ask_free(&asks[i]);
    }
}

static void an_order_that_the_end_overtakes_ends(void **state)
{
    (void)state;
    struct ask asks[2] = {ask_of("a", "INCR a"), ask_of("a", "INCR a")};
    redis_process_start(&servers[0], NULL);
    store_open_at(&servers[0]);
    while (topology_version(store_topology(store)) == 0)
        turn();
    asks[0].order.lane = STORE_LANE_CONFIRMED; /* on a line that nobody has dialed yet */
    for (int i = 0; i < 2; i++)
        store_send(store, &asks[i].order, owner_clock_ms());
    store_close();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(asks[i].ended, 1);
        ask_free(&asks[i]);
    }
}

static void a_password_opens_the_door_for_every_line(void **state)
{
    (void)state;
    char text[96];
    static const char *const locked[] = {"--requirepass", "pass word", NULL};
    redis_process_start(&servers[0], locked);
    (void)snprintf(text, sizeof(text), "redis://:pass%%20word@127.0.0.1:%u/2", servers[0].port);
    store_open(text);
    expect_run("a", "INCR a", "1");
    store_close();
    (void)snprintf(text, sizeof(text), "redis://:other@127.0.0.1:%u/2", servers[0].port);
    store_open(text);
    struct ask ask = ask_of("a", "INCR a");
    ask.order.deadline_ms = owner_clock_ms() + 200;
    run(&ask);
    assert_int_equal(ask.outcome, LINK_UNSENT);
    assert_non_null(strstr(topology_trouble(store_topology(store)), "user and password"));
    ask_free(&ask);
    store_close();
}

/* ---- servers that the test plays, on a clock of its own ---- */

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define WELCOME(run_id) \
    "+OK\r\n$0\r\n\r\n$67\r\nredis_mode:cluster\r\nrun_id:" run_id "\r\n$11\r\nrole:master\r\n"

/* Says the same to every order; of a cluster in which 10.0.0.1 keeps everything, unless `stage_map` says otherwise. */
struct actor {
    const char *host, *says; /* "": nothing; NULL: it hangs up */
    bool is_away;
    int orders, looks;
    char heard[128]; /* of the last one, its beginning */
};

#define RANGE(first, last, host) "*3\r\n:" first "\r\n:" last "\r\n*2\r\n$8\r\n" host "\r\n:6379\r\n"

static struct actor actors[2];
static const char *stage_map;
static uint64_t stage_ms;

static struct actor *actor_at(const struct store_line *line)
{
    return &actors[strcmp(line->address.host, "10.0.0.2") == 0];
}

static const char *actor_reply(struct actor *actor, struct span out)
{
    if (memmem(out.data, out.len, "replication", 11) != NULL)
        return actor == actors ? WELCOME(RUN_A) : WELCOME(RUN_B);
    if (memmem(out.data, out.len, "SLOTS", 5) != NULL && ++actor->looks)
        return stage_map;
    actor->orders++;
    (void)snprintf(actor->heard, sizeof(actor->heard), "%.*s", (int)out.len, out.data);
    return actor->says;
}

static void line_play(struct store_line *line)
{
    enum link_wish wish = store_wish(line, stage_ms);
    if (wish == LINK_DIAL) {
        link_dialing(line->link, stage_ms);
        if (actor_at(line)->is_away)
            link_closed(line->link, "Nobody there.", stage_ms);
        else
            link_connected(line->link, stage_ms);
    } else if (wish == LINK_HANG_UP)
        link_closed(line->link, "unused", stage_ms);
    struct span out = link_output(line->link);
    if (out.len == 0)
        return;
    const char *reply = actor_reply(actor_at(line), out);
    link_sent(line->link, out.len);
    if (reply == NULL)
        link_closed(line->link, "It hung up.", stage_ms);
    else
        link_received(line->link, span_of(reply), stage_ms);
}

/* Until nothing is left to do at this moment. */
static void stage_settle(void)
{
    for (int i = 0; i < 20; i++) {
        store_turn(store, stage_ms);
        for (size_t n = 0; n < store_lines(store); n++)
            line_play(store_line(store, n));
    }
}

static void stage_pass(uint64_t ms)
{
    for (uint64_t end_ms = stage_ms + ms; stage_ms < end_ms; stage_ms++)
        stage_settle();
}

static void stage_open(const char *first, const char *second)
{
    actors[0] = (struct actor){.host = "10.0.0.1", .says = first};
    actors[1] = (struct actor){.host = "10.0.0.2", .says = second};
    stage_map = "*1\r\n" RANGE("0", "16383", "10.0.0.1");
    stage_ms = 1000;
    assert_null(store_url_read(SPAN("redis://10.0.0.1"), &url));
    store = store_new(&options, 5, stage_ms);
    stage_settle();
    assert_int_equal(topology_version(store_topology(store)), 1);
}

static struct ask stage_ask(uint64_t deadline_ms)
{
    struct ask ask = ask_of("a", "INCR a");
    ask.order.deadline_ms = deadline_ms;
    return ask;
}

static void stage_close(struct ask *ask)
{
    for (size_t i = 0; i < store_lines(store); i++)
        if (link_is_open(store_line(store, i)->link))
            link_closed(store_line(store, i)->link, "The test is over.", stage_ms);
    store_free(store);
    assert_int_equal(ask->ended, 1);
    ask_free(ask);
}

/* Only who may not be the right one is a reason to look for another, and only a replica one to dial anew. */
static void a_server_that_cannot_yet_is_tried_again_after_a_while(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        bool is_doubted, is_left;
    } rows[] = {
        {"-LOADING not yet\r\n", false, false},  {"-TRYAGAIN later\r\n", false, false},
        {"-BUSY a script\r\n", false, false},    {"-CLUSTERDOWN no\r\n", true, false},
        {"-READONLY a replica\r\n", true, true}, {"-MASTERDOWN no\r\n", true, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stage_open(rows[i].says, "");
        struct ask ask = stage_ask(5000);
        store_send(store, &ask.order, stage_ms);
        stage_settle();
        assert_int_equal(actors[0].orders, 1);
        stage_pass(2000);
        assert_int_equal(ask.ended, 0);
        assert_true(actors[0].orders > 3 && actors[0].orders < 30);
        assert_int_equal(actors[0].looks > 1, rows[i].is_doubted);
        assert_int_equal(link_counts(store_line(store, 0)->link).losses > 0, rows[i].is_left);
        assert_int_equal(store_line(store, 0)->lane, STORE_LANE_MAIN);
        actors[0].says = ":7\r\n";
        stage_pass(2000);
        expect_answer(&ask, "7");
        stage_close(&ask);
    }
}

static void a_refusal_lasts_until_the_deadline_and_did_nothing(void **state)
{
    (void)state;
    stage_open("-LOADING not yet\r\n", "");
    struct ask ask = stage_ask(1500);
    store_send(store, &ask.order, stage_ms);
    stage_pass(499);
    assert_int_equal(ask.ended, 0);
    stage_pass(2);
    assert_int_equal(ask.ended, 1);
    assert_int_equal(ask.outcome, LINK_UNSENT);
    stage_close(&ask);
}

/* It may have happened: only whoever gave the order knows whether it may be given again. */
static void what_may_have_happened_is_not_sent_twice(void **state)
{
    (void)state;
    stage_open(NULL, "");
    struct ask ask = stage_ask(9000);
    store_send(store, &ask.order, stage_ms);
    stage_pass(1000);
    assert_int_equal(ask.outcome, LINK_UNKNOWN);
    assert_int_equal(actors[0].orders, 1);
    stage_close(&ask);

    stage_open("", "");
    ask = stage_ask(1100);
    store_send(store, &ask.order, stage_ms);
    stage_pass(1000);
    assert_int_equal(ask.outcome, LINK_UNKNOWN);
    assert_int_equal(actors[0].orders, 1);
    stage_close(&ask);
}

static void what_an_operator_must_do_is_told_at_once(void **state)
{
    (void)state;
    stage_open("-OOM no memory\r\n", "");
    struct ask ask = stage_ask(9000);
    store_send(store, &ask.order, stage_ms);
    stage_settle();
    expect_answer(&ask, "OOM no memory");
    assert_int_equal(actors[0].orders, 1);
    stage_close(&ask);
}

static void two_servers_that_name_each_other_are_not_asked_without_end(void **state)
{
    (void)state;
    stage_open("-MOVED 15495 10.0.0.2:6379\r\n", "-MOVED 15495 10.0.0.1:6379\r\n");
    struct ask ask = stage_ask(60000);
    store_send(store, &ask.order, stage_ms);
    stage_settle();
    assert_true(actors[0].orders + actors[1].orders <= 4);
    stage_pass(20000);
    assert_int_equal(ask.outcome, LINK_ANSWERED);
    assert_non_null(strstr(ask.text, "MOVED"));
    assert_true(actors[0].orders + actors[1].orders <= 64);
    stage_close(&ask);
}

static void who_is_asked_once_is_told_so(void **state)
{
    (void)state;
    stage_open("-ASK 15495 10.0.0.2:6379\r\n", "+OK\r\n:9\r\n");
    struct ask ask = stage_ask(9000);
    store_send(store, &ask.order, stage_ms);
    stage_pass(50); /* a new line is dialed first */
    expect_answer(&ask, "9");
    assert_non_null(strstr(actors[1].heard, "ASKING\r\n*2\r\n$4\r\nINCR"));
    assert_int_equal(topology_version(store_topology(store)), 1);
    stage_close(&ask);
}

static void who_is_named_and_not_there_is_not_waited_for(void **state)
{
    (void)state;
    static const char *const says[] = {"-ASK 15495 10.0.0.2:6379\r\n", "-MOVED 15495 10.0.0.2:6379\r\n"};
    for (size_t i = 0; i < 2; i++) {
        stage_open(says[i], "");
        actors[1].is_away = true;
        struct ask ask = stage_ask(20000);
        store_send(store, &ask.order, stage_ms);
        stage_pass(500);
        actors[0].says = ":1\r\n"; /* it did not move after all */
        stage_pass(10000); /* doubts that come one after another are looked after less and less often */
        expect_answer(&ask, "1");
        stage_close(&ask);
    }
}

static void nobody_overtakes_an_order_of_the_same_slot_that_waits(void **state)
{
    (void)state;
    stage_open("-LOADING not yet\r\n", "");
    struct ask first = stage_ask(9000), second = ask_of("a", "DECR a"), other = ask_of("b", "GET b");
    second.order.deadline_ms = other.order.deadline_ms = 9000;
    store_send(store, &first.order, stage_ms);
    stage_settle();
    store_turn(store, stage_ms);
    actors[0].says = ":1\r\n";
    store_send(store, &second.order, stage_ms);
    store_send(store, &other.order, stage_ms);
    assert_true(store_due_ms(store) > stage_ms); /* to wait is not to turn in circles */
    stage_settle();
    expect_answer(&other, "1"); /* of another slot */
    assert_int_equal(first.ended + second.ended, 0);
    actors[0].says = ":1\r\n:2\r\n";
    stage_pass(50);
    expect_answer(&first, "1");
    expect_answer(&second, "2");
    assert_true(strstr(actors[0].heard, "INCR") < strstr(actors[0].heard, "DECR"));
    ask_free(&second);
    ask_free(&other);
    stage_close(&first);
}

/* Two in flight, and one that is given when the first has been refused and the second not yet. */
static void who_is_refused_late_waits_where_it_stood(void **state)
{
    (void)state;
    stage_open("", "");
    struct ask first = stage_ask(9000), second = ask_of("a", "DECR a"), third = ask_of("a", "GET a");
    second.order.deadline_ms = third.order.deadline_ms = 9000;
    store_send(store, &first.order, stage_ms);
    store_send(store, &second.order, stage_ms);
    stage_settle();
    struct link *link = store_line(store, 0)->link;
    assert_int_equal(link_in_flight(link), 2);
    link_received(link, SPAN("-LOADING not yet\r\n"), stage_ms);
    store_send(store, &third.order, stage_ms);
    link_received(link, SPAN("-LOADING not yet\r\n"), stage_ms);
    actors[0].says = ":1\r\n:2\r\n:3\r\n";
    stage_pass(50);
    expect_answer(&first, "1");
    expect_answer(&second, "2");
    expect_answer(&third, "3");
    assert_true(strstr(actors[0].heard, "DECR") < strstr(actors[0].heard, "GET"));
    ask_free(&second);
    ask_free(&third);
    stage_close(&first);
}

static struct ask *successors; /* two */

static void expired_done(struct store_order *order, enum link_outcome outcome, const redisReply *reply)
{
    ask_done(order, outcome, reply);
    for (int i = 0; i < 2; i++)
        store_send(store, &successors[i].order, stage_ms);
}

static void who_is_given_when_another_ends_stands_behind_all_that_wait(void **state)
{
    (void)state;
    stage_open("-LOADING not yet\r\n", "");
    struct ask first = stage_ask(1500), second = ask_of("a", "DECR a");
    struct ask given[2] = {ask_of("a", "GET a"), ask_of("a", "GET b")};
    second.order.deadline_ms = given[0].order.deadline_ms = given[1].order.deadline_ms = 9000;
    first.order.done = expired_done;
    successors = given;
    store_send(store, &first.order, stage_ms);
    stage_settle();
    store_turn(store, stage_ms);
    store_send(store, &second.order, stage_ms);
    actors[0].says = "-LOADING not yet\r\n-LOADING not yet\r\n"; /* they are sent together from now on */
    stage_pass(500);
    assert_int_equal(first.ended + second.ended, 0);
    actors[0].says = ":1\r\n:2\r\n:3\r\n";
    stage_pass(300);
    assert_int_equal(first.outcome, LINK_UNSENT);
    expect_answer(&second, "1");
    expect_answer(&given[0], "2");
    expect_answer(&given[1], "3");
    ask_free(&second);
    ask_free(&given[0]);
    ask_free(&given[1]);
    stage_close(&first);
}

static bool ask_write(struct store_order *order, const char *run_id)
{
    struct ask *ask = (struct ask *)order;
    (void)snprintf(ask->written_for, sizeof(ask->written_for), "%s", run_id);
    redisFreeCommand(ask->bytes);
    int len = redisFormatCommand(&ask->bytes, "INCR %s", run_id);
    order->bytes = (struct span){ask->bytes, (size_t)len};
    return true;
}

static bool ask_cannot_write(struct store_order *order, const char *run_id)
{
    (void)order;
    (void)run_id;
    return false;
}

static void an_order_is_written_for_the_process_that_gets_it(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *written_for;
        int orders[2];
    } rows[] = {
        {":1\r\n", "", RUN_A, {1, 0}},
        {"-MOVED 15495 10.0.0.2:6379\r\n", ":1\r\n", RUN_B, {1, 1}},
        {"-ASK 15495 10.0.0.2:6379\r\n", "+OK\r\n:1\r\n", RUN_A, {1, 1}}, /* it is still the first one's */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stage_open(rows[i].first, rows[i].second);
        struct ask ask = stage_ask(9000);
        ask.order.write = ask_write;
        store_send(store, &ask.order, stage_ms);
        stage_pass(50);
        expect_answer(&ask, "1");
        assert_string_equal(ask.written_for, rows[i].written_for);
        for (int n = 0; n < 2; n++)
            assert_int_equal(actors[n].orders, rows[i].orders[n]);
        assert_non_null(strstr(actors[rows[i].orders[1]].heard, rows[i].written_for));
        stage_close(&ask);
    }
}

/*
 * The first has become a replica, and answers still: by a map of which only one slot was moved it would look like a primary that
 * lost nothing.
 */
static void who_was_a_primary_is_judged_by_a_whole_map(void **state)
{
    (void)state;
    stage_open("-MOVED 15495 10.0.0.2:6379\r\n", ":1\r\n");
    assert_true(store_is_running(store, RUN_A));
    struct ask plain = stage_ask(9000), judge = stage_ask(9000);
    judge.order.write = ask_write;
    judge.order.needs_map = true;
    stage_map = ""; /* nobody says now who keeps what */
    store_send(store, &plain.order, stage_ms);
    stage_pass(50);
    expect_answer(&plain, "1");
    assert_false(store_is_running(store, RUN_A));
    store_send(store, &judge.order, stage_ms);
    stage_pass(50);
    assert_string_equal(judge.written_for, "");
    stage_map = "*1\r\n" RANGE("0", "16383", "10.0.0.2");
    stage_pass(4000);
    expect_answer(&judge, "1");
    assert_string_equal(judge.written_for, RUN_B);
    assert_false(store_is_running(store, RUN_A));
    ask_free(&judge);
    stage_close(&plain);
}

/* A slot that was given away by who keeps the others still. The map that was told is the one that was guessed. */
static void who_gave_a_slot_away_is_known_to_live_as_soon_as_somebody_says_so(void **state)
{
    (void)state;
    stage_open("-MOVED 15495 10.0.0.2:6379\r\n", ":1\r\n");
    stage_map = "*3\r\n" RANGE("0", "15494", "10.0.0.1") RANGE("15495", "15495", "10.0.0.2")
        RANGE("15496", "16383", "10.0.0.1");
    struct ask plain = stage_ask(9000), judge = stage_ask(9000);
    judge.order.write = ask_write;
    judge.order.needs_map = true;
    store_send(store, &plain.order, stage_ms);
    store_turn(store, stage_ms);
    for (size_t n = 0; n < store_lines(store); n++)
        line_play(store_line(store, n));
    store_turn(store, stage_ms);
    assert_false(store_is_running(store, RUN_A));
    store_send(store, &judge.order, stage_ms);
    stage_pass(50);
    expect_answer(&plain, "1");
    expect_answer(&judge, "1");
    assert_true(store_is_running(store, RUN_A));
    ask_free(&judge);
    stage_close(&plain);
}

static void who_has_been_away_for_long_is_not_waited_for(void **state)
{
    (void)state;
    static const bool is_first[] = {false, true}; /* nobody has ever been reached */
    for (size_t i = 0; i < 2; i++) {
        stage_open(":1\r\n", "");
        if (is_first[i]) {
            struct ask none = {.ended = 1};
            stage_close(&none);
            store = store_new(&options, 5, stage_ms);
        } else
            link_closed(store_line(store, 0)->link, "It hung up.", stage_ms);
        actors[0].is_away = true;
        struct ask asks[4];
        for (size_t n = 0; n < 4; n++)
            asks[n] = stage_ask(stage_ms + 9000);
        stage_pass(2500);
        store_send(store, &asks[0].order, stage_ms);
        stage_pass(600);
        store_send(store, &asks[1].order, stage_ms);
        assert_int_equal(asks[0].ended, 0); /* whoever came in time has theirs */
        assert_int_equal(asks[1].outcome, LINK_UNSENT);
        assert_int_equal(asks[1].ended, 1);
        actors[0].is_away = false;
        stage_pass(4000);
        expect_answer(&asks[0], "1");
        store_send(store, &asks[2].order, stage_ms);
        stage_settle();
        expect_answer(&asks[2], "1");
        link_closed(store_line(store, 0)->link, "It hung up.", stage_ms);
        store_send(store, &asks[3].order, stage_ms); /* a short loss */
        stage_pass(1000);
        expect_answer(&asks[3], "1");
        for (size_t n = 1; n < 4; n++)
            ask_free(&asks[n]);
        stage_close(&asks[0]);
    }
}

static void an_order_that_cannot_be_written_did_nothing(void **state)
{
    (void)state;
    stage_open(":1\r\n", "");
    struct ask ask = stage_ask(9000);
    ask.order.write = ask_cannot_write;
    store_send(store, &ask.order, stage_ms);
    assert_int_equal(ask.outcome, LINK_UNSENT);
    assert_int_equal(actors[0].orders, 0);
    stage_close(&ask);
}

/* Two that were given while the line was being dialed: nothing is tried before it is ready, and then both at once. */
static void orders_wait_for_a_line_without_turning_in_circles(void **state)
{
    (void)state;
    stage_open(":1\r\n:2\r\n", "");
    struct ask first = stage_ask(9000), second = stage_ask(9000);
    first.order.lane = second.order.lane = STORE_LANE_CONFIRMED;
    first.order.write = second.order.write = ask_write;
    store_send(store, &first.order, stage_ms);
    store_send(store, &second.order, stage_ms);
    struct store_line *line = store_line(store, store_lines(store) - 1);
    assert_int_equal(line->lane, STORE_LANE_CONFIRMED);
    link_dialing(line->link, stage_ms);
    store_turn(store, stage_ms);
    assert_true(store_due_ms(store) > stage_ms + 1000);
    assert_string_equal(first.written_for, "");
    link_connected(line->link, stage_ms);
    stage_settle();
    expect_answer(&first, "1");
    expect_answer(&second, "2");
    assert_int_equal(actors[0].orders, 1); /* one write */
    ask_free(&second);
    stage_close(&first);
}

/* Its line has been ready all the time, so there is nothing else that would say: now. */
static void an_order_that_waits_goes_to_who_takes_its_slot_over(void **state)
{
    (void)state;
    stage_open("", ":2\r\n");
    stage_map = "*2\r\n" RANGE("0", "8191", "10.0.0.2") RANGE("8192", "16383", "10.0.0.1");
    stage_pass(TOPOLOGY_REFRESH_MS);
    assert_int_equal(store_lines(store), 2);
    actors[0].is_away = true;
    link_closed(store_line(store, 0)->link, "It hung up.", stage_ms);
    struct ask ask = stage_ask(stage_ms + 60000);
    store_send(store, &ask.order, stage_ms);
    stage_pass(5000);
    assert_int_equal(ask.ended, 0);
    stage_map = "*1\r\n" RANGE("0", "16383", "10.0.0.2");
    stage_pass(TOPOLOGY_REFRESH_MS);
    expect_answer(&ask, "2");
    stage_close(&ask);
}

static void the_same_primaries_in_another_order_are_told_apart(void **state)
{
    (void)state;
    stage_open(":1\r\n", ":2\r\n");
    struct ask first = stage_ask(stage_ms + 60000), second = ask_of("b", "INCR b"); /* slot 3300 */
    second.order.deadline_ms = first.order.deadline_ms;
    store_send(store, &first.order, stage_ms);
    stage_settle();
    expect_answer(&first, "1");
    stage_map = "*2\r\n" RANGE("0", "8191", "10.0.0.2") RANGE("8192", "16383", "10.0.0.1");
    stage_pass(TOPOLOGY_REFRESH_MS);
    store_send(store, &second.order, stage_ms);
    stage_settle();
    expect_answer(&second, "2");
    ask_free(&second);
    stage_close(&first);
}

/* It lives, behind a partition perhaps, and another one was made the primary without what it did last. */
static void who_was_replaced_counts_as_gone_though_it_lives(void **state)
{
    (void)state;
    stage_open("", "");
    struct ask ask = stage_ask(stage_ms + 4000);
    assert_true(store_is_running(store, RUN_A));
    assert_false(store_is_running(store, ""));
    store_send(store, &ask.order, stage_ms);
    stage_settle();
    stage_map = "*1\r\n" RANGE("0", "16383", "10.0.0.2");
    topology_doubt((struct topology *)(uintptr_t)store_topology(store), stage_ms, 0);
    stage_pass(1000);
    assert_int_equal(store_lines(store), 2); /* it still owes an answer */
    assert_int_equal(link_state(store_line(store, 0)->link), LINK_READY);
    assert_false(store_is_running(store, RUN_A));
    assert_true(store_is_running(store, RUN_B));
    stage_pass(4000);
    stage_close(&ask);
}

static void a_line_that_is_held_is_sent_nothing_and_stays(void **state)
{
    (void)state;
    stage_open(":1\r\n", "");
    struct ask first = stage_ask(9000), second = stage_ask(9000);
    first.order.lane = second.order.lane = STORE_LANE_CONFIRMED;
    store_send(store, &first.order, stage_ms);
    stage_settle();
    expect_answer(&first, "1");
    struct store_line *line = first.order.line;
    store_hold(line, &first);
    store_send(store, &second.order, stage_ms);
    stage_pass(100);
    assert_int_equal(actors[0].orders, 1);
    store_release(store, line);
    assert_int_equal(store_due_ms(store), 0);
    stage_settle();
    expect_answer(&second, "1");

    store_hold(line, &first);
    line->is_retired = true;
    stage_settle();
    assert_int_equal(store_lines(store), 2);
    store_release(store, line);
    stage_settle();
    assert_int_equal(store_lines(store), 1);
    ask_free(&second);
    stage_close(&first);
}

/* A short loss and a slow command are nobody's trouble. */
static void trouble_is_told_until_all_are_reached_and_when_one_stays_away(void **state)
{
    (void)state;
    stage_ms = 1000;
    actors[0] = (struct actor){.host = "10.0.0.1", .says = "", .is_away = true};
    assert_null(store_url_read(SPAN("redis://10.0.0.1"), &url));
    store = store_new(&options, 5, stage_ms);
    assert_string_equal(store_trouble(store), "Not every primary of the store has been reached yet.");
    stage_settle();
    assert_string_equal(store_trouble(store), "Nobody there.");
    actors[0].is_away = false;
    stage_pass(1000);
    assert_null(store_trouble(store));

    struct ask slow = stage_ask(stage_ms + 4500);
    store_send(store, &slow.order, stage_ms);
    stage_pass(4000);
    assert_null(store_trouble(store));
    actors[0].is_away = true;
    link_closed(store_line(store, 0)->link, "It hung up.", stage_ms);
    stage_pass(STORE_TROUBLE_MS - 1);
    assert_null(store_trouble(store));
    stage_pass(2);
    assert_string_equal(store_trouble(store), "Nobody there.");
    actors[0].is_away = false;
    stage_pass(6000); /* it rests longer each time */
    assert_null(store_trouble(store));
    stage_close(&slow);
}

static void counts_outlive_their_lines(void **state)
{
    (void)state;
    stage_open("-MOVED 15495 10.0.0.2:6379\r\n", ":3\r\n");
    struct ask ask = stage_ask(9000);
    store_send(store, &ask.order, stage_ms);
    stage_pass(50);
    stage_pass(20000);
    assert_int_equal(store_lines(store), 1);
    struct link_counts counts = store_counts(store);
    assert_true(counts.dials >= 4); /* two servers, and who asked them for the map */
    assert_int_equal(counts.sent, (uint64_t)actors[0].looks + 2);
    assert_int_equal(counts.answered, counts.sent);
    stage_close(&ask);
}

static void a_line_to_who_is_no_primary_any_more_is_let_go(void **state)
{
    (void)state;
    stage_open("-MOVED 15495 10.0.0.2:6379\r\n", ":3\r\n");
    struct ask ask = stage_ask(9000);
    store_send(store, &ask.order, stage_ms);
    stage_pass(50); /* a new line is dialed first */
    expect_answer(&ask, "3");
    stage_pass(20000); /* and the first says again that it keeps everything */
    assert_int_equal(store_lines(store), 1);
    assert_string_equal(store_line(store, 0)->address.host, "10.0.0.1");
    stage_close(&ask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(orders_given_before_anything_is_known_are_answered, servers_stop),
        cmocka_unit_test_teardown(each_lane_is_a_connection_of_its_own, servers_stop),
        cmocka_unit_test_teardown(a_slot_that_moves_is_followed_and_no_order_fails, servers_stop),
        cmocka_unit_test_teardown(a_replica_that_takes_over_is_found_and_orders_wait_for_it, servers_stop),
        cmocka_unit_test_teardown(sentinels_are_asked_with_a_login_of_their_own, servers_stop),
        cmocka_unit_test_teardown(nobody_there_is_told_by_the_deadline, servers_stop),
        cmocka_unit_test(no_more_orders_wait_than_may),
        cmocka_unit_test(a_server_that_cannot_yet_is_tried_again_after_a_while),
        cmocka_unit_test(a_refusal_lasts_until_the_deadline_and_did_nothing),
        cmocka_unit_test(what_may_have_happened_is_not_sent_twice),
        cmocka_unit_test(what_an_operator_must_do_is_told_at_once),
        cmocka_unit_test(two_servers_that_name_each_other_are_not_asked_without_end),
        cmocka_unit_test(who_is_asked_once_is_told_so),
        cmocka_unit_test(who_is_named_and_not_there_is_not_waited_for),
        cmocka_unit_test(nobody_overtakes_an_order_of_the_same_slot_that_waits),
        cmocka_unit_test(who_is_refused_late_waits_where_it_stood),
        cmocka_unit_test(who_is_given_when_another_ends_stands_behind_all_that_wait),
        cmocka_unit_test(an_order_is_written_for_the_process_that_gets_it),
        cmocka_unit_test(who_was_a_primary_is_judged_by_a_whole_map),
        cmocka_unit_test(who_gave_a_slot_away_is_known_to_live_as_soon_as_somebody_says_so),
        cmocka_unit_test(who_has_been_away_for_long_is_not_waited_for),
        cmocka_unit_test(an_order_that_cannot_be_written_did_nothing),
        cmocka_unit_test(orders_wait_for_a_line_without_turning_in_circles),
        cmocka_unit_test(an_order_that_waits_goes_to_who_takes_its_slot_over),
        cmocka_unit_test(the_same_primaries_in_another_order_are_told_apart),
        cmocka_unit_test(who_was_replaced_counts_as_gone_though_it_lives),
        cmocka_unit_test(a_line_that_is_held_is_sent_nothing_and_stays),
        cmocka_unit_test(trouble_is_told_until_all_are_reached_and_when_one_stays_away),
        cmocka_unit_test(counts_outlive_their_lines),
        cmocka_unit_test(a_line_to_who_is_no_primary_any_more_is_let_go),
        cmocka_unit_test_teardown(an_order_that_the_end_overtakes_ends, servers_stop),
        cmocka_unit_test_teardown(a_password_opens_the_door_for_every_line, servers_stop),
    };

    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
