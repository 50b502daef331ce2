/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Additive increase would be too slow for a room that lets in a hundred a second and too fast for one that lets in one in ten
 * seconds, so both directions are relative; what is kept of AIMD (Chiu and Jain, 1989) is that the way down is far steeper than
 * the way up. Four things are different from a congestion window, because a person is not a packet:
 *
 * - A call brings load for as long as a visit lasts, seconds or minutes. The age of those who ask tells how long that is: its
 *   mean is the lag with which the shop feels a call. The pace grows by a part of itself per lag and not per second, and it waits
 *   while that mean is still rising, for then the shop has not felt everybody yet who was let in.
 * - What a call brings is known too: answers per second over calls per second (Little's law, 1961, for requests). So when the
 *   shop is far behind, what it still delivers says at which pace it would not be. Such an estimate of the bottleneck instead of
 *   blind halving is BBR's idea (Cardwell et al., 2016). Then the queue in the shop is drained at less than that pace, and
 *   afterwards the pace is set right under it.
 * - Good is relative to the shop's own time without load, which is what Vegas (Brakmo and Peterson, 1995) and gradient limiters
 *   compare with, unless the operator has named a target.
 * - A pace that is not used proves nothing and does not grow (RFC 7661): else a quiet hour would end with a flood.
 */

#include "room/follow.h"

#include "base/must.h"

#include <string.h>

#define WINDOW_MS      1000
#define WINDOW_MOST_MS 5000 /* when little is seen */
#define WINDOW_ANSWERS 20

#define LAG_LEAST_MS   5000
#define LAG_MOST_MS    600000 /* whoever stays for hours and asks a lot must not stop the pace for hours */
#define GROW_PERCENT   15     /* per lag; half of it near the rate at which there was trouble */
#define RISING_PERCENT 120    /* of the mean age a lag ago: the shop has not felt everybody yet */
#define BACK_PERCENT   93
#define STILL_PERCENT  80 /* of what the shop seemed able to take a window ago */
#define NEAR_PERCENT   80 /* of the target: no faster */
#define BAD_PERMILLE   50 /* of answers that are failures */
#define WORSE_PERMILLE 250
#define WORSE_TARGETS  4
#define BACKLOG_MS     5000 /* a shop that is this far behind is given as little as may be */
#define MARGIN_MS      100  /* above the floor, for shops so fast that twice their time is nothing */

/*
 * The floor rises by this part of itself a second, or else a shop that became slower for good would never be well again: hardly
 * while there is load, for which it is not to be mistaken, and soon when the pace is as low as it may be.
 */
#define FLOOR_RISE      4096
#define FLOOR_RISE_SOON 64

struct window {
    uint32_t ms, calls;
    uint64_t answers, good;
    uint32_t time_ms; /* of 95 of 100 good ones; 0 = there were none, or at once */
    uint32_t age_ms;
};

static void begin(struct follow *follow, const struct settings *settings);
static uint32_t times_index(uint32_t ms);
static uint32_t times_end(uint32_t index);
static bool window_is_over(const struct follow *follow);
static void window_forget(struct follow *follow, uint32_t left_alone_ms);
static struct window window_take(struct follow *follow);
static void lag_learn(struct follow *follow, const struct window *window);
static void floor_learn(struct follow *follow, const struct settings *settings, const struct window *window);
static bool is_bad(const struct follow *follow, const struct window *window, uint32_t target_ms);
static bool is_worse(const struct follow *follow, const struct window *window, uint32_t target_ms);
static void drain(struct follow *follow, const struct window *window);
static void back_off(struct follow *follow);
static void go_on(struct follow *follow, const struct settings *settings, const struct window *window,
                  uint32_t target_ms);

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t within_bounds(const struct settings *settings, uint64_t rate_milli)
{
    return (uint32_t)most(least(rate_milli, settings->rate_max_milli), settings->rate_min_milli);
}

static uint32_t percent_of(uint32_t percent, uint64_t value)
{
    return (uint32_t)(value * percent / 100);
}

/* How far behind the calls the shop feels them. */
static uint32_t lag_ms(const struct follow *follow)
{
    return (uint32_t)most(follow->age_ms, LAG_LEAST_MS);
}

/* ---- reports ---- */

void shop_report_add(struct shop_report *report, uint32_t first_byte_ms, uint32_t age_sec)
{
    report->times[times_index(first_byte_ms)]++;
    report->ages_sec += least(age_sec, LAG_MOST_MS / 1000);
}

void shop_report_add_failure(struct shop_report *report, uint32_t age_sec)
{
    report->failures++;
    report->ages_sec += least(age_sec, LAG_MOST_MS / 1000);
}

void shop_report_left_alone(struct shop_report *report, uint32_t ms)
{
    report->left_alone_ms = (uint32_t)most(report->left_alone_ms, ms);
}

void shop_report_add_all(struct shop_report *report, const struct shop_report *other)
{
    report->failures += other->failures;
    report->ages_sec += other->ages_sec;
    for (int i = 0; i < SHOP_TIMES; i++)
        report->times[i] += other->times[i];
    shop_report_left_alone(report, other->left_alone_ms);
}

static uint32_t times_index(uint32_t ms)
{
    if (ms < 4)
        return ms;
    uint32_t octave = 31 - (uint32_t)__builtin_clz(ms);
    return (uint32_t)least(4 * (octave - 1) + ((ms >> (octave - 2)) & 3), SHOP_TIMES - 1);
}

/* The longest time that is counted there. */
static uint32_t times_end(uint32_t index)
{
    if (index < 4)
        return index;
    uint32_t octave = index / 4 + 1;
    return ((4 + index % 4 + 1) << (octave - 2)) - 1;
}

void follow_take(struct follow *follow, const struct shop_report *report)
{
    shop_report_add_all(&follow->seen, report);
}

/* ---- the loop ---- */

void follow_init(struct follow *follow, const struct settings *settings)
{
    *follow = (struct follow){0};
    begin(follow, settings);
}

void follow_change(struct follow *follow, const struct settings *before, const struct settings *after)
{
    /* A window of the other pace was never looked at, and nobody would thaw a fixed one. */
    if (before->pace != after->pace)
        window_forget(follow, 0);
    if (before->pace != after->pace || before->rate_milli != after->rate_milli)
        begin(follow, after);
    else if (after->pace == PACE_AUTO)
        follow->rate_milli = within_bounds(after, follow->rate_milli);
}

static void begin(struct follow *follow, const struct settings *settings)
{
    bool is_auto = settings->pace == PACE_AUTO;

    follow->rate_milli = is_auto ? within_bounds(settings, settings->rate_milli) : settings->rate_milli;
    follow->reason = is_auto ? FOLLOW_BEGIN : follow_frozen_ms(follow) > 0 ? FOLLOW_FROZEN : FOLLOW_FIXED;
    follow->trouble_milli = follow->hold_ms = 0;
    follow->is_draining = false;
}

void follow_count_call(struct follow *follow, struct memory *memory)
{
    memory_set(memory, follow->calls, follow->calls + 1);
}

static uint32_t passed(uint32_t ms, uint32_t elapsed_ms)
{
    return ms > elapsed_ms ? ms - elapsed_ms : 0;
}

void follow_freeze(struct follow *follow, uint32_t ms)
{
    shop_report_left_alone(&follow->seen, ms);
    if (follow_frozen_ms(follow) > 0)
        follow->reason = FOLLOW_FROZEN;
}

void follow_thaw(struct follow *follow, uint32_t elapsed_ms)
{
    follow->seen.left_alone_ms = passed(follow->seen.left_alone_ms, elapsed_ms);
    if (follow_frozen_ms(follow) == 0)
        follow->reason = FOLLOW_FIXED;
}

bool follow_advance(struct follow *follow, const struct settings *settings, uint32_t elapsed_ms)
{
    uint32_t rate_before = follow->rate_milli;

    follow->window_ms += elapsed_ms;
    follow->hold_ms = passed(follow->hold_ms, elapsed_ms);
    follow->seen.left_alone_ms = passed(follow->seen.left_alone_ms, elapsed_ms);
    if (follow_frozen_ms(follow) > 0) {
        follow->reason = FOLLOW_FROZEN;
        follow->hold_ms = lag_ms(follow);
        window_take(follow);
        return false;
    }
    if (follow->reason == FOLLOW_FROZEN)
        follow->reason = FOLLOW_RECOVERING;
    if (!window_is_over(follow))
        return false;
    struct window window = window_take(follow);
    if (window.answers == 0) {
        follow->reason = FOLLOW_QUIET;
        return false;
    }
    lag_learn(follow, &window);
    floor_learn(follow, settings, &window);
    uint32_t target_ms = follow_target_ms(follow, settings);
    if (is_worse(follow, &window, target_ms))
        drain(follow, &window);
    else if (is_bad(follow, &window, target_ms))
        back_off(follow);
    else
        go_on(follow, settings, &window, target_ms);
    follow->rate_milli = within_bounds(settings, follow->rate_milli);
    return follow->rate_milli != rate_before;
}

uint32_t follow_target_ms(const struct follow *follow, const struct settings *settings)
{
    uint32_t floor_ms = follow->floor_us / 1000;

    if (settings->shop_target_ms != 0 || floor_ms == 0)
        return settings->shop_target_ms;
    return (uint32_t)most(2 * floor_ms, floor_ms + MARGIN_MS);
}

/* ---- what was seen ---- */

static uint64_t good_answers(const struct shop_report *seen)
{
    uint64_t good = 0;

    for (int i = 0; i < SHOP_TIMES; i++)
        good += seen->times[i];
    return good;
}

static bool window_is_over(const struct follow *follow)
{
    return follow->window_ms >= WINDOW_MOST_MS ||
           (follow->window_ms >= WINDOW_MS &&
            good_answers(&follow->seen) + follow->seen.failures >= WINDOW_ANSWERS);
}

static void window_forget(struct follow *follow, uint32_t left_alone_ms)
{
    follow->seen = (struct shop_report){.left_alone_ms = left_alone_ms};
    follow->window_ms = follow->calls = 0;
}

/* The time within which 95 of 100 are; of fewer than 20, all but one. */
static uint32_t time_of_most(const struct shop_report *seen, uint64_t good)
{
    uint64_t wanted = least((good * 95 + 99) / 100, most(good - 1, 1)), found = 0;
    uint32_t index = 0;

    while (index < SHOP_TIMES - 1 && (found += seen->times[index]) < wanted)
        index++;
    return times_end(index);
}

static struct window window_take(struct follow *follow)
{
    struct shop_report *seen = &follow->seen;
    struct window window = {.ms = follow->window_ms, .calls = follow->calls, .good = good_answers(seen)};

    window.answers = window.good + seen->failures;
    if (window.good > 0)
        window.time_ms = time_of_most(seen, window.good);
    if (window.answers > 0) {
        window.age_ms = (uint32_t)least(seen->ages_sec * 1000 / window.answers, LAG_MOST_MS);
        follow->time_ms = window.time_ms;
        follow->failed_permille = (uint32_t)(seen->failures * 1000ULL / window.answers);
    }
    window_forget(follow, seen->left_alone_ms);
    return window;
}

/* Moves a mean towards what was seen, with the weight of ms in so many. */
static void mean_move(uint64_t *mean, uint64_t seen, uint32_t ms, uint32_t in_ms)
{
    uint64_t weight = least(ms, in_ms);

    *mean = (*mean * (in_ms - weight) + seen * weight) / in_ms;
}

static void lag_learn(struct follow *follow, const struct window *window)
{
    uint64_t age_ms = follow->age_ms, older_ms = follow->older_ms;

    mean_move(&age_ms, window->age_ms, window->ms, 2000);
    mean_move(&older_ms, age_ms, window->ms, (uint32_t)most(age_ms, LAG_LEAST_MS));
    follow->age_ms = (uint32_t)age_ms;
    follow->older_ms = (uint32_t)older_ms;
}

static bool is_filling(const struct follow *follow)
{
    return follow->age_ms > percent_of(RISING_PERCENT, follow->older_ms) + 500;
}

static void floor_learn(struct follow *follow, const struct settings *settings, const struct window *window)
{
    uint64_t time_us = most(window->time_ms * 1000ULL, 1000);
    uint32_t part = follow->rate_milli <= settings->rate_min_milli ? FLOOR_RISE_SOON : FLOOR_RISE;
    uint64_t risen_us = follow->floor_us + follow->floor_us / part * window->ms / 1000 + 1;

    if (window->good == 0)
        return;
    if (follow->floor_us == 0)
        risen_us = time_us;
    /* A few answers, be they ever so fast, are no measure of all that a shop does. */
    uint64_t fall_us = risen_us - least(time_us, risen_us);
    fall_us = fall_us * least(window->good, WINDOW_ANSWERS) / WINDOW_ANSWERS;
    follow->floor_us = (uint32_t)(risen_us - fall_us);
}

/* One failure or one slow answer alone proves nothing, be there ever so few. */
static bool fails_more_than(const struct follow *follow, const struct window *window, uint32_t permille)
{
    return window->answers - window->good > 1 && follow->failed_permille > permille;
}

static bool is_slower_than(const struct window *window, uint64_t ms)
{
    return window->good > 1 && window->time_ms > ms;
}

static bool is_bad(const struct follow *follow, const struct window *window, uint32_t target_ms)
{
    return fails_more_than(follow, window, BAD_PERMILLE) || is_slower_than(window, target_ms);
}

static bool is_worse(const struct follow *follow, const struct window *window, uint32_t target_ms)
{
    return fails_more_than(follow, window, WORSE_PERMILLE) ||
           is_slower_than(window, WORSE_TARGETS * (uint64_t)target_ms);
}

static uint32_t per_sec_milli(uint64_t count, uint32_t ms)
{
    return (uint32_t)least(count * 1000000 / ms, UINT32_MAX);
}

/* ---- what is done ---- */

static void say_why(struct follow *follow)
{
    follow->reason = follow->failed_permille > BAD_PERMILLE ? FOLLOW_FAILING : FOLLOW_SLOW;
}

/* The pace that would bring no more than the shop delivers now. */
static uint32_t pace_it_can(const struct follow *follow, const struct window *window)
{
    if (follow->answers_milli == 0)
        return follow->rate_milli / 2;
    uint64_t milli = per_sec_milli(window->good, window->ms) * follow->calls_milli / follow->answers_milli;
    return (uint32_t)least(milli, UINT32_MAX);
}

/*
 * While the shop is far behind, what it delivers shows what it can take, the longer the more clearly. So the best that was seen
 * counts, and fades, for the shop may also have broken down. The farther behind it is the less is added, and least where visits
 * are long: what is added now weighs on it for all their time.
 */
static void drain(struct follow *follow, const struct window *window)
{
    uint32_t can_milli = pace_it_can(follow, window);
    uint32_t behind_ms = window->good == 0 ? BACKLOG_MS : passed(window->time_ms, follow->floor_us / 1000);
    uint32_t lowest = 50 * LAG_LEAST_MS / lag_ms(follow);
    uint32_t percent =
        (uint32_t)most(lowest, least(BACK_PERCENT, 100 - least(behind_ms / (BACKLOG_MS / 100), 100)));

    if (!follow->is_draining) {
        follow->is_draining = true;
        follow->before_milli = follow->rate_milli;
        follow->can_milli = 0;
    }
    follow->can_milli = percent_of(STILL_PERCENT, follow->can_milli);
    follow->can_milli = (uint32_t)least(most(follow->can_milli, can_milli), follow->before_milli);
    follow->trouble_milli = follow->can_milli;
    follow->rate_milli = percent_of(percent, follow->can_milli);
    follow->hold_ms = lag_ms(follow);
    say_why(follow);
}

static void back_off(struct follow *follow)
{
    say_why(follow);
    if (follow->hold_ms > 0)
        return;
    follow->is_draining = false; /* what it can do was taken to be more than it is */
    follow->trouble_milli = follow->rate_milli;
    follow->rate_milli = percent_of(BACK_PERCENT, follow->rate_milli);
    follow->hold_ms = lag_ms(follow);
}

/*
 * A shop that delivered next to nothing was not behind but down, and what it can do now nobody knows: half of what it did before
 * is tried, as after a timeout in TCP.
 */
static void drain_end(struct follow *follow)
{
    follow->is_draining = false;
    follow->hold_ms = lag_ms(follow);
    follow->reason = FOLLOW_RECOVERING;
    if (follow->can_milli < follow->before_milli / 8)
        follow->rate_milli = follow->before_milli / 2;
    else
        follow->rate_milli = percent_of(BACK_PERCENT, follow->can_milli);
}

/* Only while calls and answers belong to each other. */
static void load_learn(struct follow *follow, const struct window *window)
{
    mean_move(&follow->answers_milli, per_sec_milli(window->good, window->ms), window->ms,
              2 * lag_ms(follow));
    mean_move(&follow->calls_milli, per_sec_milli(window->calls, window->ms), window->ms, 2 * lag_ms(follow));
}

static void grow(struct follow *follow, const struct window *window)
{
    uint32_t rate = follow->rate_milli, trouble = follow->trouble_milli;
    bool is_near_trouble = rate >= percent_of(95, trouble) && rate <= percent_of(105, trouble);
    uint64_t per_lag = (uint64_t)rate * GROW_PERCENT / (is_near_trouble ? 200 : 100);

    follow->rate_milli += (uint32_t)most(per_lag * window->ms / lag_ms(follow), 1);
}

static bool is_unused(const struct follow *follow, const struct window *window)
{
    return (uint64_t)window->calls * 1000000 <
           (uint64_t)percent_of(NEAR_PERCENT, follow->rate_milli) * window->ms;
}

/* All is well. */
static void go_on(struct follow *follow, const struct settings *settings, const struct window *window,
                  uint32_t target_ms)
{
    if (follow->is_draining) {
        drain_end(follow);
        return;
    }
    if (follow->hold_ms == 0 && !is_filling(follow))
        load_learn(follow, window);
    if (follow->hold_ms > 0)
        follow->reason = FOLLOW_RECOVERING;
    else if (is_filling(follow))
        follow->reason = FOLLOW_FILLING;
    else if (follow->rate_milli >= settings->rate_max_milli)
        follow->reason = FOLLOW_FULL;
    else if (is_unused(follow, window))
        follow->reason = FOLLOW_UNUSED;
    else if (window->time_ms > percent_of(NEAR_PERCENT, target_ms))
        follow->reason = FOLLOW_NEAR;
    else {
        follow->reason = FOLLOW_WELL;
        grow(follow, window);
    }
}

const char *follow_reason_word(enum follow_reason reason)
{
    static const char *const words[] = {
#define FOLLOW_REASON_WORD(name, word, help) [name] = word,
        FOLLOW_REASON_LIST(FOLLOW_REASON_WORD)
#undef FOLLOW_REASON_WORD
    };

    must(reason < FOLLOW_REASONS);
    return words[reason];
}
