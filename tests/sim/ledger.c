/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * First what changed is observed, then every change is put down to a cause or found to have none; only then is the answer looked
 * at. The event under judgement is static: there is one at a time, and almost every function is about it.
 */

#include "ledger.h"

#include "base/must.h"
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>

#define CAUSE_TICK    ((enum engine_op)99)
#define CAUSE_NONE    ((enum engine_op)98)
#define UNTOLD_SEC    120   /* an untold call stands at least this long */
#define GRACE_MS      10000 /* of a beacon */
#define SLACK_MS      100   /* a time may be noticed to be over this much late */
#define KEY_MS        300000
#define CHECK_EVERY   500 /* events */
#define POLL_MOST_SEC 60

/* One event while it is judged. */
struct event {
    enum engine_op cause;
    uint32_t who;      /* whose doing it was; 0 = nobody's */
    uint32_t by_order; /* calls the operator asked for */
    uint32_t called;   /* how many were called */
    uint32_t changes;
};

struct change {
    uint32_t count;
    enum ticket_state to;
};

static struct event event;
static struct change changes[LEDGER_PEOPLE]; /* of that event, in order of place */

static const char *name_of(enum ticket_state state)
{
    return ticket_life(state)->name;
}

void ledger_open(struct ledger *ledger, struct house *house, const struct settings *settings)
{
    *ledger = (struct ledger){
        .house = house,
        .settings = *settings,
        .purse = purse_new(settings),
        .person = calloc(LEDGER_PEOPLE + 1, sizeof(struct person)),
        .alive = calloc(LEDGER_PEOPLE, sizeof(uint32_t)),
    };
    must(ledger->person != NULL && ledger->alive != NULL);
}

void ledger_close(struct ledger *ledger)
{
    free(ledger->person);
    free(ledger->alive);
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t max_of(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint64_t later_sec(const struct ledger *ledger, uint32_t seconds)
{
    return ledger->clock_ms + seconds * 1000ULL;
}

/* ---- counting ---- */

static uint32_t slots_used(const struct ledger *ledger)
{
    return ledger->in_state[TICKET_CALLED] + ledger->in_state[TICKET_ENTERED] +
           ledger->in_state[TICKET_ACTIVE];
}

static bool has_slot(const struct ledger *ledger)
{
    return ledger->settings.max_active == 0 || slots_used(ledger) < ledger->settings.max_active;
}

/* People waiting at or before `count`. */
static uint32_t rank_of(const struct ledger *ledger, uint32_t count)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < ledger->alive_count && ledger->alive[i] <= count; i++)
        rank += ledger->person[ledger->alive[i]].state == TICKET_WAITING;
    return rank;
}

static struct person *head_of_line(const struct ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->alive_count; i++)
        if (ledger->person[ledger->alive[i]].state == TICKET_WAITING)
            return &ledger->person[ledger->alive[i]];
    return NULL;
}

static void move(struct ledger *ledger, struct person *person, enum ticket_state to)
{
    if (!ticket_may_become(person->state, to))
        violated("ticket %" PRIu32 " went from %s to %s", person->place.count, name_of(person->state),
                 name_of(to));
    ledger->in_state[person->state]--;
    ledger->in_state[to]++;
    person->state = to;
}

static void forget_the_dead(struct ledger *ledger)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < ledger->alive_count; i++)
        if (ledger->person[ledger->alive[i]].state != TICKET_DONE)
            ledger->alive[kept++] = ledger->alive[i];
    ledger->alive_count = kept;
}

/* ---- what changed, and whether it may have ---- */

static void observe(struct ledger *ledger)
{
    event.changes = 0;
    for (uint32_t i = 0; i < ledger->alive_count; i++) {
        const struct person *person = &ledger->person[ledger->alive[i]];
        enum ticket_state state = house_state(ledger->house, &person->place);
        if (state != person->state)
            changes[event.changes++] = (struct change){person->place.count, state};
    }
}

