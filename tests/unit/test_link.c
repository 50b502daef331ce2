/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection's life: in memory, where the test is the server, the socket and the clock; and with a real server behind a small
 * driver that waits.
 */
#include "redis/link.h"

#include "redis_process.h"
#include "rig.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define PING  "*1\r\n$4\r\nPING\r\n"
#define PONG  "+PONG\r\n"

/* ---- commands that remember how they ended ---- */

struct ask {
    struct link_command command; /* first */
    struct link *again;          /* sends `next` there when it ends */
    struct ask *next;
    struct link *keeper; /* whose reply it keeps */
    redisReply *kept;
    int ended, order;
    enum link_outcome outcome;
    bool is_taken;
    char text[64]; /* of the reply, a number as digits */
};

static int ends; /* in this test, so far */

static void ask_done(struct link_command *command, enum link_outcome outcome, const redisReply *reply)
{
    struct ask *ask = (struct ask *)command;
    ask->ended++;
    ask->order = ends++;
    ask->outcome = outcome;
    assert_int_equal(reply != NULL, outcome == LINK_ANSWERED);
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        (void)snprintf(ask->text, sizeof(ask->text), "%lld", reply->integer);
    else if (reply != NULL && reply->str != NULL)
        (void)snprintf(ask->text, sizeof(ask->text), "%s", reply->str);
    if (reply != NULL && ask->keeper != NULL)
        ask->kept = link_keep_reply(ask->keeper);
    if (ask->again != NULL)
        ask->next->is_taken = link_send(ask->again, &ask->next->command, SPAN(PING), 0);
}

static struct ask ask_until(uint64_t deadline_ms)
{
    return (struct ask){.command = {.done = ask_done, .deadline_ms = deadline_ms}};
}

static void expect_end(const struct ask *ask, enum link_outcome outcome)
{
    assert_int_equal(ask->ended, 1);
    assert_int_equal(ask->outcome, outcome);
}

/* ---- a link in memory ---- */

static const char *password = "first";
static const char *no_password;

static const char *password_read(void *context, struct store_text *out)
{
    assert_ptr_equal(context, &password);
    return no_password != NULL ? no_password : store_password_read(span_of(password), out);
}

static const struct link_options plain = {
    .user = "",
    .name = "weir",
    .needs_primary = true,
    .dial_ms = 1000,
    .silence_ms = 5000,
    .in_flight_max = 4,
    .out_bytes_max = 256,
};

static const struct link_options guarded = {
    .user = "",
    .password = password_read,
    .context = &password,
    .database = 3,
    .name = "weir",
    .needs_primary = true,
    .dial_ms = 1000,
    .silence_ms = 5000,
    .in_flight_max = 4,
    .out_bytes_max = 256,
};

#define SETNAME "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$4\r\nweir\r\n"
#define INFOS                                                                        \
    "*2\r\n$4\r\nINFO\r\n$11\r\npersistence\r\n*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n" \
    "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n"
#define LOADED  "$11\r\nloading:0\r\n\r\n"
#define SERVER  "$70\r\nredis_mode:standalone\r\nrun_id:" RUN_A "\r\n"
#define PRIMARY "$11\r\nrole:master\r\n"
#define WELCOME "+OK\r\n" LOADED SERVER PRIMARY

static void receive(struct link *link, const char *text, uint64_t now_ms)
{
    link_received(link, span_of(text), now_ms);
}

/* All that is to be written now is, and is this. */
static void expect_written(struct link *link, const char *text)
{
    struct span out = link_output(link);
    assert_int_equal(out.len, strlen(text));
    assert_memory_equal(out.data, text, out.len);
    link_sent(link, out.len);
    assert_int_equal(link_output(link).len, 0);
}

static void dial(struct link *link, uint64_t now_ms)
{
    assert_int_equal(link_wish(link, now_ms), LINK_DIAL);
    link_dialing(link, now_ms);
    assert_int_equal(link_state(link), LINK_DIALING);
}

static void greet(struct link *link, uint64_t now_ms)
{
    dial(link, now_ms);
    link_connected(link, now_ms);
    link_sent(link, link_output(link).len);
}

static struct link *ready_link(uint64_t now_ms)
{
    struct link *link = link_new(&plain, 7);
    greet(link, now_ms);
    receive(link, WELCOME, now_ms);
    assert_int_equal(link_state(link), LINK_READY);
    return link;
}

static void hang_up(struct link *link, uint64_t now_ms)
{
    assert_int_equal(link_wish(link, now_ms), LINK_HANG_UP);
    assert_int_equal(link_due_ms(link), 0);
    link_closed(link, "unused", now_ms);
}

