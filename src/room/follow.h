/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_FOLLOW_H
#define WEIR_ROOM_FOLLOW_H

/*
 * A pace that follows the shop (`pace=auto`). What the shop answers to those inside is counted, and about once a second the rate
 * is set anew between `rate_min` and `rate_max`: up gently while answers come in time, down at once when they do not. It is pure
 * arithmetic on what it is told; why it is done this way is said in follow.c.
 *
 * Whole numbers only, so that every engine comes to the same rate.
 */

#include "base/memory.h"
#include "room/settings.h"

#include <stdbool.h>
#include <stdint.h>

/* Times to the first byte, four to an octave from 4 ms on: the last is for a minute and more. */
#define SHOP_TIMES 60

/* What was seen of the shop since the last report. */
struct shop_report {
    uint32_t failures;          /* answers that tell of trouble: 5xx, a timeout, no connection */
    uint32_t times[SHOP_TIMES]; /* the others, by their time to the first byte */
    uint64_t ages_sec;          /* of all those answers: how long after their enter people asked, added up */
    uint32_t left_alone_ms; /* nobody should be called for this long: a breaker is open, the hall is full */
};

void shop_report_add(struct shop_report *report, uint32_t first_byte_ms, uint32_t age_sec);
void shop_report_add_failure(struct shop_report *report, uint32_t age_sec);
void shop_report_left_alone(struct shop_report *report, uint32_t ms);
void shop_report_add_all(struct shop_report *report, const struct shop_report *other);

/* REASON(name, word, what it means) */
#define FOLLOW_REASON_LIST(REASON)                                                                     \
    REASON(FOLLOW_FIXED, "fixed", "the pace is what the settings say")                                 \
    REASON(FOLLOW_BEGIN, "begin", "nothing was seen of the shop yet")                                  \
    REASON(FOLLOW_WELL, "well", "the shop answers well: faster")                                       \
    REASON(FOLLOW_FULL, "full", "the shop answers well, and the pace is `rate_max`")                   \
    REASON(FOLLOW_NEAR, "near", "the shop's times are close to the target: no faster")                 \
    REASON(FOLLOW_FILLING, "filling", "the shop has not felt everybody yet who was let in: no faster") \
    REASON(FOLLOW_UNUSED, "unused", "fewer are called than the pace allows: no faster")                \
    REASON(FOLLOW_QUIET, "quiet", "no answer of the shop was seen")                                    \
    REASON(FOLLOW_SLOW, "slow", "the shop answers too slowly: slower")                                 \
    REASON(FOLLOW_FAILING, "failing", "too many of the shop's answers are failures: slower")           \
    REASON(FOLLOW_RECOVERING, "recovering",                                                            \
           "no faster for a while, until the shop has felt the last change")                           \
    REASON(FOLLOW_FROZEN, "frozen",                                                                    \
           "nobody is called: a breaker leaves the shop alone, or people wait in the hall")

enum follow_reason {
#define FOLLOW_REASON_ENUM(name, word, help) name,
    FOLLOW_REASON_LIST(FOLLOW_REASON_ENUM)
#undef FOLLOW_REASON_ENUM
        FOLLOW_REASONS
};

struct follow {
    uint32_t rate_milli; /* the present pace: calls per second, in thousandths */
    enum follow_reason reason;

    /* the window under way */
    uint32_t window_ms;
    uint32_t calls;
    struct shop_report seen;

    /* what is known of the shop */
    uint32_t time_ms;          /* 95 of 100 of the last window's answers began within this */
    uint32_t failed_permille;  /* of them */
    uint32_t floor_us;         /* time_ms without load; 0 = not known */
    uint32_t age_ms, older_ms; /* mean age of those who ask: now, and as it was a lag ago */
    uint64_t answers_milli,
        calls_milli; /* per second while all is well, in thousandths: one over the other, what a call brings */

    /* what was done last */
    uint32_t hold_ms;       /* to wait until it is felt */
    uint32_t trouble_milli; /* the rate at which the shop was last too slow; 0 = never */
    bool is_draining;       /* the shop has more to do than it can, and is given time */
    uint32_t before_milli;  /* the rate when that began */
    uint32_t can_milli;     /* what it seems able to take */
};

/* From `rate` on. */
void follow_init(struct follow *follow, const struct settings *settings);

/*
 * What is known of the shop stays. The rate begins anew where `pace` or `rate` is another, and keeps to the new bounds. Another
 * `pace` also ends a freeze.
 */
void follow_change(struct follow *follow, const struct settings *before, const struct settings *after);

void follow_count_call(struct follow *follow, struct memory *memory);

void follow_take(struct follow *follow, const struct shop_report *report);

/* Time passes. Whether the rate is another now. */
bool follow_advance(struct follow *follow, const struct settings *settings, uint32_t elapsed_ms);

/* `pace=hall`: nobody is called for so long, or longer if that was said before; and time that has passed of it. */
void follow_freeze(struct follow *follow, uint32_t ms);
void follow_thaw(struct follow *follow, uint32_t elapsed_ms);

/* For how long nobody is to be called: a breaker leaves the shop alone. */
static inline uint32_t follow_frozen_ms(const struct follow *follow)
{
    return follow->seen.left_alone_ms;
}

/* The time within which 95 of 100 answers should begin; 0 = not known yet. */
uint32_t follow_target_ms(const struct follow *follow, const struct settings *settings);

const char *follow_reason_word(enum follow_reason reason);

#endif