/* Their own doing, where it does what they did. */
static bool did_it_themselves(const struct person *person, enum ticket_state to)
{
    if (event.who != person->place.count)
        return false;
    switch (event.cause) {
    case ENGINE_JOIN:
    case ENGINE_STATUS:
    case ENGINE_HEARTBEAT:
        return person->state == TICKET_AWAY && to == TICKET_WAITING;
    case ENGINE_ENTER:
        return (person->state == TICKET_AWAY && to == TICKET_WAITING) ||
               (person->state == TICKET_CALLED && to == TICKET_ENTERED);
    case ENGINE_LEAVE:
        return to == TICKET_DONE;
    case ENGINE_SESSION_TOUCH:
        return person->state == TICKET_ENTERED && to == TICKET_ACTIVE;
    case ENGINE_SESSION_END:
        return to == TICKET_DONE && (person->state == TICKET_ENTERED || person->state == TICKET_ACTIVE);
    default:
        return false;
    }
}

/* Promise 10, FAILURES 12: a time is over when it is over; and only ticks notice. */
static void judge_end_of_time(const struct ledger *ledger, const struct person *person, enum ticket_state to)
{
    enum ticket_state expected =
        person->state == TICKET_WAITING && !person->is_leaving ? TICKET_AWAY : TICKET_DONE;

    if (event.cause != CAUSE_TICK || to != expected)
        violated("ticket %" PRIu32 " went from %s to %s by itself", person->place.count,
                 name_of(person->state), name_of(to));
    if (ledger->clock_ms < person->due_ms)
        violated("ticket %" PRIu32 " went from %s to %s %" PRIu64 " ms before its time", person->place.count,
                 name_of(person->state), name_of(to), person->due_ms - ledger->clock_ms);
    if (person->is_faithful && person->state <= TICKET_CALLED)
        violated("ticket %" PRIu32 " did all it was told and went from %s to %s", person->place.count,
                 name_of(person->state), name_of(to));
}

static void finish(struct ledger *ledger, struct person *person)
{
    if (person->state == TICKET_CALLED && person->is_paid && event.cause != ENGINE_CLEAR) {
        purse_refund(&ledger->purse);
        ledger->refunds++;
    }
    move(ledger, person, TICKET_DONE);
}

static void apply_change(struct ledger *ledger, const struct change *change)
{
    struct person *person = &ledger->person[change->count];

    if (!did_it_themselves(person, change->to) && event.cause != ENGINE_CLEAR)
        judge_end_of_time(ledger, person, change->to);
    trace("    %" PRIu32 ": %s -> %s", change->count, name_of(person->state), name_of(change->to));
    if (change->to == TICKET_DONE)
        finish(ledger, person);
    else
        move(ledger, person, change->to);
    if (change->to == TICKET_AWAY)
        person->due_ms = later_sec(ledger, ledger->settings.away_ttl_sec);
}

/* ---- calls ---- */

/* Promise 3 at the moment of one call. */
static void judge_limits(struct ledger *ledger, struct person *person)
{
    const struct settings *settings = &ledger->settings;
    uint32_t count = person->place.count;

    person->is_paid = false;
    if (settings->mode == MODE_OPEN)
        return;
    if (settings->mode == MODE_CLOSED)
        violated("%" PRIu32 " was called in a closed room", count);
    if (!has_slot(ledger))
        violated("%" PRIu32 " was called though all %" PRIu32 " slots are taken", count, slots_used(ledger));
    if (event.by_order > 0) {
        event.by_order--;
        return;
    }
    if (settings->mode != MODE_QUEUE)
        violated("%" PRIu32 " was called in a room on hold", count);
    if (!purse_has_call(&ledger->purse))
        violated("%" PRIu32 " was called beyond the pace", count);
    if (settings->max_called != 0 && ledger->in_state[TICKET_CALLED] >= settings->max_called)
        violated("%" PRIu32 " was called though %" PRIu32 " have not entered yet", count,
                 ledger->in_state[TICKET_CALLED]);
    if (ledger->clock_ms < person->joined_ms + settings->min_wait_sec * 1000ULL)
        violated("%" PRIu32 " was called before the least wait was over", count);
    purse_spend(&ledger->purse);
    person->is_paid = true;
}