static void finish(struct link *link)
{
    link_closed(link, "The test is over.", 0);
    link_free(link);
}

static void expect_lost(struct link *link, const char *part, uint64_t now_ms)
{
    assert_int_equal(link_state(link), LINK_RESTING);
    if (strstr(link_trouble(link), part) == NULL)
        fail_msg("%s, not %s", link_trouble(link), part);
    hang_up(link, now_ms);
    link_free(link);
}

/* ---- greeting ---- */

static void the_greeting_is_one_write_and_tells_who_is_there(void **state)
{
    (void)state;
    struct link *link = link_new(&plain, 7);
    assert_int_equal(link_state(link), LINK_RESTING);
    dial(link, 1000);
    assert_int_equal(link_output(link).len, 0);
    assert_int_equal(link_due_ms(link), 2000);
    link_connected(link, 1010);
    expect_written(link, SETNAME INFOS);
    receive(link, "+OK\r\n" LOADED SERVER, 1020);
    assert_int_equal(link_state(link), LINK_GREETING);
    receive(link, PRIMARY, 1030);
    assert_int_equal(link_state(link), LINK_READY);
    assert_string_equal(link_peer(link)->run_id, RUN_A);
    assert_int_equal(link_due_ms(link), UINT64_MAX);
    assert_null(link_trouble(link));
    finish(link);
}

static void the_password_is_read_anew_for_each_connection(void **state)
{
    (void)state;
    struct link *link = link_new(&guarded, 7);
    password = "first";
    dial(link, 1000);
    link_connected(link, 1000);
    expect_written(link,
                   "*2\r\n$4\r\nAUTH\r\n$5\r\nfirst\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n" SETNAME INFOS);
    receive(link, "-WRONGPASS invalid username-password pair or user is disabled.\r\n", 1000);
    assert_non_null(strstr(link_trouble(link), "does not take"));
    hang_up(link, 1000);

    struct link_options options = guarded;
    password = "second one";
    link_free(link);
    options.user = "us er";
    link = link_new(&options, 7);
    dial(link, 2000);
    link_connected(link, 2000);
    expect_written(
        link,
        "*3\r\n$4\r\nAUTH\r\n$5\r\nus er\r\n$10\r\nsecond one\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n" SETNAME
            INFOS);
    receive(link, "+OK\r\n+OK\r\n" WELCOME, 2000);
    assert_int_equal(link_state(link), LINK_READY);
    finish(link);
}

static void a_password_that_cannot_be_read_is_no_connection(void **state)
{
    (void)state;
    struct link *link = link_new(&guarded, 7);
    no_password = "There is no such file.";
    dial(link, 1000);
    link_connected(link, 1000);
    assert_int_equal(link_output(link).len, 0);
    no_password = NULL;
    expect_lost(link, "There is no such file.", 1000);
}

/* The words are ours: some servers quote what they were sent. */
static void who_is_not_let_in_says_why_without_a_secret(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"-ERR max number of clients reached\r\n", "as many clients"},
        {"-DENIED Redis is running in protected mode\r\n", "protected mode"},
        {"-ERR unknown command 'AUTH', with args beginning with: 'first'\r\n", "user and password"},
        {"-ERR Client sent AUTH, but no password is set\r\n", "user and password"},
        {"+OK\r\n-ERR DB index is out of range\r\n", "database"},
        {"+OK\r\n-NOPERM this user has no permissions\r\n", "may not run SELECT"},
        {"+OK\r\n+OK\r\n-NOPERM no name\r\n-NOAUTH Authentication required.\r\n", "wants a password"},
        {"+OK\r\n+OK\r\n+OK\r\n-ERR what\r\n", "who it is"},
        {"+OK\r\n+OK\r\n+OK\r\n:1\r\n", "makes no sense"},
        {"+OK\r\n+OK\r\n+OK\r\n$-1\r\n", "makes no sense"},
        {"+OK\r\n+OK\r\n+OK\r\n$11\r\nloading:1\r\n\r\n", "reading its data back"},
        {"+OK\r\n+OK\r\n+OK\r\n" LOADED "$0\r\n\r\n" PRIMARY, "whether it is a cluster"},
        {"+OK\r\n+OK\r\n+OK\r\n" LOADED SERVER "$10\r\nrole:slave\r\n", "not a primary"},
        {"+OK\r\n+OK\r\n+OK\r\n" LOADED "$21\r\nredis_mode:standalone\r\n" PRIMARY, "which process"},
        {"+OK\r\n+OK\r\n+OK\r\n" LOADED "$32\r\nredis_mode:standalone\r\nrun_id:00\r\n" PRIMARY,
         "which process"},
        {"HTTP/1.1 400 Bad Request\r\n", "speak RESP"},
    };
    password = "first";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct link *link = link_new(&guarded, 7);
        greet(link, 1000);
        receive(link, rows[i][0], 1000);
        expect_lost(link, rows[i][1], 1000);
    }
}

