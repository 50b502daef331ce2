/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker keeps what it sees and passes it on with its next tick. So a request takes no lock, and a room hears at once of all
 * that was seen in a tenth of a second. Whether a room cares is for the engine to know.
 */
#include "nginx/shop.h"

#include "base/room_id.h"
#include "engine/engine.h"
#include "nginx/breaker.h"
#include "nginx/gate_note.h"
#include "nginx/worker.h"

/* Rooms of which something was seen since the last tick. When there are more, they are told sooner. */
#define SIGHTS 64

static struct sight {
    char room[ROOM_ID_MAX];
    uint32_t room_len;
    struct shop_report report;
} sights[SIGHTS];
static size_t sight_count;

static struct shop_report *report_for(struct span room);
static uint32_t age_sec(const struct pass_claims *pass);
static void states_add(const ngx_http_request_t *r, struct shop_report *report, uint32_t age);
static void told(struct engine_call *call);

/* Whoever got in without a session is no part of any room's load. */
ngx_int_t shop_on_log(ngx_http_request_t *r)
{
    const struct gate_note *note = gate_note_peek(r);
    if (note == NULL || !note->has_session || r != r->main || r->upstream_states == NULL)
        return NGX_OK;
    struct shop_report *report = report_for(note->session.room);
    uint32_t refused_sec = breaker_refused_sec(r);
    if (refused_sec > 0)
        shop_report_left_alone(report, refused_sec * 1000); /* whoever answered, it was not the shop */
    else
        states_add(r, report, age_sec(&note->session));
    return NGX_OK;
}

/* An answer for each time that the shop was asked. One that its client did not wait for says nothing. */
static void states_add(const ngx_http_request_t *r, struct shop_report *report, uint32_t age)
{
    const ngx_http_upstream_state_t *states = r->upstream_states->elts;
    for (ngx_uint_t i = 0; i < r->upstream_states->nelts; i++) {
        const ngx_http_upstream_state_t *state = &states[i];
        if (state->peer == NULL)
            continue; /* from a cache, or between two upstreams */
        if (state->status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
            shop_report_add_failure(report, age);
        else if (state->status > 0 && state->header_time != (ngx_msec_t)-1)
            shop_report_add(report, (uint32_t)state->header_time, age);
    }
}

static struct shop_report *report_for(struct span room)
{
    for (size_t i = 0; i < sight_count; i++)
        if (span_equal((struct span){sights[i].room, sights[i].room_len}, room))
            return &sights[i].report;
    if (sight_count == SIGHTS)
        shop_report_all();
    struct sight *sight = &sights[sight_count++];
    *sight = (struct sight){.room_len = (uint32_t)room.len};
    memcpy(sight->room, room.data, room.len);
    return &sight->report;
}

static uint32_t age_sec(const struct pass_claims *pass)
{
    uint64_t now = (uint64_t)ngx_time();
    uint64_t age = now > pass->iat_sec ? now - pass->iat_sec : 0;
    return (uint32_t)ngx_min(age, UINT32_MAX);
}

void shop_leave_alone(struct span room, uint32_t ms)
{
    shop_report_left_alone(report_for(room), ms);
}

void shop_report_all(void)
{
    for (size_t i = 0; i < sight_count && worker_is_ready(); i++) {
        struct engine_call call = {
            .op = ENGINE_SHOP,
            .room = {sights[i].room, sights[i].room_len},
            .shop = &sights[i].report,
            .done = told,
        };
        engine_submit(worker_engine(), &call);
    }
    sight_count = 0;
}

/* If its room is gone, or cannot take it now, the next report will do. */
static void told(struct engine_call *call)
{
}