static void call(struct ledger *ledger, struct person *person)
{
    uint64_t due_ms =
        later_sec(ledger, max_of(ledger->settings.claim_ttl_sec, max_of(2 * person->poll_sec, UNTOLD_SEC)));

    bool is_opened = event.cause == ENGINE_PUT && ledger->settings.mode == MODE_OPEN;
    if (event.cause != CAUSE_TICK && event.cause != ENGINE_ADVANCE && !is_opened &&
        event.who != person->place.count)
        violated("%" PRIu32 " was called though nothing happened that calls", person->place.count);
    /* Promise 1: to someone who is there. FAILURES 8. */
    if (ledger->clock_ms >= person->due_ms + SLACK_MS)
        violated("%" PRIu32 " was called though absent", person->place.count);
    trace("    %" PRIu32 ": called", person->place.count);
    judge_limits(ledger, person);
    move(ledger, person, TICKET_CALLED);
    person->is_told = false;
    *(person->is_leaving ? &person->kept_due_ms : &person->due_ms) = due_ms;
    ledger->calls++;
    event.called++;
}

/* Promise 1. The calls of one event come in order of place; so whoever waits still must stand behind the last of them. */
static void judge_order(const struct ledger *ledger, uint32_t last_called)
{
    const struct person *head = head_of_line(ledger);

    if (head != NULL && head->place.count < last_called)
        violated("%" PRIu32 " was called while %" PRIu32 " waits", last_called, head->place.count);
}

static void apply_changes(struct ledger *ledger)
{
    uint32_t last_called = 0;

    event.called = 0;
    for (uint32_t i = 0; i < event.changes; i++)
        if (changes[i].to != TICKET_CALLED)
            apply_change(ledger, &changes[i]);
    if (event.cause == CAUSE_TICK && ledger->settings.mode == MODE_QUEUE &&
        ledger->in_state[TICKET_WAITING] > 0)
        purse_begin(&ledger->purse);
    for (uint32_t i = 0; i < event.changes; i++)
        if (changes[i].to == TICKET_CALLED) {
            last_called = changes[i].count;
            call(ledger, &ledger->person[last_called]);
        }
    if (last_called > 0)
        judge_order(ledger, last_called);
    if (event.changes > 0)
        forget_the_dead(ledger);
}

/* ---- liveness ---- */

static bool pace_allows(const struct ledger *ledger, const struct person *head)
{
    const struct settings *settings = &ledger->settings;
    uint64_t soonest_ms = head->joined_ms + settings->min_wait_sec * 1000ULL;

    return purse_has_call(&ledger->purse) &&
           (settings->max_called == 0 || ledger->in_state[TICKET_CALLED] < settings->max_called) &&
           (settings->min_wait_sec == 0 || ledger->clock_ms >= soonest_ms + SLACK_MS);
}

/* Promise 9, more strictly than promised: after every tick, and for a newcomer at once (FAILURES 57). */
static void judge_liveness(const struct ledger *ledger)
{
    const struct person *head = head_of_line(ledger);
    uint32_t mode = ledger->settings.mode;

    if (head == NULL || (event.cause == ENGINE_JOIN && head->place.count != event.who))
        return;
    if (mode == MODE_OPEN || (mode == MODE_QUEUE && has_slot(ledger) && pace_allows(ledger, head)))
        violated("%" PRIu32 " waits though there is a slot and pace", head->place.count);
}

