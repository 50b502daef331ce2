/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The simulator: the very room code that nginx runs, with a clock and with people that are made up.
 *
 *   sim [--seeds FROM-TO] [--events N] [--jobs N]     many runs
 *   sim --seed N [--events N] [--trace]               one run again, as a story
 *
 * A run that breaks a promise prints its seed and the event at which it did, and the simulator ends with status 1.
 */

#include "report.h"
#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 256

struct plan {
    uint64_t first, last;
    uint32_t events, jobs;
};

struct run run;

void violated(const char *format, ...)
{
    va_list arguments;

    printf("seed %" PRIu64 " event %" PRIu32 ": ", run.seed, run.event);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
    _exit(1);
}

void trace(const char *format, ...)
{
    va_list arguments;

    if (!run.is_traced)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

/* A broken invariant of the room aborts: say of which run. */
static void on_abort(int signal)
{
    (void)signal;
    violated("the room aborted (its reason is above)");
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: sim [--seeds FROM-TO | --seed N [--trace]] [--events N] [--jobs N]\n");
    exit(2);
}

static uint64_t number_of(const char *text, const char **end)
{
    char *stop;

    if (text == NULL || *text < '0' || *text > '9')
        usage();
    errno = 0;
    uint64_t number = strtoull(text, &stop, 10);
    if (errno != 0 || (*stop != '\0' && (end == NULL || *stop != '-')))
        usage();
    if (end != NULL)
        *end = stop;
    return number;
}

static void read_seeds(struct plan *plan, const char *text)
{
    const char *rest;

    plan->first = number_of(text, &rest);
    plan->last = *rest == '-' ? number_of(rest + 1, NULL) : plan->first;
    if (plan->last < plan->first)
        usage();
}

static struct plan read_arguments(int argc, char **argv)
{
    struct plan plan = {1, 2000, 10000, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--trace") == 0) {
            run.is_traced = true;
            continue;
        }
        if (strcmp(argv[i], "--seeds") == 0 || strcmp(argv[i], "--seed") == 0)
            read_seeds(&plan, value);
        else if (strcmp(argv[i], "--events") == 0)
            plan.events = (uint32_t)number_of(value, NULL);
        else if (strcmp(argv[i], "--jobs") == 0)
            plan.jobs = (uint32_t)number_of(value, NULL);
        else
            usage();
        i++;
    }
    if (plan.jobs == 0 || plan.jobs > JOBS_MAX || plan.events == 0 || plan.events > 20000)
        usage();
    return plan;
}

static void play(const struct plan *plan, uint32_t job)
{
    signal(SIGABRT, on_abort);
    for (uint64_t seed = plan->first + job; seed <= plan->last; seed += plan->jobs) {
        run.seed = seed;
        run.event = 0;
        world_play(seed, plan->events);
    }
}

static void start_jobs(const struct plan *plan, pid_t *jobs)
{
    for (uint32_t job = 0; job < plan->jobs; job++) {
        jobs[job] = fork();
        if (jobs[job] < 0) {
            perror("fork");
            exit(1);
        }
        if (jobs[job] == 0) {
            play(plan, job);
            exit(0);
        }
    }
}

/* The first job that fails ends them all. */
static bool await_jobs(const struct plan *plan, const pid_t *jobs)
{
    for (uint32_t left = plan->jobs; left > 0; left--) {
        int status;
        if (wait(&status) < 0 || status == 0)
            continue;
        if (WIFSIGNALED(status))
            printf("a job died of signal %d\n", WTERMSIG(status));
        for (uint32_t job = 0; job < plan->jobs; job++)
            kill(jobs[job], SIGTERM);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct plan plan = read_arguments(argc, argv);
    pid_t jobs[JOBS_MAX];

    if (plan.first == plan.last) {
        play(&plan, 0);
    } else {
        start_jobs(&plan, jobs);
        if (!await_jobs(&plan, jobs))
            return 1;
    }
    printf("%" PRIu64 " seeds of %" PRIu32 " events: no promise broken\n", plan.last - plan.first + 1,
           plan.events);
    return 0;
}
