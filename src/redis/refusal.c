/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Only the first word of an error is a promise of the server; what follows is for people and differs between versions. MOVED and
 * ASK go on with a slot and an address, and nothing else of a text is ever looked at, but for the one form in which old servers
 * hide the first word of what happened inside a script.
 */
#include "redis/refusal.h"

#include "base/decimal.h"
#include "base/words.h"
#include "redis/slots.h"

struct row {
    struct span word;
    enum refusal_deed deed;
    const char *meaning;
};

static const struct row rows[] = {
#define REFUSAL_ROW(name, what, meaning) {SPAN(#name), REFUSAL_##what, meaning},
    REFUSAL_LIST(REFUSAL_ROW)
#undef REFUSAL_ROW
};

static const struct row *row_find(struct span word);
static bool place_read(struct span text, const struct address *asked, struct refusal *refusal);
static bool script_error_take(struct span *text);
static bool is_before_writes(enum refusal_deed deed);

struct refusal refusal_read(struct span text, const struct address *asked)
{
    struct refusal refusal = {.deed = REFUSAL_FAILED, .word = "ERR", .meaning = "a command failed"};
    bool is_wrapped = script_error_take(&text);
    const struct row *row = row_find(words_take(&text));
    if (row == NULL || (is_wrapped && !is_before_writes(row->deed)))
        return refusal;
    refusal.deed = row->deed;
    refusal.word = row->word.data;
    refusal.meaning = row->meaning;
    bool has_place = row->deed == REFUSAL_FOLLOW || row->deed == REFUSAL_ASK;
    if (has_place && !place_read(text, asked, &refusal))
        refusal.deed = REFUSAL_LOOK;
    return refusal;
}

static const struct row *row_find(struct span word)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (span_equal(rows[i].word, word))
            return &rows[i];
    return NULL;
}

static bool place_read(struct span text, const struct address *asked, struct refusal *refusal)
{
    struct span slot = words_take(&text), place = words_take(&text);
    uint64_t number;
    if (!decimal_read(slot, 0, &number) || number >= SLOTS || words_take(&text).len > 0)
        return false;
    refusal->slot = (uint16_t)number;
    return address_read_told(place, asked, &refusal->address);
}

/* "ERR Error running script (call to f_…): @user_script:1: @user_script: 1: -READONLY You can't …" */
static bool script_error_take(struct span *text)
{
    static const struct span wrap = SPAN("ERR Error running script"), mark = SPAN(": -");
    if (text->len < wrap.len || memcmp(text->data, wrap.data, wrap.len) != 0)
        return false;
    for (size_t i = wrap.len; i + mark.len <= text->len; i++)
        if (memcmp(text->data + i, mark.data, mark.len) == 0) {
            *text = (struct span){text->data + i + mark.len, text->len - i - mark.len};
            return true;
        }
    return false;
}

static bool is_before_writes(enum refusal_deed deed)
{
    return deed == REFUSAL_LOOK || deed == REFUSAL_OPERATOR;
}
