/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on their way and back, and what replicas have to say about it: with a real primary and its replica, and with servers
 * that the test plays word by word.
 */
#define _GNU_SOURCE
#include "redis/courier.h"

#include "redis_process.h"
#include "rig.h"
#include "store_owner.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOT    3300 /* of the key b */
#define TIMEOUT 1000

static struct store_url url;
static struct store *store;
static struct transport *courier;

static const struct store_options options = {
    .url = &url,
    .name = "weir",
    .dial_ms = 2000,
    .silence_ms = 5000,
    .in_flight_max = 4,
    .out_bytes_max = 4096,
    .waiting_max = 8,
};

/* ---- commands that remember how they ended ---- */

struct ask {
    struct redis_command command; /* first */
    const char *word;             /* %s in it becomes the run id */
    struct ask *next;             /* is submitted when this one ends */
    int ended, writes;
    bool is_unwritable;
    enum command_end end;
    char text[64];
};

static char *ask_write(struct redis_command *command, const char *run_id, size_t *len)
{
    struct ask *ask = (struct ask *)command;
    char *bytes;
    ask->writes++;
    if (ask->is_unwritable)
        return NULL;
    *len = (size_t)redisFormatCommand(&bytes, ask->word, run_id);
    return bytes;
}

static void ask_done(struct redis_command *command, enum command_end end, const struct redisReply *reply)
{
    struct ask *ask = (struct ask *)command;
    ask->ended++;
    ask->end = end;
    assert_int_equal(reply != NULL, end == COMMAND_ANSWERED);
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        (void)snprintf(ask->text, sizeof(ask->text), "%lld", reply->integer);
    else if (reply != NULL && reply->str != NULL)
        (void)snprintf(ask->text, sizeof(ask->text), "%s", reply->str);
    if (ask->next != NULL)
        courier->submit(courier, &ask->next->command);
}

static struct ask ask_of(const char *word, bool is_confirmed)
{
    return (struct ask){
        .command = {.slot = SLOT, .is_confirmed = is_confirmed, .write = ask_write, .done = ask_done},
        .word = word};
}

static void submit(struct ask *ask)
{
    courier->submit(courier, &ask->command);
}

static void expect_end(const struct ask *ask, enum command_end end, const char *text)
{
    assert_int_equal(ask->ended, 1);
    assert_int_equal(ask->end, end);
    assert_string_equal(ask->text, text);
}

/* ---- servers that the test plays, on a clock of its own ---- */

#define RUN_A   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B   "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ALL     "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$8\r\n10.0.0.1\r\n:6379\r\n"
#define WAIT(n) "*3\r\n$4\r\nWAIT\r\n$1\r\n" n "\r\n$3\r\n875\r\n"
#define GET(c)  "*2\r\n$3\r\nGET\r\n$1\r\n" c "\r\n"
#define ONE     "10.0.0.1"
#define TWO     "10.0.0.2"

static uint64_t stage_ms;
static char heard[512]; /* of commands, since the last look: lane and what it was told in one write, each */
static bool is_door_closed;

static uint64_t stage_now(void)
{
    return stage_ms;
}

static void line_play(struct store_line *line)
{
    enum link_wish wish = store_wish(line, stage_ms);
    if (wish == LINK_DIAL && !is_door_closed) {
        link_dialing(line->link, stage_ms);
        link_connected(line->link, stage_ms);
    } else if (wish == LINK_HANG_UP)
        link_closed(line->link, "unused", stage_ms);
    bool is_ready = link_state(line->link) == LINK_READY;
    struct span out = link_output(line->link);
    if (out.len == 0)
        return;
    if (is_ready && line->lane != STORE_LANE_SCOUT)
        (void)snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s:%.*s",
                       line->lane == STORE_LANE_MAIN ? "main" : "confirmed", (int)out.len, out.data);
    link_sent(line->link, out.len);
    if (!is_ready)
        link_received(line->link,
                      strcmp(line->address.host, ONE) == 0
                          ? SPAN("+OK\r\n$0\r\n\r\n$67\r\nredis_mode:cluster\r\nrun_id:" RUN_A
                                 "\r\n$11\r\nrole:master\r\n")
                          : SPAN("+OK\r\n$0\r\n\r\n$67\r\nredis_mode:cluster\r\nrun_id:" RUN_B
                                 "\r\n$11\r\nrole:master\r\n"),
                      stage_ms);
    else if (line->lane == STORE_LANE_SCOUT)
        link_received(line->link, SPAN(ALL), stage_ms);
}

