/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes from a server, in any pieces, between anything that an owner may do. Whatever comes: each command that was taken ends
 * once or was forgotten, answers come in the order of the commands, what is written is what was sent, and a link that rests can
 * be dialed again.
 *
 * An input is a row of steps: a byte says what, and bytes that are received have their length before them.
 */
#include "base/must.h"
#include "redis/link.h"

#include <stdlib.h>

#define COMMANDS 8
#define BYTES    "*1\r\n$4\r\nPING\r\n"
#define WELCOME                                                                                            \
    "+OK\r\n$0\r\n\r\n$70\r\nredis_mode:standalone\r\nrun_id:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" \
    "$11\r\nrole:master\r\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step { CONNECT, WELCOMED, SEND, WRITE, RECEIVE, PASS_TIME, CLOSE, FORGET, RENEW, ANSWER, STEPS };

struct world {
    struct link *link;
    struct link_command commands[COMMANDS];
    bool is_taken[COMMANDS];
    uint64_t turn[COMMANDS], turns, answered; /* in what order they were sent */
    uint64_t now_ms;
};

static struct world world;

static void take_step(enum step step, uint8_t number, struct span *input);
static void wishes_heed(void);
static void command_send(uint8_t number);
static void command_done(struct link_command *command, enum link_outcome outcome, const redisReply *reply);
static void output_write(uint8_t number);
static void input_receive(uint8_t number, struct span *input);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct link_options options = {
        .user = "",
        .name = "weir",
        .dial_ms = 50,
        .silence_ms = 500,
        .in_flight_max = 5,
        .out_bytes_max = 64,
    };
    struct span input = {(const char *)data, size};
    world = (struct world){.link = link_new(&options, size)};
    wishes_heed();
    while (input.len >= 2) {
        uint8_t step = (uint8_t)input.data[0], number = (uint8_t)input.data[1];
        input = (struct span){input.data + 2, input.len - 2};
        take_step(step % STEPS, number, &input);
        must(link_in_flight(world.link) <= options.in_flight_max);
        wishes_heed();
    }
    link_closed(world.link, "It is over.", world.now_ms);
    for (int i = 0; i < COMMANDS; i++)
        must(!world.is_taken[i]);
    link_free(world.link);
    return 0;
}

static void take_step(enum step step, uint8_t number, struct span *input)
{
    struct link_command *command = &world.commands[number % COMMANDS];
    switch (step) {
    case CONNECT:
        link_connected(world.link, world.now_ms);
        break;
    case WELCOMED:
        if (link_state(world.link) == LINK_GREETING) {
            link_sent(world.link, link_output(world.link).len);
            link_received(world.link, SPAN(WELCOME), world.now_ms);
        }
        break;
    case SEND:
        command_send(number % COMMANDS);
        break;
    case WRITE:
        output_write(number);
        break;
    case RECEIVE:
        input_receive(number, input);
        break;
    case PASS_TIME:
        world.now_ms += number;
        link_timer(world.link, world.now_ms);
        break;
    case CLOSE:
        link_closed(world.link, "It broke.", world.now_ms);
        break;
    case FORGET:
        if (world.is_taken[number % COMMANDS])
            link_forget(world.link, command);
        world.is_taken[number % COMMANDS] = false;
        break;
    case RENEW:
        link_renew(world.link, "It is to begin anew.");
        break;
    case ANSWER:
        link_received(world.link, SPAN("+PONG\r\n"), world.now_ms);
        break;
    case STEPS:
        break;
    }
}

/* Once nothing is open, time passes until there is a dial. */
static void wishes_heed(void)
{
    if (link_wish(world.link, world.now_ms) == LINK_HANG_UP)
        link_closed(world.link, "unused", world.now_ms);
    if (link_state(world.link) != LINK_RESTING)
        return;
    must(link_in_flight(world.link) == 0 && link_output(world.link).len == 0);
    if (link_due_ms(world.link) > world.now_ms)
        world.now_ms = link_due_ms(world.link);
    must(link_wish(world.link, world.now_ms) == LINK_DIAL);
    link_dialing(world.link, world.now_ms);
}

static void command_send(uint8_t number)
{
    if (world.is_taken[number])
        return;
    world.commands[number] = (struct link_command){
        .done = command_done, .deadline_ms = world.now_ms + 20 + number, .replies_before = number == 7};
    world.is_taken[number] = link_send(world.link, &world.commands[number], SPAN(BYTES), world.now_ms);
    world.turn[number] = ++world.turns;
}

static void command_done(struct link_command *command, enum link_outcome outcome, const redisReply *reply)
{
    size_t number = (size_t)(command - world.commands);
    must(number < COMMANDS && world.is_taken[number]);
    must((outcome == LINK_ANSWERED) == (reply != NULL));
    world.is_taken[number] = false;
    if (outcome != LINK_ANSWERED)
        return;
    must(world.turn[number] > world.answered);
    world.answered = world.turn[number];
}

/* A part of it, or all. What waits is always whole commands, but for the first one. */
static void output_write(uint8_t number)
{
    struct span out = link_output(world.link);
    static const size_t len = sizeof(BYTES) - 1;
    if (link_state(world.link) == LINK_READY)
        for (size_t i = 0; i < out.len; i++)
            must(out.data[out.len - 1 - i] == BYTES[len - 1 - i % len]);
    link_sent(world.link, number >= out.len ? out.len : number);
}

static void input_receive(uint8_t number, struct span *input)
{
    size_t len = number < input->len ? number : input->len;
    link_received(world.link, (struct span){input->data, len}, world.now_ms);
    *input = (struct span){input->data + len, input->len - len};
}
