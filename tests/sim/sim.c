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
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 256

struct plan {
    uint64_t first, last;
    uint32_t events, jobs;
    bool is_traced;
};

struct run *run;

void violated(const char *format, ...)
{
    va_list arguments;

    printf("seed %" PRIu64 " event %" PRIu32 ": ", run->seed, run->event);
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

    if (!run->is_traced)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

static _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(1);
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
    struct plan plan = {1, 2000, 10000, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), false};

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--trace") == 0) {
            plan.is_traced = true;
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
    if (plan.first == plan.last)
        plan.jobs = 1;
    if (plan.jobs == 0 || plan.jobs > JOBS_MAX || plan.events == 0 || plan.events > 20000)
        usage();
    return plan;
}

static void play(const struct plan *plan, uint32_t job)
{
    for (uint64_t seed = plan->first + job; seed <= plan->last; seed += plan->jobs) {
        *run = (struct run){seed, 0, plan->is_traced};
        world_play(seed, plan->events);
    }
}

/* Where a job is stands in memory that outlives it: a broken invariant of the room aborts without a word about the run. */
static struct job {
    pid_t pid;
    struct run run;
} * jobs;

static void start_jobs(const struct plan *plan)
{
    jobs = mmap(NULL, plan->jobs * sizeof(*jobs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (jobs == MAP_FAILED)
        give_up("mmap");
    for (uint32_t job = 0; job < plan->jobs; job++) {
        pid_t pid = fork();
        if (pid < 0)
            give_up("fork");
        if (pid == 0) {
            run = &jobs[job].run;
            play(plan, job);
            exit(0);
        }
        jobs[job].pid = pid; /* which the child must not write: it would be 0, the whole group */
    }
}

static void end_jobs(const struct plan *plan, pid_t failed, bool is_signalled)
{
    for (uint32_t job = 0; job < plan->jobs; job++) {
        const struct run *at = &jobs[job].run;
        if (jobs[job].pid != failed)
            kill(jobs[job].pid, SIGTERM);
        else if (is_signalled)
            printf("seed %" PRIu64 " event %" PRIu32 ": the room aborted\n", at->seed, at->event);
    }
}

/* The first job that fails ends them all. */
static bool await_jobs(const struct plan *plan)
{
    for (uint32_t left = plan->jobs; left > 0; left--) {
        int status;
        pid_t job = wait(&status);
        if (job < 0 || status == 0)
            continue;
        end_jobs(plan, job, WIFSIGNALED(status));
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct plan plan = read_arguments(argc, argv);

    if (plan.is_traced) /* to the very line before an abort */
        setvbuf(stdout, NULL, _IOLBF, 0);
    start_jobs(&plan);
    if (!await_jobs(&plan))
        return 1;
    printf("%" PRIu64 " seeds of %" PRIu32 " events: no promise broken\n", plan.last - plan.first + 1,
           plan.events);
    return 0;
}