/* Until nothing is left to do at this moment. */
static void stage_settle(void)
{
    for (int i = 0; i < 10; i++) {
        store_turn(store, stage_ms);
        courier_turn(courier);
        for (size_t n = 0; n < store_lines(store); n++)
            line_play(store_line(store, n));
    }
}

static void stage_pass(uint64_t ms)
{
    for (uint64_t end_ms = stage_ms + ms; stage_ms < end_ms; stage_ms++)
        stage_settle();
}

static void stage_open(uint32_t replicas)
{
    stage_ms = 1000;
    heard[0] = '\0';
    is_door_closed = false;
    assert_null(store_url_read(SPAN("redis://" ONE), &url));
    store = store_new(&options, 5, stage_ms);
    courier = courier_new(&(struct courier_options){store, stage_now, TIMEOUT, replicas});
    assert_non_null(courier);
}

static void stage_close(void)
{
    for (size_t i = 0; i < store_lines(store); i++)
        if (link_is_open(store_line(store, i)->link))
            link_closed(store_line(store, i)->link, "The test is over.", stage_ms);
    courier_free(courier);
    store_free(store);
}

static struct store_line *line_to(const char *host, enum store_lane lane)
{
    for (size_t i = 0; i < store_lines(store); i++)
        if (store_line(store, i)->lane == lane && strcmp(store_line(store, i)->address.host, host) == 0)
            return store_line(store, i);
    fail_msg("there is no line to %s", host);
    return NULL;
}

static void say(const char *host, enum store_lane lane, const char *text)
{
    link_received(line_to(host, lane)->link, span_of(text), stage_ms);
}

static void expect_heard(const char *text)
{
    stage_settle();
    assert_string_equal(heard, text);
    heard[0] = '\0';
}

/* ---- tests ---- */

static void commands_wait_until_it_is_known_who_runs_them(void **state)
{
    (void)state;
    stage_open(0);
    struct ask first = ask_of("GET %s", false), second = ask_of("GET 2", false);
    submit(&first);
    submit(&second);
    assert_int_equal(first.writes, 0);
    assert_int_equal(courier_under_way(courier), 2);
    expect_heard("main:*2\r\n$3\r\nGET\r\n$40\r\n" RUN_A "\r\n" GET("2"));
    say(ONE, STORE_LANE_MAIN, ":1\r\n$1\r\nx\r\n");
    expect_end(&first, COMMAND_ANSWERED, "1");
    expect_end(&second, COMMAND_ANSWERED, "x");
    assert_int_equal(courier_under_way(courier), 0);
    assert_true(courier->is_running(courier, RUN_A));
    assert_false(courier->is_running(courier, RUN_B));
    stage_close();
}

/* The process that is to run it died and another one keeps the slot. */
static void a_command_that_was_not_sent_is_written_anew(void **state)
{
    (void)state;
    stage_open(0);
    stage_settle();
    struct ask first = ask_of("GET %s", false), second = ask_of("GET 2", false);
    submit(&first);
    submit(&second); /* on the link, and not a byte of it written */
    assert_int_equal(first.writes + second.writes, 2);
    link_closed(line_to(ONE, STORE_LANE_MAIN)->link, "It hung up.", stage_ms);
    assert_false(courier->is_running(courier, RUN_A));
    stage_pass(500);
    expect_heard("main:*2\r\n$3\r\nGET\r\n$40\r\n" RUN_A "\r\n" GET("2"));
    assert_int_equal(first.writes + second.writes, 4);
    say(ONE, STORE_LANE_MAIN, "-MOVED 3300 " TWO ":6379\r\n:2\r\n");
    expect_heard("main:*2\r\n$3\r\nGET\r\n$40\r\n" RUN_B "\r\n");
    link_closed(line_to(TWO, STORE_LANE_MAIN)->link, "It hung up.", stage_ms);
    expect_end(&first, COMMAND_UNKNOWN, "");
    expect_end(&second, COMMAND_ANSWERED, "2");
    stage_close();
}