/* FAILURES 9, 10: nobody has to poll for somebody else's absence to be noticed. */
static void judge_overdue(const struct ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->alive_count; i++) {
        const struct person *person = &ledger->person[ledger->alive[i]];
        if (ledger->clock_ms >= person->due_ms + SLACK_MS)
            violated("ticket %" PRIu32 " is %s still, %" PRIu64 " ms after its time", person->place.count,
                     name_of(person->state), ledger->clock_ms - person->due_ms);
    }
}

/* ---- conservation ---- */

/* Promise 6: everybody is somewhere, and the figures say where. */
static void judge_figures(const struct ledger *ledger)
{
    struct figures figures = house_figures(ledger->house);
    uint64_t sum = 0;

    for (int state = TICKET_WAITING; state < TICKET_STATES; state++) {
        sum += figures.in_state[state];
        if (figures.in_state[state] != ledger->in_state[state])
            violated("%" PRIu64 " are said to be %s, and %" PRIu32 " are", figures.in_state[state],
                     name_of((enum ticket_state)state), ledger->in_state[state]);
    }
    if (figures.issued != ledger->last || sum != ledger->last)
        violated("of %" PRIu32 " tickets %" PRIu64 " are accounted for", ledger->last, sum);
    if (figures.calls != ledger->calls || figures.refunds != ledger->refunds)
        violated("%" PRIu64 " calls and %" PRIu64 " refunds are said to have been, and %" PRIu64
                 " and %" PRIu64 " were",
                 figures.calls, figures.refunds, ledger->calls, ledger->refunds);
}

static void judge(struct ledger *ledger)
{
    if (ledger->in_state[TICKET_WAITING] == 0)
        purse_lapse(&ledger->purse); /* FAILURES 15 */
    judge_figures(ledger);
    if (run->event % CHECK_EVERY == 0)
        house_check(ledger->house);
}

/* ---- answers ---- */

static void answer_waiting(struct ledger *ledger, struct person *person, const struct standing *standing)
{
    uint32_t rank = rank_of(ledger, person->place.count);
    uint32_t expected = person->shown == 0 || rank < person->shown ? rank : person->shown;

    if (standing->is_ready)
        violated("%" PRIu32 " was told to enter and is not called", person->place.count);
    /* Promise 5. */
    if (standing->position != expected)
        violated("%" PRIu32 " was told position %" PRIu32 " after %" PRIu32 ", at rank %" PRIu32,
                 person->place.count, standing->position, person->shown, rank);
    person->shown = expected;
    person->poll_sec = standing->next_poll_sec;
    person->is_leaving = false;
    person->due_ms = later_sec(ledger, max_of(ledger->settings.seen_ttl_sec, 3 * person->poll_sec));
}

static void answer_called(struct ledger *ledger, struct person *person, const struct standing *standing,
                          bool tells)
{
    if (tells && (!standing->is_ready || standing->position != 1))
        violated("%" PRIu32 " is called and was not told so", person->place.count);
    if (person->is_leaving)
        person->due_ms = person->kept_due_ms;
    person->is_leaving = false;
    if (tells && !person->is_told)
        person->due_ms = later_sec(ledger, ledger->settings.claim_ttl_sec);
    person->is_told |= tells;
}

/* Promise 2: whatever time and key the repeated enter came with, it is the first pass that is told of. */
static void answer_inside(const struct person *person, const struct standing *standing)
{
    if (!standing->is_ready || standing->position != 0)
        violated("%" PRIu32 " is inside and was told to wait", person->place.count);
    if (standing->iat_sec != person->pass.iat_sec || standing->pass_key_id != person->pass.key_id ||
        standing->pass_life_sec != person->pass.life_sec || standing->tier != person->pass.tier)
        violated("%" PRIu32 " was given a second pass", person->place.count);
}

