/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Keys lie in pages in the order they came and carry running numbers; a map leads from a key to its number. Numbers begin
 * at 1 and wrap after four billion, long after the keys they belonged to are gone; 0 is skipped because the map means "none"
 * by it.
 */

#include "room/keys.h"

#include "base/must.h"

#include <stddef.h>

_Static_assert(sizeof(struct key) == 32, "128 keys fill a page");

static struct key *key_at(const struct keys *keys, const struct memory *memory, uint32_t number)
{
    struct key *page = memory_page(memory, keys->page[number / KEYS_ON_PAGE % KEYS_PAGES]);

    return &page[number % KEYS_ON_PAGE];
}

struct lookup {
    const struct keys *keys;
    const struct memory *memory;
};

static const struct holder *scope_of(const void *owner, uint32_t number)
{
    const struct lookup *lookup = owner;

    return &key_at(lookup->keys, lookup->memory, number)->scope;
}

static bool is_empty(const struct keys *keys)
{
    return keys->by_scope.entries == 0;
}

static uint32_t number_after(uint32_t number)
{
    return number == UINT32_MAX ? 1 : number + 1;
}

void keys_init(struct keys *keys)
{
    *keys = (struct keys){.first = 1, .last = 0};
}

struct key *keys_find(const struct keys *keys, struct memory *memory, const struct holder *scope)
{
    struct lookup lookup = {keys, memory};
    struct map_owner owner = {memory, scope_of, &lookup};
    uint32_t number = map_find(&keys->by_scope, &owner, scope);

    return number == MAP_NONE ? NULL : key_at(keys, memory, number);
}

bool keys_add(struct keys *keys, struct memory *memory, const struct key *key)
{
    struct lookup lookup = {keys, memory};
    struct map_owner owner = {memory, scope_of, &lookup};
    uint32_t number = number_after(keys->last);
    page_ref *page = &keys->page[number / KEYS_ON_PAGE % KEYS_PAGES];

    must(keys->by_scope.entries < KEYS_MAX);
    if (*page == 0) {
        page_ref fresh = memory_take(memory);
        if (fresh == 0)
            return false;
        memory_set(memory, *page, fresh);
    }
    memory_set(memory, *key_at(keys, memory, number), *key);
    memory_set(memory, keys->last, number);
    return map_add(&keys->by_scope, &owner, &key->scope, number);
}

const struct key *keys_next(const struct keys *keys, const struct memory *memory, uint32_t *number)
{
    if (is_empty(keys))
        return NULL;
    if (*number == 0 || (int32_t)(*number - keys->first) < 0)
        *number = keys->first;
    if ((int32_t)(keys->last - *number) < 0)
        return NULL;
    const struct key *key = key_at(keys, memory, *number);
    *number = number_after(*number);
    return key;
}

bool keys_forget(struct keys *keys, struct memory *memory, uint32_t now)
{
    struct lookup lookup = {keys, memory};
    struct map_owner owner = {memory, scope_of, &lookup};
    uint32_t number = keys->first;

    if (is_empty(keys))
        return false;
    const struct key *key = key_at(keys, memory, number);
    bool is_over = key_is_over(key, now);
    if (!is_over && keys->by_scope.entries < KEYS_MAX)
        return false;
    if (!is_over)
        memory_set(memory, keys->dropped, keys->dropped + 1);

    map_remove(&keys->by_scope, &owner, &key->scope, number);
    memory_set(memory, keys->first, number_after(number));
    page_ref *page = &keys->page[number / KEYS_ON_PAGE % KEYS_PAGES];
    if (is_empty(keys) || number / KEYS_ON_PAGE != keys->first / KEYS_ON_PAGE) {
        memory_free(memory, *page);
        memory_set(memory, *page, 0);
    }
    return true;
}

uint32_t keys_pages(const struct keys *keys)
{
    uint32_t pages = map_pages(&keys->by_scope);

    for (int i = 0; i < KEYS_PAGES; i++)
        pages += keys->page[i] != 0;
    return pages;
}

uint32_t keys_check(const struct keys *keys, struct memory *memory)
{
    uint32_t number = keys->first;

    for (uint32_t i = 0; i < keys->by_scope.entries; i++, number = number_after(number)) {
        must(keys->page[number / KEYS_ON_PAGE % KEYS_PAGES] != 0);
        const struct key *key = key_at(keys, memory, number);
        must(keys_find(keys, memory, &key->scope) == key);
    }
    must(number == number_after(keys->last));
    return keys_pages(keys);
}
