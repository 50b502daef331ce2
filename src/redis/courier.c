/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waits for a server waits in the store: there is one row, so there is one order. Here are only the commands that have been
 * answered and not confirmed yet.
 *
 * A batch is what has been sent on one connection of the confirmed lane, and the WAIT behind it. While it lasts the line is held:
 * a WAIT blocks its connection, and what stands behind it on the server could not be taken back any more; here it can, and the
 * next batch gathers. So each answer that comes on a line belongs to its one batch, and is known to the replicas when the WAIT of
 * that batch says so. On another connection there may be another process, which knows nothing of it: so a batch ends with its
 * connection, and nobody knows what became of it.
 *
 * An error is told at once: nothing is handed out on it.
 */
#include "redis/courier.h"

#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>

#define MIN(a, b)      ((a) < (b) ? (a) : (b))
#define MAX(a, b)      ((a) > (b) ? (a) : (b))
#define NEVER          UINT64_MAX
#define COMMAND_OF(at) ((struct redis_command *)(void *)((char *)(at)-offsetof(struct redis_command, order)))
#define BATCH_OF(at)   ((struct batch *)(void *)((char *)(at)-offsetof(struct batch, wait)))

struct batch {
    struct batch *next;
    struct courier *courier;
    struct store_line *line;
    uint64_t connection; /* of the line, counted */
    struct link_command wait;
    bool is_asked; /* the WAIT is under way */
    struct redis_command *held, **held_end;
};

struct courier {
    struct transport transport; /* first */
    struct courier_options options;
    char wait[96]; /* the command, in RESP */
    size_t wait_len;
    uint32_t under_way, confirmed; /* commands, and those of them in the confirmed lane */
    struct batch *batches;
    uint64_t held_due_ms; /* no deadline of one that is held is earlier */
    const char *refusal;  /* that nobody has asked for yet */
    bool is_ending;
};

static void submit(struct transport *transport, struct redis_command *command);
static bool is_running(struct transport *transport, const char *run_id);
static void wait_format(struct courier *courier);
static bool order_write(struct store_order *order, const char *run_id);
static void order_done(struct store_order *order, enum link_outcome outcome, const redisReply *reply);
static void command_hold(struct courier *courier, struct redis_command *command);
static void command_end(struct redis_command *command, enum command_end end, const redisReply *reply);
static void lines_confirm(struct courier *courier);
static struct batch *batch_begin(struct courier *courier, struct store_line *line);
static void batch_ask(struct batch *batch, uint64_t now_ms);
static void wait_done(struct link_command *wait, enum link_outcome outcome, const redisReply *reply);
static void batch_end(struct batch *batch, enum command_end end);
static void held_end(struct redis_command *held, enum command_end end);
static void deadlines_check(struct courier *courier, uint64_t now_ms);
static struct redis_command *late_take(struct batch *batch, uint64_t now_ms);

struct transport *courier_new(const struct courier_options *options)
{
    struct courier *courier = calloc(1, sizeof(*courier));
    if (courier == NULL)
        return NULL;
    must(options->timeout_ms > 0);
    courier->transport = (struct transport){submit, is_running};
    courier->options = *options;
    courier->held_due_ms = NEVER;
    wait_format(courier);
    return &courier->transport;
}

/* For less than a command's time, so that its answer comes within it. (0 would be for ever.) */
static void wait_format(struct courier *courier)
{
    char replicas[16], ms[16];
    uint32_t timeout_ms = courier->options.timeout_ms;
    int replicas_len = snprintf(replicas, sizeof(replicas), "%u", courier->options.replicas);
    int ms_len = snprintf(ms, sizeof(ms), "%u", MAX(timeout_ms - timeout_ms / 8, 1));
    courier->wait_len = (size_t)snprintf(courier->wait, sizeof(courier->wait),
                                         "*3\r\n$4\r\nWAIT\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", replicas_len,
                                         replicas, ms_len, ms);
    must(courier->wait_len < sizeof(courier->wait));
}

void courier_free(struct transport *transport)
{
    struct courier *courier = (struct courier *)transport;
    if (courier == NULL)
        return;
    courier->is_ending = true;
    store_drop_orders(courier->options.store);
    while (courier->batches != NULL) {
        must(!courier->batches->is_asked);
        batch_end(courier->batches, COMMAND_UNKNOWN);
    }
    must(courier->under_way == 0);
    free(courier);
}

