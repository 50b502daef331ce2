/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of fixed size, two entries to a place: whoever comes third makes the older of them ask once more. Holders are keyed
 * hashes, so nobody can choose who shares a place with whom.
 */
#include "nginx/gate_recent.h"

#include "base/must.h"
#include "base/room_id.h"

#define PLACES 4096 /* a power of two */
#define WAYS   2

struct recent {
    ngx_msec_t until;
    uint32_t epoch, count;
    struct holder holder;
    uint32_t room_len;
    char room[ROOM_ID_MAX];
};

static struct recent table[PLACES][WAYS]; /* of a worker: under 1 MiB, as much of it as is used */

static struct recent *recent_find(const struct pass_claims *pass);
static struct recent *place_of(const struct pass_claims *pass);
static bool is_same(const struct recent *recent, const struct pass_claims *pass);
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
           holder_equal(&recent->holder, &pass->holder) &&
           span_equal((struct span){recent->room, recent->room_len}, pass->room);
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
    must(pass->room.len <= ROOM_ID_MAX);
    *oldest = (struct recent){.until = ngx_current_msec + moment,
                              .epoch = pass->epoch,
                              .count = pass->count,
                              .holder = pass->holder,
                              .room_len = (uint32_t)pass->room.len};
    memcpy(oldest->room, pass->room.data, pass->room.len);
}

void recent_forget(const struct pass_claims *pass)
{
    struct recent *recent = recent_find(pass);
    if (recent != NULL)
        recent->until = ngx_current_msec;
}
