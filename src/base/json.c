/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built for one shape of input: a request body of a few short members, most of them wanted. jansson would
 * build a tree of allocations for it, which costs a fifth of a whole join. This reader validates while it
 * walks and hands out parts of the body; only a wanted string with escapes is copied.
 *
 * Names are compared by what they mean (`"\u0061"` is `"a"`), so a member cannot hide behind its spelling.
 * A wanted member says by itself whether it was seen. The other names of all objects open at the moment lie
 * on one small stack: an object's own are those above the mark it took when it began, and it takes them off
 * again when it ends. Recursion is bounded by JSON_DEPTH_MAX.
 *
 * Inside, `false` means: not valid, stop.
 */
#include "base/json.h"

#include "base/must.h"
#include "base/utf8.h"

/* A string as it stands in the body, between its quotes, already validated. */
struct text {
    struct span raw;
    bool has_escape;
};

struct number {
    bool is_negative;
    bool is_whole;      /* no fraction, no exponent */
    uint64_t magnitude; /* of a whole number */
};

struct reader {
    const char *at, *end;
    char *scratch;
    size_t cap;
    struct json_member *members;
    size_t member_count;
    size_t member_next; /* whoever writes the body by our list has this one come next */
    uint64_t seen;      /* one bit a wanted member */
    struct text names[JSON_MEMBERS_MAX];
    unsigned name_count; /* in objects open now */
    unsigned name_total; /* in the whole body */
    unsigned depth;
};

static bool read_body(struct reader *reader);
static bool read_object(struct reader *reader);
static bool read_member(struct reader *reader, unsigned first_name);
static struct json_member *find_wanted(struct reader *reader, const struct text *name);
static bool note_wanted(struct reader *reader, const struct json_member *member);
static bool note_name(struct reader *reader, unsigned first_name, const struct text *name);
static bool read_wanted(struct reader *reader, struct json_member *member);
static bool unescape(struct reader *reader, struct text text, struct span *out);
static bool skip_value(struct reader *reader);
static bool skip_array(struct reader *reader);
static bool read_literal(struct reader *reader, struct span literal);
static bool read_string(struct reader *reader, struct text *text);
static bool read_count(struct reader *reader, uint64_t *number);
static bool read_number(struct reader *reader, struct number *number);
static bool skip_exponent(struct reader *reader);
static bool skip_digits(struct reader *reader, size_t max);
static bool fits_int64(struct span digits, struct number *number);
static void skip_space(struct reader *reader);
static bool next_is(const struct reader *reader, char c);
static bool take(struct reader *reader, char c);
static inline bool text_equal(const struct text *a, const struct text *b);
static bool meaning_equal(struct text a, struct text b);
static size_t unit_decode(struct text text, size_t *at, char out[4]);
static size_t escape_decode(const char *at, const char *end, uint32_t *code);
static bool hex4_decode(const char *at, const char *end, uint32_t *code);
static size_t utf8_encode(uint32_t code, char out[4]);

enum error json_read(struct span body, struct json_member *members, size_t count, char *scratch, size_t cap)
{
    struct reader reader;
    must(count <= 64);
    if (body.len == 0)
        return ERROR_INVALID_REQUEST;
    /* Not an initialiser: that would clear the table of names, for every request. */
    reader.at = body.data;
    reader.end = body.data + body.len;
    reader.scratch = scratch;
    reader.cap = cap;
    reader.members = members;
    reader.member_count = count;
    reader.member_next = 0;
    reader.seen = 0;
    reader.name_count = reader.name_total = reader.depth = 0;
    for (size_t i = 0; i < count; i++) {
        members[i].is_present = false;
        members[i].text = SPAN_NONE;
        members[i].number = 0;
    }
    if (!read_body(&reader))
        return ERROR_INVALID_REQUEST;
    for (size_t i = 0; i < count; i++)
        if (!members[i].is_present && !members[i].is_optional)
            return ERROR_INVALID_REQUEST;
    return ERROR_NONE;
}

bool json_escape(struct span text, char *out, size_t cap, size_t *len)
{
    static const char hex[] = "0123456789abcdef";
    static const char named[32] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    must(*len <= cap);
    size_t written = *len;
    for (size_t at = 0; at < text.len;) {
        uint8_t c = (uint8_t)text.data[at];
        char escape[6] = {'\\', (char)c, '0', '0', hex[c >> 4], hex[c & 15]};
        const char *from = escape;
        size_t size = 2, taken = 1;
        if (c < 0x20) {
            escape[1] = named[c] != 0 ? named[c] : 'u';
            size = named[c] != 0 ? 2 : 6;
        } else if (c != '"' && c != '\\') {
            from = text.data + at;
            size = taken = utf8_length(from, text.data + text.len);
        }
        if (size == 0 || size > cap - written)
            return false;
        memcpy(out + written, from, size);
        written += size;
        at += taken;
    }
    *len = written;
    return true;
}

static bool read_body(struct reader *reader)
{
    skip_space(reader);
    if (!next_is(reader, '{') || !read_object(reader))
        return false;
    skip_space(reader);
    must(reader->depth == 0 && reader->name_count == 0);
    return reader->at == reader->end;
}

