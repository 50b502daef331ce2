/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Anybody can ask for rooms that there are not, so nothing here takes longer the more are asked for: a place for another note is
 * looked for in a few steps, from where the last search ended, and not being found is an answer. What is lost with a note can be
 * asked for again; those that matter are in use, for a room with anybody in it is ticked.
 */

#include "redis/notebook.h"

#include "base/must.h"

#include <stdlib.h>

#define SEARCH_STEPS 8

struct notebook {
    uint32_t size, count;
    uint32_t hand; /* where the search for a place goes on */
    uint32_t mask; /* of buckets */
    struct note **buckets;
    struct note *notes[]; /* made when they are needed */
};

static uint32_t bucket_of(const struct notebook *notebook, struct span room);
static struct note *note_make(struct notebook *notebook);
static struct note *note_take_over(struct notebook *notebook);
static bool is_idle(const struct note *note);
static void note_unlink(struct notebook *notebook, const struct note *note);

struct notebook *notebook_new(uint32_t size)
{
    struct notebook *notebook = calloc(1, sizeof(*notebook) + size * sizeof(struct note *));
    uint32_t buckets = 16;

    must(size > 0 && size < UINT32_MAX / 4);
    while (buckets < size)
        buckets *= 2;
    if (notebook == NULL)
        return NULL;
    notebook->size = size;
    notebook->mask = buckets - 1;
    notebook->buckets = calloc(buckets, sizeof(struct note *));
    if (notebook->buckets != NULL)
        return notebook;
    free(notebook);
    return NULL;
}

void notebook_free(struct notebook *notebook)
{
    for (uint32_t i = 0; i < notebook->count; i++) {
        free(notebook->notes[i]->texts);
        free(notebook->notes[i]);
    }
    free(notebook->buckets);
    free(notebook);
}

struct note *notebook_find(const struct notebook *notebook, struct span room)
{
    struct note *note = notebook->buckets[bucket_of(notebook, room)];

    while (note != NULL && !span_equal(note_name(note), room))
        note = note->next;
    return note;
}

struct note *notebook_open(struct notebook *notebook, struct span room)
{
    struct note *note = notebook_find(notebook, room);

    must(room.len > 0 && room.len <= ROOM_ID_MAX);
    if (note != NULL)
        return note;
    note = notebook->count < notebook->size ? note_make(notebook) : note_take_over(notebook);
    if (note == NULL)
        return NULL;
    *note =
        (struct note){.next = notebook->buckets[bucket_of(notebook, room)], .name_len = (uint32_t)room.len};
    memcpy(note->name, room.data, room.len);
    notebook->buckets[bucket_of(notebook, room)] = note;
    return note;
}

static uint32_t bucket_of(const struct notebook *notebook, struct span room)
{
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < room.len; i++)
        hash = (hash ^ (unsigned char)room.data[i]) * 16777619U;
    return hash & notebook->mask;
}

static struct note *note_make(struct notebook *notebook)
{
    struct note *note = malloc(sizeof(*note));

    if (note != NULL)
        notebook->notes[notebook->count++] = note;
    return note;
}

/* The place of a room that never was, if one is near; else of one that is at rest. */
static struct note *note_take_over(struct notebook *notebook)
{
    struct note *found = NULL;

    for (uint32_t i = 0; i < SEARCH_STEPS && i < notebook->size; i++) {
        struct note *note = notebook->notes[notebook->hand];
        notebook->hand = (notebook->hand + 1) % notebook->size;
        bool is_better = found == NULL || (found->epochs.len > 0 && note->epochs.len == 0);
        if (is_idle(note) && is_better)
            found = note;
    }
    if (found != NULL) {
        note_unlink(notebook, found);
        free(found->texts);
    }
    return found;
}

/* While calls wait for a chore, one is under way. */
static bool is_idle(const struct note *note)
{
    return !note->is_busy && !note->is_going_on && !note->is_awake && !note->has_shop &&
           note->asker == NULL && note->beating.first == NULL;
}

static void note_unlink(struct notebook *notebook, const struct note *note)
{
    struct note **at = &notebook->buckets[bucket_of(notebook, note_name(note))];

    while (*at != note)
        at = &(*at)->next;
    *at = note->next;
}

void note_set_texts(struct note *note, const struct texts *texts)
{
    static const struct texts none;

    if (memcmp(texts, &none, sizeof(none)) == 0) {
        free(note->texts);
        note->texts = NULL;
        return;
    }
    if (note->texts == NULL)
        note->texts = malloc(sizeof(*note->texts));
    if (note->texts != NULL)
        *note->texts = *texts;
}

uint32_t notebook_count(const struct notebook *notebook)
{
    return notebook->count;
}

struct note *notebook_at(const struct notebook *notebook, uint32_t i)
{
    must(i < notebook->count);
    return notebook->notes[i];
}
