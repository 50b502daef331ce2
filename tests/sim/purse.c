/* SPDX-License-Identifier: BSD-2-Clause */

/* It follows the promise and not room/pace.c: a mistake there must not be made here too. */

#include "purse.h"

#define TICK_MS 100

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* With every window empty. */
static struct purse purse_of(const struct settings *settings)
{
    struct purse purse = {
        .is_in_one_go = settings->batch != 0 && !settings->smooth,
        .call = 1000000,
        .per_ms = settings->rate_milli,
        .batch = settings->batch,
        .interval_ms = settings->interval_sec * 1000ULL,
    };

    if (settings->batch != 0) {
        purse.call = purse.interval_ms;
        purse.per_ms = settings->batch;
    }
    purse.most = max_of(purse.call + purse.per_ms * TICK_MS, purse.per_ms * 2 * TICK_MS);
    if (settings->batch == 0 && settings->burst != 0)
        purse.most = settings->burst * purse.call;
    return purse;
}

struct purse purse_new(const struct settings *settings)
{
    return purse_of(settings);
}

void purse_change(struct purse *purse, const struct settings *settings)
{
    struct purse new = purse_of(settings);
    unsigned __int128 credit = purse->most - purse->worst;

    if (purse->is_in_one_go && new.is_in_one_go) {
        new.left = purse->left < new.batch ? purse->left : new.batch;
        new.wait_ms = purse->wait_ms < new.interval_ms ? purse->wait_ms : new.interval_ms;
    } else if (new.is_in_one_go) {
        new.wait_ms = new.interval_ms;
    } else {
        credit = purse->is_in_one_go ? 0 : credit * new.call / purse->call;
        new.worst = credit < new.most ? new.most - (uint64_t)credit : 0;
    }
    *purse = new;
}

void purse_pass(struct purse *purse, uint64_t ms)
{
    purse->worst = less(purse->worst, purse->per_ms * ms);
    purse->wait_ms = less(purse->wait_ms, ms);
}

void purse_begin(struct purse *purse)
{
    if (!purse->is_in_one_go || purse->wait_ms > 0)
        return;
    purse->left = purse->batch;
    purse->wait_ms = purse->interval_ms;
}

void purse_lapse(struct purse *purse)
{
    purse->left = 0;
}

bool purse_has_call(const struct purse *purse)
{
    return purse->is_in_one_go ? purse->left > 0 : purse->worst + purse->call <= purse->most;
}

void purse_spend(struct purse *purse)
{
    if (purse->is_in_one_go)
        purse->left--;
    else
        purse->worst += purse->call;
}

void purse_refund(struct purse *purse)
{
    if (!purse->is_in_one_go)
        purse->worst = less(purse->worst, purse->call);
    else if (purse->left < purse->batch)
        purse->left++;
}
