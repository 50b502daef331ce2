/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Three levels lead to a ticket: a top, a node and a page. Tickets, their bits and the page's earliest deadline lie on the
 * page; each level above keeps, per child, how many stand below and the earliest deadline below, and the same once more per
 * group of sixteen children, so that a walk adds at most sixteen groups and fifteen children a level.
 *
 * Deadlines are lower bounds: a ticket that is seen gets a later deadline and nothing above it changes. Only when the bound is
 * reached is the page read, and the bounds above it made true again. So being seen is one store, and a million who vanish are
 * found page by page.
 */

#include "room/line.h"

#include "base/must.h"

#include <stddef.h>

struct page {
    struct line_page_bits standing;
    uint32_t deadline;
    uint16_t alive; /* tickets not over */
    uint16_t added;
    struct line_note note[LINE_PAGE_COUNT / LINE_NOTE_EVERY + 1];
    uint32_t is_kept; /* stays when all on it are over */
    unsigned char reserved[4];
    struct ticket ticket[LINE_PAGE_COUNT];
};

_Static_assert(sizeof(struct page) == PAGE_BYTES, "tickets fill a page");

struct node {
    page_ref child[LINE_FANOUT];
    struct line_sums sums[LINE_FANOUT];
    struct line_sums group[LINE_GROUPS];
    uint32_t children;
};

_Static_assert(sizeof(struct node) <= PAGE_BYTES, "a node fits a page");

/* Where a count lies: its slot on each level. */
struct path {
    uint32_t top, upper, lower, slot;
};

static struct path path_of(uint32_t count)
{
    uint32_t page = count / LINE_PAGE_COUNT;

    return (struct path){.top = page / LINE_FANOUT / LINE_FANOUT % LINE_TOPS,
                         .upper = page / LINE_FANOUT % LINE_FANOUT,
                         .lower = page % LINE_FANOUT,
                         .slot = count % LINE_PAGE_COUNT};
}

/* The pages along a path; NULL from the first that is missing. */
struct branch {
    struct path path;
    struct node *upper, *lower;
    struct page *page;
};

static struct branch branch_at(const struct line *line, const struct memory *memory, uint32_t count)
{
    struct branch branch = {.path = path_of(count)};
    page_ref ref = line->top_page[branch.path.top];

    if (ref == 0)
        return branch;
    branch.upper = memory_page(memory, ref);
    ref = branch.upper->child[branch.path.upper];
    if (ref == 0)
        return branch;
    branch.lower = memory_page(memory, ref);
    ref = branch.lower->child[branch.path.lower];
    if (ref != 0)
        branch.page = memory_page(memory, ref);
    return branch;
}

static struct branch branch_must(const struct line *line, const struct memory *memory, uint32_t count)
{
    struct branch branch = branch_at(line, memory, count);

    must(branch.page != NULL && branch.path.slot < branch.page->added);
    return branch;
}

void line_init(struct line *line)
{
    *line = (struct line){0};
    for (int top = 0; top < LINE_TOPS; top++)
        line->top[top].deadline = LINE_NEVER;
}

/* Which top a count belongs to, counted from the first ever and not around the ring. */
static uint32_t top_number(uint32_t count)
{
    return count / LINE_PAGE_COUNT / LINE_FANOUT / LINE_FANOUT;
}

struct ticket *line_find(const struct line *line, const struct memory *memory, uint32_t count)
{
    if (count == LINE_NONE || count > line->last)
        return NULL;
    if (top_number(line->last) - top_number(count) >= LINE_TOPS)
        return NULL; /* from a former round of the ring */
    struct branch branch = branch_at(line, memory, count);
    return branch.page == NULL ? NULL : &branch.page->ticket[branch.path.slot];
}

uint32_t line_page_first(uint32_t count)
{
    uint32_t first = count - count % LINE_PAGE_COUNT;

    return first == LINE_NONE ? 1 : first; /* the very first page has no place 0 */
}

