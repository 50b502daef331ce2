/* SPDX-License-Identifier: BSD-2-Clause */
#include "deeds.h"

#include <stdlib.h>

struct doers doers_new(uint64_t seed)
{
    return (struct doers){
        .dice = {seed}, .holders = 60, .keys = 40, .settings = settings_at_random, .has_clear = true};
}

void doers_free(struct doers *doers)
{
    free(doers->place);
}

struct settings settings_at_random(struct dice *dice)
{
    static const uint32_t modes[] = {MODE_QUEUE, MODE_QUEUE, MODE_QUEUE, MODE_QUEUE,
                                     MODE_QUEUE, MODE_HOLD,  MODE_OPEN,  MODE_CLOSED};
    struct settings s = settings_default();

    s.mode = modes[dice_below(dice, 8)];
    s.max_active = dice_below(dice, 4) == 0 ? 0 : 1 + dice_below(dice, 20);
    s.rate_milli = 1 + dice_below(dice, dice_below(dice, 2) == 0 ? 1000 : 30000);
    s.burst = dice_below(dice, 4);
    if (dice_below(dice, 3) == 0) {
        s.batch = 1 + dice_below(dice, 10);
        s.interval_sec = 1 + dice_below(dice, 20);
        s.smooth = dice_below(dice, 2);
    }
    if (s.batch == 0 && dice_below(dice, 4) == 0) {
        s.pace = PACE_AUTO;
        s.rate_min_milli = 1 + dice_below(dice, 10000);
        s.rate_max_milli = s.rate_min_milli + dice_below(dice, 30000);
    }
    s.max_called = dice_below(dice, 3) == 0 ? 1 + dice_below(dice, 5) : 0;
    s.min_wait_sec = dice_below(dice, 3) == 0 ? dice_below(dice, 20) : 0;
    s.seen_ttl_sec = 10 + dice_below(dice, 10);
    s.away_ttl_sec = 1 + dice_below(dice, 60);
    s.claim_ttl_sec = 1 + dice_below(dice, 150);
    s.arrive_ttl_sec = 1 + dice_below(dice, 30);
    s.session_ttl_sec = 1 + dice_below(dice, 60);
    if (dice_below(dice, 3) == 0) { /* people who outlive their keys */
        s.seen_ttl_sec = 1000;
        s.claim_ttl_sec = 1000;
        s.session_ttl_sec = 1000;
    }
    s.session_max_sec = dice_below(dice, 3) * 40;
    s.session_renew = dice_below(dice, 3) > 0;
    s.max_waiting = dice_below(dice, 4) == 0 ? 1 + dice_below(dice, 30) : 0;
    s.max_eta_sec = dice_below(dice, 6) == 0 ? 1 + dice_below(dice, 600) : 0;
    s.tier = 1 + dice_below(dice, 2);
    return s;
}

static struct request_key a_key(struct doers *doers)
{
    if (dice_below(&doers->dice, 3) > 0 || doers->keys == 0)
        return (struct request_key){0};
    uint32_t key = dice_below(&doers->dice, doers->keys);
    return key_of(key, dice_below(&doers->dice, 2));
}

static enum deed_kind a_kind(struct doers *doers)
{
    static const struct {
        enum deed_kind kind;
        uint32_t weight; /* of 1000 */
    } kinds[] = {
        {DEED_JOIN, 140},      {DEED_STATUS, 220}, {DEED_HEARTBEAT, 50}, {DEED_ENTER, 150},
        {DEED_LEAVE, 30},      {DEED_TOUCH, 90},   {DEED_END, 20},       {DEED_EXTEND, 25},
        {DEED_LEAVE_SOON, 45}, {DEED_SETTINGS, 8}, {DEED_ADVANCE, 12},   {DEED_CLEAR, 2},
        {DEED_TICK, 1000},
    };
    uint32_t roll = dice_below(&doers->dice, 1000), i = 0;

    while (roll >= kinds[i].weight)
        roll -= kinds[i++].weight;
    return kinds[i].kind;
}

/* Mostly the newer tickets: the older are over. */
static struct place a_place(struct doers *doers)
{
    uint32_t near = doers->places < 100 ? doers->places : 100;

