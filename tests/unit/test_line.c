/* SPDX-License-Identifier: BSD-2-Clause */
/* The line against a naive model: an array of who stands, summed up. */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PAGE 16
#define PER_TOP    ((uint64_t)LINE_PAGE_COUNT * LINE_FANOUT * LINE_FANOUT)

struct fixture {
    unsigned char *base;
    size_t bytes;
    struct memory *memory;
    struct line *line;
    uint32_t pages;
};

static struct fixture fixture_new(uint32_t pages)
{
    struct fixture f = {.bytes = (size_t)(pages + FIRST_PAGE) * PAGE_BYTES, .pages = pages};

    f.base = shared_new(f.bytes);
    f.memory = (struct memory *)(f.base + PAGE_BYTES);
    f.line = (struct line *)(f.base + 8 * PAGE_BYTES);
    memory_init(f.memory, f.base);
    line_init(f.line);
    for (page_ref page = FIRST_PAGE; page < FIRST_PAGE + pages; page++) {
        memory_give(f.memory, page, f.memory);
        memory_commit(f.memory);
    }
    return f;
}

static void fixture_free(struct fixture *f)
{
    shared_free(f->base, f->bytes);
}

/* ---- what a room does with a line, without the room ---- */

static struct ticket *ticket_at(const struct fixture *f, uint32_t count)
{
    struct ticket *ticket = line_find(f->line, f->memory, count);

    assert_non_null(ticket);
    memory_keep(f->memory, ticket, sizeof(*ticket));
    return ticket;
}

/* The new count, or LINE_NONE after a refusal. */
static uint32_t join(struct fixture *f, uint32_t deadline)
{
    struct ticket *ticket = line_add(f->line, f->memory);

    if (ticket == NULL) {
        memory_rollback(f->memory);
        return LINE_NONE;
    }
    ticket->state = TICKET_WAITING;
    line_stand(f->line, f->memory, f->line->last);
    line_set_deadline(f->line, f->memory, f->line->last, deadline);
    return f->line->last;
}

static void step_out(struct fixture *f, uint32_t count, enum ticket_state to)
{
    ticket_at(f, count)->state = to;
    line_step_out(f->line, f->memory, count);
}

static void come_back(struct fixture *f, uint32_t count)
{
    ticket_at(f, count)->state = TICKET_WAITING;
    line_stand(f->line, f->memory, count);
}

static void finish(struct fixture *f, uint32_t count)
{
    struct ticket *ticket = ticket_at(f, count);

    if (ticket->state == TICKET_WAITING)
        line_step_out(f->line, f->memory, count);
    ticket->state = TICKET_DONE;
    line_finish(f->line, f->memory, count);
}

static void leave_at_once(struct fixture *f, uint32_t count)
{
    finish(f, count);
    memory_commit(f->memory);
}

/* ---- the model ---- */

#define MODEL_MAX 1500000

struct model {
    uint8_t state[MODEL_MAX];
    uint32_t deadline[MODEL_MAX];
    uint32_t below[MODEL_MAX]; /* sums by lowest bit of the index */
    uint32_t last, standing;
    uint32_t first; /* nobody stands before it */
    uint32_t *alive, alive_count;
    uint32_t *index; /* of a count in `alive` */
};

static struct model *model_new(void)
{
    struct model *model = calloc(1, sizeof(*model));

    assert_non_null(model);
    model->first = 1;
    model->alive = calloc(MODEL_MAX, sizeof(uint32_t));
    model->index = calloc(MODEL_MAX, sizeof(uint32_t));
    return model;
}

static void model_free(struct model *model)
{
    free(model->alive);
    free(model->index);
    free(model);
}

static void model_stand(struct model *model, uint32_t count, int change)
{
    for (uint32_t i = count; i < MODEL_MAX; i += i & -i)
        model->below[i] += (uint32_t)change;
    model->standing += (uint32_t)change;
    if (change > 0 && count < model->first)
        model->first = count;
}

static uint32_t model_rank(const struct model *model, uint32_t count)
{
    uint32_t sum = 0;

    for (uint32_t i = count; i > 0; i &= i - 1)
        sum += model->below[i];
    return sum;
}

