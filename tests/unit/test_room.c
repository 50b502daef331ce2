/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole room against a naive one. The model is written from the design's page: plain arrays, times in milliseconds, every
 * question answered by looking at everybody. Both are fed the same random operations and must give the same answers. The model
 * takes from the room only what the design leaves open: how long a poll interval it tells people.
 */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define PEOPLE  4000 /* tickets a run may issue */
#define HOLDERS 60
#define KEYS    40
#define NEVER   UINT64_MAX

/* ---- the model ---- */

struct person {
    uint64_t who;
    enum ticket_state state;
    uint64_t joined_ms, deadline_ms, entered_ms;
    uint64_t grace_ms; /* said goodbye: over then; NEVER if not */
    uint32_t shown, poll_sec, iat_sec, session_max_sec, tier;
    bool is_told, is_paid;
};

struct model_key {
    uint32_t count; /* 0 = unknown */
    uint64_t body, at_ms;
    uint32_t position;
    bool is_ready;
};

struct model {
    struct person person[PEOPLE + 1]; /* by count */
    struct model_key key[KEYS];
    struct settings settings;
    uint32_t last;
    uint64_t clock_ms;
    uint64_t credit; /* millionths of a call */
    uint64_t calls, refunds;
};

static uint64_t burst_of(const struct model *m)
{
    uint64_t tick = m->settings.rate_milli * 100ULL; /* a tenth of a second */

    if (m->settings.burst != 0)
        return m->settings.burst * 1000000ULL;
    return 2 * tick > 1000000 + tick ? 2 * tick : 1000000 + tick;
}

static void earn(struct model *m, uint64_t credit)
{
    m->credit = m->credit + credit > burst_of(m) ? burst_of(m) : m->credit + credit;
}

static bool is_alive(const struct person *p)
{
    return p->state != TICKET_NONE && p->state != TICKET_DONE;
}

static bool has_slot(const struct person *p)
{
    return p->state == TICKET_CALLED || p->state == TICKET_ENTERED || p->state == TICKET_ACTIVE;
}

static uint32_t count_in(const struct model *m, enum ticket_state state)
{
    uint32_t sum = 0;

    for (uint32_t count = 1; count <= m->last; count++)
        sum += m->person[count].state == state;
    return sum;
}

static uint32_t slots_of(const struct model *m)
{
    uint32_t sum = 0;

    for (uint32_t count = 1; count <= m->last; count++)
        sum += has_slot(&m->person[count]);
    return sum;
}

static uint32_t first_of(const struct model *m)
{
    for (uint32_t count = 1; count <= m->last; count++)
        if (m->person[count].state == TICKET_WAITING)
            return count;
    return 0;
}

static uint32_t rank_of(const struct model *m, uint32_t count)
{
    uint32_t rank = 0;

    for (uint32_t i = 1; i <= count; i++)
        rank += m->person[i].state == TICKET_WAITING;
    return rank;
}

/* Somebody who may be called now, or 0. */
static uint32_t next_call(const struct model *m)
{
    const struct settings *s = &m->settings;
    uint32_t head = first_of(m);

    if (head == 0 || s->mode == MODE_HOLD || s->mode == MODE_CLOSED)
        return 0;
    if (s->mode == MODE_OPEN)
        return head;
    if (s->max_active != 0 && slots_of(m) >= s->max_active)
        return 0;
    if (s->max_called != 0 && count_in(m, TICKET_CALLED) >= s->max_called)
        return 0;
    if (m->credit < 1000000)
        return 0;
    return m->clock_ms >= m->person[head].joined_ms + s->min_wait_sec * 1000ULL ? head : 0;
}

static uint64_t longest(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t ab = a > b ? a : b;

    return ab > c ? ab : c;
}

static void model_call(struct model *m, uint32_t count)
{
    struct person *p = &m->person[count];

    p->state = TICKET_CALLED;
    p->is_told = false;
    p->is_paid = m->settings.mode == MODE_QUEUE;
    if (p->is_paid)
        m->credit -= 1000000;
    m->calls++;
    p->deadline_ms = m->clock_ms + longest(m->settings.claim_ttl_sec, 2 * p->poll_sec, 120) * 1000;
}

