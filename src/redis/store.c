/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nothing here decides twice: where a slot is says the topology, whether a command can have happened says its link, what a refusal
 * asks for says its list. The store only carries orders between them. An order is always in one place: in flight on a link, or in
 * the row of those that wait, or done. What a refusal asks for is done in the next turn, when the time is known. The row is gone
 * over only when somebody's time has come or a line or the map has become another: a turn costs nothing if nobody can move.
 *
 * Who keeps what is asked on a line of its own, the scout: a new one for each greeting, for it may be anybody that is greeted.
 */
#include "redis/store.h"

#include "base/must.h"

#include <stdlib.h>

#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))
#define NEVER        UINT64_MAX
#define AGAIN_MS     10 /* before another try; doubled each time, */
#define AGAIN_TIMES  5  /* so often */
#define HOPS_MAX     4 /* that are followed at once: of two servers that name each other neither is right yet */
#define TRIES_MAX    64
#define SCOUT_BYTES  4096
#define NOT_YET      "Not every primary of the store has been reached yet."
#define ASKING       "*1\r\n$6\r\nASKING\r\n"
#define ORDER_OF(at) ((struct store_order *)(void *)((char *)(at)-offsetof(struct store_order, command)))
#define STORE_OF(at) ((struct store *)(void *)((char *)(at)-offsetof(struct store, scout_command)))

struct store {
    const struct store_options *options;
    struct link_options server, scout, sentinel; /* for the links */
    struct topology *topology;
    uint64_t version; /* of the map that the lines are made for */
    bool is_whole;    /* it was, at the last turn */
    uint64_t now_ms;  /* of the last turn */
    uint64_t begun_ms;
    uint64_t dice;

    struct store_line *lines[STORE_LINES_MAX];
    size_t line_count;
    struct store_line *of_place[STORE_LANE_SCOUT][SLOT_MAP_PRIMARIES_MAX]; /* in the map; NULL: look for it */
    uint64_t of_place_version;                                             /* of that map */
    bool has_served;                                                       /* all primaries were ready once */
    struct link_counts gone;                                               /* of lines that are no more */
    struct store_line *scout_line;                                         /* NULL: nobody is being asked */
    struct link_command scout_command;
    bool is_scout_asked, is_scout_done;

    struct store_order *waiting, **waiting_end;
    uint32_t waiting_count;
    uint64_t waiting_due_ms;                      /* nothing is to be done for any of them before, */
    bool is_stirred;                              /* unless this: a line or the map is another now */
    bool is_trying;                               /* those that wait; */
    struct store_order *given, **given_end;       /* meanwhile: they stand behind all of them */
    uint64_t waiting_turn;                        /* of the last of those that wait, or later */
    uint64_t turns;                               /* orders given so far */
    uint64_t waits[STORE_LANE_SCOUT][SLOTS / 64]; /* a bit for each slot of which one waits */
    char *asking;                                 /* room for ASKING and a command */
};

static void options_make(struct store *store);
static const char *server_password(void *context, struct store_text *out);
static const char *sentinel_password(void *context, struct store_text *out);
static bool is_given_up(struct store *store, const struct store_order *order, uint64_t now_ms);
static void order_try(struct store *store, struct store_order *order, uint64_t now_ms);
static void order_give(struct store *store, struct store_order *order, struct store_line *line,
                       uint64_t now_ms);
