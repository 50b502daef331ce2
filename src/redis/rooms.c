/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A request is one command under way: the calls that it asks for, or a chore. It is open while calls may be added to it, and ends
 * with the answer. Its command can be written again from the calls: so a server that does not know a script is told the whole of
 * it, at the cost of one more round trip, once.
 *
 * A room that says that another process kept it must be renewed before anything can be asked of it. After a failover each room
 * says so to everybody: those of this worker who asked wait together for one renewal, and then ask again. The script sees to it
 * that of all workers only the first has an effect. A server that goes on saying so, though it has just been renewed, is away.
 */

#include "redis/rooms.h"

#include "base/must.h"
#include "redis/ask.h"
#include "redis/slots.h"

#include <stdlib.h>

#define KINDS         256 /* of calls that could be asked for together: operation and slot; two may share a number */
#define RENEWALS_MOST 2 /* that one request waits for, and that are tried at once */

struct request {
    struct redis_command command; /* first: the transport hands it back */
    struct redis_rooms *rooms;
    struct span room;
    struct redis_chore *chore; /* or calls, or a renewal, or what follows from a tick */
    struct renewal *renewal;
    struct step *step;
    bool is_whole; /* it is sent with the script's text */
    uint8_t renewals;
    uint32_t listed;      /* rooms, by the replies before */
    struct request *next; /* of those that wait for a renewal */
    uint32_t count, size;
    struct engine_call *calls[];
};

/* What a tick told of the shop, worked out. It outlives the tick, and so has its own name of the room. */
struct step {
    struct follower follower;
    char room[ROOM_ID_MAX];
};

/* One at a time for each room. */
struct renewal {
    struct request *request;
    char former[PEER_RUN_ID_MAX + 1];
    struct request *waiting, **end; /* in their order. The first, and its room's name, outlive the renewal */
    struct renewal *next;
};

struct redis_rooms {
    struct transport *transport;
    struct script_names names;
    struct resp resp;
    struct request *open; /* or NULL */
    struct renewal *renewals;
    uint32_t in_flight;
    uint32_t gathered[KINDS]; /* requests with calls that are under way, by kind */
};

static struct request *request_new(struct redis_rooms *rooms, uint16_t slot, struct span room, uint32_t size);
static uint32_t *gathered_of(const struct request *request);
static void request_send(struct request *request);
static char *request_write(struct redis_command *command, const char *run_id, size_t *len);
static void take_reply(struct redis_command *command, enum command_end end, const struct redisReply *reply);
static void request_take(struct request *request, const struct redisReply *reply);
static void request_end(struct request *request, const struct redisReply *reply);
static void step_send(struct request *tick, const struct redisReply *reply);
static void step_end(struct request *request);
static void renewal_await(struct request *request, struct span former);
static void renewal_take(struct request *request, const struct redisReply *reply);

struct redis_rooms *redis_rooms_new(struct transport *transport)
{
    struct redis_rooms *rooms = calloc(1, sizeof(*rooms));

    if (rooms == NULL)
        return NULL;
    rooms->transport = transport;
    script_names_init(&rooms->names);
    return rooms;
}

void redis_rooms_free(struct redis_rooms *rooms)
{
    must(rooms->in_flight == 0 && rooms->open == NULL && rooms->renewals == NULL);
    free(rooms);
}

static bool goes_with(const struct request *open, const struct engine_call *call)
{
    return open->count < open->size && call->op == open->calls[0]->op && span_equal(call->room, open->room);
}

void redis_submit(struct redis_rooms *rooms, struct engine_call *call)
{
    must(ask_has_script(call->op));
    if (call->op == ENGINE_ROOMS)
        call->list.count = 0;
    /* Whoever is answered by a flush may submit, and so open another request. */
    while (rooms->open != NULL && !goes_with(rooms->open, call))
        redis_flush(rooms);
    if (rooms->open == NULL)
        rooms->open = request_new(rooms, ask_call_slot(call), call->room,
                                  ask_may_gather(call->op) ? RESP_CALLS_MAX : 1);
    if (rooms->open != NULL) {
        rooms->open->calls[rooms->open->count++] = call;
        return;
    }
    answer_calls(NULL, &call, 1);
    call->done(call);
}