static void an_answer_before_the_question_is_not_believed(void **state)
{
    (void)state;
    struct link *link = link_new(&plain, 7);
    dial(link, 1000);
    link_connected(link, 1000);
    link_sent(link, link_output(link).len - 1);
    receive(link, WELCOME, 1000);
    expect_lost(link, "nobody asked", 1000);

    link = ready_link(1000);
    struct ask ask = ask_until(9000);
    assert_true(link_send(link, &ask.command, SPAN(PING), 1000));
    link_sent(link, link_output(link).len - 1);
    receive(link, PONG, 1000);
    expect_end(&ask, LINK_UNKNOWN);
    expect_lost(link, "nobody asked", 1000);

    link = ready_link(1000);
    receive(link, PONG, 1000);
    expect_lost(link, "nobody asked", 1000);
}

/* ---- commands ---- */

static void commands_of_a_turn_are_one_write_and_answered_in_order(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask asks[3] = {ask_until(9000), ask_until(9000), ask_until(9000)};
    ends = 0;
    for (int i = 0; i < 3; i++)
        assert_true(link_send(link, &asks[i].command, SPAN(PING), 1000));
    assert_int_equal(link_in_flight(link), 3);
    expect_written(link, PING PING PING);
    receive(link, "+a\r\n+", 1001);
    expect_end(&asks[0], LINK_ANSWERED);
    assert_int_equal(asks[1].ended, 0);
    receive(link, "b\r\n-ERR c\r\n", 1002);
    for (int i = 0; i < 3; i++)
        assert_int_equal(asks[i].order, i);
    assert_string_equal(asks[0].text, "a");
    assert_string_equal(asks[1].text, "b");
    assert_string_equal(asks[2].text, "ERR c");
    assert_int_equal(link_in_flight(link), 0);
    assert_int_equal(link_counts(link).answered, 3);
    finish(link);
}

static void what_asking_says_does_not_count(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask asking = ask_until(9000), other = ask_until(9000);
    asking.command.replies_before = 1;
    assert_true(link_send(link, &asking.command, SPAN("*1\r\n$6\r\nASKING\r\n" PING), 1000));
    assert_true(link_send(link, &other.command, SPAN(PING), 1000));
    link_sent(link, link_output(link).len);
    receive(link, "+OK\r\n", 1000);
    assert_int_equal(asking.ended, 0);
    receive(link, "+one\r\n+two\r\n", 1000);
    assert_string_equal(asking.text, "one");
    assert_string_equal(other.text, "two");
    finish(link);
}

static void a_reply_may_be_kept(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask keeps = ask_until(9000), leaves = ask_until(9000);
    keeps.keeper = link;
    assert_true(link_send(link, &keeps.command, SPAN(PING), 1000));
    assert_true(link_send(link, &leaves.command, SPAN(PING), 1000));
    expect_written(link, PING PING);
    receive(link, "+MINE\r\n+YOURS\r\n", 1000);
    expect_end(&leaves, LINK_ANSWERED);
    finish(link);
    assert_string_equal(keeps.kept->str, "MINE");
    freeReplyObject(keeps.kept);
}

static void no_more_is_taken_than_may_be(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask asks[5];
    char bulk[300];
    memset(bulk, 'x', sizeof(bulk));
    for (int i = 0; i < 5; i++) {
        asks[i] = ask_until(9000);
        assert_int_equal(link_send(link, &asks[i].command, SPAN(PING), 1000), i < 4);
    }
    assert_int_equal(link_counts(link).refused, 1);
    link_sent(link, link_output(link).len);
    receive(link, PONG PONG PONG PONG, 1000);
    /* 256 bytes may wait; what was written makes room. */
    assert_false(link_send(link, &asks[4].command, (struct span){bulk, 257}, 1000));
    assert_true(link_send(link, &asks[4].command, (struct span){bulk, 200}, 1000));
    assert_false(link_send(link, &asks[0].command, (struct span){bulk, 57}, 1000));
    (void)link_output(link);
    link_sent(link, 100);
    assert_int_equal(link_output(link).len, 100);
    assert_true(link_send(link, &asks[0].command, (struct span){bulk, 156}, 1000));
    assert_int_equal(link_output(link).len, 256);
    finish(link);
    expect_end(&asks[4], LINK_UNKNOWN);
    assert_int_equal(asks[0].ended, 2);
}

