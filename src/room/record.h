/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_ROOM_RECORD_H
#define WEIR_ROOM_RECORD_H

/*
 * The change of a room as bytes: what a journal keeps and a snapshot is made of. docs/formats/journal.md says the same.
 *
 * A record holds what has become, never what was done: whole tickets, the room's own figures. So a record that is read twice,
 * or read over a state that knows it already, does no harm; the last one is right. That is what lets a snapshot be taken page
 * by page while the room goes on.
 *
 * A record is a head and parts, each at a multiple of 8 bytes, numbers little-endian.
 */

#include "base/holder.h"
#include "base/span.h"
#include "room/ticket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_head {
    uint32_t room; /* its number: the epoch it was made with, which no other room ever has */
    uint32_t reserved;
    uint64_t change; /* counts the records of this room: one that was written twice is known by it */
};

/* PART(name, number, word for people) */
#define PART_LIST(PART)                                                                                 \
    PART(PART_FACE, 1, "face")         /* struct part_face; the last part of every change */            \
    PART(PART_TICKETS, 2, "tickets")   /* struct part_tickets, then whole tickets of counts in a row */ \
    PART(PART_GONE, 3, "gone")         /* u32 count, u32 0: the ticket there is over */                 \
    PART(PART_AWAY, 4, "away")         /* struct part_away: some of a page are away */                  \
    PART(PART_KEY, 5, "key")           /* struct key: an idempotency key */                             \
    PART(PART_MADE, 6, "made")         /* u32 epoch, u32 length, name: the room begins; first part */   \
    PART(PART_SETTINGS, 7, "settings") /* struct part_settings, then lines `name=value` */              \
    PART(PART_TERMS, 8, "terms")       /* u32 pairs: session_max_sec and tier of each of the terms */   \
    PART(PART_EPOCHS, 9, "epochs")     /* struct epoch each */                                          \
    PART(PART_CLEARED, 10, "cleared")  /* nothing: nobody is in the room any more */                    \
    PART(PART_PEOPLE, 12, "people")    /* u32 number, u32 0: in a snapshot, how many tickets follow */  \
    PART(PART_OVER, 11, "over")        /* nothing: the room is deleted */

enum part_kind {
#define PART_ENUM(name, number, word) name = number,
    PART_LIST(PART_ENUM)
#undef PART_ENUM
};

struct part_head {
    uint16_t kind;
    uint16_t reserved;
    uint32_t length; /* without padding */
};

/* The room's figures after the change. */
struct part_face {
    uint64_t clock_ms;
    uint64_t credit; /* of the pace */
    uint64_t issued, calls, refunds;
    uint32_t wait_ms; /* of the pace */
    uint32_t advance;
    uint32_t last;        /* place given last */
    uint32_t last_called; /* highest place ever called */
};

struct part_tickets {
    uint32_t first; /* place of the first of them */
    uint32_t number;
};

struct part_away {
    uint32_t first; /* a place on the page */
    uint32_t deadline;
    uint64_t who[2]; /* bits from the page's very first place on */
};

struct part_settings {
    uint32_t version, is_from_api, terms_now, reserved;
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are written as they lie in memory");

/* A walk over the parts of a record's body. */
struct part {
    enum part_kind kind;
    struct span data;
};
bool record_read_head(struct span body, struct record_head *head, struct span *parts);

/* The next part, taken off `parts`; false at the end or, then `is_bad`, where no part can be read. */
bool record_read_part(struct span *parts, struct part *part, bool *is_bad);

/* What the owner of rooms must know: the room that this record makes, and whether it ends it. */
bool record_makes_room(struct span body, struct span *name, uint32_t *epoch);
bool record_ends_room(struct span body);

/*
 * Spare pages that room_apply may need for it. Few for a small one, or rooms that take turns would take the last pages from each
 * other with every one.
 */
uint32_t record_pages(struct span body);

/* Writes a part with its padding; returns the bytes it took. */
#define PART_BYTES(length) (sizeof(struct part_head) + (((length) + 7) & ~(size_t)7))
size_t record_write_part(unsigned char *out, enum part_kind kind, struct span a, struct span b);

#endif
