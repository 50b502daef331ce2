/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands, half of them to be confirmed by two replicas, and three servers that say anything, hang up or keep silent, at any
 * moment. Whatever they do: each command ends once and by its deadline; is done by none but the process that it was written for,
 * or one that this names while the slot moves; was done by nobody if it ends as unsent; and if it is answered and was to be
 * confirmed, the server that did it has said of that very connection that two replicas know.
 *
 * An input is a row of steps, and of what the servers say.
 */
#define _GNU_SOURCE
#include "base/must.h"
#include "redis/courier.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define COMMANDS   8
#define TIMEOUT_MS 400
#define STEP_MS    64
#define DO         "*3\r\n$2\r\nDO\r\n$1\r\n" /* and a digit, and the run id's first letter and length */
#define DO_LEN     (sizeof(DO "0\r\n$1\r\na\r\n") - 1)
#define ASKING     "*1\r\n$6\r\nASKING\r\n"
#define WAIT       "*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$3\r\n350\r\n"
#define GREETING   "*3\r\n$6\r\nCLIENT\r\n"
#define SLOTS_ASK  "*2\r\n$7\r\nCLUSTER\r\n"
#define IS_AT(text, literal) \
    ((text).len >= sizeof(literal) - 1 && memcmp((text).data, literal, sizeof(literal) - 1) == 0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct trial {
    struct redis_command command; /* first */
    uint8_t number;
    bool is_given, is_done, is_known; /* done by a server, which says that its replicas know it */
    uint64_t deadline_ms;
};

/* A server's end of a connection. */
struct side {
    char run_id;
    bool is_silent, is_asked; /* owes an answer; ASKING came last */
    bool has_done[COMMANDS];
};

static struct store *store;
static struct transport *courier;
static struct trial trials[COMMANDS];
static uint64_t now_ms;
static struct span input;

static uint64_t now(void);
static uint8_t input_take(void);
static void trial_give(uint8_t number);
static char *trial_write(struct redis_command *command, const char *run_id, size_t *len);
static void trial_ended(struct redis_command *command, enum command_end end, const struct redisReply *reply);
static void lines_play(void);
static bool line_play(struct store_line *line);
static void line_dial(struct store_line *line);
static void line_close(struct store_line *line);
static struct span reply_write(struct side *side, struct span out, char *reply, size_t size);
static const char *reply_next(struct side *side, struct span *out, bool is_heard);
static const char *greeting_reply(const struct side *side);
static const char *do_reply(struct side *side, struct span bytes, bool is_heard);
static const char *wait_reply(struct side *side, bool is_heard);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct store_url url;
    static const struct store_options options = {
        .url = &url,
        .name = "weir",
        .dial_ms = 100,
        .silence_ms = 900,
        .in_flight_max = 4,
        .out_bytes_max = 256,
        .waiting_max = 5,
    };
    must(store_url_read(SPAN("redis://10.0.0.1,10.0.0.2"), &url) == NULL);
    now_ms = 1000;
    memset(trials, 0, sizeof(trials));
    store = store_new(&options, size, now_ms);
    courier = courier_new(&(struct courier_options){store, now, TIMEOUT_MS, 2});
    must(store != NULL && courier != NULL);
    input = (struct span){(const char *)data, size};
    while (input.len > 0) {
        uint8_t step = input_take();
        if (step < 128)
            trial_give(step % COMMANDS);
        else
            now_ms += step % STEP_MS;
        store_turn(store, now_ms);
        courier_turn(courier);
        lines_play();
    }
    for (size_t i = 0; i < store_lines(store); i++)
        if (link_is_open(store_line(store, i)->link))
            line_close(store_line(store, i));
    courier_free(courier);
    store_free(store);
    for (size_t i = 0; i < COMMANDS; i++)
        must(!trials[i].is_given);
    return 0;
}

static uint64_t now(void)
{
    return now_ms;
}