static uint32_t model_first(struct model *model)
{
    if (model->standing == 0)
        return LINE_NONE;
    while (model->state[model->first] != TICKET_WAITING)
        model->first++;
    return model->first;
}

static void model_set(struct model *model, uint32_t count, enum ticket_state to)
{
    if ((model->state[count] == TICKET_WAITING) != (to == TICKET_WAITING))
        model_stand(model, count, to == TICKET_WAITING ? 1 : -1);
    if (model->state[count] == TICKET_NONE) {
        model->index[count] = model->alive_count;
        model->alive[model->alive_count++] = count;
    }
    if (to == TICKET_DONE) {
        uint32_t moved = model->alive[--model->alive_count];
        model->alive[model->index[count]] = moved;
        model->index[moved] = model->index[count];
    }
    model->state[count] = (uint8_t)to;
}

static void compare(const struct fixture *f, struct model *model, uint32_t count)
{
    assert_int_equal(line_standing(f->line), model->standing);
    assert_int_equal(line_first(f->line, f->memory), model_first(model));
    assert_int_equal(line_rank(f->line, f->memory, count), model_rank(model, count));
    const struct ticket *ticket = line_find(f->line, f->memory, count);
    if (ticket == NULL)
        assert_int_equal(model->state[count], TICKET_DONE);
    else
        assert_int_equal(ticket->state, model->state[count]);
}

/* ---- a million operations ---- */

enum op { JOIN, LEAVE, AWAY, RETURN, CALL, OPS };

/* What `op` does to `count` in line and model alike; false if there is nothing to do. */
static bool line_op(struct fixture *f, struct model *model, enum op op, uint32_t count, uint32_t deadline)
{
    switch (op) {
    case JOIN:
        return join(f, deadline) != LINE_NONE;
    case LEAVE:
        finish(f, count);
        return true;
    case AWAY:
        if (model->state[count] == TICKET_WAITING)
            step_out(f, count, TICKET_AWAY);
        return model->state[count] == TICKET_WAITING;
    case RETURN:
        if (model->state[count] == TICKET_AWAY)
            come_back(f, count);
        return model->state[count] == TICKET_AWAY;
    case CALL:
        if (model->standing > 0)
            step_out(f, model_first(model), TICKET_CALLED);
        return model->standing > 0;
    case OPS:
        break;
    }
    return false;
}

static uint32_t model_op(struct model *model, enum op op, uint32_t count, uint32_t deadline)
{
    static const enum ticket_state to[] = {TICKET_WAITING, TICKET_DONE, TICKET_AWAY, TICKET_WAITING,
                                           TICKET_CALLED};

    if (op == JOIN)
        count = ++model->last;
    if (op == CALL)
        count = model_first(model);
    if (op == JOIN)
        model->deadline[count] = deadline;
    model_set(model, count, to[op]);
    return count;
}

/* The line swells, stands and drains: shares of a hundred for each operation. */
static const uint32_t seasons[][OPS] = {
    {55, 5, 15, 15, 10},
    {22, 22, 20, 20, 16},
    {5, 45, 10, 10, 30},
};

static enum op choose(struct dice *dice, const uint32_t *shares)
{
    uint32_t roll = dice_below(dice, 100);
    enum op op = JOIN;

    while (roll >= shares[op])
        roll -= shares[op++];
    return op;
}

