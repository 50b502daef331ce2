/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis_server.h"

#include "rig.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static redisReply *exchange(struct redis_server *server, const char *bytes, size_t len)
{
    char in[16384];
    void *reply = NULL;

    for (size_t sent = 0; sent < len;) {
        ssize_t more = send(server->fd, bytes + sent, len - sent, MSG_NOSIGNAL);
        assert_true(more > 0);
        sent += (size_t)more;
    }
    while (reply == NULL) {
        ssize_t got = read(server->fd, in, sizeof(in));
        assert_true(got > 0);
        assert_int_equal(redisReaderFeed(server->reader, in, (size_t)got), REDIS_OK);
        assert_int_equal(redisReaderGetReply(server->reader, &reply), REDIS_OK);
    }
    return reply;
}

/* A script that fails is a bug in it, and what it says is worth reading. */
static void submit(struct transport *transport, struct redis_command *command)
{
    struct redis_server *server = (struct redis_server *)transport;
    size_t len;
    char *bytes = command->write(command, server->run_id, &len);
    redisReply *reply = exchange(server, bytes, len);

    free(bytes);
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) != 0)
        fail_msg("the server said: %s", reply->str);
    command->done(command, COMMAND_ANSWERED, reply);
    freeReplyObject(reply);
}

static bool is_running(struct transport *transport, const char *run_id)
{
    const struct redis_server *server = (struct redis_server *)transport;

    return strcmp(server->run_id, run_id) == 0 || strcmp(server->neighbour, run_id) == 0;
}

static void learn_run_id(struct redis_server *server)
{
    redisReply *info = redis_server_ask(server, "INFO server");
    struct span value;

    assert_true(peer_find((struct span){info->str, (size_t)info->len}, SPAN("run_id"), &value));
    assert_int_equal(value.len, PEER_RUN_ID_MAX);
    memcpy(server->run_id, value.data, value.len);
    freeReplyObject(info);
}

void redis_server_start(struct redis_server *server, const char *const *options)
{
    *server = (struct redis_server){.transport = {submit, is_running}};
    redis_process_start(&server->process, options);
    server->fd = redis_process_dial(&server->process);
    server->reader = redisReaderCreate();
    assert_non_null(server->reader);
    learn_run_id(server);
}

void redis_server_stop(struct redis_server *server)
{
    redisReaderFree(server->reader);
    close(server->fd);
    redis_process_stop(&server->process);
}

static redisReply *ask(struct redis_server *server, const char *format, va_list arguments)
{
    char *bytes;
    int len = redisvFormatCommand(&bytes, format, arguments);

    assert_true(len > 0);
    redisReply *reply = exchange(server, bytes, (size_t)len);
    free(bytes);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("the server said: %s", reply->str);
    return reply;
}

redisReply *redis_server_ask(struct redis_server *server, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    redisReply *reply = ask(server, format, arguments);
    va_end(arguments);
    return reply;
}

long long redis_server_number(struct redis_server *server, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    redisReply *reply = ask(server, format, arguments);
    va_end(arguments);
    long long number = reply->type == REDIS_REPLY_INTEGER  ? reply->integer
                       : reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10)
                                                           : -1;
    freeReplyObject(reply);
    return number;
}