static void answer(struct ledger *ledger, struct person *person, const struct standing *standing, bool tells)
{
    if (standing->place.count != person->place.count || standing->state != person->state)
        violated("%" PRIu32 ", who is %s, was told about %" PRIu32 ", who is %s", person->place.count,
                 name_of(person->state), standing->place.count, name_of(standing->state));
    if (standing->eta_low_sec > standing->eta_sec || standing->eta_sec > standing->eta_high_sec)
        violated("%" PRIu32 " was told to wait %" PRIu32 " s, between %" PRIu32 " and %" PRIu32,
                 person->place.count, standing->eta_sec, standing->eta_low_sec, standing->eta_high_sec);
    if (standing->next_poll_sec < 1 || standing->next_poll_sec > POLL_MOST_SEC)
        violated("%" PRIu32 " was told to poll in %" PRIu32 " s", person->place.count,
                 standing->next_poll_sec);
    trace("    told position %" PRIu32 ", wait %" PRIu32 " s, poll in %" PRIu32 " s%s", standing->position,
          standing->eta_sec, standing->next_poll_sec, standing->is_ready ? ", ready" : "");
    if (person->state == TICKET_WAITING)
        answer_waiting(ledger, person, standing);
    else if (person->state == TICKET_CALLED)
        answer_called(ledger, person, standing, tells);
    else
        answer_inside(person, standing);
}

/* ---- operations ---- */

static struct person *person_at(const struct ledger *ledger, const struct place *place)
{
    struct person *person = &ledger->person[place->count];

    if (place->count == 0 || place->count > ledger->last || place->epoch != person->place.epoch ||
        !holder_equal(&place->holder, &person->place.holder) || !ticket_life(person->state)->is_alive)
        return NULL;
    return person;
}

static struct person *person_of(const struct ledger *ledger, const struct holder *holder)
{
    for (uint32_t i = 0; i < ledger->alive_count; i++)
        if (holder_equal(&ledger->person[ledger->alive[i]].place.holder, holder))
            return &ledger->person[ledger->alive[i]];
    return NULL;
}

static void expect(const struct engine_call *call, enum error expected)
{
    if (call->error != expected)
        violated("answered %s, not %s", call->error == ERROR_NONE ? "OK" : error_info(call->error)->code,
                 expected == ERROR_NONE ? "OK" : error_info(expected)->code);
}

static bool is_full(const struct ledger *ledger)
{
    uint32_t in_line = ledger->in_state[TICKET_WAITING] + ledger->in_state[TICKET_AWAY];

    return ledger->settings.max_waiting != 0 && in_line >= ledger->settings.max_waiting;
}

/* FAILURES 50: a refusal has a reason and says when to come back. */
static void judge_refusal(const struct ledger *ledger, const struct engine_call *call, uint32_t spare)
{
    bool is_right = false;

    if (call->error == ERROR_ROOM_CLOSED)
        is_right = ledger->settings.mode == MODE_CLOSED;
    if (call->error == ERROR_QUEUE_FULL)
        is_right = is_full(ledger) || spare < ROOM_SPARE_PAGES;
    if (call->error == ERROR_WAIT_TOO_LONG)
        is_right = ledger->settings.max_eta_sec != 0 &&
                   house_figures(ledger->house).newcomer_eta_sec > ledger->settings.max_eta_sec;
    if (!is_right || call->retry_after_sec == 0)
        violated("a join was refused with %s, to come back in %" PRIu32 " s", error_info(call->error)->code,
                 call->retry_after_sec);
}

static void judge_admission(const struct ledger *ledger)
{
    if (ledger->settings.mode == MODE_CLOSED)
        violated("somebody joined a closed room");
    if (is_full(ledger))
        violated("somebody joined a line of %" PRIu32, ledger->settings.max_waiting);
}

/* A new ticket has the next number, and is called at once if it is its turn. */
static struct person *join_anew(struct ledger *ledger, const struct engine_call *submitted)
{
    uint32_t count = ++ledger->last;
    struct person *person = &ledger->person[count];