static void model_finish(struct model *m, struct person *p)
{
    if (p->state == TICKET_CALLED && p->is_paid) {
        m->refunds++;
        earn(m, 1000000);
    }
    p->state = TICKET_DONE;
}

/* Being seen; `told`: by an answer that says whether it is their turn. */
static void model_see(struct model *m, struct person *p, bool is_told, uint32_t poll_sec)
{
    p->grace_ms = NEVER;
    if (p->state == TICKET_AWAY)
        p->state = TICKET_WAITING;
    if (p->state == TICKET_WAITING) {
        uint32_t rank = rank_of(m, (uint32_t)(p - m->person));
        p->shown = p->shown == 0 || rank < p->shown ? rank : p->shown;
        p->poll_sec = poll_sec;
        p->deadline_ms = m->clock_ms + longest(m->settings.seen_ttl_sec, 3 * poll_sec, 10) * 1000;
    }
    if (p->state == TICKET_CALLED && is_told && !p->is_told) {
        p->is_told = true;
        p->deadline_ms = m->clock_ms + m->settings.claim_ttl_sec * 1000ULL;
    }
}

static void model_session(struct model *m, struct person *p, uint32_t ttl_sec)
{
    uint64_t end_ms = p->session_max_sec == 0 ? NEVER : p->entered_ms + p->session_max_sec * 1000ULL;

    p->deadline_ms = m->clock_ms + ttl_sec * 1000ULL;
    if (p->deadline_ms > end_ms)
        p->deadline_ms = end_ms;
}

static void model_tick(struct model *m, uint32_t elapsed_ms)
{
    uint32_t head;

    if (elapsed_ms > 1000)
        elapsed_ms = 1000;
    m->clock_ms += elapsed_ms;
    earn(m, (uint64_t)m->settings.rate_milli * elapsed_ms);
    for (uint32_t count = 1; count <= m->last; count++) {
        struct person *p = &m->person[count];
        if (!is_alive(p))
            continue;
        if (p->grace_ms <= m->clock_ms)
            model_finish(m, p);
        else if (p->grace_ms != NEVER && p->state == TICKET_WAITING)
            continue; /* the goodbye decides what becomes of them */
        else if (p->deadline_ms <= m->clock_ms && p->state != TICKET_WAITING)
            model_finish(m, p);
        else if (p->deadline_ms <= m->clock_ms) {
            p->state = TICKET_AWAY;
            p->deadline_ms = m->clock_ms + m->settings.away_ttl_sec * 1000ULL;
        }
    }
    while ((head = next_call(m)) != 0)
        model_call(m, head);
}

static uint32_t living_ticket_of(const struct model *m, uint64_t who)
{
    for (uint32_t count = 1; count <= m->last; count++)
        if (m->person[count].who == who && is_alive(&m->person[count]))
            return count;
    return 0;
}

static struct model_key *known_key(struct model *m, uint32_t key, uint64_t body, enum error *error)
{
    struct model_key *k = &m->key[key];

    *error = ERROR_NONE;
    if (k->count == 0 || m->clock_ms >= k->at_ms + 300000 || !is_alive(&m->person[k->count]))
        return NULL;
    if (k->body != body)
        *error = ERROR_IDEMPOTENCY_CONFLICT;
    return k;
}

/* ---- both, side by side ---- */

struct twin {
    struct rig rig;
    struct model *model;
    struct dice dice;
    uint64_t seed;
    uint32_t step;
};

#define AGREE(twin, ours, theirs)                                                                      \
    do {                                                                                               \
        unsigned long long ours_ = (unsigned long long)(ours), theirs_ = (unsigned long long)(theirs); \
        if (ours_ != theirs_)                                                                          \
            fail_msg("seed %llu, step %u: room's " #ours " is %llu, the model's %llu",                 \
                     (unsigned long long)(twin)->seed, (twin)->step, ours_, theirs_);                  \
    } while (0)

static struct place place_of(const struct twin *t, uint32_t count)
{
    return (struct place){.epoch = 7, .count = count, .holder = holder_of(t->model->person[count].who)};
}