uint32_t line_page_from(const struct line *line, const struct memory *memory, uint32_t count)
{
    uint32_t page = count / LINE_PAGE_COUNT, last = line->last / LINE_PAGE_COUNT;
    uint32_t oldest = top_number(line->last) < LINE_TOPS ? 0 : top_number(line->last) - LINE_TOPS + 1;

    if (page < oldest * LINE_FANOUT * LINE_FANOUT)
        page = oldest * LINE_FANOUT * LINE_FANOUT;
    while (page <= last) {
        struct branch branch = branch_at(line, memory, page * LINE_PAGE_COUNT);
        uint32_t step = branch.upper == NULL   ? LINE_FANOUT * LINE_FANOUT
                        : branch.lower == NULL ? LINE_FANOUT
                                               : 1;
        if (branch.page != NULL)
            return line_page_first(page * LINE_PAGE_COUNT);
        page = (page / step + 1) * step;
    }
    return LINE_NONE;
}

uint32_t line_page_after(const struct line *line, const struct memory *memory, uint32_t count)
{
    if (count / LINE_PAGE_COUNT >= line->last / LINE_PAGE_COUNT)
        return LINE_NONE; /* and behind the very last page counts would begin again */
    return line_page_from(line, memory, count - count % LINE_PAGE_COUNT + LINE_PAGE_COUNT);
}

struct ticket *line_page(const struct line *line, const struct memory *memory, uint32_t count,
                         uint32_t *tickets)
{
    struct branch branch = branch_must(line, memory, count);

    *tickets = branch.page->added - branch.path.slot;
    return &branch.page->ticket[branch.path.slot];
}

/* ---- adding ---- */

static page_ref node_new(struct memory *memory)
{
    page_ref ref = memory_take(memory);

    if (ref != 0) {
        struct node *node = memory_page(memory, ref);
        for (int i = 0; i < LINE_FANOUT; i++)
            node->sums[i].deadline = LINE_NEVER;
        for (int i = 0; i < LINE_GROUPS; i++)
            node->group[i].deadline = LINE_NEVER;
    }
    return ref;
}

static page_ref page_new(struct memory *memory)
{
    page_ref ref = memory_take(memory);

    if (ref != 0)
        ((struct page *)memory_page(memory, ref))->deadline = LINE_NEVER;
    return ref;
}

static bool node_adopt(struct node *node, struct memory *memory, uint32_t slot, page_ref child)
{
    must(node != NULL);
    if (child == 0)
        return false;
    memory_set(memory, node->child[slot], child);
    memory_set(memory, node->children, node->children + 1);
    return true;
}

/* The tops are a ring: the one behind the newest is always free, so that where the ring begins can be told. */
static bool is_in_reach(const struct line *line, uint32_t count)
{
    uint32_t newest = top_number(line->last), top = top_number(count);

    if (count <= line->last)
        return newest - top < LINE_TOPS - 1;
    /* Further than all the way round is as far as once: where nobody stands, anything is in reach. */
    uint32_t passed = top + 1 - newest < LINE_TOPS ? top + 1 - newest : LINE_TOPS;
    for (uint32_t i = 1; i <= passed; i++)
        if (line->top_page[(newest + i) % LINE_TOPS] != 0)
            return false;
    return true;
}

static bool top_grow(struct line *line, struct memory *memory, const struct branch *branch)
{
    page_ref ref = node_new(memory);

    if (ref == 0)
        return false;
    memory_set(memory, line->top_page[branch->path.top], ref);
    return true;
}

static bool branch_grow(struct line *line, struct memory *memory, uint32_t count)
{
    struct branch branch = branch_at(line, memory, count);

    if (branch.upper == NULL) {
        if (!top_grow(line, memory, &branch))
            return false;
        branch = branch_at(line, memory, count);
    }
    if (branch.lower == NULL) {
        if (!node_adopt(branch.upper, memory, branch.path.upper, node_new(memory)))
            return false;
        branch = branch_at(line, memory, count);
    }
    return branch.page != NULL || node_adopt(branch.lower, memory, branch.path.lower, page_new(memory));
}

struct ticket *line_add(struct line *line, struct memory *memory)
{
    uint32_t count = line->last + 1;
    struct ticket *ticket = line_put(line, memory, count);