/* The letters of the alphabet over and over, in commands of any length and writes of any size. */
static void bytes_go_out_as_they_came_however_they_are_written(void **state)
{
    (void)state;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    struct link *link = ready_link(1000);
    struct dice dice = {42};
    struct ask asks[4];
    size_t put = 0, written = 0;
    for (int round = 0; round < 5000; round++) {
        struct span bytes = {letters + put % 26, 1 + dice_below(&dice, 26)};
        struct ask *ask = &asks[round % 4];
        if (link_in_flight(link) < 4) {
            *ask = ask_until(UINT64_MAX);
            put += link_send(link, &ask->command, bytes, 1000) ? bytes.len : 0;
        }
        struct span out = link_output(link);
        assert_int_equal(out.len, put - written);
        for (size_t i = 0; i < out.len; i++)
            assert_int_equal(out.data[i], letters[(written + i) % 26]);
        size_t taken = dice_below(&dice, (uint32_t)out.len + 1);
        link_sent(link, taken);
        written += taken;
        while (written == put && link_in_flight(link) > 0)
            receive(link, PONG, 1000);
    }
    assert_true(written > 10000);
    finish(link);
}

static void a_command_without_an_answer_ends_at_its_deadline(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask late = ask_until(1500), next = ask_until(3000);
    assert_true(link_send(link, &late.command, SPAN(PING), 1000));
    assert_true(link_send(link, &next.command, SPAN(PING), 1000));
    link_sent(link, link_output(link).len);
    assert_int_equal(link_due_ms(link), 1500);
    link_timer(link, 1499);
    assert_int_equal(late.ended, 0);
    link_timer(link, 1500);
    expect_end(&late, LINK_UNKNOWN);
    assert_int_equal(link_due_ms(link), 3000);
    assert_int_equal(link_in_flight(link), 2); /* its reply may come yet, */
    receive(link, "+late\r\n+next\r\n", 1600);
    assert_int_equal(late.ended, 1);
    assert_string_equal(next.text, "next"); /* and is not taken for another's */
    assert_int_equal(link_counts(link).late, 1);
    finish(link);
}

static void what_nobody_waits_for_any_more_is_not_sent_late(void **state)
{
    (void)state;
    struct link *link = link_new(&plain, 7);
    struct ask asks[4] = {ask_until(1100), ask_until(9000), ask_until(9000), ask_until(1100)};
    static const char *const words[] = {"*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n", "*1\r\n$1\r\nc\r\n",
                                        "*1\r\n$1\r\nd\r\n"};
    dial(link, 1000);
    for (int i = 0; i < 4; i++)
        assert_true(link_send(link, &asks[i].command, span_of(words[i]), 1000));
    assert_int_equal(link_due_ms(link), 1100);
    link_timer(link, 1100);
    expect_end(&asks[0], LINK_UNSENT);
    expect_end(&asks[3], LINK_UNSENT);
    assert_int_equal(link_in_flight(link), 2);
    link_forget(link, &asks[1].command);
    link_connected(link, 1200);
    expect_written(link, SETNAME INFOS);
    receive(link, WELCOME, 1300);
    expect_written(link, words[2]);
    receive(link, "+c\r\n", 1400);
    assert_string_equal(asks[2].text, "c");
    assert_int_equal(asks[1].ended, 0);
    finish(link);
}

static void a_new_link_takes_commands_before_it_is_dialed(void **state)
{
    (void)state;
    struct link *link = link_new(&plain, 7);
    struct ask asks[3] = {ask_until(9000), ask_until(1100), ask_until(9000)};
    for (int i = 0; i < 2; i++)
        assert_true(link_send(link, &asks[i].command, SPAN(PING), 1000));
    link_timer(link, 1100);
    expect_end(&asks[1], LINK_UNSENT);
    greet(link, 1100);
    receive(link, WELCOME, 1100);
    expect_written(link, PING);
    finish(link);
    expect_end(&asks[0], LINK_UNKNOWN);

    link = link_new(&plain, 7);
    assert_true(link_send(link, &asks[2].command, SPAN(PING), 1000));
    link_free(link);
    expect_end(&asks[2], LINK_UNSENT);
}