/* What the answer says beside state and position. */
static void compare_standing(struct twin *t, uint32_t count, const struct standing *s)
{
    const struct model *m = t->model;
    const struct person *p = &m->person[count];

    AGREE(t, s->place.count, count);
    AGREE(t, s->state, p->state);
    assert_true(s->next_poll_sec >= 1 && s->next_poll_sec <= 60);
    if (p->state == TICKET_WAITING || p->state == TICKET_CALLED)
        AGREE(t, s->waited_sec, (m->clock_ms - p->joined_ms) / 1000);
    if (p->state == TICKET_ENTERED || p->state == TICKET_ACTIVE) {
        AGREE(t, s->iat_sec, p->iat_sec);
        AGREE(t, s->pass_life_sec, p->session_max_sec == 0 ? 43200 : p->session_max_sec);
        AGREE(t, s->tier, p->tier);
    }
}

static uint32_t expected_position(const struct person *p)
{
    return p->state == TICKET_WAITING ? p->shown : p->state == TICKET_CALLED ? 1 : 0;
}

static void compare_answer(struct twin *t, uint32_t count, const struct standing *s)
{
    const struct person *p = &t->model->person[count];

    compare_standing(t, count, s);
    AGREE(t, s->position, expected_position(p));
    AGREE(t, s->is_ready, has_slot(p));
}

/* Everything that can be seen from outside without being seen. */
static void compare_room(struct twin *t)
{
    struct figures f = room_figures(t->rig.room);
    uint32_t in_state[TICKET_STATES] = {0};

    for (uint32_t count = 1; count <= t->model->last; count++) {
        struct place place = {.count = count};
        in_state[t->model->person[count].state]++;
        if (rig_state(&t->rig, &place) != t->model->person[count].state)
            fail_msg("seed %llu, step %u: ticket %u is %s, in the model %s", (unsigned long long)t->seed,
                     t->step, count, ticket_life(rig_state(&t->rig, &place))->name,
                     ticket_life(t->model->person[count].state)->name);
    }
    for (int state = TICKET_WAITING; state < TICKET_STATES; state++)
        AGREE(t, f.in_state[state], in_state[state]);
    AGREE(t, f.issued, t->model->last);
    AGREE(t, f.calls, t->model->calls);
    AGREE(t, f.refunds, t->model->refunds);
}

/* ---- one random operation each ---- */

static void join(struct twin *t)
{
    struct model *m = t->model;
    uint64_t who = dice_below(&t->dice, HOLDERS);
    bool has_key = dice_below(&t->dice, 3) == 0;
    uint32_t key = dice_below(&t->dice, KEYS);
    uint64_t body = dice_below(&t->dice, 10) == 0;
    struct standing s = no_standing;
    enum error error = has_key ? rig_join_by_key(&t->rig, who, key, body, &s) : rig_join(&t->rig, who, &s);

    enum error expected = ERROR_NONE;
    struct model_key *k = has_key ? known_key(m, key, body, &expected) : NULL;
    if (k != NULL) {
        AGREE(t, error, expected);
        if (error != ERROR_NONE)
            return;
        model_see(m, &m->person[k->count], k->is_ready, s.next_poll_sec);
        compare_standing(t, k->count, &s);
        AGREE(t, s.position, k->position);
        AGREE(t, s.is_ready, k->is_ready);
        AGREE(t, s.is_repeat, true);
        return;
    }
    uint32_t count = living_ticket_of(m, who);
    bool is_repeat = count != 0;
    if (!is_repeat) {
        uint32_t in_line = count_in(m, TICKET_WAITING) + count_in(m, TICKET_AWAY);
        if (m->settings.mode == MODE_CLOSED)
            expected = ERROR_ROOM_CLOSED;
        else if (m->settings.max_waiting != 0 && in_line >= m->settings.max_waiting)
            expected = ERROR_QUEUE_FULL;
    }
    AGREE(t, error, expected);
    if (error != ERROR_NONE)
        return;
    if (!is_repeat) {
        count = ++m->last;
        m->person[count] = (struct person){.who = who,
                                           .state = TICKET_WAITING,
                                           .joined_ms = m->clock_ms,
                                           .grace_ms = NEVER,
                                           .deadline_ms = NEVER};
        if (next_call(m) == count)
            model_call(m, count);
    }
    model_see(m, &m->person[count], true, s.next_poll_sec);
    compare_answer(t, count, &s);
    AGREE(t, s.is_repeat, is_repeat);
    if (has_key)
        m->key[key] = (struct model_key){count, body, m->clock_ms, s.position, s.is_ready};
}

