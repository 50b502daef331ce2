/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three servers that say anything, hang up or keep silent, at any moment. Whatever they do: each order ends once and by its
 * deadline, no order is done twice by servers that refuse it or do it, and one that did nothing was done by nobody.
 *
 * An input is a row of steps, and of what the servers say to each order that reaches them.
 */
#define _GNU_SOURCE
#include "base/must.h"
#include "redis/store.h"

#include <stdio.h>

#define ORDERS  8
#define DO      "*2\r\n$2\r\nDO\r\n$1\r\n" /* and a digit and a line's end */
#define DO_LEN  (sizeof(DO) - 1 + 3)
#define ASKING  "*1\r\n$6\r\nASKING\r\n"
#define LIFE_MS 400
#define IS_AT(text, literal) \
    ((text).len >= sizeof(literal) - 1 && memcmp((text).data, literal, sizeof(literal) - 1) == 0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct store *store;
static struct store_order orders[ORDERS];
static char bytes[ORDERS][DO_LEN + 1];
static bool is_given[ORDERS];
static int done[ORDERS]; /* times that it may have happened since it was given */
static uint64_t now_ms;
static struct span input;

static uint8_t input_take(void);
static void order_give(uint8_t number);
static void order_ended(struct store_order *order, enum link_outcome outcome, const redisReply *reply);
static void lines_play(void);
static bool line_play(struct store_line *line);
static struct span reply_write(struct span out, bool *is_silent, char *reply, size_t size);
static const char *order_judge(size_t number, bool is_silent);
static void all_close(void);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct store_url url;
    static const struct store_options options = {
        .url = &url,
        .name = "weir",
        .dial_ms = 100,
        .silence_ms = 300,
        .in_flight_max = 4,
        .out_bytes_max = 256,
        .waiting_max = 5,
    };
    must(store_url_read(SPAN("redis://10.0.0.1,10.0.0.2"), &url) == NULL);
    now_ms = 1000;
    memset(is_given, 0, sizeof(is_given));
    store = store_new(&options, size, now_ms);
    input = (struct span){(const char *)data, size};
    while (input.len > 0) {
        uint8_t step = input_take();
        if (step < 128)
            order_give(step % ORDERS);
        else
            now_ms += step % 64;
        store_turn(store, now_ms);
        lines_play();
    }
    all_close();
    return 0;
}

static uint8_t input_take(void)
{
    if (input.len == 0)
        return 0;
    input = (struct span){input.data + 1, input.len - 1};
    return (uint8_t)input.data[-1];
}

static void order_give(uint8_t number)
{
    if (is_given[number])
        return;
    (void)snprintf(bytes[number], sizeof(bytes[number]), DO "%u\r\n", number);
    orders[number] = (struct store_order){
        .slot = number * 2000U,
        .lane = number == 7 ? STORE_LANE_CONFIRMED : STORE_LANE_MAIN,
        .bytes = {bytes[number], DO_LEN},
        .deadline_ms = now_ms + LIFE_MS,
        .done = order_ended,
    };
    is_given[number] = true;
    done[number] = 0;
    store_send(store, &orders[number], now_ms);
}

static void order_ended(struct store_order *order, enum link_outcome outcome, const redisReply *reply)
{
    size_t number = (size_t)(order - orders);
    must(number < ORDERS && is_given[number]);
    must((outcome == LINK_ANSWERED) == (reply != NULL));
    must(done[number] <= 1);
    must(outcome != LINK_UNSENT || done[number] == 0);
    is_given[number] = false;
}

static void lines_play(void)
{
    for (size_t i = 0; i < store_lines(store); i++)
        while (line_play(store_line(store, i)))
            continue;
    for (size_t i = 0; i < ORDERS; i++)
        must(!is_given[i] || now_ms < orders[i].deadline_ms + 64);
}

