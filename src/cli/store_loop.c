/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A turn is what redis/store.h asks of its owner: tell the links what happened, one store_turn, then go over the lines. Dialing
 * waits inside of a turn, which holds the others up; that is why a server gets only a few seconds for it.
 */
#include "cli/store_loop.h"

#include "base/must.h"
#include "cli/say.h"
#include "cli/store_secret.h"
#include "cli/store_wire.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#define DIAL_MS      3000
#define IN_FLIGHT    4096
#define OUT_BYTES    (1 << 20)
#define READ_BYTES   65536
#define LOST         "The connection was closed by the server."
#define QUESTION(at) ((struct store_question *)(void *)((char *)(at)-offsetof(struct store_question, order)))

struct store_loop {
    struct store_options options;
    SSL_CTX *tls; /* NULL: without */
    struct store *store;
    size_t asked; /* questions under way */
};

static void turn(struct store_loop *loop, uint64_t until_ms);
static void line_keep(struct store_loop *loop, struct store_line *line, uint64_t now_ms);
static void line_dial(struct store_loop *loop, struct store_line *line);
static void line_write(struct store_line *line, uint64_t now_ms);
static void line_read(struct store_line *line, uint64_t now_ms);
static void line_close(struct store_line *line, const char *why, uint64_t now_ms);
static void lines_poll(struct store_loop *loop, uint64_t until_ms);
static bool all_tried(const struct store_loop *loop);
static const struct store_line *main_line(const struct store_loop *loop, const struct address *address);
static void question_answered(struct store_order *order, enum link_outcome outcome, const redisReply *reply);
static uint64_t clock_ms(void);

struct store_loop *store_loop_new(const struct store_url *url, const char **why)
{
    SSL_CTX *tls;
    if (!store_tls_new(&url->tls, &tls, why))
        return NULL;
    struct store_loop *loop = say_no_memory_if_null(calloc(1, sizeof(*loop)));
    loop->tls = tls;
    loop->options = (struct store_options){
        .url = url,
        .password = store_secret_read,
        .name = "weir-command",
        .dial_ms = DIAL_MS,
        .silence_ms = STORE_LOOP_MS,
        .in_flight_max = IN_FLIGHT,
        .out_bytes_max = OUT_BYTES,
        .waiting_max = IN_FLIGHT,
    };
    /* OpenSSL writes to a socket as it is, and one that is closed must not end the command. */
    (void)signal(SIGPIPE, SIG_IGN);
    loop->store = say_no_memory_if_null(store_new(&loop->options, (uint64_t)time(NULL), clock_ms()));
    return loop;
}

void store_loop_free(struct store_loop *loop)
{
    for (size_t i = 0; i < store_lines(loop->store); i++)
        if (link_is_open(store_line(loop->store, i)->link))
            line_close(store_line(loop->store, i), "The command is over.", clock_ms());
    store_free(loop->store);
    SSL_CTX_free(loop->tls);
    free(loop);
}

const char *store_loop_find(struct store_loop *loop)
{
    const struct topology *topology = store_topology(loop->store);
    uint64_t until_ms = clock_ms() + STORE_LOOP_MS;
    while (!all_tried(loop) && topology_trouble(topology) == NULL && clock_ms() < until_ms)
        turn(loop, until_ms);
    if (topology_version(topology) > 0)
        return NULL;
    return topology_trouble(topology) != NULL ? topology_trouble(topology) : "Nobody answered in time.";
}

/* Whether each primary is ready, or was tried in vain. */
static bool all_tried(const struct store_loop *loop)
{
    const struct slot_map *map = topology_map(store_topology(loop->store));
    for (uint16_t i = 0; i < map->count; i++) {
        const struct store_line *line = main_line(loop, &map->primaries[i].address);
        if (line == NULL || (link_state(line->link) != LINK_READY && link_counts(line->link).losses == 0))
            return false;
    }
    return map->count > 0;
}

const struct store *store_loop_store(const struct store_loop *loop)
{
    return loop->store;
}

const struct peer *store_loop_peer(const struct store_loop *loop, const struct address *address,
                                   const char **why)
{
    const struct store_line *line = main_line(loop, address);
    if (line != NULL && link_state(line->link) == LINK_READY)
        return link_peer(line->link);
    *why = line != NULL && link_trouble(line->link) != NULL ? link_trouble(line->link)
                                                            : "Nobody answered in time.";
    return NULL;
}

static const struct store_line *main_line(const struct store_loop *loop, const struct address *address)
{
    for (size_t i = 0; i < store_lines(loop->store); i++) {
        const struct store_line *line = store_line(loop->store, i);
        if (line->lane == STORE_LANE_MAIN && address_equal(&line->address, address))
            return line;
    }
    return NULL;
}

/* ---- questions ---- */