static bool read_object(struct reader *reader)
{
    unsigned first_name = reader->name_count;
    if (++reader->depth > JSON_DEPTH_MAX || !take(reader, '{'))
        return false;
    skip_space(reader);
    if (!next_is(reader, '}')) {
        do {
            skip_space(reader);
            if (!read_member(reader, first_name))
                return false;
            skip_space(reader);
        } while (take(reader, ','));
    }
    reader->name_count = first_name;
    reader->depth--;
    return take(reader, '}');
}

static bool read_member(struct reader *reader, unsigned first_name)
{
    struct text name;
    if (!read_string(reader, &name))
        return false;
    struct json_member *member = reader->depth == 1 ? find_wanted(reader, &name) : NULL;
    if (reader->name_total++ == JSON_MEMBERS_MAX)
        return false;
    if (member != NULL ? !note_wanted(reader, member) : !note_name(reader, first_name, &name))
        return false;
    skip_space(reader);
    if (!take(reader, ':'))
        return false;
    skip_space(reader);
    return member != NULL ? read_wanted(reader, member) : skip_value(reader);
}

static struct json_member *find_wanted(struct reader *reader, const struct text *name)
{
    size_t at = reader->member_next;
    for (size_t i = 0; i < reader->member_count; i++, at++) {
        if (at == reader->member_count)
            at = 0;
        if (text_equal(name, &(struct text){reader->members[at].name, false})) {
            reader->member_next = at + 1;
            return &reader->members[at];
        }
    }
    return NULL;
}

/* False if it came before. */
static bool note_wanted(struct reader *reader, const struct json_member *member)
{
    uint64_t bit = 1ULL << (member - reader->members);
    bool is_new = (reader->seen & bit) == 0;
    reader->seen |= bit;
    return is_new;
}

/* False if the object whose names begin at `first_name` has it already. */
static bool note_name(struct reader *reader, unsigned first_name, const struct text *name)
{
    for (unsigned i = first_name; i < reader->name_count; i++)
        if (text_equal(&reader->names[i], name))
            return false;
    reader->names[reader->name_count++] = *name;
    return true;
}

static bool read_wanted(struct reader *reader, struct json_member *member)
{
    if (member->is_optional && next_is(reader, 'n'))
        return read_literal(reader, SPAN("null"));
    member->is_present = true;
    if (member->kind == JSON_NUMBER)
        return read_count(reader, &member->number);
    struct text text;
    return read_string(reader, &text) && unescape(reader, text, &member->text);
}

static bool unescape(struct reader *reader, struct text text, struct span *out)
{
    if (!text.has_escape) {
        *out = text.raw;
        return true;
    }
    size_t at = 0, len = 0;
    char unit[4];
    while (at < text.raw.len) {
        size_t size = unit_decode(text, &at, unit);
        if (size > reader->cap - len)
            return false;
        memcpy(reader->scratch + len, unit, size);
        len += size;
    }
    *out = (struct span){reader->scratch, len};
    reader->scratch += len;
    reader->cap -= len;
    return true;
}

static bool skip_value(struct reader *reader)
{
    struct text text;
    struct number number;
    switch (reader->at < reader->end ? *reader->at : '\0') {
    case '{':
        return read_object(reader);
    case '[':
        return skip_array(reader);
    case '"':
        return read_string(reader, &text);
    case 't':
        return read_literal(reader, SPAN("true"));
    case 'f':
        return read_literal(reader, SPAN("false"));
    case 'n':
        return read_literal(reader, SPAN("null"));
    default:
        return read_number(reader, &number);
    }
}

static bool skip_array(struct reader *reader)
{
    if (++reader->depth > JSON_DEPTH_MAX || !take(reader, '['))
        return false;
    skip_space(reader);
    if (!next_is(reader, ']')) {
        do {
            skip_space(reader);
            if (!skip_value(reader))
                return false;
            skip_space(reader);
        } while (take(reader, ','));
    }
    reader->depth--;
    return take(reader, ']');
}

static bool read_literal(struct reader *reader, struct span literal)
{
    if ((size_t)(reader->end - reader->at) < literal.len ||
        memcmp(reader->at, literal.data, literal.len) != 0)
        return false;
    reader->at += literal.len;
    return true;
}

static bool read_string(struct reader *reader, struct text *text)
{
    uint32_t code;
    if (!take(reader, '"'))
        return false;
    const char *start = reader->at, *at = start, *end = reader->end;
    text->has_escape = false;
    while (at < end && *at != '"') {
        uint8_t c = (uint8_t)*at;
        size_t size;
        if (c == '\\') {
            text->has_escape = true;
            size = escape_decode(at, end, &code);
        } else {
            size = c < 0x20 ? 0 : c < 0x80 ? 1 : utf8_length(at, end);
        }
        if (size == 0)
            return false;
        at += size;
    }
    text->raw = (struct span){start, (size_t)(at - start)};
    reader->at = at;
    return take(reader, '"');
}