/* FAILURES 1, 2: places are given in order of arrival, and one structure answers both position and next. */
static void a_million_random_operations_agree_with_the_model(void **state)
{
    enum { STEPS = 2000000, SEASON = 100000 };
    struct fixture f = fixture_new(6000);
    struct model *model = model_new();
    struct dice dice = {4};
    uint32_t done = 0;
    (void)state;

    for (uint32_t step = 0; step < STEPS; step++) {
        enum op op = choose(&dice, seasons[step / SEASON % 3]);
        if (op != JOIN && model->alive_count == 0)
            op = JOIN;
        /* The young come and go; now and then someone who is here for ages. */
        uint32_t lately = model->alive_count < 2000 || dice_below(&dice, 50) == 0 ? model->alive_count : 2000;
        uint32_t pick =
            model->alive_count == 0 ? 0 : model->alive[model->alive_count - 1 - dice_below(&dice, lately)];
        uint32_t deadline = 1000 + dice_below(&dice, 100000);
        if (!line_op(&f, model, op, pick, deadline))
            continue;
        if (dice_below(&dice, 16) == 0) { /* never happened */
            memory_rollback(f.memory);
            compare(&f, model, pick);
            continue;
        }
        memory_commit(f.memory);
        compare(&f, model, model_op(model, op, pick, deadline));
        compare(&f, model, 1 + dice_below(&dice, model->last));
        done++;
        if (step % SEASON == SEASON - 1)
            assert_int_equal(line_check(f.line, f.memory) + f.memory->spare_count, f.pages);
    }
    assert_true(done > 1000000);
    while (model->alive_count > 0) {
        uint32_t count = model->alive[dice_below(&dice, model->alive_count)];
        leave_at_once(&f, count);
        compare(&f, model, model_op(model, LEAVE, count, 0));
    }
    /* Behind the line everything is reclaimed: at most the page under way and the two nodes above it stay. */
    assert_true(line_check(f.line, f.memory) <= 3);
    assert_true(f.memory->spare_count >= f.pages - 3);
    model_free(model);
    fixture_free(&f);
}

static void a_few_who_stay_for_ages_keep_their_places_and_only_their_pages(void **state)
{
    struct fixture f = fixture_new(6000);
    uint32_t stays[200], kept = 0;
    (void)state;

    for (uint32_t count = 1; count <= 600000; count++) {
        assert_int_equal(join(&f, LINE_NEVER), count);
        memory_commit(f.memory);
        if (count % 3000 == 0)
            stays[kept++] = count;
        if (count > 1000 && (count - 1000) % 3000 != 0)
            leave_at_once(&f, count - 1000);
    }
    for (uint32_t count = 600000 - 999; count < 600000; count++)
        leave_at_once(&f, count);
    assert_int_equal(kept, 200);
    /* One page each, and the nodes above them. */
    assert_true(line_check(f.line, f.memory) <= 200 + 20 + 2);
    for (uint32_t i = 0; i < kept; i++)
        assert_int_equal(line_rank(f.line, f.memory, stays[i]), i + 1);
    for (uint32_t i = 0; i < kept; i++) {
        assert_int_equal(line_first(f.line, f.memory), stays[i]);
        leave_at_once(&f, stays[i]);
    }
    assert_int_equal(line_first(f.line, f.memory), LINE_NONE);
    fixture_free(&f);
}

/* ---- deadlines ---- */

/* Who is overdue, found page by page, is exactly who is overdue. */
static void everyone_overdue_is_found_and_nobody_else(void **state)
{
    enum { PEOPLE = 40000 };
    struct fixture f = fixture_new(600);
    uint32_t *deadline = calloc(PEOPLE + 1, sizeof(*deadline));
    struct dice dice = {5};
    uint32_t living = PEOPLE;
    (void)state;

    for (uint32_t count = 1; count <= PEOPLE; count++) {
        deadline[count] = 100 + dice_below(&dice, 2000);
        assert_int_equal(join(&f, deadline[count]), count);
        memory_commit(f.memory);
    }
    for (uint32_t now = 100; living > 0; now += 1 + dice_below(&dice, 30)) {
        for (uint32_t i = 0; i < 500 && now < 2500; i++) { /* some are seen meanwhile */
            uint32_t count = 1 + dice_below(&dice, PEOPLE);
            if (deadline[count] == 0 || deadline[count] <= now)
                continue;
            deadline[count] = now + dice_below(&dice, 300) + 1;
            line_set_deadline(f.line, f.memory, count, deadline[count]);
            memory_commit(f.memory);
        }
        uint32_t first;
        while ((first = line_overdue(f.line, f.memory, now)) != LINE_NONE) {
            uint32_t tickets;
            line_page(f.line, f.memory, first, &tickets);
            for (uint32_t count = first; count < first + tickets; count++) {
                if (deadline[count] == 0 || deadline[count] > now)
                    continue;
                deadline[count] = 0;
                living--;
                leave_at_once(&f, count);
            }
            line_look_again(f.line, f.memory, first);
            memory_commit(f.memory);
        }
        for (uint32_t count = 1; count <= PEOPLE; count++)
            assert_true(deadline[count] == 0 || deadline[count] > now);
        line_check(f.line, f.memory);
    }
    assert_int_equal(line_standing(f.line), 0);
    free(deadline);
    fixture_free(&f);
}

