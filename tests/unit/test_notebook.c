/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker knows of rooms: a table that forgets. */
#include "rig.h"

#include "redis/notebook.h"

#include <stdio.h>
#include <string.h>

enum { SIZE = 40, NAMES = 200 };

static struct span name_of(uint32_t i)
{
    static char text[16];

    snprintf(text, sizeof(text), "room-%u", i);
    return span_of(text);
}

static void expect_each_name_once(const struct notebook *notebook)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < NAMES; i++)
        found += notebook_find(notebook, name_of(i)) != NULL;
    assert_int_equal(found, notebook_count(notebook));
    for (uint32_t i = 0; i < notebook_count(notebook); i++) {
        struct note *note = notebook_at(notebook, i);
        assert_ptr_equal(notebook_find(notebook, note_name(note)), note);
    }
}

static void notes_are_found_and_give_way_to_others_while_nothing_is_under_way(void **state)
{
    struct notebook *notebook = notebook_new(SIZE);
    struct dice dice = {7};
    bool is_used[NAMES] = {false};
    (void)state;

    assert_non_null(notebook);
    for (int step = 0; step < 20000; step++) {
        uint32_t i = dice_below(&dice, NAMES);
        struct note *note = notebook_open(notebook, name_of(i));
        assert_true(note != NULL || notebook_count(notebook) == SIZE);
        if (note == NULL) {
            assert_false(is_used[i]);
            continue;
        }
        assert_true(span_equal(note_name(note), name_of(i)));
        assert_int_equal(note->is_awake, is_used[i]); /* its own still, or a new one */
        note->is_awake = is_used[i] = dice_below(&dice, 3) == 0;
        note->epochs.len = dice_below(&dice, 2);
        if (step % 100 == 0)
            expect_each_name_once(notebook);
    }
    assert_int_equal(notebook_count(notebook), SIZE);
    notebook_free(notebook);
}

static void rooms_that_never_were_give_way_first(void **state)
{
    struct notebook *notebook = notebook_new(4);
    (void)state;

    for (uint32_t i = 0; i < 4; i++)
        notebook_open(notebook, name_of(i))->epochs.len = i == 2 ? 0 : 12;
    for (uint32_t i = 4; i < 40; i++)
        assert_non_null(notebook_open(notebook, name_of(i)));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(notebook_find(notebook, name_of(i)) != NULL, i != 2);
    notebook_free(notebook);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_are_found_and_give_way_to_others_while_nothing_is_under_way),
        cmocka_unit_test(rooms_that_never_were_give_way_first),
    };
    return cmocka_run_group_tests_name("notebook", tests, NULL, NULL);
}