    if (ticket == NULL)
        return NULL;
    line_begin(line, memory, count);
    memory_keep(memory, ticket, sizeof(*ticket));
    *ticket = (struct ticket){.state = TICKET_NONE, .deadline = LINE_NEVER};
    return ticket;
}

struct ticket *line_put(struct line *line, struct memory *memory, uint32_t count)
{
    must(count != LINE_NONE);
    if (count == UINT32_MAX || !is_in_reach(line, count) || !branch_grow(line, memory, count))
        return NULL;
    struct branch branch = branch_at(line, memory, count);
    struct page *page = branch.page;
    must(page != NULL);
    if (count > line->last)
        memory_set(memory, line->last, count);
    if (page->added <= branch.path.slot)
        memory_set(memory, page->added, branch.path.slot + 1);
    return &page->ticket[branch.path.slot];
}

bool line_skip(struct line *line, struct memory *memory, uint32_t count)
{
    must(count > line->last);
    if (count == UINT32_MAX || !is_in_reach(line, count))
        return false;
    memory_set(memory, line->last, count);
    return true;
}

void line_begin(struct line *line, struct memory *memory, uint32_t count)
{
    struct page *page = branch_must(line, memory, count).page;

    memory_set(memory, page->alive, page->alive + 1);
}

void line_keep_page(struct line *line, struct memory *memory, uint32_t count)
{
    struct page *page = branch_must(line, memory, count).page;

    memory_set(memory, page->is_kept, 1);
}

/* ---- standing ---- */

static void count_standing(struct line *line, struct memory *memory, const struct branch *branch,
                           int32_t change)
{
    const struct path *path = &branch->path;
    struct line_sums *sums[] = {
        &line->top[path->top],
        &branch->upper->group[path->upper / LINE_GROUP],
        &branch->upper->sums[path->upper],
        &branch->lower->group[path->lower / LINE_GROUP],
        &branch->lower->sums[path->lower],
    };

    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        memory_set(memory, sums[i]->standing, sums[i]->standing + (uint32_t)change);
}

static uint64_t bit_of(uint32_t slot)
{
    return 1ULL << (slot % 64);
}

void line_stand(struct line *line, struct memory *memory, uint32_t count)
{
    struct branch branch = branch_must(line, memory, count);
    uint64_t *word = &branch.page->standing.word[branch.path.slot / 64];

    must((*word & bit_of(branch.path.slot)) == 0);
    memory_set(memory, *word, *word | bit_of(branch.path.slot));
    count_standing(line, memory, &branch, 1);
}

void line_step_out(struct line *line, struct memory *memory, uint32_t count)
{
    struct line_page_bits who = {{0, 0}};

    line_page_bits_add(&who, count);
    line_step_out_page(line, memory, count, who);
}

void line_page_bits_add(struct line_page_bits *bits, uint32_t count)
{
    uint32_t slot = count % LINE_PAGE_COUNT;

    bits->word[slot / 64] |= bit_of(slot);
}

void line_step_out_page(struct line *line, struct memory *memory, uint32_t count, struct line_page_bits who)
{
    struct branch branch = branch_must(line, memory, count);
    struct line_page_bits *standing = &branch.page->standing;
    int leaving = __builtin_popcountll(who.word[0]) + __builtin_popcountll(who.word[1]);

    must((who.word[0] & ~standing->word[0]) == 0 && (who.word[1] & ~standing->word[1]) == 0);
    memory_keep(memory, standing, sizeof(*standing));
    standing->word[0] &= ~who.word[0];
    standing->word[1] &= ~who.word[1];
    count_standing(line, memory, &branch, -leaving);
}

/* Bits of a page at or before `slot`. */
static uint32_t page_rank(const struct page *page, uint32_t slot)
{
    uint64_t through = bit_of(slot) | (bit_of(slot) - 1);

    if (slot < 64)
        return (uint32_t)__builtin_popcountll(page->standing.word[0] & through);
    return (uint32_t)(__builtin_popcountll(page->standing.word[0]) +
                      __builtin_popcountll(page->standing.word[1] & through));
}

/* Standing below the children before `slot`. */
static uint32_t node_rank(const struct node *node, uint32_t slot)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < slot / LINE_GROUP; i++)
        sum += node->group[i].standing;
    for (uint32_t i = slot - slot % LINE_GROUP; i < slot; i++)
        sum += node->sums[i].standing;
    return sum;
}

