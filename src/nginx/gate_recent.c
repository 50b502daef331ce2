/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of fixed size, two entries to a place: whoever comes third makes the older of them ask once more. Holders are keyed
 * hashes, so nobody can choose who shares a place with whom.
 */
#include "nginx/gate_recent.h"

#define PLACES 4096 /* a power of two */
#define WAYS   2

/* Epoch, count and holder are of one room only; its hash stands there for an engine that might give an epoch twice. */
struct recent {
    ngx_msec_t until;
    uint32_t epoch, count;
    struct holder holder;
    uint32_t room;
};

_Static_assert(WAYS * sizeof(struct recent) == 64, "a place is one cache line");

static _Alignas(64) struct recent table[PLACES][WAYS]; /* 256 KiB of a worker */

static struct recent *recent_find(const struct pass_claims *pass);
static struct recent *place_of(const struct pass_claims *pass);
static bool is_same(const struct recent *recent, const struct pass_claims *pass);
static uint32_t room_hash(struct span room);
static bool is_over(const struct recent *recent);

bool recent_has(const struct pass_claims *pass)
{
    return recent_find(pass) != NULL;
}

static struct recent *recent_find(const struct pass_claims *pass)
{
    struct recent *place = place_of(pass);
    for (int way = 0; way < WAYS; way++)
        if (is_same(&place[way], pass) && !is_over(&place[way]))
            return &place[way];
    return NULL;
}

static struct recent *place_of(const struct pass_claims *pass)
{
    uint32_t hash;
    memcpy(&hash, pass->holder.id, sizeof(hash));
    return table[(hash ^ pass->count) & (PLACES - 1)];
}

static bool is_same(const struct recent *recent, const struct pass_claims *pass)
{
    return recent->count == pass->count && recent->epoch == pass->epoch &&
           holder_equal(&recent->holder, &pass->holder) && recent->room == room_hash(pass->room);
}

static uint32_t room_hash(struct span room)
{
    return ngx_murmur_hash2((u_char *)room.data, room.len);
}

/* As nginx compares its timers: right though the clock may have turned over. */
static bool is_over(const struct recent *recent)
{
    return (ngx_msec_int_t)(recent->until - ngx_current_msec) <= 0;
}

void recent_add(const struct pass_claims *pass, uint32_t session_ttl_sec)
{
    struct recent *place = place_of(pass), *oldest = &place[0];
    for (int way = 1; way < WAYS; way++)
        if ((ngx_msec_int_t)(place[way].until - oldest->until) < 0)
            oldest = &place[way];
    ngx_msec_t moment = ngx_min((ngx_msec_t)session_ttl_sec * 100, RECENT_MS);
    *oldest = (struct recent){.until = ngx_current_msec + moment,
                              .epoch = pass->epoch,
                              .count = pass->count,
                              .holder = pass->holder,
                              .room = room_hash(pass->room)};
}

void recent_forget(const struct pass_claims *pass)
{
    struct recent *recent = recent_find(pass);
    if (recent != NULL)
        recent->until = ngx_current_msec;
}
