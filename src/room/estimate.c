/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Let c be the calls per second and g the share of those in line who give up per second. Then the p people up to and including
 * this one become fewer by c + g * p a second, and the last of them is called after ln(1 + g * p / c) / g seconds. With
 * x = g * p / c that is p / c * f(x), where f(x) = ln(1 + x) / x: the plain wait, times what the leavers save.
 *
 * c is a mean over three windows that all end now, so that a recent call weighs about fifteen times as much as an old one. Time in
 * which nobody stood in line is left out of c: it says nothing about how fast the room can call. Nor do the calls that fill an
 * empty room: once it is full, people are called as others leave. So c is never taken to be more than the slots allow, at the
 * rate at which they are seen to become free.
 *
 * Of those who give up without a word some are counted in p still, because they are not missed yet: see ghosts_1024.
 */

#include "room/estimate.h"

#include "base/must.h"
#include "room/ticket.h"

/* The configured pace counts as if it had been seen for this long. */
#define PRIOR_MS 2000

#define SETTLED_MS 60000

/* Nobody is thought to stay longer, before anybody has left. */
#define LONGEST_VISIT_SEC 3600

/* Never more than half of a line is thought to be gone unnoticed. */
#define GHOSTS_MOST_1024 512

#define GIGA_SEC_MS 1000000000000ULL

/* Windows in slots, the one under way included; their weights. */
static const struct {
    uint32_t slots, weight;
} windows[] = {{3, 1}, {13, 2}, {ESTIMATE_SLOTS, 2}};

#define WINDOWS (sizeof(windows) / sizeof(windows[0]))
#define MINUTE  1
#define LONGEST 2

static struct estimate_slot window_sum(const struct estimate *estimate, uint32_t slots)
{
    struct estimate_slot sum = {0};

    for (uint32_t i = 0; i < slots; i++) {
        const struct estimate_slot *slot =
            &estimate->slot[(estimate->now + ESTIMATE_SLOTS - i) % ESTIMATE_SLOTS];
        sum.waited_ms += slot->waited_ms;
        sum.inside_ms += slot->inside_ms;
        sum.busy_ms += slot->busy_ms;
        sum.joins += slot->joins;
        sum.calls += slot->calls;
        sum.turns += slot->turns;
        sum.ends += slot->ends;
        sum.gone += slot->gone;
        sum.silent += slot->silent;
    }
    return sum;
}

/* Calls per 1000 s by the settings alone, never 0. */
static uint64_t configured(const struct settings *settings)
{
    uint64_t per_ks = pace_milli(settings);

    return per_ks == 0 ? 1 : per_ks;
}

/* Of whole numbers, rounded down, by Newton's method from above. */
static uint64_t root(uint64_t square)
{
    uint64_t guess = square, better = (guess + 1) / 2;

    while (better < guess) {
        guess = better;
        better = (guess + square / guess) / 2;
    }
    return guess;
}

/* Both sides of the truth in nine of ten cases: some for what cannot be known, and more the fewer calls were seen. */
static uint32_t margin(const struct estimate_slot *minute, bool is_settled)
{
    uint32_t percent = 15 + (uint32_t)(150 / (1 + root(minute->turns)));

    return is_settled || percent > 50 ? percent : 50;
}

/*
 * What the configured pace weighs beside a window: as if it had been seen for PRIOR_MS at first, and nothing once there is a
 * minute of data. A shop may be far slower than its room was set.
 */
static uint64_t prior_ms(const struct estimate_slot *seen)
{
    return seen->busy_ms >= SETTLED_MS ? 0 : PRIOR_MS - (uint64_t)PRIOR_MS * seen->busy_ms / SETTLED_MS;
}

/* Calls per 1000 s while people waited. */
static uint64_t called_rate(const struct estimate_slot *seen, uint64_t configured_rate, uint64_t prior)
{
    uint64_t ms = seen->busy_ms + prior;

    return ms == 0 ? configured_rate : (seen->turns * 1000000ULL + configured_rate * prior) / ms;
}

/*
 * Calls per 1000 s that the slots allow once all are taken: as many as become free. Calls that only filled the room say nothing
 * about the time when it is full; how long people stay does.
 */
static uint64_t slots_rate(const struct estimate_slot *seen, uint64_t configured_rate, uint64_t prior,
                           const struct settings *settings)
{
    uint64_t slots = settings->max_active;
    uint64_t longest_sec = settings->session_max_sec == 0 ? LONGEST_VISIT_SEC : settings->session_max_sec;
    uint64_t inside_ms = seen->inside_ms + slots * prior;
    unsigned __int128 ends = seen->ends * 1000000ULL + configured_rate * prior;

    if (slots == 0 || inside_ms == 0)
        return UINT64_MAX;
    uint64_t rate = (uint64_t)(ends * slots / inside_ms);
    uint64_t least = slots * 1000 / longest_sec;
    return rate > least ? rate : least;
}