static void order_again(struct store *store, struct store_order *order, uint64_t now_ms);
static bool is_named(const struct store_order *order);
static bool is_lost(const struct store_line *line);
static struct store_line *order_line(struct store *store, const struct store_order *order);
static struct span order_bytes(struct store *store, struct store_order *order);
static void order_answered(struct link_command *command, enum link_outcome outcome, const redisReply *reply);
static bool is_for_store(const struct store_order *order, enum refusal_deed deed);
static void order_put_back(struct store *store, struct store_order *order);
static void order_wait(struct store *store, struct store_order *order);
static void order_insert(struct store *store, struct store_order *order, struct store_order **at);
static uint64_t order_due_ms(const struct store_order *order);
static bool is_waiting(const struct store *store, const struct store_order *order);
static void order_end(struct store_order *order);
static void waiting_try(struct store *store, uint64_t now_ms);
static void given_wait(struct store *store);
static struct store_order *waiting_take(struct store *store);
static void refusal_heed(struct store *store, struct store_order *order, uint64_t now_ms);
static void topology_ask(struct store *store, uint64_t now_ms);
static bool scout_greets(struct store *store, const struct question *question, uint64_t now_ms);
static bool scout_asks(struct store *store, uint64_t now_ms);
static void scout_answered(struct link_command *command, enum link_outcome outcome, const redisReply *reply);
static void scout_dismiss(struct store *store);
static void lines_match(struct store *store);
static void lines_note(struct store *store, uint64_t now_ms);
static void line_note(struct store *store, struct store_line *line, uint64_t now_ms);
static bool are_all_ready(const struct store *store);
static void lines_leave(struct store *store);
static void places_forget(struct store *store);
static struct store_line *line_of(struct store *store, const struct primary *primary, enum store_lane lane);
static struct store_line *line_find(const struct store *store, const struct address *address,
                                    enum store_lane lane);
static struct store_line *line_get(struct store *store, const struct address *address, enum store_lane lane);
static struct store_line *line_make(struct store *store, const struct address *address, enum store_lane lane,
                                    const struct link_options *options);
static bool is_primary(const struct store *store, const struct address *address);
static void counts_add(struct link_counts *sum, const struct link_counts *counts);
static uint32_t dice_next(struct store *store);

struct store *store_new(const struct store_options *options, uint64_t seed, uint64_t now_ms)
{
    struct store *store = calloc(1, sizeof(*store));
    if (store == NULL)
        return NULL;
    store->options = options;
    store->dice = seed | 1;
    store->now_ms = store->begun_ms = now_ms;
    store->waiting_end = &store->waiting;
    store->given_end = &store->given;
    store->waiting_due_ms = NEVER;
    store->topology = topology_new(options->url, now_ms);
    store->asking = malloc(strlen(ASKING) + options->out_bytes_max);
    options_make(store);
    if (store->topology != NULL && store->asking != NULL)
        return store;
    store_free(store);
    return NULL;
}

static void options_make(struct store *store)
{
    const struct store_options *options = store->options;
    store->server = (struct link_options){
        .user = options->url->login.user.data,
        .password = options->url->login.source == SECRET_NONE ? NULL : server_password,
        .context = store,
        .database = options->url->database,
        .name = options->name,
        .needs_primary = true,
        .dial_ms = options->dial_ms,
        .silence_ms = options->silence_ms,
        .in_flight_max = options->in_flight_max,
        .out_bytes_max = options->out_bytes_max,
    };
    store->scout = store->server;
    store->scout.needs_primary = false;
    store->scout.in_flight_max = 1;
    store->scout.out_bytes_max = SCOUT_BYTES;
    store->sentinel = store->scout;
    store->sentinel.user = options->url->sentinel_login.user.data;
    store->sentinel.password = options->url->sentinel_login.source == SECRET_NONE ? NULL : sentinel_password;
    store->sentinel.database = 0;
}

static const char *server_password(void *context, struct store_text *out)
{
    const struct store_options *options = ((struct store *)context)->options;
    return options->password(options->context, &options->url->login, out);
}

static const char *sentinel_password(void *context, struct store_text *out)
{
    const struct store_options *options = ((struct store *)context)->options;
    return options->password(options->context, &options->url->sentinel_login, out);
}

void store_free(struct store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->line_count; i++) {
        link_free(store->lines[i]->link);
        must(store->lines[i]->holder == NULL);
        free(store->lines[i]);
    }
    store_drop_orders(store);
    topology_free(store->topology);
    free(store->asking);
    free(store);
}

void store_drop_orders(struct store *store)
{
    while (store->waiting != NULL)
        order_end(waiting_take(store));
}

/* ---- orders ---- */