/* The top that holds the newest place; the ring begins behind it. */
static uint32_t newest_top(const struct line *line)
{
    return path_of(line->last).top;
}

uint32_t line_rank(const struct line *line, const struct memory *memory, uint32_t count)
{
    if (count > line->last)
        count = line->last;
    struct branch branch = branch_at(line, memory, count);
    uint32_t sum = 0;

    for (uint32_t top = (newest_top(line) + 1) % LINE_TOPS; top != branch.path.top;
         top = (top + 1) % LINE_TOPS)
        sum += line->top[top].standing;
    if (branch.upper != NULL)
        sum += node_rank(branch.upper, branch.path.upper);
    if (branch.lower != NULL)
        sum += node_rank(branch.lower, branch.path.lower);
    if (branch.page != NULL)
        sum += page_rank(branch.page, branch.path.slot);
    return sum;
}

uint32_t line_standing(const struct line *line)
{
    uint32_t sum = 0;

    for (int top = 0; top < LINE_TOPS; top++)
        sum += line->top[top].standing;
    return sum;
}

/* ---- finding the first of something ---- */

/* Whether somebody below is what the caller looks for. */
static bool sums_match(const struct line_sums *sums, const uint32_t *now)
{
    return now == NULL ? sums->standing > 0 : sums->deadline <= *now;
}

static uint32_t node_first(const struct node *node, const uint32_t *now)
{
    uint32_t group = 0;

    while (group < LINE_GROUPS && !sums_match(&node->group[group], now))
        group++;
    must(group < LINE_GROUPS);
    uint32_t slot = group * LINE_GROUP;
    while (!sums_match(&node->sums[slot], now)) {
        slot++;
        must(slot < (group + 1) * LINE_GROUP);
    }
    return slot;
}

/* Number of the page that the ring's `top` begins with, counted from the first ever. */
static uint32_t top_first_page(const struct line *line, uint32_t top)
{
    uint32_t newest = top_number(line->last);
    uint32_t back = (newest_top(line) + LINE_TOPS - top) % LINE_TOPS;

    return (newest - back) * LINE_FANOUT * LINE_FANOUT;
}

/* First count of the first page below which something matches, or UINT32_MAX: count 0 begins the first page. */
static uint32_t first_page(const struct line *line, const struct memory *memory, const uint32_t *now)
{
    uint32_t start = (newest_top(line) + 1) % LINE_TOPS;

    for (uint32_t i = 0; i < LINE_TOPS; i++) {
        uint32_t top = (start + i) % LINE_TOPS;
        if (!sums_match(&line->top[top], now))
            continue;
        const struct node *upper = memory_page(memory, line->top_page[top]);
        uint32_t upper_slot = node_first(upper, now);
        const struct node *lower = memory_page(memory, upper->child[upper_slot]);
        uint32_t lower_slot = node_first(lower, now);
        return (top_first_page(line, top) + upper_slot * LINE_FANOUT + lower_slot) * LINE_PAGE_COUNT;
    }
    return UINT32_MAX;
}

uint32_t line_first(const struct line *line, const struct memory *memory)
{
    uint32_t count = first_page(line, memory, NULL);

    if (count == UINT32_MAX)
        return LINE_NONE;
    const struct page *page = branch_at(line, memory, count).page;
    must(page != NULL);
    if (page->standing.word[0] != 0)
        return count + (uint32_t)__builtin_ctzll(page->standing.word[0]);
    must(page->standing.word[1] != 0);
    return count + 64 + (uint32_t)__builtin_ctzll(page->standing.word[1]);
}

uint32_t line_overdue(const struct line *line, const struct memory *memory, uint32_t now)
{
    uint32_t count = first_page(line, memory, &now);

    return count == UINT32_MAX ? LINE_NONE : line_page_first(count);
}

/* ---- deadlines ---- */

static uint32_t earliest(const struct line_sums *sums, int count)
{
    uint32_t deadline = LINE_NEVER;

    for (int i = 0; i < count; i++)
        if (sums[i].deadline < deadline)
            deadline = sums[i].deadline;
    return deadline;
}