static void who_is_forgotten_is_never_called(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask asks[3] = {ask_until(9000), ask_until(9000), ask_until(9000)};
    for (int i = 0; i < 3; i++)
        assert_true(link_send(link, &asks[i].command, SPAN(PING), 1000));
    link_sent(link, link_output(link).len);
    link_forget(link, &asks[1].command);
    receive(link, "+a\r\n+b\r\n+c\r\n", 1000);
    assert_int_equal(asks[1].ended, 0);
    assert_string_equal(asks[0].text, "a");
    assert_string_equal(asks[2].text, "c");
    finish(link);
}

/* ---- losses ---- */

static void a_loss_says_of_each_command_whether_it_can_have_happened(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask asks[3] = {ask_until(9000), ask_until(9000), ask_until(9000)};
    assert_true(link_send(link, &asks[0].command, SPAN(PING), 1000));
    (void)link_output(link); /* given away, though the owner does not say how much went out */
    assert_true(link_send(link, &asks[1].command, SPAN(PING), 1000));
    link_closed(link, "It broke.", 1000);
    expect_end(&asks[0], LINK_UNKNOWN);
    expect_end(&asks[1], LINK_UNSENT);
    assert_string_equal(link_trouble(link), "It broke.");
    assert_false(link_send(link, &asks[2].command, SPAN(PING), 1000));
    assert_int_equal(link_output(link).len, 0);
    link_free(link);
}

static void a_new_connection_begins_with_nothing_of_the_old_one(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask asks[2] = {ask_until(9000), ask_until(9000)};
    assert_true(link_send(link, &asks[0].command, SPAN(PING), 1000));
    assert_true(link_output(link).len > 5);
    link_sent(link, 5);
    receive(link, "*2\r\n:1\r\n", 1000); /* half a reply */
    link_closed(link, "It broke.", 1000);
    greet(link, 3000);
    receive(link, WELCOME, 3000);
    assert_int_equal(link_in_flight(link), 0);
    assert_true(link_send(link, &asks[1].command, SPAN(PING), 3000));
    expect_written(link, PING);
    receive(link, PONG, 3000);
    assert_string_equal(asks[1].text, "PONG");
    finish(link);
}

static void the_next_dial_waits_longer_after_each_loss_and_less_by_chance(void **state)
{
    (void)state;
    struct link *link = link_new(&plain, 7);
    uint64_t now_ms = 1000, longest_ms = LINK_REST_MS, distinct = 0, last_ms = 0;
    for (int loss = 0; loss < 12; loss++) {
        dial(link, now_ms);
        link_closed(link, "Nobody there.", now_ms);
        uint64_t rest_ms = link_due_ms(link) - now_ms;
        assert_true(rest_ms >= longest_ms / 2 && rest_ms <= longest_ms);
        assert_int_equal(link_wish(link, now_ms + rest_ms - 1), LINK_KEEP);
        distinct += rest_ms != last_ms;
        last_ms = rest_ms;
        now_ms += rest_ms;
        longest_ms = longest_ms < 3200 ? 2 * longest_ms : 3200;
    }
    assert_true(distinct >= 10);
    /* Ready for a moment is not enough to begin anew; ready for a second is. */
    for (uint64_t ready_ms = 0; ready_ms <= LINK_SOUND_MS; ready_ms += LINK_SOUND_MS) {
        greet(link, now_ms);
        receive(link, WELCOME, now_ms);
        link_closed(link, "It broke.", now_ms + ready_ms);
        uint64_t rest_ms = link_due_ms(link) - now_ms - ready_ms;
        assert_int_equal(rest_ms > LINK_REST_MS, ready_ms == 0);
        now_ms = link_due_ms(link);
    }
    link_free(link);
}

static void two_links_that_were_lost_together_do_not_dial_together(void **state)
{
    (void)state;
    uint64_t due_ms[8];
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct link *link = link_new(&plain, seed * 2);
        for (int loss = 0; loss < 6; loss++) {
            dial(link, 10000 + (uint64_t)loss * 10000);
            link_closed(link, "Nobody there.", 10000 + (uint64_t)loss * 10000);
        }
        due_ms[seed] = link_due_ms(link);
        for (uint64_t other = 0; other < seed; other++)
            assert_int_not_equal(due_ms[seed], due_ms[other]);
        link_free(link);
    }
}