void store_send(struct store *store, struct store_order *order, uint64_t now_ms)
{
    must(order->slot < SLOTS && order->lane != STORE_LANE_SCOUT && order->done != NULL);
    order->store = store;
    order->line = NULL;
    order->refusal.deed = REFUSAL_FAILED;
    order->is_new_refusal = order->awaits_line = false;
    order->tries = 0;
    order->turn = store->turns++;
    order->again_ms = now_ms;
    order->is_behind = is_waiting(store, order);
    if (order->needs_map)
        topology_hurry(store->topology, now_ms);
    if (is_given_up(store, order, now_ms))
        order_end(order);
    else if (store->is_trying) {
        order->next = NULL;
        *store->given_end = order;
        store->given_end = &order->next;
    } else if (order->is_behind)
        order_wait(store, order);
    else
        order_try(store, order, now_ms);
}

static bool is_given_up(struct store *store, const struct store_order *order, uint64_t now_ms)
{
    const struct primary *primary = topology_find(store->topology, order->slot);
    if (primary == NULL)
        return topology_version(store->topology) == 0 && now_ms >= store->begun_ms + STORE_TROUBLE_MS;
    const struct store_line *line = line_of(store, primary, order->lane);
    return line != NULL && link_state(line->link) != LINK_READY && !line->is_ready &&
           now_ms >= line->unready_ms + STORE_TROUBLE_MS;
}

static void order_try(struct store *store, struct store_order *order, uint64_t now_ms)
{
    struct store_line *line = order_line(store, order);
    bool is_early = order->needs_map && !topology_is_whole(store->topology);
    order->awaits_line =
        is_early || line == NULL || line->holder != NULL || link_state(line->link) != LINK_READY;
    if (!order->awaits_line)
        order_give(store, order, line, now_ms);
    else if (!is_early && is_named(order) && is_lost(line)) {
        order->refusal.deed = REFUSAL_WAIT; /* who was named is not there: back to the map */
        order_again(store, order, now_ms);
    } else
        order_wait(store, order);
}

/* A connection that is ready reaches one process for as long as it lives: what it takes now goes to that one or to nobody. */
static void order_give(struct store *store, struct store_order *order, struct store_line *line,
                       uint64_t now_ms)
{
    bool is_asking = order->refusal.deed == REFUSAL_ASK;
    if (order->write != NULL && !is_asking && !order->write(order, link_peer(line->link)->run_id)) {
        order_end(order);
        return;
    }
    order->command = (struct link_command){
        .done = order_answered, .deadline_ms = order->deadline_ms, .replies_before = is_asking};
    order->line = line;
    order->tries++;
    if (!link_send(line->link, &order->command, order_bytes(store, order), now_ms))
        order_again(store, order, now_ms);
}

static void order_again(struct store *store, struct store_order *order, uint64_t now_ms)
{
    order->awaits_line = false;
    order->again_ms = now_ms + (AGAIN_MS << MIN(order->tries - 1, AGAIN_TIMES - 1));
    order_wait(store, order);
}

static bool is_named(const struct store_order *order)
{
    return order->refusal.deed == REFUSAL_ASK || order->refusal.deed == REFUSAL_FOLLOW;
}

static bool is_lost(const struct store_line *line)
{
    return line == NULL || (link_state(line->link) != LINK_READY && link_counts(line->link).losses > 0);
}

/* Where a redirect says, for it is newer than the map; else who keeps the slot. NULL: nobody, or no line to them can be made. */
static struct store_line *order_line(struct store *store, const struct store_order *order)
{
    const struct primary *primary = topology_find(store->topology, order->slot);
    if (is_named(order))
        return line_get(store, &order->refusal.address, order->lane);
    return primary == NULL ? NULL : line_of(store, primary, order->lane);
}

static struct span order_bytes(struct store *store, struct store_order *order)
{
    struct span bytes = order->bytes;
    static const struct span asking = SPAN(ASKING);
    if (order->refusal.deed != REFUSAL_ASK || bytes.len > store->options->out_bytes_max)
        return bytes;
    memcpy(store->asking, asking.data, asking.len);
    memcpy(store->asking + asking.len, bytes.data, bytes.len);
    return (struct span){store->asking, asking.len + bytes.len};
}