/* Sets a child's bound and returns what the bound of the whole node now is. */
static uint32_t node_set_deadline(struct node *node, struct memory *memory, uint32_t slot, uint32_t deadline)
{
    uint32_t group = slot / LINE_GROUP;

    memory_set(memory, node->sums[slot].deadline, deadline);
    memory_set(memory, node->group[group].deadline, earliest(&node->sums[group * LINE_GROUP], LINE_GROUP));
    return earliest(node->group, LINE_GROUPS);
}

/* Makes the bounds above a page say what the page says. */
static void raise_deadline(struct line *line, struct memory *memory, const struct branch *branch,
                           uint32_t deadline)
{
    const struct path *path = &branch->path;

    deadline = node_set_deadline(branch->lower, memory, path->lower, deadline);
    deadline = node_set_deadline(branch->upper, memory, path->upper, deadline);
    memory_set(memory, line->top[path->top].deadline, deadline);
}

void line_set_deadline(struct line *line, struct memory *memory, uint32_t count, uint32_t deadline)
{
    struct branch branch = branch_must(line, memory, count);

    memory_set(memory, branch.page->ticket[branch.path.slot].deadline, deadline);
    if (deadline >= branch.page->deadline)
        return;
    memory_set(memory, branch.page->deadline, deadline);
    raise_deadline(line, memory, &branch, deadline);
}

void line_look_again(struct line *line, struct memory *memory, uint32_t count)
{
    struct branch branch = branch_at(line, memory, count);
    uint32_t deadline = LINE_NEVER;

    if (branch.page == NULL)
        return; /* the last one on it is over: the page is gone, and its bounds with it */
    for (uint32_t slot = 0; slot < branch.page->added; slot++)
        if (branch.page->ticket[slot].deadline < deadline && branch.page->ticket[slot].state != TICKET_NONE)
            deadline = branch.page->ticket[slot].deadline;
    memory_set(memory, branch.page->deadline, deadline);
    raise_deadline(line, memory, &branch, deadline);
}

/* ---- the end ---- */

static void node_drop(struct node *node, struct memory *memory, uint32_t slot)
{
    memory_free(memory, node->child[slot]);
    memory_set(memory, node->child[slot], 0);
    must(node->children > 0);
    memory_set(memory, node->children, node->children - 1);
}

/* Frees a page on which all are over, and the nodes above that it leaves empty. */
static void page_free(struct line *line, struct memory *memory, const struct branch *branch)
{
    const struct path *path = &branch->path;

    must(branch->page->standing.word[0] == 0 && branch->page->standing.word[1] == 0);
    raise_deadline(line, memory, branch, LINE_NEVER);
    node_drop(branch->lower, memory, path->lower);
    if (branch->lower->children > 0)
        return;
    node_drop(branch->upper, memory, path->upper);
    if (branch->upper->children > 0)
        return;
    memory_free(memory, line->top_page[path->top]);
    memory_set(memory, line->top_page[path->top], 0);
}

void line_finish(struct line *line, struct memory *memory, uint32_t count)
{
    struct branch branch = branch_must(line, memory, count);

    memory_set(memory, branch.page->ticket[branch.path.slot].deadline, LINE_NEVER);
    must(branch.page->alive > 0);
    memory_set(memory, branch.page->alive, branch.page->alive - 1);
    uint32_t last_on_page = count - branch.path.slot + LINE_PAGE_COUNT - 1;
    if (branch.page->alive == 0 && last_on_page <= line->last && !branch.page->is_kept)
        page_free(line, memory, &branch);
}

bool line_forget(struct line *line, struct memory *memory, uint32_t count)
{
    uint32_t first = line_page_from(line, memory, 1);

    if (first == LINE_NONE || first / LINE_PAGE_COUNT >= count / LINE_PAGE_COUNT)
        return false;
    struct branch branch = branch_at(line, memory, first);
    must(branch.page != NULL);
    if (branch.page->alive > 0)
        return false;
    page_free(line, memory, &branch);
    return true;
}

