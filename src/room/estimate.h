/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_ESTIMATE_H
#define WEIR_ROOM_ESTIMATE_H

/*
 * How long until somebody is called. Measured over the last 10, 60 and 300 seconds of the room's clock: how fast the room
 * really calls while people wait, how fast slots become free, and how fast people in line give up. Before there is anything to
 * measure, and less and less over the first minute, from the configured pace.
 *
 * Whole numbers only, so that every engine comes to the same answer.
 */

#include "base/memory.h"
#include "room/pace.h"
#include "room/settings.h"

#include <stdint.h>

#define ESTIMATE_SLOTS   60
#define ESTIMATE_SLOT_MS 5000

/* What happened in one slot of time. */
struct estimate_slot {
    uint64_t waited_ms; /* by all who stood in line, together */
    uint64_t inside_ms; /* by all who held a slot, together */
    uint32_t busy_ms;   /* in which somebody stood in line and could be called */
    uint32_t joins;
    uint32_t calls;
    uint32_t turns; /* calls of people who stood in line */
    uint32_t ends;  /* slots that became free */
    uint32_t gone;  /* left the line and said so */
    int32_t silent; /* fell silent, less those who came back */
};

struct estimate {
    uint32_t now;   /* the slot under way */
    uint32_t in_ms; /* how far it is */
    struct estimate_slot slot[ESTIMATE_SLOTS];

    /* derived once a tick */
    uint64_t calls_per_ks;               /* calls per 1000 s while people wait */
    uint64_t gone_per_gs;                /* of a person, per 10^9 s */
    uint64_t silent_per_gs;              /* those of them who do not say so */
    uint32_t margin_percent;             /* of the band around an estimate */
    uint32_t joined_milli, called_milli; /* per second over the last 10 s, in thousandths */
    bool is_short_of_slots;              /* not the pace but the slots decide how fast people are called */
    bool is_settled;                     /* there is enough data: a minute at least */

    /* how well people were told, of those called after a minute of data */
    uint64_t checked, kept;
};

struct eta {
    uint32_t sec, low_sec, high_sec;
};

void estimate_init(struct estimate *estimate, const struct settings *settings);

/* The pace was changed: what was measured before says nothing any more. */
void estimate_restart(struct estimate *estimate, struct memory *memory, const struct settings *settings);

void estimate_count_join(struct estimate *estimate, struct memory *memory);
void estimate_count_call(struct estimate *estimate, struct memory *memory);
void estimate_count_turn(struct estimate *estimate, struct memory *memory);
void estimate_count_end(struct estimate *estimate, struct memory *memory);
void estimate_count_gone(struct estimate *estimate, struct memory *memory);
void estimate_count_silent(struct estimate *estimate, struct memory *memory, int32_t people);

/* A piece of time, and how the room was in it. */
struct estimate_moment {
    uint32_t ms;
    uint32_t standing, inside; /* people in line, and with a slot */
    bool is_calling;           /* else it is held or frozen, which says nothing about the time after */
};

void estimate_advance(struct estimate *estimate, struct memory *memory, const struct settings *settings,
                      const struct estimate_moment *moment);

/* For the person at `position` (1 = next). */
struct eta estimate_eta(const struct estimate *estimate, const struct settings *settings,
                        const struct pace *pace, uint32_t position);

#endif