void store_question_write(struct store_question *question, uint16_t slot, const char *format, ...)
{
    va_list values;
    *question = (struct store_question){.order.slot = slot};
    va_start(values, format);
    int len = redisvFormatCommand(&question->bytes, format, values);
    va_end(values);
    must(len != -2); /* the format is ours */
    (void)say_no_memory_if_null(len < 0 ? NULL : question->bytes);
    question->order.bytes = (struct span){question->bytes, (size_t)len};
}

void store_loop_ask(struct store_loop *loop, struct store_question *questions, size_t count)
{
    uint64_t now_ms = clock_ms(), until_ms = now_ms + STORE_LOOP_MS;
    for (size_t i = 0; i < count; i++) {
        if (store_peer(loop->store, questions[i].order.slot) == NULL)
            continue;
        loop->asked++;
        questions[i].loop = loop;
        questions[i].order.lane = STORE_LANE_MAIN;
        questions[i].order.deadline_ms = until_ms;
        questions[i].order.done = question_answered;
        store_send(loop->store, &questions[i].order, now_ms);
    }
    while (loop->asked > 0)
        turn(loop, until_ms);
}

static void question_answered(struct store_order *order, enum link_outcome outcome, const redisReply *reply)
{
    struct store_question *question = QUESTION(order);
    (void)reply;
    must(question->loop->asked > 0);
    question->loop->asked--;
    if (outcome == LINK_ANSWERED)
        question->reply = link_keep_reply(order->line->link);
}

void store_questions_free(struct store_question *questions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        freeReplyObject(questions[i].reply);
        redisFreeCommand(questions[i].bytes);
    }
}

/* ---- turns ---- */

static void turn(struct store_loop *loop, uint64_t until_ms)
{
    store_turn(loop->store, clock_ms());
    for (size_t i = 0; i < store_lines(loop->store); i++)
        line_keep(loop, store_line(loop->store, i), clock_ms());
    lines_poll(loop, until_ms);
}

static void line_keep(struct store_loop *loop, struct store_line *line, uint64_t now_ms)
{
    enum link_wish wish = store_wish(line, now_ms);
    if (wish == LINK_HANG_UP)
        line_close(line, "It was hung up on.", now_ms);
    else if (wish == LINK_DIAL)
        line_dial(loop, line);
    if (line->connection != NULL)
        line_write(line, now_ms);
}

static void line_dial(struct store_loop *loop, struct store_line *line)
{
    const char *why;
    link_dialing(line->link, clock_ms());
    line->connection = store_wire_new(&line->address, &loop->options.url->tls, loop->tls, DIAL_MS, &why);
    if (line->connection != NULL)
        link_connected(line->link, clock_ms());
    else
        link_closed(line->link, why, clock_ms());
}

static void line_write(struct store_line *line, uint64_t now_ms)
{
    for (;;) {
        struct span output = link_output(line->link);
        ssize_t sent = output.len == 0 ? 0 : store_wire_write(line->connection, output);
        if (sent < 0)
            line_close(line, LOST, now_ms);
        if (sent <= 0)
            return;
        link_sent(line->link, (size_t)sent);
    }
}

static void line_close(struct store_line *line, const char *why, uint64_t now_ms)
{
    store_wire_free(line->connection);
    line->connection = NULL;
    link_closed(line->link, why, now_ms);
}

/* Until something comes, somebody is due or the time is over. */
static void lines_poll(struct store_loop *loop, uint64_t until_ms)
{
    struct pollfd fds[STORE_LINES_MAX];
    struct store_line *lines[STORE_LINES_MAX];
    nfds_t count = 0;
    for (size_t i = 0; i < store_lines(loop->store); i++) {
        struct store_line *line = store_line(loop->store, i);
        if (line->connection == NULL)
            continue;
        short events = (short)(link_output(line->link).len > 0 ? POLLIN | POLLOUT : POLLIN);
        fds[count] = (struct pollfd){.fd = store_wire_fd(line->connection), .events = events};
        lines[count++] = line;
    }
    uint64_t now_ms = clock_ms(), due_ms = store_due_ms(loop->store);
    due_ms = due_ms < until_ms ? due_ms : until_ms;
    (void)poll(fds, count, due_ms > now_ms ? (int)(due_ms - now_ms) : 0);
    now_ms = clock_ms();
    for (nfds_t i = 0; i < count; i++)
        if ((fds[i].revents & ~POLLOUT) != 0)
            line_read(lines[i], now_ms);
}

static void line_read(struct store_line *line, uint64_t now_ms)
{
    static char bytes[READ_BYTES];
    for (;;) {
        ssize_t got = store_wire_read(line->connection, bytes, sizeof(bytes));
        if (got < 0)
            line_close(line, LOST, now_ms);
        if (got <= 0)
            return;
        link_received(line->link, (struct span){bytes, (size_t)got}, now_ms);
    }
}

static uint64_t clock_ms(void)
{
    struct timespec now;
    must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