    must(count <= LEDGER_PEOPLE);
    judge_admission(ledger);
    if (submitted->standing.place.count != count || submitted->standing.is_repeat)
        violated("ticket %" PRIu32 " was given the place %" PRIu32, count, submitted->standing.place.count);
    *person = (struct person){
        .place = submitted->standing.place,
        .state = TICKET_WAITING,
        .joined_ms = ledger->clock_ms,
        .due_ms = UINT64_MAX - SLACK_MS,
        .key = {submitted->join.request, ledger->clock_ms, submitted->standing.position,
                submitted->standing.is_ready},
    };
    ledger->in_state[TICKET_WAITING]++;
    ledger->alive[ledger->alive_count++] = count;
    event.who = count;
    if (house_state(ledger->house, &person->place) == TICKET_CALLED) {
        call(ledger, person);
        judge_order(ledger, count);
    }
    return person;
}

/* The same key within its time: the first answer again (FAILURES 21). True if that was to be expected. */
static bool repeat_by_key(struct ledger *ledger, const struct engine_call *submitted, struct person *person)
{
    const struct request_key *request = &submitted->join.request;
    const struct standing *standing = &submitted->standing;

    if (person == NULL || !request->is_set || !person->key.request.is_set ||
        !holder_equal(&request->scope, &person->key.request.scope) ||
        ledger->clock_ms >= person->key.at_ms + KEY_MS)
        return false;
    if (request->body != person->key.request.body) {
        expect(submitted, ERROR_IDEMPOTENCY_CONFLICT);
        return true;
    }
    expect(submitted, ERROR_NONE);
    if (!standing->is_repeat || standing->position != person->key.position ||
        standing->is_ready != person->key.is_ready)
        violated("the repeated join of %" PRIu32 " was answered otherwise", person->place.count);
    struct standing as_it_is = *standing;
    as_it_is.is_ready = person->state >= TICKET_CALLED;
    as_it_is.position = person->state == TICKET_CALLED ? 1 : 0;
    if (person->state == TICKET_WAITING) {
        as_it_is.position = rank_of(ledger, person->place.count);
        if (person->shown < as_it_is.position)
            as_it_is.position = person->shown;
    }
    answer(ledger, person, &as_it_is, person->key.is_ready);
    return true;
}

/* Where memory is short a key need not be remembered: it is not used again then. */
static void remember(const struct ledger *ledger, const struct engine_call *submitted, struct person *person,
                     uint32_t spare)
{
    person->key.request = submitted->join.request;
    person->key.request.is_set = spare >= ROOM_SPARE_PAGES;
    person->key.at_ms = ledger->clock_ms;
    person->key.position = submitted->standing.position;
    person->key.is_ready = submitted->standing.is_ready;
}

static void judge_join(struct ledger *ledger, const struct engine_call *submitted, uint32_t spare)
{
    struct person *person = person_of(ledger, &submitted->join.holder);

    event.who = person == NULL ? 0 : person->place.count;
    apply_changes(ledger);
    if (repeat_by_key(ledger, submitted, person))
        return;
    if (person == NULL && submitted->error != ERROR_NONE) {
        judge_refusal(ledger, submitted, spare);
        return;
    }
    expect(submitted, ERROR_NONE);
    if (person == NULL) {
        person = join_anew(ledger, submitted);
        answer(ledger, person, &submitted->standing, true);
        judge_liveness(ledger);
        return;
    }
    if (!submitted->standing.is_repeat)
        violated("%" PRIu32 " has a ticket and joined anew", person->place.count);
    answer(ledger, person, &submitted->standing, true);
    if (submitted->join.request.is_set)
        remember(ledger, submitted, person, spare);
}