/* ---- commands ---- */

static void submit(struct transport *transport, struct redis_command *command)
{
    struct courier *courier = (struct courier *)transport;
    uint64_t now_ms = courier->options.now_ms();
    bool is_confirmed = command->is_confirmed && courier->options.replicas > 0;
    struct store_order *order = &command->order;

    command->bytes = NULL;
    command->reply = NULL;
    command->context = courier;
    order->slot = command->slot;
    order->lane = is_confirmed ? STORE_LANE_CONFIRMED : STORE_LANE_MAIN;
    order->bytes = SPAN_NONE;
    order->write = order_write;
    order->needs_map = command->needs_map;
    order->deadline_ms = now_ms + courier->options.timeout_ms;
    order->done = order_done;
    courier->under_way++;
    courier->confirmed += is_confirmed;
    if (courier->is_ending)
        command_end(command, COMMAND_UNSENT, NULL);
    else
        store_send(courier->options.store, order, now_ms);
}

static bool order_write(struct store_order *order, const char *run_id)
{
    struct redis_command *command = COMMAND_OF(order);
    size_t len = 0;
    free(command->bytes);
    command->bytes = command->write(command, run_id, &len);
    order->bytes = (struct span){command->bytes, len};
    return command->bytes != NULL;
}

static void order_done(struct store_order *order, enum link_outcome outcome, const redisReply *reply)
{
    struct redis_command *command = COMMAND_OF(order);
    if (outcome == LINK_ANSWERED && reply->type == REDIS_REPLY_ERROR && order->refusal.deed != REFUSAL_LOAD)
        ((struct courier *)command->context)->refusal = order->refusal.meaning;
    if (outcome != LINK_ANSWERED)
        command_end(command, outcome == LINK_UNSENT ? COMMAND_UNSENT : COMMAND_UNKNOWN, NULL);
    else if (order->lane == STORE_LANE_CONFIRMED && reply->type != REDIS_REPLY_ERROR)
        command_hold(command->context, command);
    else
        command_end(command, COMMAND_ANSWERED, reply);
}

static void command_hold(struct courier *courier, struct redis_command *command)
{
    struct store_line *line = command->order.line;
    struct batch *batch = line->holder != NULL ? line->holder : batch_begin(courier, line);
    if (batch == NULL) {
        command_end(command, COMMAND_UNKNOWN, NULL);
        return;
    }
    command->reply = link_keep_reply(line->link);
    command->next = NULL;
    *batch->held_end = command;
    batch->held_end = &command->next;
    courier->held_due_ms = MIN(courier->held_due_ms, command->order.deadline_ms);
}

static void command_end(struct redis_command *command, enum command_end end, const redisReply *reply)
{
    struct courier *courier = command->context;
    must(courier->under_way > 0);
    courier->under_way--;
    courier->confirmed -= command->order.lane == STORE_LANE_CONFIRMED;
    if (end == COMMAND_UNCONFIRMED)
        courier->refusal = "too few replicas have said in time that they know of an enter";
    free(command->bytes);
    command->bytes = NULL;
    command->done(command, end, reply);
}

static bool is_running(struct transport *transport, const char *run_id)
{
    return store_is_running(((struct courier *)transport)->options.store, run_id);
}

/* ---- batches ---- */

void courier_turn(struct transport *transport)
{
    struct courier *courier = (struct courier *)transport;
    if (courier->confirmed == 0 && courier->batches == NULL) {
        courier->held_due_ms = NEVER; /* or nobody's deadline would be due for ever */
        return;
    }
    uint64_t now_ms = courier->options.now_ms();
    lines_confirm(courier);
    for (struct batch *batch = courier->batches, *next; batch != NULL; batch = next) {
        next = batch->next;
        if (!batch->is_asked)
            batch_ask(batch, now_ms);
    }
    if (now_ms >= courier->held_due_ms)
        deadlines_check(courier, now_ms);
}

