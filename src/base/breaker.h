/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_BREAKER_H
#define WEIR_BASE_BREAKER_H

/*
 * A circuit breaker before something that may fail, and the budget of those who try it again.
 *
 *   closed ──► open ──► half open ──► closed
 *                ▲──────────┘
 *
 * Closed, everybody goes by and it is counted how they fared. When enough of a window's requests failed it opens: everybody is
 * refused, for a time. After that a few trials go by; if all of them succeed it closes, and the first that fails opens it again.
 *
 * No clock, no lock: `now_ms` is an argument (of any clock that goes on; a step back is taken as standing still), and the caller
 * sees to it that one acts at a time. All of it is one plain block that processes can share. A process that dies in the middle
 * of a call leaves it torn: breaker_mend.
 */

#include <stdbool.h>
#include <stdint.h>

#define BREAKER_TRIALS_MAX 32
#define BREAKER_STEPS      10 /* a window moves on by a tenth of itself */
#define BREAKER_TRIAL_MS \
    10000 /* a trial that says nothing for so long (or for open_ms) is given to another */

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

/* How a request fared: UNTOLD says nothing of what stands behind the breaker, as when the client went away. */
enum breaker_outcome { BREAKER_GOOD, BREAKER_FAILED, BREAKER_UNTOLD };

struct breaker_options {
    uint32_t requests;       /* that a window must have before it is judged, 1 or more */
    uint32_t window_ms;      /* BREAKER_STEPS or more */
    uint32_t failed_percent; /* of them open it: 1 to 100 */
    uint32_t open_ms;        /* how long it stays so, 1 or more */
    uint32_t trials;         /* 1 to BREAKER_TRIALS_MAX */
    uint32_t budget_percent; /* so many retries for 100 requests, 0 to 100, */
    uint32_t burst;          /* and so many beyond: 1 or more */
};

/* Counted from the beginning on. */
struct breaker_counts {
    uint64_t requests; /* let by */
    uint64_t failed;
    uint64_t untold;
    uint64_t refused;
    uint64_t trials;
    uint64_t retries; /* granted */
    uint64_t retries_denied;
    uint64_t opened, half_opened, closed;
};

struct breaker_step {
    uint32_t requests, failed;
};

struct breaker {
    struct breaker_options options;
    uint64_t now_ms;
    uint64_t era; /* another one after each change of state: what began in one says nothing about the next */
    uint32_t state; /* enum breaker_state */
    uint64_t since_ms;
    uint64_t open_until_ms;

    uint64_t newest_step; /* now_ms / step length */
    struct breaker_step steps[BREAKER_STEPS];
    struct breaker_step cause; /* the window that it was last opened for */

    uint64_t trial_until_ms[BREAKER_TRIALS_MAX]; /* 0: nobody's */
    uint32_t trials_good;

    uint32_t credit; /* hundredths of a retry */
    struct breaker_counts counts;
};

/* A request that was let by. */
struct breaker_call {
    uint64_t era;
    bool is_trial;
    uint32_t trial; /* which one, */
    uint64_t trial_until_ms;
};

void breaker_init(struct breaker *breaker, const struct breaker_options *options, uint64_t now_ms);

/* Other options from now on. A window of another length begins empty. */
void breaker_change(struct breaker *breaker, const struct breaker_options *options, uint64_t now_ms);

/* Whoever changed it may have died in the middle of that. It keeps its state and forgets what it was about to judge by. */
void breaker_mend(struct breaker *breaker);

/* May this request go by? If so, `call` is filled in and is to be ended. A retry adds nothing to the budget of retries. */
bool breaker_begin(struct breaker *breaker, uint64_t now_ms, bool is_retry, struct breaker_call *call);
void breaker_end(struct breaker *breaker, uint64_t now_ms, const struct breaker_call *call,
                 enum breaker_outcome outcome);

/* A call that had ended as good turns out to have failed after all: its answer broke off. */
void breaker_take_back(struct breaker *breaker, uint64_t now_ms, const struct breaker_call *call);

/* May a request that failed be tried once more? Takes it from the budget. Only while closed. */
bool breaker_grant_retry(struct breaker *breaker, uint64_t now_ms);

/* The state of this moment: one whose time of being open is over is half open, though nobody has tried yet. */
enum breaker_state breaker_look(const struct breaker *breaker, uint64_t now_ms);

/* What the window holds at this moment. */
struct breaker_step breaker_window(const struct breaker *breaker, uint64_t now_ms);

/* How long to wait after a refusal; at least 1. */
uint32_t breaker_wait_ms(const struct breaker *breaker, uint64_t now_ms);

/*
 * How long to wait before retry `number` (1, 2, …): twice as long as before the one before, less up to a half by chance, so that
 * many who failed together do not come back together. `random` is any number.
 */
uint32_t breaker_backoff_ms(uint32_t first_ms, uint32_t number, uint32_t random);

#endif