static void a_whole_page_steps_out_together(void **state)
{
    struct fixture f = fixture_new(20);
    struct line_page_bits who = {{0, 0}};
    uint32_t first = LINE_PAGE_COUNT, gone = 0;
    (void)state;

    for (uint32_t count = 1; count <= 3 * LINE_PAGE_COUNT; count++) {
        join(&f, LINE_NEVER);
        memory_commit(f.memory);
    }
    for (uint32_t count = first; count < first + LINE_PAGE_COUNT; count += 3) {
        ticket_at(&f, count)->state = TICKET_AWAY;
        line_page_bits_add(&who, count);
        gone++;
    }
    line_step_out_page(f.line, f.memory, first + 5, who);
    memory_commit(f.memory);
    line_check(f.line, f.memory);
    assert_int_equal(line_standing(f.line), 3 * LINE_PAGE_COUNT - gone);
    assert_int_equal(line_rank(f.line, f.memory, first), first - 1);
    assert_int_equal(line_rank(f.line, f.memory, first + 1), first);
    fixture_free(&f);
}

/* ---- the ring of tops ---- */

/* Starts a line whose next count is `next`, as if all before it had come and gone. */
static struct fixture fixture_from(uint32_t pages, uint64_t next)
{
    struct fixture f = fixture_new(pages);

    f.line->last = (uint32_t)(next - 1);
    return f;
}

static void the_line_goes_on_over_the_seam_of_two_tops(void **state)
{
    for (uint64_t top = 1; top <= 500; top += 63) {
        uint64_t seam = top * PER_TOP;
        struct fixture f = fixture_from(40, seam - 400);
        for (uint32_t i = 0; i < 800; i++) {
            assert_int_equal(join(&f, 50 + i), seam - 400 + i);
            memory_commit(f.memory);
        }
        line_check(f.line, f.memory);
        for (uint32_t i = 0; i < 800; i++) {
            assert_int_equal(line_rank(f.line, f.memory, (uint32_t)(seam - 400 + i)), i + 1);
            assert_non_null(line_find(f.line, f.memory, (uint32_t)(seam - 400 + i)));
        }
        assert_int_equal(line_rank(f.line, f.memory, (uint32_t)(seam - 401)), 0);
        for (uint32_t i = 0; i < 800; i++) {
            assert_int_equal(line_first(f.line, f.memory), seam - 400 + i);
            uint32_t page = line_overdue(f.line, f.memory, 50 + i);
            assert_int_equal(page / LINE_PAGE_COUNT, (seam - 400 + i) / LINE_PAGE_COUNT);
            leave_at_once(&f, (uint32_t)(seam - 400 + i));
            line_look_again(f.line, f.memory, (uint32_t)(seam - 400 + i));
            memory_commit(f.memory);
        }
        assert_int_equal(line_first(f.line, f.memory), LINE_NONE);
        fixture_free(&f);
    }
    (void)state;
}

/* Everybody who joins leaves again until the page under way is full, and therefore gone. */
static void fill_page(struct fixture *f)
{
    do {
        assert_int_not_equal(join(f, LINE_NEVER), LINE_NONE);
        memory_commit(f->memory);
        leave_at_once(f, f->line->last);
    } while (f->line->last % LINE_PAGE_COUNT != LINE_PAGE_COUNT - 1);
}

/* Someone from long ago still stands: the ring refuses to run into them, and goes on when they are gone. */
static void the_ring_never_runs_over_the_oldest(void **state)
{
    struct fixture f = fixture_from(40, 5);
    uint32_t oldest = join(&f, LINE_NEVER);
    (void)state;

    memory_commit(f.memory);
    fill_page(&f);
    for (uint64_t top = 1; top < LINE_TOPS - 1; top++) {
        f.line->last = (uint32_t)(top * PER_TOP + 7);
        uint32_t count = join(&f, LINE_NEVER);
        assert_int_equal(count, top * PER_TOP + 8);
        memory_commit(f.memory);
        assert_int_equal(line_rank(f.line, f.memory, count), 2);
        assert_int_equal(line_first(f.line, f.memory), oldest);
        leave_at_once(&f, count);
        fill_page(&f);
    }
    f.line->last = (uint32_t)((LINE_TOPS - 1) * PER_TOP - 1);
    for (int attempt = 0; attempt < 3; attempt++)
        assert_int_equal(join(&f, LINE_NEVER), LINE_NONE);
    assert_int_equal(line_standing(f.line), 1);
    leave_at_once(&f, oldest);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(join(&f, LINE_NEVER), (LINE_TOPS - 1) * PER_TOP + i);
    memory_commit(f.memory);
    line_check(f.line, f.memory);
    fixture_free(&f);
}