static void judge_enter(struct ledger *ledger, const struct engine_call *submitted, struct person *person)
{
    enum ticket_state before = person->state;

    apply_changes(ledger);
    /* FAILURES 20: who is called and not over their time gets in, whatever the pace. */
    expect(submitted, before >= TICKET_CALLED ? ERROR_NONE : ERROR_NOT_READY);
    if (before == TICKET_CALLED) {
        uint32_t max_sec = ledger->settings.session_max_sec;
        uint64_t end_ms = max_sec == 0 ? UINT64_MAX : later_sec(ledger, max_sec);
        person->entered_ms = ledger->clock_ms;
        person->session_max_sec = max_sec;
        person->due_ms = min_of(later_sec(ledger, ledger->settings.arrive_ttl_sec), end_ms);
        person->pass.iat_sec = submitted->enter.wall_sec;
        person->pass.key_id = submitted->enter.key_id;
        person->pass.tier = (uint8_t)ledger->settings.tier;
        person->pass.life_sec = max_sec == 0 ? 12 * 3600 : max_sec;
    }
    answer(ledger, person, &submitted->standing, true);
    if (submitted->error == ERROR_NONE && submitted->standing.is_repeat != (before != TICKET_CALLED))
        violated("the enter of %" PRIu32 " is not told apart from its repetition", person->place.count);
}

static void judge_beacon(struct ledger *ledger, struct person *person)
{
    uint64_t grace_ms = ledger->clock_ms + GRACE_MS;

    if (person->state > TICKET_CALLED || person->is_leaving)
        return;
    if (person->state != TICKET_WAITING && person->due_ms <= grace_ms)
        return;
    person->kept_due_ms = person->due_ms;
    person->due_ms = grace_ms;
    person->is_leaving = true;
}

static void judge_touch(struct ledger *ledger, const struct engine_call *submitted, struct person *person)
{
    bool is_inside = person->state == TICKET_ENTERED || person->state == TICKET_ACTIVE;
    bool is_renewed = person->state == TICKET_ENTERED || ledger->settings.session_renew;

    expect(submitted, is_inside ? ERROR_NONE : ERROR_TOKEN_NOT_FOUND);
    if (!is_inside || !is_renewed)
        return;
    if (person->state == TICKET_ENTERED && event.changes == 0)
        violated("%" PRIu32 " came to the gate and has not arrived", person->place.count);
    person->due_ms = later_sec(ledger, ledger->settings.session_ttl_sec);
    if (person->session_max_sec != 0)
        person->due_ms = min_of(person->due_ms, person->entered_ms + person->session_max_sec * 1000ULL);
}

static void judge_session_end(const struct engine_call *submitted, const struct person *person)
{
    bool is_inside = person->state == TICKET_ENTERED || person->state == TICKET_ACTIVE;

    expect(submitted, is_inside ? ERROR_NONE : ERROR_TOKEN_NOT_FOUND);
    if (is_inside && event.changes == 0)
        violated("the session of %" PRIu32 " goes on", person->place.count);
}

static void judge_look(struct ledger *ledger, const struct engine_call *submitted,
                       const struct person *person)
{
    uint32_t rank = rank_of(ledger, person->place.count) + (person->state == TICKET_AWAY);
    uint32_t expected = person->shown == 0 || rank < person->shown ? rank : person->shown;

    expect(submitted, ERROR_NONE);
    if (person->state <= TICKET_AWAY && submitted->standing.position != expected)
        violated("%" PRIu32 " looks like position %" PRIu32 ", not %" PRIu32, person->place.count,
                 submitted->standing.position, expected);
}