static void a_server_that_is_silent_is_given_up(void **state)
{
    (void)state;
    struct link *link = link_new(&plain, 7);
    dial(link, 1000);
    link_timer(link, 1999);
    assert_int_equal(link_state(link), LINK_DIALING);
    link_timer(link, 2000);
    link_connected(link, 2001); /* after all, but too late */
    expect_lost(link, "did not answer in time", 2001);

    link = link_new(&plain, 7);
    greet(link, 1000);
    receive(link, "+OK\r\n", 1900);
    link_timer(link, 2000);
    expect_lost(link, "did not answer in time", 2000);

    link = ready_link(1000);
    link_timer(link, 100000); /* nothing is in flight: no news is good news */
    struct ask ask = ask_until(101000);
    assert_true(link_send(link, &ask.command, SPAN(PING), 100000));
    link_sent(link, link_output(link).len);
    link_timer(link, 101000);
    expect_end(&ask, LINK_UNKNOWN);
    assert_int_equal(link_due_ms(link), 105000);
    link_timer(link, 104999);
    receive(link, "*2\r\n", 104999); /* not a whole reply, but a sign of life */
    link_timer(link, 109998);
    assert_int_equal(link_state(link), LINK_READY);
    link_timer(link, 109999);
    expect_lost(link, "silent", 109999);
}

static void who_ends_may_send_again_and_a_lost_link_refuses(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask next = ask_until(9000), ask = ask_until(9000), last = ask_until(9000);
    ask.again = link;
    ask.next = &next;
    next.again = link;
    next.next = &last;
    assert_true(link_send(link, &ask.command, SPAN(PING), 1000));
    link_sent(link, link_output(link).len);
    receive(link, PONG, 1000);
    assert_true(next.is_taken);
    expect_written(link, PING);
    link_closed(link, "It broke.", 1000);
    expect_end(&next, LINK_UNKNOWN);
    assert_false(last.is_taken);
    link_free(link);
}

static void a_server_that_wants_a_login_again_gets_a_new_connection(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask asks[2] = {ask_until(9000), ask_until(9000)};
    for (int i = 0; i < 2; i++)
        assert_true(link_send(link, &asks[i].command, SPAN(PING), 1000));
    link_sent(link, link_output(link).len);
    receive(link, "-NOAUTH Authentication required.\r\n", 1000);
    expect_end(&asks[0], LINK_ANSWERED);
    expect_end(&asks[1], LINK_UNKNOWN);
    expect_lost(link, "password again", 1000);
}

static void an_owner_may_begin_anew(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    struct ask ask = ask_until(9000);
    link_renew(link, "The server is a replica now.");
    assert_false(link_send(link, &ask.command, SPAN(PING), 1000));
    assert_int_equal(link_due_ms(link), 0);
    link_timer(link, 1000);
    expect_lost(link, "a replica now", 1000);
}

static void what_comes_after_the_end_is_not_heard(void **state)
{
    (void)state;
    struct link *link = ready_link(1000);
    receive(link, "nonsense\r\n", 1000);
    receive(link, PONG, 1000);
    link_sent(link, 0);
    expect_lost(link, "speak RESP", 1000);
}

/* ---- a real server, and a driver that waits ---- */

struct driver {
    struct link *link;
    const struct redis_process *server;
    int fd; /* -1: none */
};

