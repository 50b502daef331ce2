/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_TEXT_H
#define WEIR_NGINX_TEXT_H

/*
 * Writes an answer into one buffer. The caller sizes the buffer for the longest answer; going past its end is a broken
 * invariant.
 */

#include "base/must.h"
#include "base/span.h"
#include "nginx/conf.h"

static inline void text_add(ngx_buf_t *buffer, struct span text)
{
    must((size_t)(buffer->end - buffer->last) >= text.len);
    buffer->last = ngx_cpymem(buffer->last, text.data, text.len);
}

#define TEXT_ADD(buffer, literal) text_add(buffer, SPAN(literal))

static inline void text_add_number(ngx_buf_t *buffer, uint32_t number)
{
    char digits[10];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    text_add(buffer, (struct span){digits + at, sizeof(digits) - at});
}

#endif
