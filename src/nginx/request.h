/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_REQUEST_H
#define WEIR_NGINX_REQUEST_H

/* What we keep with an nginx request: the headers we look at, its id, its query before it was masked, its call. */

#include "base/error.h"
#include "base/span.h"
#include "nginx/body.h"
#include "nginx/call.h"
#include "nginx/conf.h"
#include "nginx/shape.h"

#define REQUEST_COOKIES_MAX 4
#define REQUEST_PASSES_MAX  4
#define REQUEST_ID_MAX      128

/* The headers that were sent, of those that we look at; data NULL: not sent. The first one counts, but where there is a list. */
struct sent {
    struct span request_id, traceparent, idempotency_key, origin, cors_method, accept, fetch_mode, user_token;
    struct span passes[REQUEST_PASSES_MAX]; /* x-queue-entry-token */
    struct span cookies[REQUEST_COOKIES_MAX];
    size_t pass_count, cookie_count;
};

struct queue_state;   /* api_queue.c */
struct family;        /* family.h */
struct admin_state;   /* admin.h */
struct gate;          /* gate_state.h */
struct gate_note;     /* gate_note.h */
struct lobby;         /* lobby.c */
struct breaker_visit; /* breaker_visit.h */

struct request {
    struct sent sent;
    struct span
        id; /* X-Request-ID, or the trace id, or one of our own: safe in a header, in JSON and in a log */
    char made_id[32];
    struct span query;       /* as it was sent */
    struct span path_ticket; /* that the path ended in, where it is masked; data NULL: none */
    bool is_masked;          /* the query is ours, what nginx has of it is masked */
    bool is_answered;        /* the answer is ours */
    ngx_buf_t *envelope;     /* our words instead of nginx's own page */
    struct body body;
    struct call call;
    enum shape shape; /* of errors, once it is known whose request it is */
    struct queue_state *queue;
    struct family *family;
    struct admin_state *admin;
    struct gate *gate;
    struct gate_note *gate_note;
    struct lobby *lobby;
    struct breaker_visit *breaker;
};

/* Made on first use. NULL: out of memory. */
struct request *request_of(ngx_http_request_t *r);

/* The same, or NULL if there is none yet. */
static inline struct request *request_peek(ngx_http_request_t *r)
{
    return ngx_http_get_module_ctx(r, ngx_http_weir_module);
}

/*
 * The cookies of one name, one after the other: a browser sends one for each path and domain that set it, and so a neighbour's
 * junk may stand before ours. False after the last, and after REQUEST_COOKIES_TRIED.
 */
#define REQUEST_COOKIES_TRIED 8
struct cookie_walk {
    size_t line;    /* of sent.cookies */
    const char *at; /* within it; NULL = its beginning */
    int tried;
};
bool request_cookie_next(const struct request *request, struct span name, struct cookie_walk *walk,
                         struct span *value);

/* The same for all cookies whose name begins with `prefix`. */
bool request_cookie_next_of(const struct request *request, struct span prefix, struct cookie_walk *walk,
                            struct span *value);

/* The token of `Authorization: Bearer`; data NULL: there is none. */
struct span request_bearer(ngx_http_request_t *r);

/* What follows the location's name in the URI, if that is one segment; an exact or regex location: the last segment. */
bool request_tail(ngx_http_request_t *r, struct span *tail);

bool request_is_tls(ngx_http_request_t *r);

#endif