static uint64_t share(uint64_t people, uint64_t waited_ms)
{
    return (uint64_t)((unsigned __int128)people * GIGA_SEC_MS / (waited_ms + 1000));
}

static void derive_leavers(struct estimate *estimate, const struct estimate_slot *longest)
{
    uint64_t silent = longest->silent > 0 ? (uint64_t)longest->silent : 0;

    estimate->silent_per_gs = share(silent, longest->waited_ms);
    estimate->gone_per_gs = estimate->silent_per_gs + share(longest->gone, longest->waited_ms);
}

/* Calls per 1000 s, by what was seen. */
static void derive_rate(struct estimate *estimate, const struct settings *settings,
                        const struct estimate_slot *seen)
{
    uint64_t configured_rate = configured(settings), prior = prior_ms(&seen[LONGEST]);
    uint64_t called = 0, weights = 0;

    for (size_t i = 0; i < WINDOWS; i++) {
        called += windows[i].weight * called_rate(&seen[i], configured_rate, prior);
        weights += windows[i].weight;
    }
    called /= weights;
    uint64_t slots = slots_rate(&seen[MINUTE], configured_rate, prior, settings) / 2 +
                     slots_rate(&seen[LONGEST], configured_rate, prior, settings) / 2;
    estimate->is_short_of_slots = slots < called;
    estimate->calls_per_ks = estimate->is_short_of_slots ? slots : called;
    if (estimate->calls_per_ks == 0)
        estimate->calls_per_ks = 1;
}

/* A minute of people waiting; and, where slots decide, half of them must have become free: that says how long people stay. */
static bool is_enough(const struct estimate *estimate, const struct settings *settings,
                      const struct estimate_slot *longest)
{
    return longest->busy_ms >= SETTLED_MS &&
           (!estimate->is_short_of_slots || longest->ends >= settings->max_active / 2);
}

static void derive(struct estimate *estimate, const struct settings *settings)
{
    struct estimate_slot seen[WINDOWS];

    for (size_t i = 0; i < WINDOWS; i++)
        seen[i] = window_sum(estimate, windows[i].slots);
    derive_rate(estimate, settings, seen);
    derive_leavers(estimate, &seen[LONGEST]);
    estimate->is_settled = is_enough(estimate, settings, &seen[LONGEST]);
    estimate->margin_percent = margin(&seen[MINUTE], estimate->is_settled);

    uint32_t recent_ms = (windows[0].slots - 1) * ESTIMATE_SLOT_MS + estimate->in_ms;
    estimate->joined_milli = (uint32_t)(seen[0].joins * 1000000ULL / recent_ms);
    estimate->called_milli = (uint32_t)(seen[0].calls * 1000000ULL / recent_ms);
}

void estimate_init(struct estimate *estimate, const struct settings *settings)
{
    *estimate = (struct estimate){0};
    derive(estimate, settings);
}

void estimate_restart(struct estimate *estimate, struct memory *memory, const struct settings *settings)
{
    uint64_t checked = estimate->checked, kept = estimate->kept;

    memory_keep(memory, estimate, sizeof(*estimate));
    estimate_init(estimate, settings);
    estimate->checked = checked;
    estimate->kept = kept;
}

static struct estimate_slot *slot_now(struct estimate *estimate)
{
    return &estimate->slot[estimate->now];
}

void estimate_count_join(struct estimate *estimate, struct memory *memory)
{
    memory_set(memory, slot_now(estimate)->joins, slot_now(estimate)->joins + 1);
}

void estimate_count_call(struct estimate *estimate, struct memory *memory)
{
    memory_set(memory, slot_now(estimate)->calls, slot_now(estimate)->calls + 1);
}

void estimate_count_turn(struct estimate *estimate, struct memory *memory)
{
    memory_set(memory, slot_now(estimate)->turns, slot_now(estimate)->turns + 1);
}

void estimate_count_end(struct estimate *estimate, struct memory *memory)
{
    memory_set(memory, slot_now(estimate)->ends, slot_now(estimate)->ends + 1);
}

void estimate_count_gone(struct estimate *estimate, struct memory *memory)
{
    memory_set(memory, slot_now(estimate)->gone, slot_now(estimate)->gone + 1);
}

void estimate_count_silent(struct estimate *estimate, struct memory *memory, int32_t people)
{
    memory_set(memory, slot_now(estimate)->silent, slot_now(estimate)->silent + people);
}

void estimate_advance(struct estimate *estimate, struct memory *memory, const struct settings *settings,
                      const struct estimate_moment *moment)
{
    /* The slot under way, the one that may follow, and all that is derived. */
    memory_keep(memory, estimate, offsetof(struct estimate, slot));
    memory_keep(memory, slot_now(estimate), sizeof(struct estimate_slot));
    memory_keep(memory, &estimate->calls_per_ks, sizeof(*estimate) - offsetof(struct estimate, calls_per_ks));

    slot_now(estimate)->waited_ms += (uint64_t)moment->standing * moment->ms;
    slot_now(estimate)->inside_ms += (uint64_t)moment->inside * moment->ms;
    slot_now(estimate)->busy_ms += moment->standing > 0 && moment->is_calling ? moment->ms : 0;
    estimate->in_ms += moment->ms;
    if (estimate->in_ms >= ESTIMATE_SLOT_MS) {
        estimate->in_ms -= ESTIMATE_SLOT_MS;
        estimate->now = (estimate->now + 1) % ESTIMATE_SLOTS;
        memory_set(memory, *slot_now(estimate), (struct estimate_slot){0});
    }
    derive(estimate, settings);
}