static void order_answered(struct link_command *command, enum link_outcome outcome, const redisReply *reply)
{
    struct store_order *order = ORDER_OF(command);
    order->refusal.deed = REFUSAL_FAILED;
    if (outcome == LINK_UNSENT)
        order->refusal = (struct refusal){.deed = REFUSAL_WAIT, .word = "unsent"};
    else if (outcome == LINK_ANSWERED && reply->type == REDIS_REPLY_ERROR)
        order->refusal = refusal_read((struct span){reply->str, reply->len}, &order->line->address);
    if (!is_for_store(order, order->refusal.deed)) {
        order->done(order, outcome, reply);
        return;
    }
    order->is_new_refusal = true;
    order->is_behind = order->awaits_line = false;
    order->again_ms = 0;
    order_put_back(order->store, order);
}

/* Whether something can be done about it here. */
static bool is_for_store(const struct store_order *order, enum refusal_deed deed)
{
    return deed != REFUSAL_FAILED && deed != REFUSAL_OPERATOR && deed != REFUSAL_LOAD &&
           order->tries < TRIES_MAX;
}

/* Those given after it may wait already: it goes before them. */
static void order_put_back(struct store *store, struct store_order *order)
{
    struct store_order **at = &store->waiting;
    if (!is_waiting(store, order) || order->turn > store->waiting_turn)
        at = store->waiting_end; /* as usual: a server that refuses one refuses those behind it too */
    while (*at != NULL &&
           ((*at)->slot != order->slot || (*at)->lane != order->lane || (*at)->turn < order->turn))
        at = &(*at)->next;
    order_insert(store, order, at);
}

static void order_wait(struct store *store, struct store_order *order)
{
    order_insert(store, order, store->waiting_end);
}

static void order_insert(struct store *store, struct store_order *order, struct store_order **at)
{
    if (store->waiting_count == store->options->waiting_max) {
        order_end(order);
        return;
    }
    store->waits[order->lane][order->slot / 64] |= 1ULL << order->slot % 64;
    store->waiting_due_ms = MIN(store->waiting_due_ms, order_due_ms(order));
    store->waiting_turn = MAX(store->waiting_turn, order->turn);
    store->waiting_count++;
    order->next = *at;
    *at = order;
    if (order->next == NULL)
        store->waiting_end = &order->next;
}

static uint64_t order_due_ms(const struct store_order *order)
{
    return order->is_behind || order->awaits_line ? order->deadline_ms
                                                  : MIN(order->again_ms, order->deadline_ms);
}

/* Whether one of its slot and lane waits. */
static bool is_waiting(const struct store *store, const struct store_order *order)
{
    return (store->waits[order->lane][order->slot / 64] >> order->slot % 64 & 1) != 0;
}

static void order_end(struct store_order *order)
{
    order->done(order, LINK_UNSENT, NULL);
}

/* Everybody in the row once: who still waits goes to its end, and so stands as before when all have been there. */
static void waiting_try(struct store *store, uint64_t now_ms)
{
    uint32_t count = store->waiting_count;
    if (!store->is_stirred && now_ms < store->waiting_due_ms)
        return;
    store->is_stirred = false;
    store->waiting_due_ms = NEVER;
    store->waiting_turn = 0;
    memset(store->waits, 0, sizeof(store->waits));
    store->is_trying = true;
    for (uint32_t i = 0; i < count; i++) {
        struct store_order *order = waiting_take(store);
        if (order->is_new_refusal)
            refusal_heed(store, order, now_ms);
        order->is_behind = is_waiting(store, order);
        if (now_ms >= order->deadline_ms)
            order_end(order);
        else if (now_ms >= order->again_ms && !order->is_behind)
            order_try(store, order, now_ms);
        else
            order_wait(store, order);
    }
    store->is_trying = false;
    given_wait(store);
}

/* The next turn, which is due at once, looks at them. */
static void given_wait(struct store *store)
{
    struct store_order *order = store->given;
    store->given = NULL;
    store->given_end = &store->given;
    for (struct store_order *next; order != NULL; order = next) {
        next = order->next;
        order->is_behind = is_waiting(store, order);
        order_wait(store, order);
    }
}

static struct store_order *waiting_take(struct store *store)
{
    struct store_order *order = store->waiting;
    store->waiting = order->next;
    store->waiting_count--;
    if (store->waiting == NULL)
        store->waiting_end = &store->waiting;
    return order;
}

