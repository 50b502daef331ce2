/* SPDX-License-Identifier: BSD-2-Clause */
#include "store_owner.h"

#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void line_heed(struct store_line *line);
static void line_dial(struct store_line *line);
static void line_read(struct store_line *line);
static void line_close(struct store_line *line, const char *why);
static int fd_of(const struct store_line *line);

uint64_t owner_clock_ms(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void owner_turn(struct store *store, void (*after)(void))
{
    struct pollfd events[STORE_LINES_MAX];
    store_turn(store, owner_clock_ms());
    if (after != NULL)
        after();
    for (size_t i = 0; i < store_lines(store); i++)
        line_heed(store_line(store, i));
    size_t count = store_lines(store);
    for (size_t i = 0; i < count; i++)
        events[i] = (struct pollfd){fd_of(store_line(store, i)), POLLIN, 0};
    uint64_t now_ms = owner_clock_ms(), due_ms = store_due_ms(store);
    int wait_ms = due_ms <= now_ms ? 0 : due_ms - now_ms > 100 ? 100 : (int)(due_ms - now_ms);
    assert_true(poll(events, count, wait_ms) >= 0);
    for (size_t i = 0; i < count; i++)
        if (events[i].revents != 0)
            line_read(store_line(store, i));
}

static void line_heed(struct store_line *line)
{
    enum link_wish wish = store_wish(line, owner_clock_ms());
    if (wish == LINK_DIAL)
        line_dial(line);
    else if (wish == LINK_HANG_UP)
        line_close(line, "unused");
    struct span out = link_output(line->link);
    ssize_t sent = out.len == 0 ? 0 : send(fd_of(line), out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
        link_sent(line->link, (size_t)sent);
    else if (sent < 0 && errno != EAGAIN)
        line_close(line, "The connection broke.");
}

static void line_dial(struct store_line *line)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(line->address.port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, line->address.host, &at.sin_addr), 1);
    line->connection = (void *)(intptr_t)(fd + 1);
    link_dialing(line->link, owner_clock_ms());
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        link_connected(line->link, owner_clock_ms());
    else
        line_close(line, "Nobody there.");
}

static void line_read(struct store_line *line)
{
    char bytes[4096];
    ssize_t got = recv(fd_of(line), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0)
        link_received(line->link, (struct span){bytes, (size_t)got}, owner_clock_ms());
    else if (got == 0 || errno != EAGAIN)
        line_close(line, "The connection broke.");
}

void owner_close_lines(struct store *store)
{
    for (size_t i = 0; i < store_lines(store); i++)
        if (fd_of(store_line(store, i)) >= 0)
            line_close(store_line(store, i), "The test is over.");
}

static void line_close(struct store_line *line, const char *why)
{
    assert_int_equal(close(fd_of(line)), 0);
    line->connection = NULL;
    link_closed(line->link, why, owner_clock_ms());
}

static int fd_of(const struct store_line *line)
{
    return (int)(intptr_t)line->connection - 1; /* NULL: none */
}
