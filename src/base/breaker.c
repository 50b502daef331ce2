/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The window is a ring of ten steps, each with what ended in it: ten additions say how the last moments went, whatever the load.
 *
 * Who belongs to which state is told by an era, a number that every change of state raises. A request that began while the
 * breaker was closed and times out half a minute later finds another era, and opens nothing anew.
 *
 * A trial is a lease and not a count: a process that died with one never gives it back, and nobody has to notice.
 */

#include "base/breaker.h"

#include "base/must.h"

#include <string.h>

#define CREDIT_OF_RETRY  100
#define BACKOFF_DOUBLES  10 /* at most */
#define WAIT_FOR_TRIALS  1000
#define MIN(a, b)        ((a) < (b) ? (a) : (b))
#define STEP_MS(breaker) ((breaker)->options.window_ms / BREAKER_STEPS)

static void options_check(const struct breaker_options *options)
{
    must(options->requests > 0 && options->window_ms >= BREAKER_STEPS && options->open_ms > 0);
    must(options->failed_percent > 0 && options->failed_percent <= 100);
    must(options->trials > 0 && options->trials <= BREAKER_TRIALS_MAX);
    must(options->budget_percent <= 100 && options->burst > 0);
}

static uint32_t credit_most(const struct breaker *breaker)
{
    return breaker->options.burst * CREDIT_OF_RETRY;
}

void breaker_init(struct breaker *breaker, const struct breaker_options *options, uint64_t now_ms)
{
    options_check(options);
    memset(breaker, 0, sizeof(*breaker));
    breaker->options = *options;
    breaker->now_ms = breaker->since_ms = now_ms;
    breaker->era = 1;
    breaker->newest_step = now_ms / STEP_MS(breaker);
    breaker->credit = credit_most(breaker);
}

/* ---- time ---- */

/* The moment that counts: processes read the same clock, but not in the order in which they come here. */
static uint64_t moment(const struct breaker *breaker, uint64_t now_ms)
{
    return now_ms > breaker->now_ms ? now_ms : breaker->now_ms;
}

static void time_pass(struct breaker *breaker, uint64_t now_ms)
{
    breaker->now_ms = moment(breaker, now_ms);
    uint64_t step = breaker->now_ms / STEP_MS(breaker);
    uint64_t passed = MIN(step - breaker->newest_step, BREAKER_STEPS);
    for (uint64_t i = 0; i < passed; i++)
        breaker->steps[(step - i) % BREAKER_STEPS] = (struct breaker_step){0, 0};
    breaker->newest_step = step;
}

static void window_clear(struct breaker *breaker)
{
    memset(breaker->steps, 0, sizeof(breaker->steps));
    breaker->newest_step = breaker->now_ms / STEP_MS(breaker);
}

struct breaker_step breaker_window(const struct breaker *breaker, uint64_t now_ms)
{
    struct breaker_step sum = {0, 0};
    uint64_t now_step = moment(breaker, now_ms) / STEP_MS(breaker);
    for (uint64_t i = 0; i < BREAKER_STEPS && i <= breaker->newest_step; i++) {
        const struct breaker_step *step = &breaker->steps[(breaker->newest_step - i) % BREAKER_STEPS];
        if (now_step - (breaker->newest_step - i) >= BREAKER_STEPS)
            break;
        sum.requests += step->requests;
        sum.failed += step->failed;
    }
    sum.failed =
        MIN(sum.failed, sum.requests); /* of an answer that broke off, the good part may be out of sight */
    return sum;
}

/* ---- states ---- */

static void trials_clear(struct breaker *breaker)
{
    memset(breaker->trial_until_ms, 0, sizeof(breaker->trial_until_ms));
    breaker->trials_good = 0;
}

static void state_enter(struct breaker *breaker, enum breaker_state state)
{
    breaker->era++;
    window_clear(breaker);
    trials_clear(breaker);
    breaker->since_ms = breaker->now_ms;
    breaker->state = state;
}

static void breaker_open(struct breaker *breaker)
{
    breaker->counts.opened++;
    breaker->open_until_ms = breaker->now_ms + breaker->options.open_ms;
    state_enter(breaker, BREAKER_OPEN);
}

static void breaker_try(struct breaker *breaker)
{
    breaker->counts.half_opened++;
    state_enter(breaker, BREAKER_HALF_OPEN);
}

static void breaker_close(struct breaker *breaker)
{
    breaker->counts.closed++;
    state_enter(breaker, BREAKER_CLOSED);
}

static void window_judge(struct breaker *breaker)
{
    struct breaker_step sum = breaker_window(breaker, breaker->now_ms);
    if (sum.requests < breaker->options.requests ||
        (uint64_t)sum.failed * 100 < (uint64_t)sum.requests * breaker->options.failed_percent)
        return;
    breaker->cause = sum;
    breaker_open(breaker);
}

enum breaker_state breaker_look(const struct breaker *breaker, uint64_t now_ms)
{
    if (breaker->state == BREAKER_OPEN && moment(breaker, now_ms) >= breaker->open_until_ms)
        return BREAKER_HALF_OPEN;
    return (enum breaker_state)breaker->state;
}

uint32_t breaker_wait_ms(const struct breaker *breaker, uint64_t now_ms)
{
    if (breaker_look(breaker, now_ms) != BREAKER_OPEN)
        return WAIT_FOR_TRIALS;
    return (uint32_t)(breaker->open_until_ms - moment(breaker, now_ms));
}