static void poll(struct twin *t, uint32_t count)
{
    struct place place = place_of(t, count);
    struct person *p = &t->model->person[count];
    struct standing s = no_standing;
    enum error error = room_status(t->rig.room, &place, &s);

    AGREE(t, error, is_alive(p) ? ERROR_NONE : ERROR_TOKEN_NOT_FOUND);
    if (error != ERROR_NONE)
        return;
    model_see(t->model, p, true, s.next_poll_sec);
    compare_answer(t, count, &s);
}

static void enter(struct twin *t, uint32_t count)
{
    struct model *m = t->model;
    struct person *p = &m->person[count];
    struct enter ask = {.place = place_of(t, count), .key_id = 4, .wall_sec = 1000 + t->step};
    struct standing s = no_standing;
    enum error error = room_enter(t->rig.room, &ask, &s);
    bool is_repeat = p->state == TICKET_ENTERED || p->state == TICKET_ACTIVE;

    if (!is_alive(p)) {
        AGREE(t, error, ERROR_TOKEN_NOT_FOUND);
        return;
    }
    if (p->state == TICKET_CALLED) {
        p->state = TICKET_ENTERED;
        p->grace_ms = NEVER;
        p->entered_ms = m->clock_ms;
        p->iat_sec = ask.wall_sec;
        p->session_max_sec = m->settings.session_max_sec;
        p->tier = m->settings.tier;
        model_session(m, p, m->settings.arrive_ttl_sec);
    }
    model_see(m, p, true, s.next_poll_sec);
    AGREE(t, error, p->state == TICKET_WAITING ? ERROR_NOT_READY : ERROR_NONE);
    compare_answer(t, count, &s);
    AGREE(t, s.is_repeat, is_repeat);
}

static void leave(struct twin *t, uint32_t count)
{
    struct place place = place_of(t, count);
    struct person *p = &t->model->person[count];

    AGREE(t, room_leave(t->rig.room, &place), is_alive(p) ? ERROR_NONE : ERROR_TOKEN_NOT_FOUND);
    if (is_alive(p))
        model_finish(t->model, p);
}

static void say_goodbye(struct twin *t, uint32_t count)
{
    struct place place = place_of(t, count);
    struct person *p = &t->model->person[count];

    AGREE(t, room_leave_soon(t->rig.room, &place), is_alive(p) ? ERROR_NONE : ERROR_TOKEN_NOT_FOUND);
    if (!is_alive(p) || p->state == TICKET_ENTERED || p->state == TICKET_ACTIVE || p->grace_ms != NEVER)
        return;
    p->grace_ms = t->model->clock_ms + 10000;
}

static void touch(struct twin *t, uint32_t count)
{
    struct place place = place_of(t, count);
    struct person *p = &t->model->person[count];
    bool is_inside = p->state == TICKET_ENTERED || p->state == TICKET_ACTIVE;

    AGREE(t, room_session_touch(t->rig.room, &place), is_inside ? ERROR_NONE : ERROR_TOKEN_NOT_FOUND);
    if (is_inside && (p->state == TICKET_ENTERED || t->model->settings.session_renew))
        model_session(t->model, p, t->model->settings.session_ttl_sec);
    if (is_inside)
        p->state = TICKET_ACTIVE;
}

static void end(struct twin *t, uint32_t count)
{
    struct place place = place_of(t, count);
    struct person *p = &t->model->person[count];
    bool is_inside = p->state == TICKET_ENTERED || p->state == TICKET_ACTIVE;

    AGREE(t, room_session_end(t->rig.room, &place), is_inside ? ERROR_NONE : ERROR_TOKEN_NOT_FOUND);
    if (is_inside)
        model_finish(t->model, p);
}