/* Whether there may be more to do. */
static bool line_play(struct store_line *line)
{
    char text[2048];
    enum link_wish wish = store_wish(line, now_ms);
    if (wish == LINK_DIAL) {
        link_dialing(line->link, now_ms);
        line->connection = NULL;
        if (input_take() % 8 == 1)
            link_closed(line->link, "Nobody there.", now_ms);
        else
            link_connected(line->link, now_ms);
    } else if (wish == LINK_HANG_UP)
        link_closed(line->link, "unused", now_ms);
    struct span out = link_output(line->link);
    if (out.len == 0)
        return false;
    bool is_silent = line->connection != NULL;
    struct span reply = reply_write(out, &is_silent, text, sizeof(text));
    line->connection = is_silent ? line : NULL;
    link_sent(line->link, out.len);
    if (reply.data == NULL)
        link_closed(line->link, "It hung up.", now_ms);
    else
        link_received(line->link, reply, now_ms);
    return link_is_open(line->link);
}

/*
 * To all that was written, in order. No data: the server hangs up, after what it may have done. One that once owed an answer says
 * nothing more on that connection: answers come in order.
 */
static struct span reply_write(struct span out, bool *is_silent, char *reply, size_t size)
{
    bool has_hung_up = false;
    int len = 0;
    reply[0] = '\0';
    while (out.len > 0) {
        struct span rest = {out.data + out.len, 0};
        const char *says = "+OK\r\n";
        if (IS_AT(out, DO)) {
            says = order_judge((size_t)(out.data[sizeof(DO) - 1] - '0'), *is_silent || has_hung_up);
            rest = (struct span){out.data + DO_LEN, out.len - DO_LEN};
        } else if (IS_AT(out, ASKING))
            rest = (struct span){out.data + sizeof(ASKING) - 1, out.len - (sizeof(ASKING) - 1)};
        else if (memmem(out.data, out.len, "SLOTS", 5) != NULL)
            says = input_take() % 2 == 0 ? "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$8\r\n10.0.0.1\r\n:6379\r\n"
                                         : "*2\r\n*3\r\n:0\r\n:5000\r\n*2\r\n$8\r\n10.0.0.2\r\n:6379\r\n*"
                                           "3\r\n:5001\r\n:16000\r\n*2\r\n$8\r\n"
                                           "10.0.0.3\r\n:6379\r\n";
        else
            says = input_take() % 8 == 1
                       ? "+OK\r\n-NOAUTH no\r\n"
                       : "+OK\r\n$0\r\n\r\n$28\r\nredis_mode:cluster\r\nrun_id:a\r\n$11\r\nrole:master\r\n";
        has_hung_up |= says == NULL;
        *is_silent |= says != NULL && says[0] == '\0';
        if (!has_hung_up && !*is_silent)
            len += snprintf(reply + len, size - (size_t)len, "%s", says);
        must(len >= 0 && (size_t)len < size);
        out = rest;
    }
    return has_hung_up ? SPAN_NONE : (struct span){reply, (size_t)len};
}

/* What is said to one order, and whether it may have been done: if nobody will hear, it may. NULL: the connection ends. */
static const char *order_judge(size_t number, bool is_silent)
{
    static const char *const says[] = {
        "+OK\r\n",
        "-MOVED 2000 10.0.0.3:6379\r\n",
        "-MOVED 6000 10.0.0.2:6379\r\n",
        "-ASK 2000 10.0.0.3:6379\r\n",
        "-LOADING\r\n",
        "-READONLY\r\n",
        "-CLUSTERDOWN\r\n",
        "-OOM\r\n",
        "-NOAUTH\r\n",
        "-NOSCRIPT\r\n",
        "-TRYAGAIN\r\n",
        "-ERR no\r\n",
        "",
        NULL,
        ":1\r\n",
        "-MOVED x\r\n",
    };
    const char *text = says[input_take() % 16];
    done[number] += is_silent || text == NULL || text[0] != '-' || strcmp(text, "-ERR no\r\n") == 0;
    must(done[number] <= 1);
    return text;
}

static void all_close(void)
{
    for (size_t i = 0; i < store_lines(store); i++)
        if (link_is_open(store_line(store, i)->link))
            link_closed(store_line(store, i)->link, "It is over.", now_ms);
    store_free(store);
    for (size_t i = 0; i < ORDERS; i++)
        must(!is_given[i]);
}