static void nobody_there_is_unsent_and_told_by_the_deadline(void **state)
{
    (void)state;
    stage_open(1);
    is_door_closed = true;
    struct ask plain = ask_of("GET 1", false), confirmed = ask_of("GET 2", true);
    submit(&plain);
    submit(&confirmed);
    stage_pass(TIMEOUT);
    assert_int_equal(plain.ended + confirmed.ended, 0);
    stage_pass(1);
    expect_end(&plain, COMMAND_UNSENT, "");
    expect_end(&confirmed, COMMAND_UNSENT, "");
    stage_close();
}

static void no_more_commands_wait_than_may(void **state)
{
    (void)state;
    stage_open(1);
    struct ask asks[9];
    for (int i = 0; i < 9; i++) {
        asks[i] = ask_of("GET 1", i % 2 == 0);
        submit(&asks[i]);
    }
    for (int i = 0; i < 9; i++)
        assert_int_equal(asks[i].ended, i == 8);
    expect_end(&asks[8], COMMAND_UNSENT, "");
    stage_close();
    for (int i = 0; i < 9; i++)
        expect_end(&asks[i], COMMAND_UNSENT, "");
}

static void a_command_that_cannot_be_written_is_unsent(void **state)
{
    (void)state;
    stage_open(0);
    stage_settle();
    struct ask ask = ask_of("GET 1", false);
    ask.is_unwritable = true;
    submit(&ask);
    expect_end(&ask, COMMAND_UNSENT, "");
    stage_close();
}

static void one_wait_stands_behind_all_of_a_turn_and_tells_all(void **state)
{
    (void)state;
    stage_open(2);
    struct ask asks[3] = {ask_of("GET 1", true), ask_of("GET 2", true), ask_of("GET 3", true)};
    struct ask plain = ask_of("GET 4", false);
    for (int i = 0; i < 3; i++)
        submit(&asks[i]);
    submit(&plain);
    stage_settle();
    assert_non_null(strstr(heard, "confirmed:" GET("1") GET("2") GET("3") WAIT("2")));
    assert_non_null(strstr(heard, "main:" GET("4")));
    say(ONE, STORE_LANE_MAIN, ":4\r\n");
    expect_end(&plain, COMMAND_ANSWERED, "4");
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n:2\r\n$1\r\n3\r\n");
    stage_settle();
    assert_int_equal(asks[0].ended + asks[1].ended + asks[2].ended, 0);
    say(ONE, STORE_LANE_CONFIRMED, ":2\r\n");
    expect_end(&asks[0], COMMAND_ANSWERED, "1");
    expect_end(&asks[1], COMMAND_ANSWERED, "2");
    expect_end(&asks[2], COMMAND_ANSWERED, "3");
    assert_int_equal(courier_under_way(courier), 0);
    stage_settle();
    assert_int_equal(courier_due_ms(courier), UINT64_MAX); /* nobody's time is left to look after */
    stage_close();
}

static void without_replicas_there_is_nothing_to_wait_for(void **state)
{
    (void)state;
    stage_open(0);
    struct ask ask = ask_of("GET 1", true);
    submit(&ask);
    expect_heard("main:" GET("1"));
    say(ONE, STORE_LANE_MAIN, ":1\r\n");
    expect_end(&ask, COMMAND_ANSWERED, "1");
    stage_close();
}

/* Too few, an error, and what is no number. */
static void fewer_replicas_do_not_confirm(void **state)
{
    (void)state;
    static const char *const says[] = {":1\r\n", ":0\r\n", ":-1\r\n", "-ERR a replica\r\n",
                                       "+2\r\n", "$-1\r\n"};
    stage_open(2);
    for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
        struct ask ask = ask_of("GET 1", true);
        submit(&ask);
        expect_heard("confirmed:" GET("1") WAIT("2"));
        say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
        say(ONE, STORE_LANE_CONFIRMED, says[i]);
        expect_end(&ask, COMMAND_UNCONFIRMED, "");
    }
    stage_close();
}

static void an_error_is_told_at_once(void **state)
{
    (void)state;
    stage_open(1);
    struct ask ask = ask_of("GET 1", true), whole = ask_of("GET 2", true);
    ask.next = &whole; /* as a script that is not known */
    submit(&ask);
    expect_heard("confirmed:" GET("1") WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, "-NOSCRIPT no\r\n");
    expect_end(&ask, COMMAND_ANSWERED, "NOSCRIPT no");
    assert_null(courier_take_refusal(courier)); /* that is no trouble */
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    assert_int_equal(whole.ended, 0);
    expect_heard("confirmed:" GET("2") WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":2\r\n:1\r\n");
    expect_end(&whole, COMMAND_ANSWERED, "2");
    stage_close();
}