static uint8_t input_take(void)
{
    if (input.len == 0)
        return 0;
    input = (struct span){input.data + 1, input.len - 1};
    return (uint8_t)input.data[-1];
}

/* ---- commands ---- */

static void trial_give(uint8_t number)
{
    struct trial *trial = &trials[number];
    if (trial->is_given)
        return;
    *trial = (struct trial){
        .command = {.slot = number / 2 * 4000U,
                    .is_confirmed = number % 2 == 0,
                    .write = trial_write,
                    .done = trial_ended},
        .number = number,
        .is_given = true,
        .deadline_ms = now_ms + TIMEOUT_MS,
    };
    courier->submit(courier, &trial->command);
}

static char *trial_write(struct redis_command *command, const char *run_id, size_t *len)
{
    char *bytes = NULL;
    must(strlen(run_id) == 1 && !((struct trial *)command)->is_done);
    *len = DO_LEN;
    must(asprintf(&bytes, DO "%u\r\n$1\r\n%s\r\n", ((struct trial *)command)->number, run_id) == (int)DO_LEN);
    return bytes;
}

static void trial_ended(struct redis_command *command, enum command_end end, const struct redisReply *reply)
{
    struct trial *trial = (struct trial *)command;
    must(trial->is_given && (reply != NULL) == (end == COMMAND_ANSWERED));
    must(end != COMMAND_UNSENT || !trial->is_done);
    must(end != COMMAND_UNCONFIRMED || (trial->is_done && command->is_confirmed));
    if (end == COMMAND_ANSWERED && reply->type != REDIS_REPLY_ERROR)
        must(trial->is_done && (trial->is_known || !command->is_confirmed));
    trial->is_given = false;
}

/* ---- connections ---- */

static void lines_play(void)
{
    uint32_t given = 0;
    for (size_t i = 0; i < store_lines(store); i++)
        while (line_play(store_line(store, i)))
            continue;
    for (size_t i = 0; i < COMMANDS; i++) {
        must(!trials[i].is_given || now_ms < trials[i].deadline_ms + STEP_MS);
        given += trials[i].is_given;
    }
    must(courier_under_way(courier) == given);
}

/* Whether there may be more to do. */
static bool line_play(struct store_line *line)
{
    char text[2048];
    enum link_wish wish = store_wish(line, now_ms);
    if (wish == LINK_DIAL)
        line_dial(line);
    else if (wish == LINK_HANG_UP)
        line_close(line);
    struct span out = link_output(line->link);
    if (out.len == 0)
        return false;
    must(line->connection != NULL);
    struct span reply = reply_write(line->connection, out, text, sizeof(text));
    link_sent(line->link, out.len);
    if (reply.data == NULL)
        line_close(line);
    else
        link_received(line->link, reply, now_ms);
    return link_is_open(line->link);
}

static void line_dial(struct store_line *line)
{
    struct side *side = calloc(1, sizeof(*side));
    must(side != NULL);
    side->run_id = line->address.host[strlen(line->address.host) - 1];
    line->connection = side;
    link_dialing(line->link, now_ms);
    if (input_take() % 8 == 1)
        line_close(line);
    else
        link_connected(line->link, now_ms);
}

static void line_close(struct store_line *line)
{
    free(line->connection);
    line->connection = NULL;
    link_closed(line->link, "It hung up.", now_ms);
}

/* ---- servers ---- */

/* To all that was written, in order. No data: the server hangs up, after what it may have done. */
static struct span reply_write(struct side *side, struct span out, char *reply, size_t size)
{
    bool has_hung_up = false;
    int len = 0;
    reply[0] = '\0';
    while (out.len > 0) {
        const char *says = reply_next(side, &out, !side->is_silent && !has_hung_up);
        has_hung_up |= says == NULL;
        side->is_silent |= says != NULL && says[0] == '\0';
        if (!has_hung_up && !side->is_silent)
            len += snprintf(reply + len, size - (size_t)len, "%s", says);
        must(len >= 0 && (size_t)len < size);
    }
    return has_hung_up ? SPAN_NONE : (struct span){reply, (size_t)len};
}

