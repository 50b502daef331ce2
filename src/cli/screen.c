/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second screen of the terminal (so that what was there comes back), without echo and line buffering. Plain escape
 * sequences that every terminal of this century knows, and not ncurses: a frame is text that is painted from the top.
 *
 * Signals are taken through a descriptor, so that they wake the same poll as a key does and nothing happens in a handler.
 */
#include "cli/screen.h"

#include "cli/text.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SECOND_SCREEN "\033[?1049h\033[?25l"
#define FIRST_SCREEN  "\033[?25h\033[?1049l"
#define TO_THE_TOP    "\033[H"
#define REST_OF_LINE  "\033[K"
#define REST_BELOW    "\033[J"

static struct winsize screen_size(void);
static void keys_unbuffer(struct screen *screen);
static void line_paint(const char *line, size_t columns, bool is_bold);
static void signals_read(struct screen *screen);
static void keys_read(struct screen *screen);

bool screen_open(struct screen *screen)
{
    static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t set;

    memset(screen, 0, sizeof(*screen));
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        sigaddset(&set, taken[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    screen->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (screen->signals < 0)
        return false;
    keys_unbuffer(screen);
    fputs(SECOND_SCREEN, stdout);
    fflush(stdout);
    return true;
}

void screen_close(struct screen *screen)
{
    fputs(FIRST_SCREEN, stdout);
    fflush(stdout);
    if (screen->has_keys)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
    close(screen->signals);
}

void screen_paint(const char *frame, size_t heading_line, bool with_colour)
{
    struct winsize size = screen_size();
    char line[1024];

    fputs(TO_THE_TOP, stdout);
    for (size_t row = 0; row < size.ws_row && *frame != '\0'; row++) {
        size_t len = strcspn(frame, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)len, frame);
        fputs(row > 0 ? "\n" : "", stdout);
        line_paint(line, size.ws_col, with_colour && (row == 0 || row == heading_line));
        frame += len + (frame[len] == '\n');
    }
    fputs(REST_BELOW, stdout);
    fflush(stdout);
}

bool screen_wait(struct screen *screen, int milliseconds)
{
    struct pollfd polled[] = {{screen->signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};

    if (!screen->is_over && poll(polled, screen->has_keys ? 2 : 1, milliseconds) > 0) {
        signals_read(screen);
        if (screen->has_keys && polled[1].revents != 0)
            keys_read(screen);
    }
    return screen->is_over;
}

size_t screen_height(void)
{
    return screen_size().ws_row;
}

size_t screen_width(void)
{
    return screen_size().ws_col;
}

static struct winsize screen_size(void)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        return (struct winsize){.ws_row = 24, .ws_col = 80};
    return size;
}

/* Ctrl-C still interrupts; Ctrl-Z does not suspend, as it would leave the second screen behind. */
static void keys_unbuffer(struct screen *screen)
{
    struct termios now;

    screen->has_keys = tcgetattr(STDIN_FILENO, &screen->before) == 0;
    if (!screen->has_keys)
        return;
    now = screen->before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &now);
}

static void line_paint(const char *line, size_t columns, bool is_bold)
{
    printf("%s%.*s%s" REST_OF_LINE, is_bold ? "\033[1m" : "", (int)text_fit(line, columns), line,
           is_bold ? "\033[0m" : "");
}

static void signals_read(struct screen *screen)
{
    struct signalfd_siginfo info;

    while (read(screen->signals, &info, sizeof(info)) == sizeof(info))
        screen->is_over |= info.ssi_signo != SIGWINCH;
}

static void keys_read(struct screen *screen)
{
    char keys[64];
    ssize_t len = read(STDIN_FILENO, keys, sizeof(keys));

    /* Readable and nothing to read: the terminal is gone. */
    screen->is_over |=
        len <= 0 || memchr(keys, 'q', (size_t)len) != NULL || memchr(keys, 'Q', (size_t)len) != NULL;
}
