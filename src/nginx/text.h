/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_TEXT_H
#define WEIR_NGINX_TEXT_H

/*
 * Writes an answer into one buffer. The caller sizes the buffer for the longest answer; going past its end is a broken
 * invariant.
 */

#include "base/json.h"
#include "base/must.h"
#include "base/span.h"
#include "nginx/conf.h"

static inline void text_add(ngx_buf_t *buffer, struct span text)
{
    must((size_t)(buffer->end - buffer->last) >= text.len);
    buffer->last = ngx_cpymem(buffer->last, text.data, text.len);
}

#define TEXT_ADD(buffer, literal) text_add(buffer, SPAN(literal))

static inline void text_add_number(ngx_buf_t *buffer, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    text_add(buffer, (struct span){digits + at, sizeof(digits) - at});
}

static inline void text_add_flag(ngx_buf_t *buffer, bool is_set)
{
    text_add(buffer, is_set ? SPAN("true") : SPAN("false"));
}

/* `name` is all that stands before the value: `,"position":`. */
static inline void text_add_count(ngx_buf_t *buffer, struct span name, uint64_t count)
{
    text_add(buffer, name);
    text_add_number(buffer, count);
}

/* The inside of a JSON string, of up to twice the text's bytes: UTF-8 without control characters, as settings are. */
static inline void text_add_json(ngx_buf_t *buffer, struct span text)
{
    size_t len = 0;
    must(json_escape(text, (char *)buffer->last, (size_t)(buffer->end - buffer->last), &len));
    buffer->last += len;
}

/*
 * The inside of a JSON string, of up to twice the text's bytes. What cannot stand in a log or on a terminal is replaced by `?`:
 * the text may quote what was sent.
 */
static inline void text_add_message(ngx_buf_t *buffer, struct span message)
{
    for (size_t i = 0; i < message.len; i++) {
        char c = message.data[i];
        if (c == '"' || c == '\\')
            TEXT_ADD(buffer, "\\");
        text_add(buffer, c >= ' ' && c <= '~' ? (struct span){&message.data[i], 1} : SPAN("?"));
    }
}

#endif