static void why_servers_refuse_can_be_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *says, *part;
    } rows[] = {{"-OOM command not allowed\r\n", "memory"},
                {"-NOPERM no secret here\r\n", "may not"},
                {"-ERR user_script:1: secret\r\n", "failed"},
                {":1\r\n:0\r\n", "too few replicas"}};
    stage_open(1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ask ask = ask_of("GET 1", true);
        assert_null(courier_take_refusal(courier));
        submit(&ask);
        expect_heard("confirmed:" GET("1") WAIT("1"));
        say(ONE, STORE_LANE_CONFIRMED, rows[i].says);
        assert_int_equal(ask.ended, 1);
        const char *refusal = courier_take_refusal(courier);
        assert_non_null(refusal);
        assert_non_null(strstr(refusal, rows[i].part));
        if (rows[i].says[0] == '-')
            say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    }
    stage_close();
}

/* What stands behind a WAIT on the server could not be taken back any more. */
static void the_next_batch_gathers_while_a_wait_is_under_way(void **state)
{
    (void)state;
    stage_open(1);
    struct ask first = ask_of("GET 1", true), second = ask_of("GET 2", true), third = ask_of("GET 3", true);
    submit(&first);
    expect_heard("confirmed:" GET("1") WAIT("1"));
    submit(&second);
    stage_pass(10);
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    submit(&third);
    expect_heard("");
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    expect_end(&first, COMMAND_ANSWERED, "1");
    expect_heard("confirmed:" GET("2") GET("3") WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":2\r\n:3\r\n:1\r\n");
    expect_end(&second, COMMAND_ANSWERED, "2");
    expect_end(&third, COMMAND_ANSWERED, "3");
    stage_close();
}

static void a_connection_that_breaks_before_the_wait_is_answered_tells_nothing(void **state)
{
    (void)state;
    stage_open(1);
    struct ask first = ask_of("GET 1", true), second = ask_of("GET 2", true), next = ask_of("GET 3", true);
    submit(&first);
    submit(&second);
    expect_heard("confirmed:" GET("1") GET("2") WAIT("1"));
    submit(&next);
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    link_closed(line_to(ONE, STORE_LANE_CONFIRMED)->link, "It hung up.", stage_ms);
    expect_end(&first, COMMAND_UNKNOWN, "");
    expect_end(&second, COMMAND_UNKNOWN, "");
    stage_pass(300);
    expect_heard("confirmed:" GET("3") WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":3\r\n:1\r\n");
    expect_end(&next, COMMAND_ANSWERED, "3");
    stage_close();
}