void redis_submit_chore(struct redis_rooms *rooms, struct redis_chore *chore)
{
    redis_flush(rooms);
    struct request *request = request_new(rooms, ask_chore_slot(chore), chore->room, 0);
    if (request != NULL) {
        request->chore = chore;
        request_send(request);
        return;
    }
    answer_chore(NULL, chore);
    chore->done(chore);
}

void redis_flush(struct redis_rooms *rooms)
{
    struct request *open = rooms->open;

    rooms->open = NULL;
    if (open != NULL)
        request_send(open);
}

/*
 * A script costs as much as four people in it. So whoever comes while others of their kind are under way goes when these are back:
 * the busier the server, the more go together, and where it is not busy nobody waits.
 */
void redis_gather(struct redis_rooms *rooms)
{
    const struct request *open = rooms->open;

    if (open != NULL && (open->count == open->size || *gathered_of(open) == 0))
        redis_flush(rooms);
}

/* ---- requests ---- */

static uint32_t *gathered_of(const struct request *request)
{
    return &request->rooms->gathered[(request->command.slot * 31U + request->calls[0]->op) % KINDS];
}

static struct request *request_new(struct redis_rooms *rooms, uint16_t slot, struct span room, uint32_t size)
{
    struct request *request = malloc(sizeof(*request) + size * sizeof(void *));

    if (request != NULL)
        *request = (struct request){.command = {.slot = slot, .write = request_write, .done = take_reply},
                                    .rooms = rooms,
                                    .room = room,
                                    .size = size};
    return request;
}

static void request_send(struct request *request)
{
    struct redis_rooms *rooms = request->rooms;

    rooms->in_flight++;
    if (request->count > 0)
        ++*gathered_of(request);
    request->command.is_confirmed = request->count > 0 && request->calls[0]->op == ENGINE_ENTER;
    rooms->transport->submit(rooms->transport, &request->command);
}

static char *request_write(struct redis_command *command, const char *run_id, size_t *len)
{
    struct request *request = (struct request *)command;
    struct redis_rooms *rooms = request->rooms;
    struct ask ask = {&rooms->resp, &rooms->names, run_id, request->is_whole};

    if (request->renewal != NULL)
        ask_renew(&ask, request->room, span_of(request->renewal->former),
                  rooms->transport->is_running(rooms->transport, request->renewal->former));
    else if (request->step != NULL)
        ask_follow(&ask, request->room, &request->step->follower);
    else if (request->chore != NULL)
        ask_chore(&ask, request->chore);
    else
        ask_calls(&ask, (const struct engine_call *const *)request->calls, request->count);
    return resp_bytes(&rooms->resp, len);
}

static void take_reply(struct redis_command *command, enum command_end end, const struct redisReply *reply)
{
    struct request *request = (struct request *)command;

    must(request->rooms->in_flight > 0);
    request->rooms->in_flight--;
    if (request->count > 0)
        --*gathered_of(request);
    if (end != COMMAND_ANSWERED)
        reply = NULL;
    if (answer_is_noscript(reply) && !request->is_whole) {
        request->is_whole = true;
        request_send(request);
    } else if (request->renewal != NULL)
        renewal_take(request, reply);
    else if (request->step != NULL)
        step_end(request);
    else
        request_take(request, reply);
}

static void request_take(struct request *request, const struct redisReply *reply)
{
    struct span former;

    if (answer_is_other_primary(reply, &former) && request->renewals < RENEWALS_MOST)
        renewal_await(request, former);
    else
        request_end(request, reply);
}

/* A list that is longer than a reply is asked for in pages. One that changes meanwhile may lack a room. */
static bool has_more_rooms(struct request *request)
{
    const struct engine_call *call = request->calls[0];
    uint32_t before = request->listed;

    if (call->op != ENGINE_ROOMS || call->error != ERROR_NONE)
        return false;
    request->listed = call->list.count;
    return call->list.count - before == ASK_ROOMS_MAX && call->list.count < call->list.size;
}