static bool read_count(struct reader *reader, uint64_t *number)
{
    struct number seen;
    if (!read_number(reader, &seen) || !seen.is_whole || (seen.is_negative && seen.magnitude > 0))
        return false;
    *number = seen.magnitude;
    return true;
}

static bool read_number(struct reader *reader, struct number *number)
{
    const char *start = reader->at;
    number->is_negative = take(reader, '-');
    struct span digits = {reader->at, 0};
    if (!take(reader, '0') && !skip_digits(reader, JSON_NUMBER_MAX))
        return false;
    digits.len = (size_t)(reader->at - digits.data);
    const char *whole_end = reader->at;
    if (take(reader, '.') && !skip_digits(reader, JSON_NUMBER_MAX))
        return false;
    if ((take(reader, 'e') || take(reader, 'E')) && !skip_exponent(reader))
        return false;
    number->is_whole = reader->at == whole_end;
    if (reader->at - start > JSON_NUMBER_MAX)
        return false;
    return !number->is_whole || fits_int64(digits, number);
}

static bool skip_exponent(struct reader *reader)
{
    if (!take(reader, '+'))
        take(reader, '-');
    return skip_digits(reader, JSON_EXPONENT_MAX);
}

/* One digit or more, at most `max`. */
static bool skip_digits(struct reader *reader, size_t max)
{
    const char *start = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
        reader->at++;
    return reader->at > start && (size_t)(reader->at - start) <= max;
}

/* Whether the whole number fits 64 bits with its sign; sets its magnitude. */
static bool fits_int64(struct span digits, struct number *number)
{
    uint64_t max = (uint64_t)INT64_MAX + (number->is_negative ? 1 : 0);
    number->magnitude = 0;
    for (size_t i = 0; i < digits.len; i++) {
        uint64_t digit = (uint64_t)(digits.data[i] - '0');
        if (number->magnitude > (max - digit) / 10)
            return false;
        number->magnitude = number->magnitude * 10 + digit;
    }
    return true;
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\r' || *reader->at == '\t'))
        reader->at++;
}

static bool next_is(const struct reader *reader, char c)
{
    return reader->at < reader->end && *reader->at == c;
}

static bool take(struct reader *reader, char c)
{
    if (!next_is(reader, c))
        return false;
    reader->at++;
    return true;
}

/* Asked for every pair of names, so what usually tells them apart comes first. */
static inline bool text_equal(const struct text *a, const struct text *b)
{
    if (a->has_escape || b->has_escape)
        return meaning_equal(*a, *b);
    return a->raw.len == b->raw.len &&
           (a->raw.len == 0 || (a->raw.data[0] == b->raw.data[0] && span_equal(a->raw, b->raw)));
}

static bool meaning_equal(struct text a, struct text b)
{
    size_t a_at = 0, b_at = 0;
    while (a_at < a.raw.len && b_at < b.raw.len) {
        char a_unit[4], b_unit[4];
        size_t size = unit_decode(a, &a_at, a_unit);
        if (unit_decode(b, &b_at, b_unit) != size || memcmp(a_unit, b_unit, size) != 0)
            return false;
    }
    return a_at == a.raw.len && b_at == b.raw.len;
}

/*
 * One character, escaped or not, as UTF-8; its bytes. The text is valid: it was read by read_string, or is a
 * plain name.
 */
static size_t unit_decode(struct text text, size_t *at, char out[4])
{
    const char *from = text.raw.data + *at, *end = text.raw.data + text.raw.len;
    uint32_t code = 0;
    bool is_escape = text.has_escape && *from == '\\';
    size_t taken = is_escape ? escape_decode(from, end, &code) : utf8_length(from, end);
    must(taken > 0);
    *at += taken;
    if (is_escape)
        return utf8_encode(code, out);
    memcpy(out, from, taken);
    return taken;
}

/* The escape at `at`, which is a backslash: its characters, 0 if it is not valid. */
static size_t escape_decode(const char *at, const char *end, uint32_t *code)
{
    static const char plain[][2] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'b', '\b'},
                                    {'f', '\f'}, {'n', '\n'},  {'r', '\r'}, {'t', '\t'}};
    if (end - at < 2)
        return 0;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (at[1] == plain[i][0]) {
            *code = (uint32_t)plain[i][1];
            return 2;
        }
    uint32_t low;
    if (at[1] != 'u' || !hex4_decode(at + 2, end, code) || *code == 0)
        return 0;
    if (*code < 0xD800 || *code > 0xDFFF)
        return 6;
    if (*code > 0xDBFF || end - at < 12 || at[6] != '\\' || at[7] != 'u' || !hex4_decode(at + 8, end, &low))
        return 0;
    if (low < 0xDC00 || low > 0xDFFF)
        return 0;
    *code = 0x10000 + ((*code - 0xD800) << 10 | (low - 0xDC00));
    return 12;
}

static bool hex4_decode(const char *at, const char *end, uint32_t *code)
{
    if (end - at < 4)
        return false;
    *code = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        *code = *code << 4 | digit;
    }
    return true;
}

static size_t utf8_encode(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}