    if (dice_below(&doers->dice, 20) == 0)
        near = doers->places;
    return doers->place[doers->places - 1 - dice_below(&doers->dice, near)];
}

struct deed doers_deed(struct doers *doers)
{
    static const uint32_t lengths_ms[] = {100, 100, 100, 100, 200, 1000, 1000, 5000, UINT32_MAX, 0};
    struct dice *dice = &doers->dice;
    struct deed deed = {.kind = a_kind(doers)};

    if (deed.kind == DEED_SETTINGS && doers->settings == NULL)
        deed.kind = DEED_TICK;
    if (deed.kind == DEED_CLEAR && !doers->has_clear)
        deed.kind = DEED_TICK;
    if (deed.kind < DEED_TICK && doers->places == 0)
        deed.kind = DEED_JOIN;
    switch (deed.kind) {
    case DEED_JOIN:
        deed.join.holder = holder_of(dice_below(dice, doers->holders));
        deed.join.is_trusted = dice_below(dice, 2) == 0;
        deed.join.key_id = (uint8_t)dice_below(dice, 256);
        deed.join.wall_sec = 1700000000 + dice_below(dice, 1000);
        deed.join.request = a_key(doers);
        break;
    case DEED_ENTER:
        deed.enter.place = a_place(doers);
        deed.enter.key_id = (uint8_t)dice_below(dice, 256);
        deed.enter.wall_sec = 1700001000 + dice_below(dice, 1000);
        deed.enter.request = a_key(doers);
        break;
    case DEED_TICK:
        deed.number = lengths_ms[dice_below(dice, 10)];
        break;
    case DEED_SETTINGS:
        deed.settings = doers->settings(dice);
        deed.texts = texts_at_random(dice);
        break;
    case DEED_ADVANCE:
        deed.number = dice_below(dice, 30);
        break;
    case DEED_EXTEND:
        deed.place = a_place(doers);
        deed.number = dice_below(dice, 200);
        break;
    case DEED_CLEAR:
        break;
    default:
        deed.place = a_place(doers);
    }
    return deed;
}

void doers_hear(struct doers *doers, const struct deed *deed, const struct answer *answer)
{
    if (deed->kind != DEED_JOIN || answer->error != ERROR_NONE || answer->standing.is_repeat)
        return;
    if (doers->places == doers->places_max) {
        doers->places_max = 2 * doers->places_max + 64;
        doers->place = realloc(doers->place, doers->places_max * sizeof(doers->place[0]));
        assert_non_null(doers->place);
    }
    struct place *place = &doers->place[doers->places++];
    *place = answer->standing.place;
    place->issue = (struct issue){true, deed->join.is_trusted, deed->join.key_id, deed->join.wall_sec};
}

struct answer deed_do(struct room *room, const struct deed *deed)
{
    struct answer answer = {.error = ERROR_NONE};
    uint32_t retry_after_sec;

    switch (deed->kind) {
    case DEED_JOIN:
        answer.error = room_join(room, &deed->join, &answer.standing, &retry_after_sec);
        break;
    case DEED_STATUS:
        answer.error = room_status(room, &deed->place, &answer.standing);
        break;
    case DEED_HEARTBEAT:
        answer.error = room_heartbeat(room, &deed->place, &answer.standing);
        break;
    case DEED_ENTER:
        answer.error = room_enter(room, &deed->enter, &answer.standing);
        break;
    case DEED_LEAVE:
        answer.error = room_leave(room, &deed->place);
        break;
    case DEED_LEAVE_SOON:
        answer.error = room_leave_soon(room, &deed->place);
        break;
    case DEED_TOUCH:
        answer.error = room_session_touch(room, &deed->place);
        break;
    case DEED_END:
        answer.error = room_session_end(room, &deed->place);
        break;
    case DEED_EXTEND:
        answer.error = room_session_extend(room, &deed->place, deed->number);
        break;
    case DEED_TICK:
        room_tick(room, deed->number);
        break;
    case DEED_SETTINGS:
        answer.error = room_set_settings(room, &deed->settings, deed->texts, deed->settings.tier == 1);
        break;
    case DEED_ADVANCE:
        answer.error = room_advance(room, deed->number, &answer.number);
        break;
    case DEED_CLEAR:
        answer.error = room_clear(room, &answer.number);
        break;
    }
    return answer;
}