/* f(x) = ln(1 + x) / x in 65536ths at x = 0, 1/4, 1/2, 1, 2, 4, …, with straight lines between. */
static uint64_t leavers_save(uint64_t x_1024)
{
    static const struct {
        uint32_t x_1024, f_65536;
    } knots[] = {
        {0, 65536},    {256, 58496},   {512, 53146},  {1024, 45426}, {2048, 35999},  {4096, 26369},
        {8192, 18000}, {16384, 11605}, {32768, 7161}, {65536, 4275}, {131072, 2488},
    };
    size_t last = sizeof(knots) / sizeof(knots[0]) - 1, i = 0;

    if (x_1024 >= knots[last].x_1024)
        return knots[last].f_65536;
    while (x_1024 >= knots[i + 1].x_1024)
        i++;
    uint64_t width = knots[i + 1].x_1024 - knots[i].x_1024;
    uint64_t fall = knots[i].f_65536 - knots[i + 1].f_65536;
    return knots[i].f_65536 - fall * (x_1024 - knots[i].x_1024) / width;
}

/*
 * The share of those ahead who have left without a word and are not missed yet: until they are away two of their polls pass, and
 * more. Where slots are what is scarce they save nothing: called, each of them holds a slot for as long as others do.
 */
static uint64_t ghosts_1024(const struct estimate *estimate, uint32_t position)
{
    uint64_t plain_ms = position * 1000000ULL / estimate->calls_per_ks;
    uint64_t poll_max_ms = TICKET_POLL_MAX_SEC * 1000;
    uint64_t poll_ms = plain_ms / 10 < poll_max_ms ? plain_ms / 10 : poll_max_ms;
    unsigned __int128 ghosts = (unsigned __int128)estimate->silent_per_gs * poll_ms * 2 * 1024 / GIGA_SEC_MS;

    if (estimate->is_short_of_slots)
        return 0;
    return ghosts < GHOSTS_MOST_1024 ? (uint64_t)ghosts : GHOSTS_MOST_1024;
}

/* Of the people up to this position, how many calls it takes until the last of them is called. */
static uint64_t calls_needed_1024(const struct estimate *estimate, uint32_t position)
{
    uint64_t people_1024 = position * (1024ULL - ghosts_1024(estimate, position));
    uint64_t plain_ms = people_1024 * 1000000ULL / 1024 / estimate->calls_per_ks;
    unsigned __int128 x_1024 = (unsigned __int128)estimate->gone_per_gs * plain_ms * 1024 / GIGA_SEC_MS;

    return people_1024 * leavers_save(x_1024 < UINT32_MAX ? (uint64_t)x_1024 : UINT32_MAX) / 65536;
}

/* Batches in one go come at known times, if nothing but the pace holds them back. */
static uint64_t batches_ms(const struct settings *settings, const struct pace *pace, uint64_t calls)
{
    return pace->wait_ms + (calls == 0 ? 0 : calls - 1) / settings->batch * settings->interval_sec * 1000;
}

static uint32_t whole_sec(uint64_t ms)
{
    uint64_t seconds = (ms + 999) / 1000;

    return seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

static uint32_t at_most(uint32_t value, uint32_t cap)
{
    return cap != 0 && value > cap ? cap : value;
}

struct eta estimate_eta(const struct estimate *estimate, const struct settings *settings,
                        const struct pace *pace, uint32_t position)
{
    uint64_t calls_1024 = calls_needed_1024(estimate, position);
    uint64_t ms = calls_1024 * 1000000 / 1024 / estimate->calls_per_ks;

    must(position > 0);
    if (settings->batch != 0 && !settings->smooth && estimate->calls_per_ks * 10 >= configured(settings) * 9)
        ms = batches_ms(settings, pace, (calls_1024 + 1023) / 1024);
    uint64_t margin_ms = ms / 100 * estimate->margin_percent;
    uint64_t low_ms = ms > margin_ms + 1000 ? ms - margin_ms - 1000 : 0;

    return (struct eta){
        .sec = at_most(whole_sec(ms), settings->eta_cap_sec),
        .low_sec = at_most((uint32_t)(low_ms / 1000 < UINT32_MAX ? low_ms / 1000 : UINT32_MAX),
                           settings->eta_cap_sec),
        .high_sec = at_most(whole_sec(ms + margin_ms + 2000), settings->eta_cap_sec),
    };
}