static uint64_t clock_ms(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void driver_close(struct driver *driver, const char *why)
{
    assert_int_equal(close(driver->fd), 0);
    driver->fd = -1;
    link_closed(driver->link, why, clock_ms());
}

static void driver_heed(struct driver *driver)
{
    switch (link_wish(driver->link, clock_ms())) {
    case LINK_DIAL:
        link_dialing(driver->link, clock_ms());
        driver->fd = redis_process_dial(driver->server);
        link_connected(driver->link, clock_ms());
        break;
    case LINK_HANG_UP:
        driver_close(driver, "unused");
        break;
    case LINK_KEEP:
        break;
    }
}

static void driver_write(struct driver *driver)
{
    struct span out = link_output(driver->link);
    if (out.len == 0)
        return;
    ssize_t sent = send(driver->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
        link_sent(driver->link, (size_t)sent);
    else if (errno != EAGAIN)
        driver_close(driver, "The connection broke.");
}

static void driver_read(struct driver *driver)
{
    char bytes[4096];
    ssize_t got = recv(driver->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0)
        link_received(driver->link, (struct span){bytes, (size_t)got}, clock_ms());
    else if (got == 0 || errno != EAGAIN)
        driver_close(driver, "The connection broke.");
}

/* One turn: like that of an event loop. */
static void driver_turn(struct driver *driver)
{
    driver_heed(driver);
    driver_write(driver);
    uint64_t now_ms = clock_ms(), due_ms = link_due_ms(driver->link);
    int wait_ms = due_ms <= now_ms ? 0 : due_ms - now_ms > 1000 ? 1000 : (int)(due_ms - now_ms);
    struct pollfd event = {driver->fd, (short)(POLLIN | (link_output(driver->link).len > 0 ? POLLOUT : 0)),
                           0};
    assert_true(poll(&event, 1, wait_ms) >= 0);
    if (event.revents & (POLLIN | POLLHUP | POLLERR))
        driver_read(driver);
    if (clock_ms() >= link_due_ms(driver->link))
        link_timer(driver->link, clock_ms());
}

static void driver_until(struct driver *driver, enum link_state wanted)
{
    uint64_t end_ms = clock_ms() + 10000;
    while (link_state(driver->link) != wanted) {
        assert_true(clock_ms() < end_ms);
        driver_turn(driver);
    }
}

static void driver_lose(struct driver *driver, uint64_t losses)
{
    uint64_t end_ms = clock_ms() + 10000;
    while (link_counts(driver->link).losses < losses) {
        assert_true(clock_ms() < end_ms);
        driver_turn(driver);
    }
}

static void driver_answer(struct driver *driver, const struct ask *ask)
{
    uint64_t end_ms = clock_ms() + 10000;
    while (ask->ended == 0) {
        assert_true(clock_ms() < end_ms);
        driver_turn(driver);
    }
}

static void driver_end(struct driver *driver)
{
    if (driver->fd >= 0)
        driver_close(driver, "The test is over.");
    link_free(driver->link);
}

static struct redis_process server;

static void order(const char *command)
{
    redisContext *connection = redisConnectUnix(server.socket);
    redisReply *reply = redisCommand(connection, command);
    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    redisFree(connection);
}

static int server_start(void **state)
{
    (void)state;
    redis_process_start(&server, NULL);
    return 0;
}

static int server_stop(void **state)
{
    (void)state;
    redis_process_stop(&server);
    return 0;
}

static const struct link_options real = {
    .user = "weir",
    .password = password_read,
    .context = &password,
    .database = 3,
    .name = "weir",
    .needs_primary = true,
    .dial_ms = 5000,
    .silence_ms = 5000,
    .in_flight_max = 1024,
    .out_bytes_max = 1 << 20,
};

/* The driver's link, logged in as `weir`. */
static struct driver drive(void)
{
    password = "one";
    order("ACL SETUSER weir on >one +@all ~*");
    struct driver driver = {link_new(&real, 11), &server, -1};
    driver_until(&driver, LINK_READY);
    return driver;
}

static void expect_known_to_server(const char *part)
{
    redisContext *connection = redisConnectUnix(server.socket);
    redisReply *reply = redisCommand(connection, "CLIENT LIST");
    assert_non_null(reply);
    if (strstr(reply->str, part) == NULL)
        fail_msg("%s: %s", part, reply->str);
    freeReplyObject(reply);
    redisFree(connection);
}

static void a_real_server_lets_in_and_answers_a_thousand_in_order(void **state)
{
    (void)state;
    struct driver driver = drive();
    struct ask *asks = calloc(1000, sizeof(*asks));
    assert_int_equal(strlen(link_peer(driver.link)->run_id), PEER_RUN_ID_MAX);
    assert_true(link_peer(driver.link)->is_primary);
    expect_known_to_server(" name=weir ");
    expect_known_to_server(" db=3 ");
    expect_known_to_server(" user=weir ");
    for (int i = 0; i < 1000; i++) {
        char *bytes;
        int len = redisFormatCommand(&bytes, "INCR counter");
        asks[i] = ask_until(clock_ms() + 5000);
        assert_true(link_send(driver.link, &asks[i].command, (struct span){bytes, (size_t)len}, clock_ms()));
        redisFreeCommand(bytes);
    }
    for (int i = 0; i < 1000; i++) {
        driver_answer(&driver, &asks[i]);
        expect_end(&asks[i], LINK_ANSWERED);
        assert_int_equal(strtol(asks[i].text, NULL, 10), i + 1);
    }
    free(asks);
    driver_end(&driver);
}

static void a_password_is_changed_without_a_restart(void **state)
{
    (void)state;
    struct driver driver = drive();
    order("ACL SETUSER weir resetpass >two");
    order("CLIENT KILL USER weir");
    driver_lose(&driver, 2);
    assert_non_null(strstr(link_trouble(driver.link), "does not take"));
    password = "two";
    driver_until(&driver, LINK_READY);
    driver_end(&driver);
}

static void a_paused_server_is_late_and_then_understood_again(void **state)
{
    (void)state;
    struct driver driver = drive();
    struct ask late = ask_until(clock_ms() + 50), next;
    order("CLIENT PAUSE 300 ALL");
    assert_true(
        link_send(driver.link, &late.command, SPAN("*2\r\n$4\r\nECHO\r\n$4\r\nlate\r\n"), clock_ms()));
    driver_answer(&driver, &late);
    expect_end(&late, LINK_UNKNOWN);
    next = ask_until(clock_ms() + 5000);
    assert_true(
        link_send(driver.link, &next.command, SPAN("*2\r\n$4\r\nECHO\r\n$4\r\nnext\r\n"), clock_ms()));
    driver_answer(&driver, &next);
    assert_string_equal(next.text, "next");
    assert_int_equal(link_counts(driver.link).losses, 0);
    driver_end(&driver);
}

static void a_killed_server_is_lost_and_its_successor_is_another(void **state)
{
    (void)state;
    struct driver driver = drive();
    struct ask ask = ask_until(clock_ms() + 5000);
    char run_id[PEER_RUN_ID_MAX + 1];
    memcpy(run_id, link_peer(driver.link)->run_id, sizeof(run_id));
    order("CLIENT PAUSE 60000 ALL");
    assert_true(link_send(driver.link, &ask.command, SPAN(PING), clock_ms()));
    driver_write(&driver);
    redis_process_kill(&server);
    driver_answer(&driver, &ask);
    expect_end(&ask, LINK_UNKNOWN);
    redis_process_stop(&server);
    redis_process_start(&server, NULL);
    order("ACL SETUSER weir on >one +@all ~*");
    driver_until(&driver, LINK_READY);
    assert_string_not_equal(link_peer(driver.link)->run_id, run_id);
    driver_end(&driver);
}

static void a_real_replica_is_hung_up_on(void **state)
{
    (void)state;
    struct driver driver = drive();
    order("REPLICAOF 127.0.0.1 1");
    link_renew(driver.link, "The server is a replica now.");
    driver_lose(&driver, 2);
    assert_non_null(strstr(link_trouble(driver.link), "not a primary"));
    order("REPLICAOF NO ONE");
    driver_until(&driver, LINK_READY);
    driver_end(&driver);
}

#define REAL(test) cmocka_unit_test_setup_teardown(test, server_start, server_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greeting_is_one_write_and_tells_who_is_there),
        cmocka_unit_test(the_password_is_read_anew_for_each_connection),
        cmocka_unit_test(a_password_that_cannot_be_read_is_no_connection),
        cmocka_unit_test(who_is_not_let_in_says_why_without_a_secret),
        cmocka_unit_test(an_answer_before_the_question_is_not_believed),
        cmocka_unit_test(commands_of_a_turn_are_one_write_and_answered_in_order),
        cmocka_unit_test(what_asking_says_does_not_count),
        cmocka_unit_test(a_reply_may_be_kept),
        cmocka_unit_test(no_more_is_taken_than_may_be),
        cmocka_unit_test(bytes_go_out_as_they_came_however_they_are_written),
        cmocka_unit_test(a_command_without_an_answer_ends_at_its_deadline),
        cmocka_unit_test(what_nobody_waits_for_any_more_is_not_sent_late),
        cmocka_unit_test(a_new_link_takes_commands_before_it_is_dialed),
        cmocka_unit_test(who_is_forgotten_is_never_called),
        cmocka_unit_test(a_loss_says_of_each_command_whether_it_can_have_happened),
        cmocka_unit_test(a_new_connection_begins_with_nothing_of_the_old_one),
        cmocka_unit_test(the_next_dial_waits_longer_after_each_loss_and_less_by_chance),
        cmocka_unit_test(two_links_that_were_lost_together_do_not_dial_together),
        cmocka_unit_test(a_server_that_is_silent_is_given_up),
        cmocka_unit_test(who_ends_may_send_again_and_a_lost_link_refuses),
        cmocka_unit_test(a_server_that_wants_a_login_again_gets_a_new_connection),
        cmocka_unit_test(an_owner_may_begin_anew),
        cmocka_unit_test(what_comes_after_the_end_is_not_heard),
        REAL(a_real_server_lets_in_and_answers_a_thousand_in_order),
        REAL(a_password_is_changed_without_a_restart),
        REAL(a_paused_server_is_late_and_then_understood_again),
        REAL(a_killed_server_is_lost_and_its_successor_is_another),
        REAL(a_real_replica_is_hung_up_on),
    };

    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
