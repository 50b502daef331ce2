/* SPDX-License-Identifier: BSD-2-Clause */
/* Any query string and any path: answers stay within their bounds and agree with each other. */
#include "base/must.h"
#include "base/query.h"
#include "base/room_id.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void query_try(struct span args, struct span name);
static void path_try(struct span uri);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct span input = {(const char *)data, size};
    query_try(input, SPAN("token"));
    query_try(input, SPAN("a b"));
    query_try(input, SPAN(""));
    path_try(input);
    return 0;
}

static void query_try(struct span args, struct span name)
{
    enum { CAP = 16 };
    char *out = malloc(CAP);
    struct span value, raw = SPAN_NONE, last = SPAN_NONE;
    enum error error = query_find(args, name, out, CAP, &value);
    size_t at = 0, found = 0;
    while (query_next(args, name, &at, &raw)) {
        must(raw.data >= args.data && raw.data + raw.len <= args.data + args.len);
        must(found == 0 || raw.data > last.data + last.len);
        last = raw;
        found++;
    }
    must(error == ERROR_NONE || error == ERROR_INVALID_REQUEST);
    must(found != 0 || (error == ERROR_NONE && value.data == NULL));
    must(found < 2 || error == ERROR_INVALID_REQUEST);
    if (error == ERROR_NONE && found == 1) {
        must(value.data == out && value.len <= CAP && value.len <= last.len);
        must(value.len == 0 || memchr(value.data, 0, value.len) == NULL);
    }
    free(out);
}

static void path_try(struct span uri)
{
    struct span tail;
    if (!path_tail(uri, SPAN("/queue/"), &tail))
        return;
    must(tail.len > 0 && tail.data + tail.len == uri.data + uri.len);
    must(tail.len + strlen("/queue/") == uri.len && memchr(tail.data, '/', tail.len) == NULL);
    must(!room_id_is_valid(tail) || tail.len <= ROOM_ID_MAX);
}
