/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_LINE_H
#define WEIR_ROOM_LINE_H

/*
 * The line: every living ticket by its place, and who of them stands.
 *
 * A place is a sequence number and never moves. What changes is who still stands: one bit per place, and counts above the bits
 * so that "how many stand before me" and "who is first" touch a handful of cache lines, at ten or at ten million. Someone who
 * steps out and comes back sets their bit again: same place, nobody asked to move.
 *
 * The same tree keeps, for each page of tickets, a moment before which nobody on it can be overdue. So noticing who is
 * overdue costs nothing until somebody may be.
 *
 * All changes go through the memory's undo log. Counts run from 1. Visitors get them in order, without gaps; line_put makes a
 * place anywhere, for what a journal brings back.
 */

#include "base/memory.h"
#include "room/ticket.h"

#include <stdint.h>

#define LINE_NONE       0          /* no count */
#define LINE_NEVER      UINT32_MAX /* a deadline that is never over */
#define LINE_PAGE_COUNT 126        /* tickets on a page */
#define LINE_FANOUT     256        /* children of a node */
#define LINE_GROUP      16         /* children summed up together */
#define LINE_GROUPS     (LINE_FANOUT / LINE_GROUP)
#define LINE_TOPS       64

/*
 * Above the pages stand two levels of nodes, above those a ring of tops. The ring is what bounds the line: between the oldest
 * living ticket and the newest there is room for 520 million places.
 */
struct line_sums {
    uint32_t standing;
    uint32_t deadline; /* nobody below is overdue before this */
};

struct line {
    uint32_t last; /* count given last */
    struct line_sums top[LINE_TOPS];
    page_ref top_page[LINE_TOPS];
};

void line_init(struct line *line);

/*
 * The ticket at `count`, or NULL if there never was one or its page is gone. Whoever changes its state has the bit follow
 * (line_stand, line_step_out); an earlier deadline is set by line_set_deadline alone, or nobody would look in time.
 */
struct ticket *line_find(const struct line *line, const struct memory *memory, uint32_t count);

/* Makes the next place, in state NONE, alive and not standing. NULL: no page is spare or the line is too long. */
struct ticket *line_add(struct line *line, struct memory *memory);

/*
 * The place at `count`, made if it is not there: then in state NONE, not alive. NULL: no page is spare, or it is too far from the
 * others. Whoever makes it alive has line_begin count it.
 */
struct ticket *line_put(struct line *line, struct memory *memory, uint32_t count);
void line_begin(struct line *line, struct memory *memory, uint32_t count);

/* Leaves places free up to `count`, which is further on than the last. False: it is too far from the others. */
bool line_skip(struct line *line, struct memory *memory, uint32_t count);

/* The page of `count`, which must be there, is not freed when all on it are over: who was on it must be remembered. */
void line_keep_page(struct line *line, struct memory *memory, uint32_t count);

/* The place begins or ends to stand. */
void line_stand(struct line *line, struct memory *memory, uint32_t count);
void line_step_out(struct line *line, struct memory *memory, uint32_t count);

void line_set_deadline(struct line *line, struct memory *memory, uint32_t count, uint32_t deadline);

/* The ticket at `count` is over: its page is freed once all on it are. */
void line_finish(struct line *line, struct memory *memory, uint32_t count);

/*
 * Frees the very first page if it lies before `count` as a whole and all on it are over, kept or not; else false. An operation.
 */
bool line_forget(struct line *line, struct memory *memory, uint32_t count);

/* Places standing at or before `count`. */
uint32_t line_rank(const struct line *line, const struct memory *memory, uint32_t count);

/* All places standing. */
uint32_t line_standing(const struct line *line);

/* First place standing, or LINE_NONE. Skips the absent: they cost the call nothing. */
uint32_t line_first(const struct line *line, const struct memory *memory);

/*
 * First count of the first page on which somebody may be overdue at `now`, or LINE_NONE. After dealing with those who are,
 * the caller has line_look_again find out when to look at this page next.
 */
uint32_t line_overdue(const struct line *line, const struct memory *memory, uint32_t now);
void line_look_again(struct line *line, struct memory *memory, uint32_t count);

/* The first place on the page of `count`. */
uint32_t line_page_first(uint32_t count);

/* The first place on the first page that is there at or after that of `count`, and behind that of `count`; or LINE_NONE. */
uint32_t line_page_from(const struct line *line, const struct memory *memory, uint32_t count);
uint32_t line_page_after(const struct line *line, const struct memory *memory, uint32_t count);

/* The tickets from `count` to the end of its page, side by side. `count` must be on a living page. */
struct ticket *line_page(const struct line *line, const struct memory *memory, uint32_t count,
                         uint32_t *tickets);

/* A whole page at once: all of `who` (one bit per place, from the page's very first) steps out. */
struct line_page_bits {
    uint64_t word[2];
};
void line_step_out_page(struct line *line, struct memory *memory, uint32_t count, struct line_page_bits who);

/* The bit of `count` in its page's bits. */
void line_page_bits_add(struct line_page_bits *bits, uint32_t count);

/*
 * Every LINE_NOTE_EVERY-th place has room for a note: enough to learn how well people were told, at a quarter of a byte a
 * ticket. NULL for the others.
 */
#define LINE_NOTE_EVERY 32
struct line_note {
    uint32_t from, to; /* deciseconds of the room's clock; to 0 = nothing noted */
};
struct line_note *line_note(const struct line *line, const struct memory *memory, uint32_t count);

/* Frees one page of a line that is not used any more; false when none is left. An operation each. */
bool line_drop(struct line *line, struct memory *memory);

/* Pages in use, also of a line that is being dropped. */
uint32_t line_pages(const struct line *line, const struct memory *memory);

/* Aborts unless every sum agrees with what lies below it and every ticket with its bit. Returns line_pages. */
uint32_t line_check(const struct line *line, const struct memory *memory);

#endif
