/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "redis_server.h"

#include "rig.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_server(const char *folder, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", "socket", "--dir", folder, "--save",
           "", "--appendonly", "no", (char *)NULL);
    _exit(1);
}

/* The server says on its output when it can be reached. */
static void await_ready(int in)
{
    FILE *said = fdopen(in, "r");
    char line[512];
    bool is_ready = false;

    assert_non_null(said);
    while (!is_ready && fgets(line, sizeof(line), said) != NULL)
        is_ready = strstr(line, "now ready to accept connections at") != NULL;
    assert_true(is_ready);
    fclose(said);
}

/* Once it is reached nobody needs the way any more: so nothing is left behind even by a test that is killed. */
static void reach(struct redis_server *server, const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
    server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->fd >= 0);
    assert_int_equal(connect(server->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(unlink(address.sun_path), 0);
    assert_int_equal(rmdir(folder), 0);
    server->reader = redisReaderCreate();
    assert_non_null(server->reader);
}

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
    server->commands++;
    command->done(command, COMMAND_ANSWERED, reply);
    freeReplyObject(reply);
}

static bool is_running(struct transport *transport, const char *run_id)
{
    return strcmp(((struct redis_server *)transport)->run_id, run_id) == 0;
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

void redis_server_start(struct redis_server *server)
{
    char folder[] = P_tmpdir "/weir-redis-XXXXXX";
    int output[2];

    *server = (struct redis_server){.transport = {submit, is_running}};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(pipe(output), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0)
        run_server(folder, output[1]);
    close(output[1]);
    await_ready(output[0]);
    reach(server, folder);
    learn_run_id(server);
}

void redis_server_stop(struct redis_server *server)
{
    redisReaderFree(server->reader);
    close(server->fd);
    kill(server->pid, SIGKILL);
    assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
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
