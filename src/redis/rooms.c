/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A request is one command under way: the calls that it asks for, or a chore. It is open while calls may be added to it, and ends
 * with the answer. Its command can be written again from the calls: so a server that does not know a script is told the whole of
 * it, at the cost of one more round trip, once.
 */

#include "redis/rooms.h"

#include "base/must.h"
#include "redis/ask.h"
#include "redis/slots.h"

#include <stdlib.h>

struct request {
    struct redis_command command; /* first: the transport hands it back */
    struct redis_rooms *rooms;
    struct redis_chore *chore; /* or calls */
    bool is_whole;             /* it is sent with the script's text */
    uint32_t count, size;
    struct engine_call *calls[];
};

struct redis_rooms {
    struct transport *transport;
    struct script_names names;
    struct resp resp;
    struct request *open; /* or NULL */
    uint32_t in_flight;
};

static struct request *request_new(struct redis_rooms *rooms, struct span room, uint32_t size);
static void request_send(struct request *request);
static char *request_write(struct redis_command *command, const char *run_id, size_t *len);
static void take_reply(struct redis_command *command, enum command_end end, const struct redisReply *reply);
static void request_end(struct request *request, const struct redisReply *reply);

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
    must(rooms->in_flight == 0 && rooms->open == NULL);
    free(rooms);
}

static bool goes_with(const struct request *open, const struct engine_call *call)
{
    return open != NULL && open->count < open->size && call->op == open->calls[0]->op &&
           span_equal(call->room, open->calls[0]->room);
}

void redis_submit(struct redis_rooms *rooms, struct engine_call *call)
{
    must(ask_has_script(call->op));
    if (!goes_with(rooms->open, call)) {
        redis_flush(rooms);
        rooms->open = request_new(rooms, call->room, ask_may_gather(call->op) ? RESP_CALLS_MAX : 1);
    }
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
    struct request *request = ask_has_chore(chore->kind) ? request_new(rooms, chore->room, 0) : NULL;
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

static struct request *request_new(struct redis_rooms *rooms, struct span room, uint32_t size)
{
    struct request *request = malloc(sizeof(*request) + size * sizeof(void *));

    if (request != NULL)
        *request = (struct request){
            .command = {.slot = slot_of_tag(room), .write = request_write, .done = take_reply},
            .rooms = rooms,
            .size = size};
    return request;
}

static void request_send(struct request *request)
{
    struct redis_rooms *rooms = request->rooms;

    rooms->in_flight++;
    request->command.is_confirmed = request->chore == NULL && request->calls[0]->op == ENGINE_ENTER;
    rooms->transport->submit(rooms->transport, &request->command);
}

static char *request_write(struct redis_command *command, const char *run_id, size_t *len)
{
    struct request *request = (struct request *)command;
    struct redis_rooms *rooms = request->rooms;

    (void)run_id;
    if (request->chore != NULL)
        ask_chore(&rooms->resp, &rooms->names, request->chore, request->is_whole);
    else
        ask_calls(&rooms->resp, &rooms->names, (const struct engine_call *const *)request->calls,
                  request->count, request->is_whole);
    return resp_bytes(&rooms->resp, len);
}

static void take_reply(struct redis_command *command, enum command_end end, const struct redisReply *reply)
{
    struct request *request = (struct request *)command;

    must(request->rooms->in_flight > 0);
    request->rooms->in_flight--;
    if (end == COMMAND_ANSWERED && answer_is_noscript(reply) && !request->is_whole) {
        request->is_whole = true;
        request_send(request);
    } else
        request_end(request, end == COMMAND_ANSWERED ? reply : NULL);
}

static void request_end(struct request *request, const struct redisReply *reply)
{
    if (request->chore != NULL) {
        answer_chore(reply, request->chore);
        request->chore->done(request->chore);
    } else {
        answer_calls(reply, request->calls, request->count);
        for (uint32_t i = 0; i < request->count; i++)
            request->calls[i]->done(request->calls[i]);
    }
    free(request);
}