static void refusal_heed(struct store *store, struct store_order *order, uint64_t now_ms)
{
    const struct refusal *refusal = &order->refusal;
    order->is_new_refusal = false;
    order->again_ms = now_ms;
    switch (refusal->deed) {
    case REFUSAL_FOLLOW:
        topology_follow(store->topology, refusal->slot, &refusal->address, now_ms, dice_next(store));
        if (order->tries < HOPS_MAX)
            return;
        break;
    case REFUSAL_ASK:
        return;
    case REFUSAL_LOOK:
        topology_doubt(store->topology, now_ms, dice_next(store));
        if (strcmp(refusal->word, "READONLY") == 0 || strcmp(refusal->word, "MASTERDOWN") == 0)
            link_renew(order->line->link, "The server is a replica now.");
        break;
    default:
        break;
    }
    order->again_ms += AGAIN_MS << MIN(order->tries - 1, AGAIN_TIMES - 1);
}

/* ---- turns ---- */

void store_turn(struct store *store, uint64_t now_ms)
{
    store->now_ms = now_ms;
    for (size_t i = 0; i < store->line_count; i++)
        if (now_ms >= link_due_ms(store->lines[i]->link))
            link_timer(store->lines[i]->link, now_ms);
    lines_note(store, now_ms);
    topology_ask(store, now_ms);
    lines_match(store);
    if (store->is_stirred && !store->has_served)
        store->has_served = are_all_ready(store);
    waiting_try(store, now_ms);
    lines_leave(store);
}

uint64_t store_due_ms(const struct store *store)
{
    uint64_t due_ms = MIN(topology_due_ms(store->topology), store->waiting_due_ms);
    if (store->is_stirred || store->version != topology_version(store->topology))
        return 0;
    for (size_t i = 0; i < store->line_count; i++)
        if (!store->lines[i]->is_leaving)
            due_ms = MIN(due_ms, link_due_ms(store->lines[i]->link));
    return due_ms;
}

/* ---- the scout ---- */

static void topology_ask(struct store *store, uint64_t now_ms)
{
    for (;;) {
        struct question question = topology_question(store->topology, now_ms);
        if (question.kind == QUESTION_NONE) {
            scout_dismiss(store);
            return;
        }
        if (question.kind == QUESTION_GREET ? scout_greets(store, &question, now_ms)
                                            : scout_asks(store, now_ms))
            return;
    }
}

/* False: it is known how it went, and there may be another question. */
static bool scout_greets(struct store *store, const struct question *question, uint64_t now_ms)
{
    if (store->is_scout_done)
        scout_dismiss(store);
    if (store->scout_line == NULL) {
        const struct link_options *options = question->is_of_sentinel ? &store->sentinel : &store->scout;
        store->scout_line = line_make(store, &question->address, STORE_LANE_SCOUT, options);
        store->is_scout_asked = store->is_scout_done = false;
        if (store->scout_line == NULL)
            topology_failed(store->topology, "There is no memory to look for the primaries.", now_ms,
                            dice_next(store));
        return store->scout_line != NULL;
    }
    const struct link *link = store->scout_line->link;
    if (link_counts(link).losses > 0)
        topology_failed(store->topology, link_trouble(link), now_ms, dice_next(store));
    else if (link_state(link) == LINK_READY)
        topology_greeted(store->topology, link_peer(link), now_ms, dice_next(store));
    else
        return true;
    enum question_kind next = topology_question(store->topology, now_ms).kind;
    store->is_scout_done = next == QUESTION_GREET || next == QUESTION_NONE;
    return false;
}

static bool scout_asks(struct store *store, uint64_t now_ms)
{
    char *bytes;
    if (store->is_scout_asked)
        return true;
    store->is_scout_asked = true;
    store->scout_command =
        (struct link_command){.done = scout_answered, .deadline_ms = now_ms + store->options->dial_ms};
    size_t len = topology_format(store->topology, &bytes);
    if (len > 0 &&
        link_send(store->scout_line->link, &store->scout_command, (struct span){bytes, len}, now_ms)) {
        redisFreeCommand(bytes);
        return true;
    }
    if (len > 0)
        redisFreeCommand(bytes);
    store->is_scout_done = true;
    topology_failed(store->topology, "The server cannot be asked for the primaries.", now_ms,
                    dice_next(store));
    return false;
}