/* To the next command: NULL: it hangs up; empty: it says nothing any more. */
static const char *reply_next(struct side *side, struct span *out, bool is_heard)
{
    struct span bytes = *out;
    size_t len = bytes.len;
    const char *says;
    if (IS_AT(bytes, GREETING))
        says = greeting_reply(side);
    else if (IS_AT(bytes, SLOTS_ASK))
        says = input_take() % 2 == 0 ? "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$8\r\n10.0.0.1\r\n:6379\r\n"
                                     : "*2\r\n*3\r\n:0\r\n:5000\r\n*2\r\n$8\r\n10.0.0.2\r\n:6379\r\n"
                                       "*3\r\n:5001\r\n:16000\r\n*2\r\n$8\r\n10.0.0.3\r\n:6379\r\n";
    else if (IS_AT(bytes, ASKING)) {
        len = sizeof(ASKING) - 1;
        says = "+OK\r\n";
    } else if (IS_AT(bytes, WAIT)) {
        len = sizeof(WAIT) - 1;
        says = wait_reply(side, is_heard);
    } else {
        must(IS_AT(bytes, DO));
        len = DO_LEN;
        says = do_reply(side, bytes, is_heard);
    }
    side->is_asked = IS_AT(bytes, ASKING);
    *out = (struct span){bytes.data + len, bytes.len - len};
    return says;
}

static const char *greeting_reply(const struct side *side)
{
    static char text[128];
    if (input_take() % 8 == 1)
        return "+OK\r\n-NOAUTH no\r\n";
    (void)snprintf(text, sizeof(text),
                   "+OK\r\n$0\r\n\r\n$28\r\nredis_mode:cluster\r\nrun_id:%c\r\n$11\r\nrole:master\r\n",
                   side->run_id);
    return text;
}

/* Done, or refused. If nobody will hear what is said, it may have been either: so it counts as done. */
static const char *do_reply(struct side *side, struct span bytes, bool is_heard)
{
    static const char *const says[] = {
        "+OK\r\n",
        "-MOVED 2000 10.0.0.3:6379\r\n",
        "-MOVED 8000 10.0.0.2:6379\r\n",
        "-ASK 4000 10.0.0.3:6379\r\n",
        "-LOADING\r\n",
        "-READONLY\r\n",
        "-CLUSTERDOWN\r\n",
        "-OOM\r\n",
        "-NOAUTH\r\n",
        "-NOSCRIPT\r\n",
        "*2\r\n$1\r\na\r\n:7\r\n",
        "-ERR no\r\n",
        "",
        NULL,
        ":1\r\n",
        "$-1\r\n",
    };
    size_t number = (size_t)(bytes.data[sizeof(DO) - 1] - '0');
    const char *text = says[input_take() % 16];
    bool is_refused = is_heard && text != NULL && text[0] == '-' && strcmp(text, "-ERR no\r\n") != 0;
    must(number < COMMANDS && trials[number].is_given && !trials[number].is_done);
    must(bytes.data[DO_LEN - 3] == side->run_id || side->is_asked);
    trials[number].is_done = side->has_done[number] = !is_refused;
    return text;
}

static const char *wait_reply(struct side *side, bool is_heard)
{
    static const char *const says[] = {":2\r\n",      ":3\r\n", ":2\r\n", ":1\r\n",
                                       "-ERR no\r\n", "+2\r\n", "",       NULL};
    const char *text = says[input_take() % 8];
    for (size_t i = 0; i < COMMANDS; i++)
        trials[i].is_known |=
            is_heard && side->has_done[i] && text != NULL && text[0] == ':' && text[1] >= '2';
    memset(side->has_done, 0, sizeof(side->has_done));
    return text;
}
