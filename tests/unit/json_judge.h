/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_JSON_JUDGE_H
#define WEIR_TESTS_JSON_JUDGE_H

/*
 * jansson as the judge of our JSON reader, for the unit test and for the fuzzer: both must take or refuse the
 * same bodies and see the same values in them, but for what json.h states as limits.
 */

#include "base/json.h"

#include <jansson.h>
#include <string.h>

/* Counts what the limits are about, in jansson's tree. */
static inline void judge_measure(json_t *value, unsigned depth, unsigned *deepest, unsigned *members)
{
    const char *name;
    json_t *child;
    size_t i;
    if (!json_is_object(value) && !json_is_array(value))
        return;
    if (depth > *deepest)
        *deepest = depth;
    json_object_foreach (value, name, child) {
        ++*members;
        judge_measure(child, depth + 1, deepest, members);
    }
    json_array_foreach (value, i, child) {
        judge_measure(child, depth + 1, deepest, members);
    }
}

/* Whether some run of characters could be a number over the limits: its text is not in jansson's tree. */
static inline bool judge_sees_long_number(struct span body)
{
    size_t run = 0, exponent = 0;
    bool is_in_exponent = false;
    for (size_t i = 0; i < body.len; i++) {
        char c = body.data[i];
        run = c != 0 && strchr("0123456789+-.eE", c) != NULL ? run + 1 : 0;
        is_in_exponent = c == 'e' || c == 'E' || (is_in_exponent && run > 0);
        exponent = is_in_exponent && c >= '0' && c <= '9' ? exponent + 1 : 0;
        if (run > JSON_NUMBER_MAX || exponent > JSON_EXPONENT_MAX)
            return true;
    }
    return false;
}

/* What jansson has under the name of this member, NULL if nothing that counts. */
static inline const json_t *judge_value(const json_t *root, const struct json_member *member)
{
    const json_t *value = json_object_getn(root, member->name.data, member->name.len);
    return value != NULL && json_is_null(value) && member->is_optional ? NULL : value;
}

static inline bool judge_takes_member(const json_t *root, const struct json_member *member)
{
    const json_t *value = judge_value(root, member);
    if (value == NULL)
        return member->is_optional;
    return member->kind == JSON_TEXT ? json_is_string(value)
                                     : json_is_integer(value) && json_integer_value(value) >= 0;
}

static inline bool judge_sees_same(const json_t *root, const struct json_member *member)
{
    const json_t *value = judge_value(root, member);
    if (value == NULL || !member->is_present)
        return value == NULL && !member->is_present;
    if (member->kind == JSON_NUMBER)
        return member->number == (uint64_t)json_integer_value(value);
    return span_equal(member->text, (struct span){json_string_value(value), json_string_length(value)});
}

static inline const char *judge_compare(struct span body, const struct json_member *members, size_t count,
                                        bool is_taken, json_t *root)
{
    unsigned depth = 0, total = 0;
    /* A NUL byte is never JSON, but jansson 2.14 loses one right behind a number or a literal. */
    bool has_nul = body.len > 0 && memchr(body.data, 0, body.len) != NULL;
    bool is_expected = json_is_object(root) && !has_nul;
    for (size_t i = 0; i < count && is_expected; i++)
        is_expected = judge_takes_member(root, &members[i]);
    if (root != NULL)
        judge_measure(root, 1, &depth, &total);
    is_expected = is_expected && depth <= JSON_DEPTH_MAX && total <= JSON_MEMBERS_MAX;
    if (is_taken && !is_expected)
        return "taken, but jansson refuses it or it is over a limit";
    if (!is_taken && is_expected && !judge_sees_long_number(body))
        return "refused, but jansson takes it";
    for (size_t i = 0; i < count && is_taken; i++)
        if (!judge_sees_same(root, &members[i]))
            return "a value differs from jansson's";
    return NULL;
}

/*
 * NULL if jansson agrees with json_read() having taken this body or not, with the answers in `members`; else
 * how they differ. The scratch buffer must have been large enough.
 */
static inline const char *json_judge(struct span body, const struct json_member *members, size_t count,
                                     bool is_taken)
{
    json_t *root = json_loadb(body.len > 0 ? body.data : "", body.len, JSON_REJECT_DUPLICATES, NULL);
    const char *difference = judge_compare(body, members, count, is_taken, root);
    json_decref(root);
    return difference;
}

#endif
