/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_NOTEBOOK_H
#define WEIR_REDIS_NOTEBOOK_H

/*
 * What a worker knows of rooms that a Redis keeps, and what it has under way there. A bounded table: a note about which nothing is
 * under way gives its place to another room when there are too many.
 */

#include "engine/engine.h"
#include "redis/chore.h"

/* Calls in the order they came. */
struct call_list {
    struct engine_call *first, *last;
};

struct note {
    struct note *next; /* of its bucket */
    struct redis_engine *engine;
    char name[ROOM_ID_MAX];
    uint32_t name_len;

    /* one chore at a time */
    bool is_busy;     /* it is under way */
    bool is_going_on; /* the next one is being chosen */
    struct redis_chore chore;

    /* calls that wait for chores */
    struct call_list deleting, putting; /* for the registry */
    struct call_list missing;           /* for the room, which the server does not know: it is being made */
    struct call_list beating;           /* for the next tick */
    bool is_missed;              /* a tick did not find it, and it is to be made for nobody in particular */
    bool is_registered, is_anew; /* how far the making is */

    /* ticks */
    bool is_awake;  /* to be ticked */
    bool was_asked; /* since the last tick was sent */
    bool is_turn;   /* a tick is due */
    bool is_ours;   /* nobody else ticks it */
    bool is_empty;  /* nobody was in it at the last tick */
    uint64_t ticked_ms, registered_ms;
    uint32_t wait_ms; /* since ticked_ms */
    struct redis_epochs epochs;

    /* settings */
    struct settings settings; /* as last heard of */
    struct texts *texts;      /* likewise, in memory of the note's; NULL: there are none */
    bool has_settings;        /* they were ever heard of */
    bool has_texts;           /* likewise of the texts */
    bool is_fresh;            /* since heard_ms nobody here has changed them */
    uint64_t heard_ms, texts_ms;
    struct engine_call
        *asker; /* the call under way that asks for them, or NULL: others may wait for its answer */

    /* what was seen of the shop */
    bool has_shop;
    uint64_t shop_ms; /* when it was last passed on */
    struct shop_report shop, shop_sent;
};

struct notebook;

/* NULL: no memory. */
struct notebook *notebook_new(uint32_t size);
void notebook_free(struct notebook *notebook);

/* NULL: there is none about this room. */
struct note *notebook_find(const struct notebook *notebook, struct span room);

/* The note about this room; a new one is empty but for its name. NULL: no memory, or something is under way in all the others. */
struct note *notebook_open(struct notebook *notebook, struct span room);

/* Remembers them; if there is no memory, that there are none. */
void note_set_texts(struct note *note, const struct texts *texts);

uint32_t notebook_count(const struct notebook *notebook);
struct note *notebook_at(const struct notebook *notebook, uint32_t i);

static inline struct span note_name(const struct note *note)
{
    return (struct span){note->name, note->name_len};
}

static inline void call_list_add(struct call_list *list, struct engine_call *call)
{
    call->next = NULL;
    if (list->first == NULL)
        list->first = call;
    else
        list->last->next = call;
    list->last = call;
}

/* NULL: there is none left. */
static inline struct engine_call *call_list_take(struct call_list *list)
{
    struct engine_call *call = list->first;

    if (call != NULL) {
        list->first = call->next;
        call->next = NULL;
    }
    return call;
}

#endif