/* A count from more than a whole ring ago is not the one that has its place in the ring now. */
static void a_place_from_a_former_round_of_the_ring_is_gone(void **state)
{
    uint32_t old = 4 * LINE_PAGE_COUNT + 9;
    struct fixture f = fixture_from(40, LINE_TOPS * PER_TOP + 4 * LINE_PAGE_COUNT);
    (void)state;

    for (uint32_t i = 0; i < 20; i++)
        assert_int_not_equal(join(&f, LINE_NEVER), LINE_NONE);
    memory_commit(f.memory);
    assert_non_null(line_find(f.line, f.memory, (uint32_t)(LINE_TOPS * PER_TOP) + old));
    assert_null(line_find(f.line, f.memory, old));
    fixture_free(&f);
}

static void after_the_last_count_there_is_none(void **state)
{
    struct fixture f = fixture_from(40, UINT32_MAX - 3);
    (void)state;

    assert_int_equal(join(&f, LINE_NEVER), UINT32_MAX - 3);
    assert_int_equal(join(&f, LINE_NEVER), UINT32_MAX - 2);
    assert_int_equal(join(&f, LINE_NEVER), UINT32_MAX - 1);
    memory_commit(f.memory);
    assert_int_equal(join(&f, LINE_NEVER), LINE_NONE);
    assert_int_equal(line_rank(f.line, f.memory, UINT32_MAX - 1), 3);
    assert_int_equal(line_first(f.line, f.memory), UINT32_MAX - 3);
    fixture_free(&f);
}

/* ---- places anywhere ---- */

/* As a room does with what a journal brings back. NULL: refused. */
static struct ticket *put(struct fixture *f, uint32_t count, uint32_t deadline)
{
    struct ticket *ticket = line_put(f->line, f->memory, count);

    if (ticket == NULL) {
        memory_rollback(f->memory);
        return NULL;
    }
    assert_int_equal(ticket->state, TICKET_NONE);
    line_begin(f->line, f->memory, count);
    memory_keep(f->memory, ticket, sizeof(*ticket));
    *ticket = (struct ticket){.state = TICKET_WAITING, .deadline = LINE_NEVER};
    line_stand(f->line, f->memory, count);
    line_set_deadline(f->line, f->memory, count, deadline);
    memory_commit(f->memory);
    return ticket;
}

/* In whatever order they come, over pages, nodes and tops. */
static void places_put_in_any_order_stand_in_the_order_of_their_counts(void **state)
{
    enum { PEOPLE = 400 };
    uint32_t count[PEOPLE], people;
    struct dice dice = {5};
    (void)state;

    for (int round = 0; round < 20; round++) {
        struct fixture f = fixture_new(3 * PEOPLE);
        uint32_t spread = 1U << (8 + dice_below(&dice, 21));
        for (people = 0; people < PEOPLE; people++) {
            count[people] = 1 + dice_below(&dice, spread);
            if (line_find(f.line, f.memory, count[people]) != NULL &&
                line_find(f.line, f.memory, count[people])->state != TICKET_NONE)
                break; /* two at one place */
            assert_non_null(put(&f, count[people], 1000 + people));
        }
        line_check(f.line, f.memory);
        for (uint32_t i = 0; i < people; i++) {
            uint32_t rank = 0;
            for (uint32_t j = 0; j < people; j++)
                rank += count[j] <= count[i];
            assert_int_equal(line_rank(f.line, f.memory, count[i]), rank);
        }
        uint32_t before = 0;
        for (uint32_t i = 0; i < people; i++) {
            uint32_t first = line_first(f.line, f.memory);
            assert_true(first > before);
            before = first;
            leave_at_once(&f, first);
        }
        assert_int_equal(line_first(f.line, f.memory), LINE_NONE);
        /* All is given back but the page of the last, which is not over yet. */
        assert_true(line_check(f.line, f.memory) <= 3);
        fixture_free(&f);
    }
}

