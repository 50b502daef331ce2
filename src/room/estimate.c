/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Let c be the calls per second and g the share of those in line who give up per second. Then the p people up to and including
 * this one become fewer by c + g * p a second, and the last of them is called after ln(1 + g * p / c) / g seconds. With
 * x = g * p / c that is p / c * f(x), where f(x) = ln(1 + x) / x: the plain wait, times what the leavers save.
 *
 * c is a mean over three windows that all end now, so that a recent call weighs about fifteen times as much as an old one. Time in
 * which nobody stood in line is left out of c: it says nothing about how fast the room can call.
 */

#include "room/estimate.h"

#include "base/must.h"

/* The configured pace counts as if it had been seen for this long. */
#define PRIOR_MS 2000

#define SETTLED_MS 60000

/* Windows in slots, the one under way included; their weights. */
static const struct {
    uint32_t slots, weight;
} windows[] = {{3, 1}, {13, 2}, {ESTIMATE_SLOTS, 2}};

#define WINDOWS (sizeof(windows) / sizeof(windows[0]))

static struct estimate_slot window_sum(const struct estimate *estimate, uint32_t slots)
{
    struct estimate_slot sum = {0};

    for (uint32_t i = 0; i < slots; i++) {
        const struct estimate_slot *slot =
            &estimate->slot[(estimate->now + ESTIMATE_SLOTS - i) % ESTIMATE_SLOTS];
        sum.waited_ms += slot->waited_ms;
        sum.busy_ms += slot->busy_ms;
        sum.joins += slot->joins;
        sum.calls += slot->calls;
        sum.gone += slot->gone;
    }
    return sum;
}

/* Calls per 1000 s by the settings alone. */
static uint64_t configured(const struct settings *settings)
{
    uint64_t per_ks =
        settings->batch == 0 ? settings->rate_milli : settings->batch * 1000ULL / settings->interval_sec;

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
    uint32_t percent = 15 + (uint32_t)(150 / (1 + root(minute->calls)));

    return is_settled || percent > 50 ? percent : 50;
}

static void derive(struct estimate *estimate, const struct settings *settings)
{
    uint64_t prior = configured(settings), sum = 0, weights = 0;
    struct estimate_slot seen[WINDOWS];

    for (size_t i = 0; i < WINDOWS; i++) {
        seen[i] = window_sum(estimate, windows[i].slots);
        sum += windows[i].weight *
               ((seen[i].calls * 1000000ULL + prior * PRIOR_MS) / (seen[i].busy_ms + PRIOR_MS));
        weights += windows[i].weight;
    }
    estimate->calls_per_ks = sum / weights == 0 ? 1 : sum / weights;

    const struct estimate_slot *longest = &seen[WINDOWS - 1];
    uint64_t gone = longest->gone > 0 ? (uint64_t)longest->gone : 0;
    estimate->gone_per_gs =
        (uint64_t)((unsigned __int128)gone * 1000000000000ULL / (longest->waited_ms + 1000));
    estimate->is_settled = longest->busy_ms >= SETTLED_MS;
    estimate->margin_percent = margin(&seen[1], estimate->is_settled);

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

void estimate_count_gone(struct estimate *estimate, struct memory *memory, int32_t people)
{
    memory_set(memory, slot_now(estimate)->gone, slot_now(estimate)->gone + people);
}

void estimate_advance(struct estimate *estimate, struct memory *memory, const struct settings *settings,
                      uint32_t elapsed_ms, uint32_t standing)
{
    /* The slot under way, the one that may follow, and all that is derived. */
    memory_keep(memory, estimate, offsetof(struct estimate, slot));
    memory_keep(memory, slot_now(estimate), sizeof(struct estimate_slot));
    memory_keep(memory, &estimate->calls_per_ks, sizeof(*estimate) - offsetof(struct estimate, calls_per_ks));

    slot_now(estimate)->waited_ms += (uint64_t)standing * elapsed_ms;
    slot_now(estimate)->busy_ms += standing > 0 ? elapsed_ms : 0;
    estimate->in_ms += elapsed_ms;
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

static uint64_t measured_ms(const struct estimate *estimate, uint32_t position)
{
    uint64_t plain_ms = position * 1000000ULL / estimate->calls_per_ks;
    unsigned __int128 x_1024 = (unsigned __int128)estimate->gone_per_gs * plain_ms * 1024 / 1000000000000ULL;

    return plain_ms * leavers_save(x_1024 < UINT32_MAX ? (uint64_t)x_1024 : UINT32_MAX) / 65536;
}

/* Batches in one go come at known times, if nothing but the pace holds them back. */
static uint64_t batches_ms(const struct settings *settings, const struct pace *pace, uint32_t position)
{
    return pace->wait_ms + (uint64_t)((position - 1) / settings->batch) * settings->interval_sec * 1000;
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
    uint64_t ms = measured_ms(estimate, position);

    must(position > 0);
    if (settings->batch != 0 && !settings->smooth && estimate->calls_per_ks * 10 >= configured(settings) * 9)
        ms = batches_ms(settings, pace, position);
    uint64_t margin_ms = ms / 100 * estimate->margin_percent;
    uint64_t low_ms = ms > margin_ms + 1000 ? ms - margin_ms - 1000 : 0;

    return (struct eta){
        .sec = at_most(whole_sec(ms), settings->eta_cap_sec),
        .low_sec = at_most((uint32_t)(low_ms / 1000 < UINT32_MAX ? low_ms / 1000 : UINT32_MAX),
                           settings->eta_cap_sec),
        .high_sec = at_most(whole_sec(ms + margin_ms + 2000), settings->eta_cap_sec),
    };
}
