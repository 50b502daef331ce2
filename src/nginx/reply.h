/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_REPLY_H
#define WEIR_NGINX_REPLY_H

/*
 * Answers of the API: JSON, never stored, with X-Request-ID and the CORS headers that are due. Each function sends the whole
 * answer and returns what the handler is to finalize the request with.
 */

#include "base/error.h"
#include "base/span.h"
#include "nginx/conf.h"

/* A buffer in the request's pool; NULL: out of memory. */
ngx_buf_t *reply_buffer(ngx_http_request_t *r, size_t size);

ngx_int_t reply_json(ngx_http_request_t *r, ngx_uint_t status, ngx_buf_t *body);

/* The same for a body in pieces, `bytes` in all. */
ngx_int_t reply_json_pieces(ngx_http_request_t *r, ngx_uint_t status, ngx_chain_t *body, off_t bytes);

/* 200 with these very words. */
ngx_int_t reply_words(ngx_http_request_t *r, struct span words);

/* The head of an answer whose body follows, piece by piece, for as long as it goes on. */
ngx_int_t reply_open(ngx_http_request_t *r, ngx_uint_t status);

/* The same for everybody, and so for caches too: of this type, kept for so many seconds. */
ngx_int_t reply_public(ngx_http_request_t *r, struct span type, uint32_t max_age_sec, ngx_buf_t *body);

/* No body. */
ngx_int_t reply_empty(ngx_http_request_t *r, ngx_uint_t status);

/* The error, in the words of whoever asks (shape.h). `retry_after_sec` 0: as the error itself suggests. */
ngx_int_t reply_error(ngx_http_request_t *r, enum error error, uint32_t retry_after_sec);

/* The same with other words than the error's own. What cannot stand in a log or on a terminal is replaced by `?`. */
ngx_int_t reply_error_saying(ngx_http_request_t *r, enum error error, uint32_t retry_after_sec,
                             struct span message);

/* The same with a place to go to, "redirectTo", unless that is empty. */
ngx_int_t reply_error_with_redirect(ngx_http_request_t *r, enum error error, struct span redirect_to);

/* Only writes it: for an answer that nginx has begun itself. NULL: out of memory. */
ngx_buf_t *reply_envelope(ngx_http_request_t *r, enum error error, uint32_t retry_after_sec,
                          struct span redirect_to);

/* How long to wait before trying again after this error, if waiting helps; else 0. */
uint32_t reply_retry_after(enum error error, uint32_t retry_after_sec);

/* Adds a header to the answer. The value must live as long as the request. */
ngx_int_t reply_header(ngx_http_request_t *r, struct span name, struct span value);
ngx_int_t reply_header_number(ngx_http_request_t *r, struct span name, uint32_t value);

/* What every answer of ours carries, but for a public one: that it is not to be stored. */
ngx_int_t reply_common_headers(ngx_http_request_t *r);

#endif