static void a_server_that_says_nothing_costs_nobody_more_than_their_time(void **state)
{
    (void)state;
    stage_open(1);
    struct ask first = ask_of("GET 1", true), second = ask_of("GET 2", true), third = ask_of("GET 3", true);
    submit(&first);
    expect_heard("confirmed:" GET("1") WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    assert_int_equal(courier_due_ms(courier), stage_ms + TIMEOUT);
    stage_pass(500);
    submit(&second);
    stage_pass(500);
    assert_int_equal(first.ended, 0);
    stage_pass(1);
    expect_end(&first, COMMAND_UNCONFIRMED, "");
    assert_int_equal(courier_due_ms(courier), UINT64_MAX);
    stage_pass(500);
    expect_end(&second, COMMAND_UNSENT, ""); /* it can still be taken back */
    submit(&third);
    assert_int_equal(link_counts(line_to(ONE, STORE_LANE_CONFIRMED)->link).losses, 0);
    stage_pass(900); /* a WAIT that is not answered in twice the time never will be: another connection */
    assert_int_equal(link_counts(line_to(ONE, STORE_LANE_CONFIRMED)->link).losses, 1);
    expect_heard("confirmed:" GET("3") WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":3\r\n:1\r\n");
    expect_end(&third, COMMAND_ANSWERED, "3");
    stage_close();
}

static void each_of_a_batch_has_a_deadline_of_its_own(void **state)
{
    (void)state;
    stage_open(1);
    struct ask first = ask_of("GET 1", true), second = ask_of("GET 2", true), third = ask_of("GET 3", true);
    submit(&first);
    expect_heard("confirmed:" GET("1") WAIT("1"));
    submit(&second);
    stage_pass(300);
    submit(&third);
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n:1\r\n");
    expect_end(&first, COMMAND_ANSWERED, "1");
    expect_heard("confirmed:" GET("2") GET("3") WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":2\r\n");
    stage_pass(701);
    expect_end(&second, COMMAND_UNCONFIRMED, "");
    say(ONE, STORE_LANE_CONFIRMED, ":3\r\n:1\r\n");
    expect_end(&third, COMMAND_ANSWERED, "3");
    stage_close();
}

/* Whoever did it must say that its replicas know it: not whoever keeps the slot. */
static void the_wait_goes_where_the_command_went(void **state)
{
    (void)state;
    static const struct {
        const char *says, *heard, *answer;
    } rows[] = {
        {"-MOVED 3300 " TWO ":6379\r\n", "confirmed:" GET("1") WAIT("1"), ":1\r\n"},
        {"-ASK 3300 " TWO ":6379\r\n", "confirmed:*1\r\n$6\r\nASKING\r\n" GET("1") WAIT("1"),
         "+OK\r\n:1\r\n"},
    };
    for (size_t i = 0; i < 2; i++) {
        stage_open(1);
        struct ask ask = ask_of("GET 1", true);
        submit(&ask);
        expect_heard("confirmed:" GET("1") WAIT("1"));
        say(ONE, STORE_LANE_CONFIRMED, rows[i].says);
        say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
        assert_int_equal(ask.ended, 0);
        expect_heard(rows[i].heard);
        say(TWO, STORE_LANE_CONFIRMED, rows[i].answer);
        assert_int_equal(ask.ended, 0);
        say(TWO, STORE_LANE_CONFIRMED, ":1\r\n");
        expect_end(&ask, COMMAND_ANSWERED, "1");
        stage_close();
    }
}

/* As many are in flight as may be: the WAIT follows when there is room, and nobody comes in between. */
static void a_wait_that_finds_no_room_comes_later(void **state)
{
    (void)state;
    stage_open(1);
    struct ask asks[5];
    for (int i = 0; i < 5; i++) {
        asks[i] = ask_of("GET 1", true);
        submit(&asks[i]);
    }
    expect_heard("confirmed:" GET("1") GET("1") GET("1") GET("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    expect_heard("confirmed:" WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n:1\r\n:1\r\n:1\r\n");
    for (int i = 0; i < 4; i++)
        expect_end(&asks[i], COMMAND_ANSWERED, "1");
    stage_pass(200);
    expect_heard("confirmed:" GET("1") WAIT("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n:1\r\n");
    expect_end(&asks[4], COMMAND_ANSWERED, "1");

    for (int i = 0; i < 4; i++) {
        asks[i] = ask_of("GET 1", true);
        submit(&asks[i]);
    }
    expect_heard("confirmed:" GET("1") GET("1") GET("1") GET("1"));
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    struct store_line *line = line_to(ONE, STORE_LANE_CONFIRMED);
    link_closed(line->link, "It hung up.", stage_ms);
    stage_ms += 500;
    line_play(line);
    assert_int_equal(link_state(line->link), LINK_READY);
    expect_heard(""); /* another connection, of another process perhaps */
    for (int i = 0; i < 4; i++)
        expect_end(&asks[i], COMMAND_UNKNOWN, "");
    stage_close();
}

static void the_end_ends_everything(void **state)
{
    (void)state;
    stage_open(1);
    struct ask held = ask_of("GET 1", true), sent = ask_of("GET 2", false), gathered = ask_of("GET 3", true);
    struct ask last = ask_of("GET 4", false);
    gathered.next = &last;
    submit(&held);
    stage_settle();
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    submit(&sent);
    submit(&gathered);
    stage_settle();
    stage_close();
    expect_end(&held, COMMAND_UNKNOWN, "");
    expect_end(&sent, COMMAND_UNKNOWN, "");
    expect_end(&gathered, COMMAND_UNSENT, "");
    expect_end(&last, COMMAND_UNSENT, "");
}

/* Answered, and not yet asked about; and whoever is told wants to go on. */
static void nothing_begins_at_the_end(void **state)
{
    (void)state;
    stage_open(1);
    struct ask asks[4], last = ask_of("GET 2", true);
    for (int i = 0; i < 4; i++) {
        asks[i] = ask_of("GET 1", true);
        submit(&asks[i]);
    }
    asks[0].next = &last;
    stage_settle();
    say(ONE, STORE_LANE_CONFIRMED, ":1\r\n");
    stage_close();
    for (int i = 0; i < 4; i++)
        expect_end(&asks[i], COMMAND_UNKNOWN, "");
    expect_end(&last, COMMAND_UNSENT, "");
}

/* ---- a real primary and its replica ---- */

static struct redis_process servers[2];

static int servers_stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        if (servers[i].pid > 0)
            assert_int_equal(kill(servers[i].pid, SIGCONT), 0);
        redis_process_stop(&servers[i]);
    }
    return 0;
}

static void courier_ask(void)
{
    courier_turn(courier);
}

static void answer_wait(const struct ask *ask)
{
    uint64_t end_ms = owner_clock_ms() + 10000;
    while (ask->ended == 0) {
        assert_true(owner_clock_ms() < end_ms);
        owner_turn(store, courier_ask);
    }
}

static struct ask run(const char *word, bool is_confirmed)
{
    struct ask ask = ask_of(word, is_confirmed);
    submit(&ask);
    answer_wait(&ask);
    return ask;
}

static redisReply *order(const struct redis_process *server, const char *text)
{
    redisContext *connection = redisConnectUnix(server->socket);
    redisReply *reply = redisCommand(connection, text);
    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    redisFree(connection);
    return reply;
}

static bool knows(const struct redis_process *server, const char *part)
{
    redisReply *reply = order(server, "INFO replication");
    bool is_known = strstr(reply->str, part) != NULL;
    freeReplyObject(reply);
    return is_known;
}

static void pair_start(void)
{
    char text[64];
    static const char *const hasty[] = {"--repl-diskless-sync-delay", "0", NULL};
    for (size_t i = 0; i < 2; i++)
        redis_process_start(&servers[i], hasty);
    (void)snprintf(text, sizeof(text), "REPLICAOF 127.0.0.1 %u", servers[0].port);
    freeReplyObject(order(&servers[1], text));
    while (!knows(&servers[0], "state=online"))
        assert_int_equal(poll(NULL, 0, 10), 0);
    (void)snprintf(text, sizeof(text), "redis://127.0.0.1:%u,127.0.0.1:%u", servers[0].port, servers[1].port);
    assert_null(store_url_read(span_of(text), &url));
    store = store_new(&options, 5, owner_clock_ms());
    courier = courier_new(&(struct courier_options){store, owner_clock_ms, TIMEOUT, 1});
    while (run("INCR {b}first", true).end != COMMAND_ANSWERED)
        continue; /* a replica that has just come needs its time */
}

static void pair_close(void)
{
    owner_close_lines(store);
    courier_free(courier);
    store_free(store);
}

/* And a repeat that changes nothing is confirmed only when the first try is: else it would hand out what may still be lost. */
static void a_replica_confirms_or_nothing_is_confirmed(void **state)
{
    (void)state;
    pair_start();
    struct ask ask = run("INCR b", true);
    expect_end(&ask, COMMAND_ANSWERED, "1");
    redisReply *reply = order(&servers[1], "GET b");
    assert_string_equal(reply->str, "1"); /* it really knows */
    freeReplyObject(reply);

    assert_int_equal(kill(servers[1].pid, SIGSTOP), 0);
    ask = run("SETNX {b}pass 1", true);
    expect_end(&ask, COMMAND_UNCONFIRMED, "");
    struct ask again = ask_of("SETNX {b}pass 1", true);
    submit(&again);
    while (store_lines(store) < 2)
        owner_turn(store, courier_ask);
    for (int i = 0; i < 20; i++) { /* nobody else waits for it */
        char text[16];
        struct ask plain = run("INCR {b}plain", false);
        (void)snprintf(text, sizeof(text), "%d", i + 1);
        expect_end(&plain, COMMAND_ANSWERED, text);
    }
    assert_int_equal(again.ended, 0);
    answer_wait(&again);
    expect_end(&again, COMMAND_UNCONFIRMED, "");

    assert_int_equal(kill(servers[1].pid, SIGCONT), 0);
    ask = run("SETNX {b}pass 1", true);
    expect_end(&ask, COMMAND_ANSWERED, "0");
    reply = order(&servers[1], "GET {b}pass");
    assert_string_equal(reply->str, "1");
    freeReplyObject(reply);
    pair_close();
}

/* Not even a pass that it gave before is repeated: a partition looks like this. */
static void a_primary_that_lost_its_replica_confirms_nothing(void **state)
{
    (void)state;
    pair_start();
    struct ask ask = run("SETNX {b}pass 1", true);
    expect_end(&ask, COMMAND_ANSWERED, "1");
    redis_process_kill(&servers[1]);
    while (!knows(&servers[0], "connected_slaves:0"))
        owner_turn(store, courier_ask);
    ask = run("SETNX {b}pass 1", true);
    expect_end(&ask, COMMAND_UNCONFIRMED, "");
    pair_close();
}

static void a_primary_that_dies_in_a_wait_leaves_it_unknown_and_its_successor_is_named(void **state)
{
    (void)state;
    char run_id[64];
    pair_start();
    struct ask ask = run("ECHO %s", false);
    (void)snprintf(run_id, sizeof(run_id), "%s", ask.text);
    assert_true(courier->is_running(courier, run_id));
    ask = run("INCR b", true);
    expect_end(&ask, COMMAND_ANSWERED, "1");

    assert_int_equal(kill(servers[1].pid, SIGSTOP), 0);
    struct ask lost = ask_of("INCR b", true);
    submit(&lost);
    redisReply *reply = NULL;
    do {
        freeReplyObject(reply);
        owner_turn(store, courier_ask);
        reply = order(&servers[0], "INFO clients");
    } while (strstr(reply->str, "blocked_clients:1") == NULL);
    freeReplyObject(reply);
    redis_process_kill(&servers[0]);
    answer_wait(&lost);
    expect_end(&lost, COMMAND_UNKNOWN, "");

    assert_int_equal(kill(servers[1].pid, SIGCONT), 0);
    freeReplyObject(order(&servers[1], "REPLICAOF NO ONE"));
    do
        ask = run("ECHO %s", false);
    while (ask.end != COMMAND_ANSWERED);
    assert_string_not_equal(ask.text, run_id);
    assert_false(courier->is_running(courier, run_id));
    pair_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_wait_until_it_is_known_who_runs_them),
        cmocka_unit_test(a_command_that_was_not_sent_is_written_anew),
        cmocka_unit_test(nobody_there_is_unsent_and_told_by_the_deadline),
        cmocka_unit_test(no_more_commands_wait_than_may),
        cmocka_unit_test(a_command_that_cannot_be_written_is_unsent),
        cmocka_unit_test(one_wait_stands_behind_all_of_a_turn_and_tells_all),
        cmocka_unit_test(without_replicas_there_is_nothing_to_wait_for),
        cmocka_unit_test(fewer_replicas_do_not_confirm),
        cmocka_unit_test(an_error_is_told_at_once),
        cmocka_unit_test(why_servers_refuse_can_be_asked_for),
        cmocka_unit_test(the_next_batch_gathers_while_a_wait_is_under_way),
        cmocka_unit_test(a_connection_that_breaks_before_the_wait_is_answered_tells_nothing),
        cmocka_unit_test(a_server_that_says_nothing_costs_nobody_more_than_their_time),
        cmocka_unit_test(each_of_a_batch_has_a_deadline_of_its_own),
        cmocka_unit_test(the_wait_goes_where_the_command_went),
        cmocka_unit_test(a_wait_that_finds_no_room_comes_later),
        cmocka_unit_test(the_end_ends_everything),
        cmocka_unit_test(nothing_begins_at_the_end),
        cmocka_unit_test_teardown(a_replica_confirms_or_nothing_is_confirmed, servers_stop),
        cmocka_unit_test_teardown(a_primary_that_lost_its_replica_confirms_nothing, servers_stop),
        cmocka_unit_test_teardown(a_primary_that_dies_in_a_wait_leaves_it_unknown_and_its_successor_is_named,
                                  servers_stop),
    };

    return cmocka_run_group_tests_name("courier", tests, NULL, NULL);
}