static void scout_answered(struct link_command *command, enum link_outcome outcome, const redisReply *reply)
{
    struct store *store = STORE_OF(command);
    store->is_scout_done = true;
    if (outcome == LINK_ANSWERED)
        topology_answered(store->topology, reply, store->now_ms, dice_next(store));
    else
        topology_failed(store->topology, "The server did not say in time who the primaries are.",
                        store->now_ms, dice_next(store));
}

static void scout_dismiss(struct store *store)
{
    if (store->scout_line != NULL)
        store->scout_line->is_leaving = true;
    store->scout_line = NULL;
    store->is_scout_asked = store->is_scout_done = false;
}

/* ---- lines ---- */

/* A main line to each primary, before anybody needs it: it says which process is there. */
static void lines_match(struct store *store)
{
    const struct slot_map *map = topology_map(store->topology);
    bool was_whole = store->is_whole;
    store->is_whole = topology_is_whole(store->topology);
    store->is_stirred |= store->is_whole != was_whole;
    if (store->version == topology_version(store->topology))
        return;
    store->version = topology_version(store->topology);
    store->is_stirred = true;
    for (size_t i = 0; i < store->line_count; i++)
        store->lines[i]->is_retired = !is_primary(store, &store->lines[i]->address);
    for (uint16_t i = 0; i < map->count; i++)
        (void)line_get(store, &map->primaries[i].address, STORE_LANE_MAIN);
}

static bool is_primary(const struct store *store, const struct address *address)
{
    const struct slot_map *map = topology_map(store->topology);
    for (uint16_t i = 0; i < map->count; i++)
        if (address_equal(&map->primaries[i].address, address))
            return true;
    return false;
}

static void lines_note(struct store *store, uint64_t now_ms)
{
    for (size_t i = 0; i < store->line_count; i++)
        if (store->lines[i]->lane != STORE_LANE_SCOUT && !store->lines[i]->is_leaving)
            line_note(store, store->lines[i], now_ms);
}

/* A closed door is a doubt: perhaps the primary is elsewhere now. */
static void line_note(struct store *store, struct store_line *line, uint64_t now_ms)
{
    bool is_ready = link_state(line->link) == LINK_READY;
    uint64_t losses = link_counts(line->link).losses;
    if (losses != line->losses)
        topology_doubt(store->topology, now_ms, dice_next(store));
    if (line->is_ready && (!is_ready || losses != line->losses))
        line->unready_ms = now_ms;
    store->is_stirred |= is_ready != line->is_ready || losses != line->losses;
    line->is_ready = is_ready;
    line->losses = losses;
}

static bool are_all_ready(const struct store *store)
{
    const struct slot_map *map = topology_map(store->topology);
    for (uint16_t i = 0; i < map->count; i++) {
        const struct store_line *line = line_find(store, &map->primaries[i].address, STORE_LANE_MAIN);
        if (line == NULL || !line->is_ready)
            return false;
    }
    return map->count > 0;
}

static void lines_leave(struct store *store)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->line_count; i++) {
        struct store_line *line = store->lines[i];
        if (line->is_retired && line->holder == NULL && line->lane != STORE_LANE_SCOUT &&
            link_in_flight(line->link) == 0) {
            line->is_leaving = true;
            places_forget(store);
        }
        if (line->is_leaving && !link_is_open(line->link)) {
            struct link_counts counts = link_counts(line->link);
            counts_add(&store->gone, &counts);
            link_free(line->link);
            free(line);
        } else
            store->lines[kept++] = line;
    }
    store->line_count = kept;
}

static void places_forget(struct store *store)
{
    memset(store->of_place, 0, sizeof(store->of_place));
    store->of_place_version = topology_version(store->topology);
}

/* The line to a primary of the map, without a look at each of them. */
static struct store_line *line_of(struct store *store, const struct primary *primary, enum store_lane lane)
{
    if (store->of_place_version != topology_version(store->topology))
        places_forget(store);
    struct store_line **line = &store->of_place[lane][primary - topology_map(store->topology)->primaries];
    if (*line == NULL)
        *line = line_get(store, &primary->address, lane);
    return *line;
}