/* What the holder of a ticket does. FAILURES 49: a ticket that is over, or another's, is not found. */
static void judge_ticket(struct ledger *ledger, const struct engine_call *submitted)
{
    const struct place *place = submitted->op == ENGINE_ENTER ? &submitted->enter.place : &submitted->place;
    struct person *person = person_at(ledger, place);

    event.who = person == NULL ? 0 : place->count;
    if (person == NULL) {
        expect(submitted, ERROR_TOKEN_NOT_FOUND);
        apply_changes(ledger);
        return;
    }
    if (submitted->op == ENGINE_ENTER) {
        judge_enter(ledger, submitted, person);
        return;
    }
    if (submitted->op == ENGINE_SESSION_TOUCH)
        judge_touch(ledger, submitted, person);
    else if (submitted->op == ENGINE_SESSION_END)
        judge_session_end(submitted, person);
    else
        expect(submitted, ERROR_NONE);
    if (submitted->op == ENGINE_LOOK)
        judge_look(ledger, submitted, person);
    if (submitted->op == ENGINE_LEAVE_SOON)
        judge_beacon(ledger, person);
    apply_changes(ledger);
    if (submitted->op == ENGINE_STATUS || submitted->op == ENGINE_HEARTBEAT)
        answer(ledger, person, &submitted->standing, submitted->op == ENGINE_STATUS);
    if (submitted->op == ENGINE_LEAVE && person->state != TICKET_DONE)
        violated("%" PRIu32 " left and is %s", person->place.count, name_of(person->state));
}

/* ---- what the operator does ---- */

static void judge_advance(struct ledger *ledger, const struct engine_call *submitted, uint32_t asked)
{
    event.by_order = asked;
    apply_changes(ledger);
    if (submitted->people != event.called)
        violated("%" PRIu32 " are said to be called, and %" PRIu32 " were", submitted->people, event.called);
    if (event.by_order > 0 && ledger->in_state[TICKET_WAITING] > 0 && has_slot(ledger) &&
        ledger->settings.mode != MODE_CLOSED)
        violated("of %" PRIu32 " to be called by order %" PRIu32 " were not", asked, event.by_order);
}

/* FAILURES 45: from now on, for everybody; and who stands in line when a room is opened is called before anybody joins. */
static void judge_put(struct ledger *ledger, const struct engine_call *submitted)
{
    expect(submitted, ERROR_NONE);
    purse_change(&ledger->purse, &submitted->put.settings);
    ledger->settings = submitted->put.settings;
    apply_changes(ledger);
    if (ledger->settings.mode == MODE_OPEN && ledger->in_state[TICKET_WAITING] > 0)
        violated("%" PRIu32 " still wait in a room that was opened", ledger->in_state[TICKET_WAITING]);
}

static void judge_clear(struct ledger *ledger, const struct engine_call *submitted)
{
    uint32_t alive = ledger->alive_count;

    apply_changes(ledger);
    if (ledger->alive_count != 0 || submitted->people != alive)
        violated("%" PRIu32 " were cleared of %" PRIu32, submitted->people, alive);
}

void ledger_submit(struct ledger *ledger, struct engine_call *submitted)
{
    uint32_t spare = house_spare(ledger->house), asked = submitted->people;

    run->event++;
    house_submit(ledger->house, submitted);
    event = (struct event){.cause = submitted->op};
    observe(ledger);
    switch (submitted->op) {
    case ENGINE_JOIN:
        judge_join(ledger, submitted, spare);
        break;
    case ENGINE_ADVANCE:
        judge_advance(ledger, submitted, asked);
        break;
    case ENGINE_CLEAR:
        judge_clear(ledger, submitted);
        break;
    case ENGINE_PUT:
        judge_put(ledger, submitted);
        break;
    default:
        judge_ticket(ledger, submitted);
    }
    judge(ledger);
}

void ledger_tick(struct ledger *ledger, int64_t elapsed_ms)
{
    run->event++;
    int64_t counts_ms = house_tick(ledger->house, elapsed_ms);
    event = (struct event){.cause = counts_ms < 0 ? CAUSE_NONE : CAUSE_TICK};
    if (counts_ms > 0) {
        ledger->clock_ms += (uint64_t)counts_ms;
        purse_pass(&ledger->purse, (uint64_t)counts_ms);
    }
    observe(ledger);
    apply_changes(ledger);
    if (counts_ms >= 0) {
        judge_overdue(ledger);
        judge_liveness(ledger);
    }
    judge(ledger);
}