/* ---- requests ---- */

/* A trial that nobody has, with all of them not more than may be. */
static bool trial_take(struct breaker *breaker, struct breaker_call *call)
{
    uint32_t taken = breaker->trials_good, spare = BREAKER_TRIALS_MAX;
    for (uint32_t i = 0; i < BREAKER_TRIALS_MAX; i++)
        if (breaker->trial_until_ms[i] > breaker->now_ms)
            taken++;
        else
            spare = i;
    if (taken >= breaker->options.trials)
        return false;
    must(spare < BREAKER_TRIALS_MAX);
    call->is_trial = true;
    call->trial = spare;
    call->trial_until_ms = breaker->now_ms + MIN(breaker->options.open_ms, BREAKER_TRIAL_MS);
    breaker->trial_until_ms[spare] = call->trial_until_ms;
    breaker->counts.trials++;
    return true;
}

bool breaker_begin(struct breaker *breaker, uint64_t now_ms, bool is_retry, struct breaker_call *call)
{
    time_pass(breaker, now_ms);
    *call = (struct breaker_call){.is_trial = false};
    if (breaker->state == BREAKER_OPEN && breaker->now_ms >= breaker->open_until_ms)
        breaker_try(breaker);
    if (breaker->state != BREAKER_CLOSED && (breaker->state == BREAKER_OPEN || !trial_take(breaker, call))) {
        breaker->counts.refused++;
        return false;
    }
    call->era = breaker->era;
    breaker->counts.requests++;
    if (!is_retry)
        breaker->credit = MIN(breaker->credit + breaker->options.budget_percent, credit_most(breaker));
    return true;
}

static void step_count(struct breaker *breaker, uint32_t requests, uint32_t failed)
{
    struct breaker_step *step = &breaker->steps[breaker->newest_step % BREAKER_STEPS];
    step->requests += requests;
    step->failed += failed;
    window_judge(breaker);
}

static void trial_end(struct breaker *breaker, enum breaker_outcome outcome)
{
    if (outcome == BREAKER_FAILED) {
        breaker->cause = (struct breaker_step){1, 1};
        breaker_open(breaker);
    } else if (outcome == BREAKER_GOOD && ++breaker->trials_good >= breaker->options.trials)
        breaker_close(breaker);
}

void breaker_end(struct breaker *breaker, uint64_t now_ms, const struct breaker_call *call,
                 enum breaker_outcome outcome)
{
    time_pass(breaker, now_ms);
    breaker->counts.failed += outcome == BREAKER_FAILED;
    breaker->counts.untold += outcome == BREAKER_UNTOLD;
    if (call->era != breaker->era)
        return;
    if (call->is_trial && breaker->trial_until_ms[call->trial] == call->trial_until_ms)
        breaker->trial_until_ms[call->trial] = 0;
    if (call->is_trial)
        trial_end(breaker, outcome);
    else if (outcome != BREAKER_UNTOLD)
        step_count(breaker, 1, outcome == BREAKER_FAILED);
}

void breaker_take_back(struct breaker *breaker, uint64_t now_ms, const struct breaker_call *call)
{
    time_pass(breaker, now_ms);
    breaker->counts.failed++;
    if (call->era != breaker->era)
        return;
    if (call->is_trial)
        trial_end(breaker, BREAKER_FAILED);
    else
        step_count(breaker, 0, 1);
}

/* ---- retries ---- */

bool breaker_grant_retry(struct breaker *breaker, uint64_t now_ms)
{
    time_pass(breaker, now_ms);
    if (breaker->state != BREAKER_CLOSED || breaker->credit < CREDIT_OF_RETRY) {
        breaker->counts.retries_denied++;
        return false;
    }
    breaker->credit -= CREDIT_OF_RETRY;
    breaker->counts.retries++;
    return true;
}

uint32_t breaker_backoff_ms(uint32_t first_ms, uint32_t number, uint32_t random)
{
    must(number > 0);
    uint64_t longest = (uint64_t)first_ms << MIN(number - 1, BACKOFF_DOUBLES);
    longest = MIN(longest, UINT32_MAX);
    return (uint32_t)(longest - random % (longest / 2 + 1));
}

/* ---- options and accidents ---- */

void breaker_change(struct breaker *breaker, const struct breaker_options *options, uint64_t now_ms)
{
    options_check(options);
    bool is_other_window = options->window_ms != breaker->options.window_ms;
    time_pass(breaker, now_ms);
    breaker->options = *options;
    if (is_other_window)
        window_clear(breaker);
    breaker->open_until_ms = MIN(breaker->open_until_ms, breaker->now_ms + options->open_ms);
    breaker->credit = MIN(breaker->credit, credit_most(breaker));
    if (breaker->state == BREAKER_HALF_OPEN && breaker->trials_good >= options->trials)
        breaker_close(breaker); /* fewer are enough now, and no trial is left that could say so */
}

/* Each field is whole, for it is stored at once; what several of them say together may not be. */
void breaker_mend(struct breaker *breaker)
{
    breaker->era++;
    window_clear(breaker);
    trials_clear(breaker);
    breaker->credit = MIN(breaker->credit, credit_most(breaker));
}