struct line_note *line_note(const struct line *line, const struct memory *memory, uint32_t count)
{
    uint32_t slot = count % LINE_PAGE_COUNT;

    if (slot % LINE_NOTE_EVERY != 0)
        return NULL;
    return &branch_must(line, memory, count).page->note[slot / LINE_NOTE_EVERY];
}

static uint32_t first_child(const struct node *node)
{
    uint32_t slot = 0;

    while (node->child[slot] == 0) {
        slot++;
        must(slot < LINE_FANOUT);
    }
    return slot;
}

bool line_drop(struct line *line, struct memory *memory)
{
    uint32_t top = 0;

    while (line->top_page[top] == 0)
        if (++top == LINE_TOPS)
            return false;
    struct node *upper = memory_page(memory, line->top_page[top]);
    if (upper->children == 0) {
        memory_free(memory, line->top_page[top]);
        memory_set(memory, line->top_page[top], 0);
        return true;
    }
    uint32_t slot = first_child(upper);
    struct node *lower = memory_page(memory, upper->child[slot]);
    if (lower->children == 0)
        node_drop(upper, memory, slot);
    else
        node_drop(lower, memory, first_child(lower));
    return true;
}

/* ---- checking ---- */

static struct line_sums page_check(const struct page *page)
{
    struct line_sums sums = {0, LINE_NEVER};
    uint32_t alive = 0;

    must(page->added <= LINE_PAGE_COUNT);
    for (uint32_t slot = 0; slot < page->added; slot++) {
        const struct ticket *ticket = &page->ticket[slot];
        bool stands = (page->standing.word[slot / 64] & bit_of(slot)) != 0;
        must(stands == ticket_life(ticket->state)->is_in_line);
        sums.standing += stands;
        alive += ticket_life(ticket->state)->is_alive;
        must(ticket->state == TICKET_NONE || ticket->deadline >= page->deadline);
    }
    must(alive == page->alive);
    sums.deadline = page->deadline;
    return sums;
}

static struct line_sums node_check(const struct node *node, const struct memory *memory, int level)
{
    struct line_sums total = {0, LINE_NEVER};
    uint32_t children = 0;

    for (int slot = 0; slot < LINE_FANOUT; slot++) {
        struct line_sums sums = {0, LINE_NEVER};
        if (node->child[slot] != 0) {
            const void *child = memory_page(memory, node->child[slot]);
            sums = level == 0 ? page_check(child) : node_check(child, memory, level - 1);
            children++;
        }
        must(sums.standing == node->sums[slot].standing && sums.deadline == node->sums[slot].deadline);
        total.standing += sums.standing;
        if (sums.deadline < total.deadline)
            total.deadline = sums.deadline;
    }
    for (int group = 0; group < LINE_GROUPS; group++) {
        uint32_t standing = 0;
        for (int i = 0; i < LINE_GROUP; i++)
            standing += node->sums[group * LINE_GROUP + i].standing;
        must(standing == node->group[group].standing);
        must(node->group[group].deadline == earliest(&node->sums[group * LINE_GROUP], LINE_GROUP));
    }
    must(children == node->children);
    return total;
}

uint32_t line_check(const struct line *line, const struct memory *memory)
{
    for (int top = 0; top < LINE_TOPS; top++) {
        struct line_sums sums = {0, LINE_NEVER};
        if (line->top_page[top] != 0)
            sums = node_check(memory_page(memory, line->top_page[top]), memory, 1);
        must(sums.standing == line->top[top].standing && sums.deadline == line->top[top].deadline);
    }
    return line_pages(line, memory);
}

static uint32_t upper_pages(const struct node *upper, const struct memory *memory)
{
    uint32_t pages = 1 + upper->children;

    for (int slot = 0; slot < LINE_FANOUT; slot++)
        if (upper->child[slot] != 0)
            pages += ((const struct node *)memory_page(memory, upper->child[slot]))->children;
    return pages;
}

uint32_t line_pages(const struct line *line, const struct memory *memory)
{
    uint32_t pages = 0;

    for (int top = 0; top < LINE_TOPS; top++)
        if (line->top_page[top] != 0)
            pages += upper_pages(memory_page(memory, line->top_page[top]), memory);
    return pages;
}