/* What is in flight on a line that nobody holds has no WAIT behind it yet. */
static void lines_confirm(struct courier *courier)
{
    for (size_t i = 0; i < store_lines(courier->options.store); i++) {
        struct store_line *line = store_line(courier->options.store, i);
        if (line->lane == STORE_LANE_CONFIRMED && line->holder == NULL && link_in_flight(line->link) > 0)
            (void)batch_begin(courier, line); /* no memory: another turn, or the answer, comes */
    }
}

static struct batch *batch_begin(struct courier *courier, struct store_line *line)
{
    struct batch *batch = malloc(sizeof(*batch));
    if (batch == NULL)
        return NULL;
    *batch = (struct batch){.next = courier->batches, .courier = courier, .line = line};
    batch->connection = link_counts(line->link).dials;
    batch->held_end = &batch->held;
    courier->batches = batch;
    store_hold(line, batch);
    return batch;
}

/* Until it is answered: while the server says nothing, what comes later had better wait here. */
static void batch_ask(struct batch *batch, uint64_t now_ms)
{
    const struct courier *courier = batch->courier;
    struct link *link = batch->line->link;
    batch->wait = (struct link_command){.done = wait_done,
                                        .deadline_ms = now_ms + 2 * (uint64_t)courier->options.timeout_ms};
    if (link_state(link) != LINK_READY || link_counts(link).dials != batch->connection)
        batch_end(batch, COMMAND_UNKNOWN);
    else
        batch->is_asked =
            link_send(link, &batch->wait, (struct span){courier->wait, courier->wait_len}, now_ms);
}

static void wait_done(struct link_command *wait, enum link_outcome outcome, const redisReply *reply)
{
    struct batch *batch = BATCH_OF(wait);
    enum command_end end = COMMAND_UNKNOWN;
    if (outcome == LINK_ANSWERED)
        end = reply->type == REDIS_REPLY_INTEGER && reply->integer >= batch->courier->options.replicas
                  ? COMMAND_ANSWERED
                  : COMMAND_UNCONFIRMED;
    else
        link_renew(batch->line->link, "The server did not answer a WAIT in time.");
    batch_end(batch, end);
}

static void batch_end(struct batch *batch, enum command_end end)
{
    struct courier *courier = batch->courier;
    struct redis_command *held = batch->held;
    struct batch **at = &courier->batches;
    while (*at != batch)
        at = &(*at)->next;
    *at = batch->next;
    store_release(courier->options.store, batch->line);
    free(batch);
    held_end(held, end);
}

static void held_end(struct redis_command *held, enum command_end end)
{
    for (struct redis_command *next; held != NULL; held = next) {
        redisReply *reply = held->reply;
        next = held->next;
        command_end(held, end, end == COMMAND_ANSWERED ? reply : NULL);
        freeReplyObject(reply);
    }
}

/* ---- time ---- */

static void deadlines_check(struct courier *courier, uint64_t now_ms)
{
    struct redis_command *late = NULL, **late_end = &late;
    courier->held_due_ms = NEVER;
    for (struct batch *batch = courier->batches; batch != NULL; batch = batch->next) {
        *late_end = late_take(batch, now_ms);
        while (*late_end != NULL)
            late_end = &(*late_end)->next;
    }
    held_end(late, COMMAND_UNCONFIRMED);
}

/* Those of a batch whose time is over, and a look at when the next one's will be. */
static struct redis_command *late_take(struct batch *batch, uint64_t now_ms)
{
    struct courier *courier = batch->courier;
    struct redis_command *late = NULL, **late_end = &late, **at = &batch->held;
    while (*at != NULL) {
        struct redis_command *command = *at;
        if (now_ms < command->order.deadline_ms) {
            courier->held_due_ms = MIN(courier->held_due_ms, command->order.deadline_ms);
            at = &command->next;
            continue;
        }
        *at = command->next;
        command->next = NULL;
        *late_end = command;
        late_end = &command->next;
    }
    batch->held_end = at;
    return late;
}

uint64_t courier_due_ms(const struct transport *transport)
{
    return ((const struct courier *)transport)->held_due_ms;
}

const char *courier_take_refusal(struct transport *transport)
{
    struct courier *courier = (struct courier *)transport;
    const char *refusal = courier->refusal;
    courier->refusal = NULL;
    return refusal;
}

uint32_t courier_under_way(const struct transport *transport)
{
    return ((const struct courier *)transport)->under_way;
}
