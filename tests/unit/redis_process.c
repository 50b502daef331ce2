/* SPDX-License-Identifier: BSD-2-Clause */
/* Its own word that it is ready is waited for, so there is no moment in which a test guesses. */
#define _GNU_SOURCE
#include "redis_process.h"

#include "base/must.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 40

static uint16_t port_find(void);
static _Noreturn void server_run(const struct redis_process *server, int out, const char *const *options);
static void ready_wait(int log);
static void folder_remove(const char *path);
static int entry_remove(const char *path, const struct stat *info, int kind, struct FTW *where);

void redis_process_start(struct redis_process *server, const char *const *options)
{
    static const char template[] = P_tmpdir "/weir-redis-XXXXXX";
    int pipe_ends[2];
    memcpy(server->folder, template, sizeof(template));
    must(mkdtemp(server->folder) != NULL);
    (void)snprintf(server->socket, sizeof(server->socket), "%s/socket", server->folder);
    server->port = port_find();
    must(pipe(pipe_ends) == 0);
    server->pid = fork();
    must(server->pid >= 0);
    if (server->pid == 0)
        server_run(server, pipe_ends[1], options);
    must(close(pipe_ends[1]) == 0);
    server->log = pipe_ends[0];
    ready_wait(server->log);
}

/* Free at this moment, and far enough from the end for a cluster's second port. */
static uint16_t port_find(void)
{
    for (;;) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(at);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        must(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0);
        must(getsockname(fd, (struct sockaddr *)&at, &len) == 0 && close(fd) == 0);
        if (ntohs(at.sin_port) < 55000)
            return ntohs(at.sin_port);
    }
}

static _Noreturn void server_run(const struct redis_process *server, int out, const char *const *options)
{
    char port[8];
    const char *const ours[] = {"--bind", "127.0.0.1", "--port",       port,           "--save",
                                "",       "--dir",     server->folder, "--unixsocket", server->socket};
    const char *arguments[ARGUMENTS_MAX] = {"redis-server"};
    size_t count = 1;
    (void)snprintf(port, sizeof(port), "%u", server->port);
    if (options != NULL && options[0] != NULL && options[0][0] != '-')
        arguments[count++] = *options++;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        arguments[count++] = ours[i];
    for (; options != NULL && *options != NULL; options++) {
        must(count < ARGUMENTS_MAX - 1);
        arguments[count++] = *options;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    (void)execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static void ready_wait(int log)
{
    char text[16384];
    size_t len = 0;
    while (len == 0 || (strstr(text, "Ready to accept") == NULL && strstr(text, "Sentinel ID") == NULL)) {
        ssize_t got = len < sizeof(text) - 1 ? read(log, text + len, sizeof(text) - 1 - len) : 0;
        if (got <= 0)
            (void)fprintf(stderr, "redis-server did not start:\n%.*s\n", (int)len, text);
        must(got > 0);
        len += (size_t)got;
        text[len] = '\0';
    }
}

static void server_end(struct redis_process *server, int how)
{
    if (server->pid <= 0)
        return;
    must(kill(server->pid, how) == 0 && waitpid(server->pid, NULL, 0) == server->pid);
    must(close(server->log) == 0);
    server->pid = 0;
}

void redis_process_kill(struct redis_process *server)
{
    server_end(server, SIGKILL);
}

void redis_process_stop(struct redis_process *server)
{
    server_end(server, SIGTERM);
    if (server->folder[0] != '\0')
        folder_remove(server->folder);
    server->folder[0] = '\0';
}

/* An AOF is a folder in it. */
static void folder_remove(const char *path)
{
    must(nftw(path, entry_remove, 4, FTW_DEPTH | FTW_PHYS) == 0);
}

static int entry_remove(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

int redis_process_dial(const struct redis_process *server)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(strlen(server->socket) < sizeof(at.sun_path));
    memcpy(at.sun_path, server->socket, strlen(server->socket) + 1);
    must(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
    return fd;
}
