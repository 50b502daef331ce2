/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The note hangs on a cleanup of the request's pool, as realip's does: the list of cleanups is what nginx keeps over a redirect.
 * Subrequests have the same pool, and so the note of their main request.
 */
#include "nginx/gate_note.h"

#include "nginx/request.h"

struct outcome_info {
    struct span word;
    bool goes_on;
};

static const struct outcome_info outcomes[GATE_OUTCOME_COUNT] = {
#define GATE_OUTCOME_INFO(name, word, goes_on, help) [GATE_##name] = {SPAN(word), goes_on},
    GATE_OUTCOME_LIST(GATE_OUTCOME_INFO)
#undef GATE_OUTCOME_INFO
};

static struct gate_note *note_make(ngx_http_request_t *r);
static void note_mark(void *data);

struct gate_note *gate_note_of(ngx_http_request_t *r)
{
    struct gate_note *note = gate_note_peek(r);
    return note != NULL ? note : note_make(r);
}

static struct gate_note *note_make(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(struct gate_note));
    if (cleanup == NULL)
        return NULL;
    cleanup->handler = note_mark;
    ngx_memzero(cleanup->data, sizeof(struct gate_note));
    return cleanup->data;
}

/* By this the note is known; there is nothing to clean up. */
static void note_mark(void *data)
{
}

struct gate_note *gate_note_peek(ngx_http_request_t *r)
{
    struct request *request = request_peek(r);
    if (request != NULL && request->gate_note != NULL)
        return request->gate_note;
    for (ngx_pool_cleanup_t *cleanup = r->pool->cleanup; cleanup != NULL; cleanup = cleanup->next) {
        if (cleanup->handler != note_mark)
            continue;
        if (request != NULL)
            request->gate_note = cleanup->data;
        return cleanup->data;
    }
    return NULL;
}

bool gate_goes_on(enum gate_outcome outcome)
{
    return outcomes[outcome].goes_on;
}

struct span gate_outcome_word(enum gate_outcome outcome)
{
    return outcomes[outcome].word;
}