static struct store_line *line_find(const struct store *store, const struct address *address,
                                    enum store_lane lane)
{
    for (size_t i = 0; i < store->line_count; i++) {
        struct store_line *line = store->lines[i];
        if (line->lane == lane && !line->is_leaving && address_equal(&line->address, address))
            return line;
    }
    return NULL;
}

static struct store_line *line_get(struct store *store, const struct address *address, enum store_lane lane)
{
    struct store_line *line = line_find(store, address, lane);
    return line != NULL ? line : line_make(store, address, lane, &store->server);
}

static struct store_line *line_make(struct store *store, const struct address *address, enum store_lane lane,
                                    const struct link_options *options)
{
    struct store_line *line = store->line_count < STORE_LINES_MAX ? calloc(1, sizeof(*line)) : NULL;
    if (line == NULL)
        return NULL;
    line->link = link_new(options, (uint64_t)dice_next(store) << 32 | dice_next(store));
    if (line->link == NULL) {
        free(line);
        return NULL;
    }
    line->address = *address;
    line->lane = lane;
    line->unready_ms = store->now_ms;
    store->lines[store->line_count++] = line;
    return line;
}

size_t store_lines(const struct store *store)
{
    return store->line_count;
}

struct store_line *store_line(const struct store *store, size_t place)
{
    must(place < store->line_count);
    return store->lines[place];
}

enum link_wish store_wish(const struct store_line *line, uint64_t now_ms)
{
    if (!line->is_leaving)
        return link_wish(line->link, now_ms);
    return link_is_open(line->link) ? LINK_HANG_UP : LINK_KEEP;
}

void store_hold(struct store_line *line, void *holder)
{
    must(line->holder == NULL && holder != NULL && !line->is_leaving);
    line->holder = holder;
}

void store_release(struct store *store, struct store_line *line)
{
    must(line->holder != NULL);
    line->holder = NULL;
    store->is_stirred = true;
}

/* ---- what it knows ---- */

const struct topology *store_topology(const struct store *store)
{
    return store->topology;
}

const struct peer *store_peer(const struct store *store, uint16_t slot)
{
    const struct primary *primary = topology_find(store->topology, slot);
    const struct store_line *line =
        primary == NULL ? NULL : line_find(store, &primary->address, STORE_LANE_MAIN);
    return line == NULL || link_state(line->link) != LINK_READY ? NULL : link_peer(line->link);
}

bool store_is_running(const struct store *store, const char *run_id)
{
    if (!topology_is_whole(store->topology))
        return false;
    for (size_t i = 0; i < store->line_count; i++) {
        const struct store_line *line = store->lines[i];
        if (line->lane == STORE_LANE_MAIN && link_state(line->link) == LINK_READY && run_id[0] != '\0' &&
            strcmp(link_peer(line->link)->run_id, run_id) == 0 && is_primary(store, &line->address))
            return true;
    }
    return false;
}

const char *store_trouble(const struct store *store)
{
    const char *why = topology_trouble(store->topology);
    for (size_t i = 0; i < store->line_count; i++) {
        const struct store_line *line = store->lines[i];
        if (line->lane == STORE_LANE_MAIN && !line->is_retired && !line->is_ready &&
            (!store->has_served || store->now_ms >= line->unready_ms + STORE_TROUBLE_MS))
            return link_trouble(line->link) != NULL ? link_trouble(line->link) : NOT_YET;
    }
    if (store->has_served)
        return NULL;
    return why != NULL ? why : NOT_YET;
}

struct link_counts store_counts(const struct store *store)
{
    struct link_counts sum = store->gone;
    for (size_t i = 0; i < store->line_count; i++) {
        struct link_counts counts = link_counts(store->lines[i]->link);
        counts_add(&sum, &counts);
    }
    return sum;
}

static void counts_add(struct link_counts *sum, const struct link_counts *counts)
{
    sum->dials += counts->dials;
    sum->losses += counts->losses;
    sum->sent += counts->sent;
    sum->answered += counts->answered;
    sum->late += counts->late;
    sum->refused += counts->refused;
}

static uint32_t dice_next(struct store *store)
{
    store->dice ^= store->dice << 13;
    store->dice ^= store->dice >> 7;
    store->dice ^= store->dice << 17;
    return (uint32_t)(store->dice >> 32);
}
