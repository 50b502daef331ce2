/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nginx's ngx_http_arg() compares raw names without case and takes the first match: `token=A&%74oken=B` would
 * then be one thing to us and another to whoever reads the log. Here a name means what it decodes to, and
 * twice is an error.
 */
#include "base/query.h"

#include "base/must.h"

#include <stdint.h>

static struct span param_at(struct span args, size_t at);
static bool name_matches(struct span raw, struct span name);
static enum error decode(struct span raw, char *out, size_t cap, struct span *value);
static bool is_plain(struct span raw);
static int decode_next(struct span raw, size_t *at);
static int hex_value(char c);

#define DECODE_BAD (-1)

enum error query_find(struct span args, struct span name, char *out, size_t cap, struct span *value)
{
    size_t at = 0;
    struct span raw, other;
    must(out != NULL);
    *value = SPAN_NONE;
    if (!query_next(args, name, &at, &raw))
        return ERROR_NONE;
    if (query_next(args, name, &at, &other))
        return ERROR_INVALID_REQUEST;
    return decode(raw, out, cap, value);
}

bool query_next(struct span args, struct span name, size_t *at, struct span *raw)
{
    while (*at < args.len) {
        struct span param = param_at(args, *at);
        *at += param.len + 1;
        const char *equals = memchr(param.data, '=', param.len);
        size_t name_len = equals != NULL ? (size_t)(equals - param.data) : param.len;
        if (!name_matches((struct span){param.data, name_len}, name))
            continue;
        size_t skip = equals != NULL ? name_len + 1 : name_len;
        *raw = (struct span){param.data + skip, param.len - skip};
        return true;
    }
    return false;
}

bool path_tail(struct span uri, struct span prefix, struct span *tail)
{
    must(prefix.len > 0 && prefix.data[prefix.len - 1] == '/');
    if (uri.len <= prefix.len || memcmp(uri.data, prefix.data, prefix.len) != 0)
        return false;
    *tail = (struct span){uri.data + prefix.len, uri.len - prefix.len};
    return memchr(tail->data, '/', tail->len) == NULL;
}

/* The parameter that starts at `at`, up to the next '&' or the end. */
static struct span param_at(struct span args, size_t at)
{
    const char *start = args.data + at;
    const char *end = memchr(start, '&', args.len - at);
    return (struct span){start, end != NULL ? (size_t)(end - start) : args.len - at};
}

static bool name_matches(struct span raw, struct span name)
{
    size_t at = 0;
    for (size_t i = 0; i < name.len; i++)
        if (at == raw.len || decode_next(raw, &at) != (uint8_t)name.data[i])
            return false;
    return at == raw.len;
}

static enum error decode(struct span raw, char *out, size_t cap, struct span *value)
{
    if (is_plain(raw) && raw.len <= cap) {
        memcpy(out, raw.data, raw.len);
        *value = (struct span){out, raw.len};
        return ERROR_NONE;
    }
    size_t len = 0, at = 0;
    while (at < raw.len) {
        int byte = decode_next(raw, &at);
        if (byte == DECODE_BAD || byte == 0 || len == cap)
            return ERROR_INVALID_REQUEST;
        out[len++] = (char)byte;
    }
    *value = (struct span){out, len};
    return ERROR_NONE;
}

/* Whether it decodes to itself. Tokens do, and are long: three searches are a tenth of a walk byte by byte. */
static bool is_plain(struct span raw)
{
    return raw.len > 0 && memchr(raw.data, '%', raw.len) == NULL && memchr(raw.data, '+', raw.len) == NULL &&
           memchr(raw.data, '\0', raw.len) == NULL;
}

/* One decoded byte from `*at`, which must be inside; DECODE_BAD for a '%' without two hexadecimal digits. */
static int decode_next(struct span raw, size_t *at)
{
    char c = raw.data[(*at)++];
    if (c == '+')
        return ' ';
    if (c != '%')
        return (uint8_t)c;
    if (raw.len - *at < 2)
        return DECODE_BAD;
    int high = hex_value(raw.data[*at]), low = hex_value(raw.data[*at + 1]);
    if (high < 0 || low < 0)
        return DECODE_BAD;
    *at += 2;
    return high << 4 | low;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}
