/* SPDX-License-Identifier: BSD-2-Clause */
/* Any body: the reader of flat objects agrees with jansson on it, and what it takes it can write again. */
#include "../unit/json_judge.h"
#include "base/json.h"
#include "base/must.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_written_again(struct span text);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_member members[] = {
        {.name = SPAN("event_id"), .kind = JSON_TEXT, .is_optional = true},
        {.name = SPAN("user_id"), .kind = JSON_TEXT, .is_optional = true},
        {.name = SPAN("count"), .kind = JSON_NUMBER, .is_optional = true},
    };
    const size_t count = sizeof(members) / sizeof(members[0]);
    const struct span body = {(const char *)data, size};
    char *scratch = malloc(size + 1);
    bool is_taken = json_read(body, members, count, scratch, size) == ERROR_NONE;
    must(json_judge(body, members, count, is_taken) == NULL);
    if (is_taken) {
        expect_written_again(members[0].text);
        expect_written_again(members[1].text);
    }
    free(scratch);
    return 0;
}

static void expect_written_again(struct span text)
{
    struct json_member member = {.name = SPAN("a"), .kind = JSON_TEXT};
    const size_t cap = 6 * text.len + sizeof("{\"a\":\"\"}");
    char *body = malloc(cap), *scratch = malloc(text.len + 1);
    size_t len = sizeof("{\"a\":\"") - 1;
    memcpy(body, "{\"a\":\"", len);
    must(json_escape(text, body, cap, &len));
    memcpy(body + len, "\"}", 2);
    must(json_read((struct span){body, len + 2}, &member, 1, scratch, text.len) == ERROR_NONE);
    must(span_equal(member.text, text));
    free(scratch);
    free(body);
}