static struct settings random_settings(struct dice *dice)
{
    static const uint32_t modes[] = {MODE_QUEUE, MODE_QUEUE, MODE_QUEUE, MODE_QUEUE,
                                     MODE_QUEUE, MODE_HOLD,  MODE_OPEN,  MODE_CLOSED};
    struct settings s = settings_default();

    s.mode = modes[dice_below(dice, 8)];
    s.max_active = dice_below(dice, 4) == 0 ? 0 : 1 + dice_below(dice, 20);
    s.rate_milli = 1 + dice_below(dice, dice_below(dice, 2) == 0 ? 1000 : 30000);
    s.burst = dice_below(dice, 4);
    s.max_called = dice_below(dice, 3) == 0 ? 1 + dice_below(dice, 5) : 0;
    s.min_wait_sec = dice_below(dice, 3) == 0 ? dice_below(dice, 20) : 0;
    s.seen_ttl_sec = 10 + dice_below(dice, 10);
    s.away_ttl_sec = 1 + dice_below(dice, 60);
    s.claim_ttl_sec = 1 + dice_below(dice, 150);
    s.arrive_ttl_sec = 1 + dice_below(dice, 30);
    s.session_ttl_sec = 1 + dice_below(dice, 60);
    s.session_max_sec = dice_below(dice, 3) * 40;
    s.session_renew = dice_below(dice, 3) > 0;
    s.max_waiting = dice_below(dice, 4) == 0 ? 1 + dice_below(dice, 30) : 0;
    s.tier = 1 + dice_below(dice, 2);
    return s;
}

static void change_settings(struct twin *t)
{
    struct settings settings = random_settings(&t->dice);

    AGREE(t, rig_set(&t->rig, &settings), ERROR_NONE);
    t->model->settings = settings;
    earn(t->model, 0);
    for (uint32_t head; settings.mode == MODE_OPEN && (head = next_call(t->model)) != 0;)
        model_call(t->model, head);
}

static void tick(struct twin *t)
{
    static const uint32_t lengths_ms[] = {100, 100, 100, 100, 200, 1000, 1000, 5000, UINT32_MAX, 0};
    uint32_t ms = lengths_ms[dice_below(&t->dice, 10)];

    room_tick(t->rig.room, ms);
    model_tick(t->model, ms);
}

static void act_at_random(struct twin *t)
{
    uint32_t roll = dice_below(&t->dice, 100);
    uint32_t last = t->model->last;
    /* Mostly the newer tickets: the older are over. */
    uint32_t count = last == 0 ? 0 : last - dice_below(&t->dice, last < 100 ? last : 100);

    if (roll < 12 || count == 0)
        join(t);
    else if (roll < 42)
        poll(t, count);
    else if (roll < 57)
        enter(t, count);
    else if (roll < 60)
        leave(t, count);
    else if (roll < 64)
        say_goodbye(t, count);
    else if (roll < 72)
        touch(t, count);
    else if (roll < 74)
        end(t, count);
    else if (roll < 98)
        tick(t);
    else if (dice_below(&t->dice, 4) == 0)
        change_settings(t);
}

/* FAILURES 5, 6, 7, 9, 10, 12, 13, 14, 15, 16, 20, 21 all show as a difference here. */
static void the_room_answers_like_a_naive_model_of_it(void **state)
{
    struct twin t;
    uint64_t called = 0, refunded = 0, issued = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 150; seed++) {
        t = (struct twin){.dice = {seed}, .seed = seed, .model = calloc(1, sizeof(struct model))};
        t.model->settings = random_settings(&t.dice);
        t.rig = rig_new(128, &t.model->settings);
        t.model->credit = burst_of(t.model);
        for (t.step = 0; t.step < 4000 && t.model->last < PEOPLE; t.step++) {
            act_at_random(&t);
            compare_room(&t);
            if (t.step % 500 == 0)
                room_check(t.rig.room);
        }
        called += t.model->calls;
        refunded += t.model->refunds;
        issued += t.model->last;
        rig_free(&t.rig);
        free(t.model);
    }
    assert_true(issued > 10000 && called > 5000 && refunded > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_room_answers_like_a_naive_model_of_it),
    };
    return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