static void a_line_goes_on_behind_places_that_were_left_free(void **state)
{
    struct fixture f = fixture_new(40);
    (void)state;

    assert_int_equal(join(&f, 50), 1);
    memory_commit(f.memory);
    assert_true(line_skip(f.line, f.memory, 10000000));
    memory_commit(f.memory);
    assert_int_equal(join(&f, 50), 10000001);
    memory_commit(f.memory);
    assert_non_null(put(&f, 5000000, 40));
    assert_int_equal(f.line->last, 10000001);
    assert_int_equal(line_rank(f.line, f.memory, 4999999), 1);
    assert_int_equal(line_rank(f.line, f.memory, 5000000), 2);
    assert_int_equal(line_rank(f.line, f.memory, 10000001), 3);
    assert_int_equal(line_overdue(f.line, f.memory, 40), line_page_first(5000000));
    line_check(f.line, f.memory);
    fixture_free(&f);
}

/* The ring's limit, for those who jump as for those who walk. */
static void nobody_is_put_or_skips_further_than_the_ring_reaches(void **state)
{
    struct fixture f = fixture_new(40);
    uint32_t limit = (uint32_t)((LINE_TOPS - 1) * PER_TOP);
    (void)state;

    assert_int_equal(join(&f, 50), 1);
    memory_commit(f.memory);
    assert_false(line_skip(f.line, f.memory, limit));
    assert_null(put(&f, limit, 50));
    assert_null(put(&f, UINT32_MAX, 50));
    assert_false(line_skip(f.line, f.memory, UINT32_MAX));
    assert_int_equal(f.line->last, 1);
    assert_true(line_skip(f.line, f.memory, limit - 1));
    memory_commit(f.memory);
    assert_int_equal(join(&f, 50), LINE_NONE);
    assert_non_null(put(&f, 2, 50)); /* as far back as the first */
    leave_at_once(&f, 1);
    leave_at_once(&f, 2);
    assert_int_equal(join(&f, 50), limit);
    memory_commit(f.memory);
    /* The first top is where the ring would begin again. */
    assert_null(put(&f, 3, 50));
    assert_non_null(put(&f, (uint32_t)PER_TOP, 50));
    assert_int_equal(line_first(f.line, f.memory), PER_TOP);
    line_check(f.line, f.memory);
    fixture_free(&f);
}

/* A line that is made anew begins anywhere: its room may have had a billion people. */
static void an_empty_line_may_begin_at_any_count(void **state)
{
    static const uint32_t lasts[] = {1, 1000000000, 4000000000, UINT32_MAX - 3};
    (void)state;

    for (size_t i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
        struct fixture f = fixture_new(40);
        assert_true(line_skip(f.line, f.memory, lasts[i]));
        memory_commit(f.memory);
        assert_int_equal(join(&f, 50), lasts[i] + 1);
        memory_commit(f.memory);
        if (lasts[i] > 1000) {
            assert_non_null(put(&f, lasts[i] - 1000, 50));
            assert_int_equal(line_first(f.line, f.memory), lasts[i] - 1000);
        }
        assert_int_equal(line_rank(f.line, f.memory, lasts[i] + 1), lasts[i] > 1000 ? 2 : 1);
        line_check(f.line, f.memory);
        fixture_free(&f);

        f = fixture_new(40);
        assert_non_null(put(&f, lasts[i], 50));
        assert_int_equal(line_first(f.line, f.memory), lasts[i]);
        line_check(f.line, f.memory);
        fixture_free(&f);
    }
}

static void a_page_that_is_kept_stays_when_all_on_it_are_over(void **state)
{
    struct fixture f = fixture_new(40);
    (void)state;

    assert_non_null(put(&f, 130, 50));
    assert_non_null(put(&f, 300, 50));
    line_keep_page(f.line, f.memory, 130);
    assert_true(line_skip(f.line, f.memory, 1000));
    memory_commit(f.memory);
    leave_at_once(&f, 130);
    leave_at_once(&f, 300);
    assert_non_null(line_find(f.line, f.memory, 130));
    assert_int_equal(line_find(f.line, f.memory, 130)->state, TICKET_DONE);
    assert_null(line_find(f.line, f.memory, 300));
    line_check(f.line, f.memory);
    fixture_free(&f);
}