static void request_end(struct request *request, const struct redisReply *reply)
{
    if (request->chore != NULL) {
        answer_chore(reply, request->chore);
        if (request->chore->kind == CHORE_TICK && request->chore->error == ERROR_NONE)
            step_send(request, reply);
        request->chore->done(request->chore);
    } else {
        answer_calls(reply, request->calls, request->count);
        if (has_more_rooms(request)) {
            request_send(request);
            return;
        }
        for (uint32_t i = 0; i < request->count; i++)
            request->calls[i]->done(request->calls[i]);
    }
    free(request);
}

/* ---- steps ---- */

/* Whether it counts nobody needs to know: what is lost with it is worked out again from the next tick. */
static void step_send(struct request *tick, const struct redisReply *reply)
{
    struct span room = tick->room;
    struct follower follower;

    if (!answer_follow(reply, &follower) || !follower_step(&follower))
        return;
    struct step *step = malloc(sizeof(*step));
    struct request *request = request_new(tick->rooms, tick->command.slot, room, 0);
    if (step == NULL || request == NULL) {
        free(step);
        free(request);
        return;
    }
    step->follower = follower;
    memcpy(step->room, room.data, room.len);
    request->step = step;
    request->room = (struct span){step->room, room.len};
    request_send(request);
}

static void step_end(struct request *request)
{
    free(request->step);
    free(request);
}

/* ---- renewals ---- */

static struct renewal *renewal_find(const struct redis_rooms *rooms, struct span room)
{
    struct renewal *renewal = rooms->renewals;

    while (renewal != NULL && !span_equal(renewal->request->room, room))
        renewal = renewal->next;
    return renewal;
}

static void renewal_name(struct renewal *renewal, struct span former)
{
    memcpy(renewal->former, former.data, former.len);
    renewal->former[former.len] = '\0';
}

static struct renewal *renewal_new(struct redis_rooms *rooms, struct span room, struct span former)
{
    struct renewal *renewal = calloc(1, sizeof(*renewal));
    struct request *request = request_new(rooms, slot_of_tag(room), room, 0);

    if (renewal == NULL || request == NULL) {
        free(renewal);
        free(request);
        return NULL;
    }
    renewal_name(renewal, former);
    renewal->end = &renewal->waiting;
    renewal->request = request;
    renewal->next = rooms->renewals;
    request->renewal = renewal;
    request->command.needs_map = true;
    rooms->renewals = renewal;
    return renewal;
}

static void renewal_await(struct request *request, struct span former)
{
    struct renewal *under_way = renewal_find(request->rooms, request->room);
    struct renewal *renewal =
        under_way != NULL ? under_way : renewal_new(request->rooms, request->room, former);

    if (renewal == NULL) {
        request_end(request, NULL);
        return;
    }
    request->renewals++;
    request->next = NULL;
    *renewal->end = request;
    renewal->end = &request->next;
    if (under_way == NULL)
        request_send(renewal->request);
}

/* Whoever is answered may ask at once, and find another renewal necessary: so this one is over before. */
static void renewal_end(struct renewal *renewal, bool is_renewed)
{
    struct renewal **at = &renewal->request->rooms->renewals;
    struct request *waiting = renewal->waiting;

    while (*at != renewal)
        at = &(*at)->next;
    *at = renewal->next;
    free(renewal->request);
    free(renewal);
    while (waiting != NULL) {
        struct request *request = waiting;
        waiting = request->next;
        if (is_renewed)
            request_send(request);
        else
            request_end(request, NULL);
    }
}

static void renewal_take(struct request *request, const struct redisReply *reply)
{
    struct span former;

    if (answer_is_other_primary(reply, &former) && ++request->renewals < RENEWALS_MOST) {
        renewal_name(request->renewal, former);
        request_send(request);
    } else
        renewal_end(request->renewal, answer_is_renewed(reply));
}