/* Each page once, in order, and an end, also where counts end. */
static void a_walk_over_the_pages_meets_each_once(void **state)
{
    static const uint32_t counts[] = {1, 125, 126, 252, 100000, 9000000, 9000001, 400000000};
    struct fixture f = fixture_new(60);
    uint32_t page = LINE_NONE, pages = 0;
    (void)state;

    assert_int_equal(line_page_from(f.line, f.memory, 1), LINE_NONE);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        assert_non_null(put(&f, counts[i], 50));
    for (uint32_t first = line_page_from(f.line, f.memory, 1); first != LINE_NONE;
         first = line_page_after(f.line, f.memory, first)) {
        assert_true(first > page);
        page = first;
        pages++;
    }
    assert_int_equal(pages, 6);
    assert_int_equal(page, line_page_first(400000000));
    assert_int_equal(line_page_from(f.line, f.memory, 127), 126);
    assert_int_equal(line_page_from(f.line, f.memory, 400000126), LINE_NONE);
    fixture_free(&f);

    f = fixture_from(40, UINT32_MAX - 1);
    assert_int_equal(join(&f, LINE_NEVER), UINT32_MAX - 1);
    memory_commit(f.memory);
    page = line_page_from(f.line, f.memory, 1);
    assert_int_equal(page, line_page_first(UINT32_MAX - 1));
    assert_int_equal(line_page_after(f.line, f.memory, page), LINE_NONE);
    fixture_free(&f);
}

/* ---- memory ---- */

static void without_memory_a_join_is_refused_and_the_line_stays_whole(void **state)
{
    (void)state;
    for (uint32_t pages = 0; pages < 9; pages++) {
        struct fixture f = fixture_new(pages);
        uint32_t joined = 0;
        while (join(&f, LINE_NEVER) != LINE_NONE) {
            memory_commit(f.memory);
            joined++;
        }
        assert_int_equal(joined, pages < 3 ? 0 : (pages - 2) * LINE_PAGE_COUNT - 1);
        assert_int_equal(line_check(f.line, f.memory) + f.memory->spare_count, pages);
        assert_int_equal(line_standing(f.line), joined);
        unsigned char *before = image_of(f.base, f.bytes, f.memory);
        assert_int_equal(join(&f, LINE_NEVER), LINE_NONE);
        unsigned char *after = image_of(f.base, f.bytes, f.memory);
        assert_memory_equal(before, after, f.bytes);
        free(before);
        free(after);
        for (uint32_t count = 1; count <= joined; count++)
            leave_at_once(&f, count);
        assert_true(joined == 0 || join(&f, LINE_NEVER) == joined + 1);
        fixture_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_random_operations_agree_with_the_model),
        cmocka_unit_test(a_few_who_stay_for_ages_keep_their_places_and_only_their_pages),
        cmocka_unit_test(everyone_overdue_is_found_and_nobody_else),
        cmocka_unit_test(a_whole_page_steps_out_together),
        cmocka_unit_test(the_line_goes_on_over_the_seam_of_two_tops),
        cmocka_unit_test(the_ring_never_runs_over_the_oldest),
        cmocka_unit_test(a_place_from_a_former_round_of_the_ring_is_gone),
        cmocka_unit_test(after_the_last_count_there_is_none),
        cmocka_unit_test(places_put_in_any_order_stand_in_the_order_of_their_counts),
        cmocka_unit_test(a_line_goes_on_behind_places_that_were_left_free),
        cmocka_unit_test(nobody_is_put_or_skips_further_than_the_ring_reaches),
        cmocka_unit_test(an_empty_line_may_begin_at_any_count),
        cmocka_unit_test(a_page_that_is_kept_stays_when_all_on_it_are_over),
        cmocka_unit_test(a_walk_over_the_pages_meets_each_once),
        cmocka_unit_test(without_memory_a_join_is_refused_and_the_line_stays_whole),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
