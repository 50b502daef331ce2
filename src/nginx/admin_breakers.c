/* SPDX-License-Identifier: BSD-2-Clause */
/* `GET breakers`: how each breaker stands, and what it has seen. */
#include "nginx/admin.h"
#include "nginx/breaker.h"
#include "nginx/reply.h"
#include "nginx/text.h"

#define BREAKER_BYTES 640 /* without its name */

static const struct span words[] = {
    [BREAKER_CLOSED] = SPAN("closed"),
    [BREAKER_OPEN] = SPAN("open"),
    [BREAKER_HALF_OPEN] = SPAN("half_open"),
};

static size_t bytes_needed(const ngx_array_t *breakers);
static void breaker_add(ngx_buf_t *body, const struct breaker_conf *conf);
static void counts_add(ngx_buf_t *body, const struct breaker_counts *counts);

enum admin_next breakers_begin(ngx_http_request_t *r, struct admin_state *state)
{
    const ngx_array_t *breakers = &conf_main(r)->breakers;
    struct breaker_conf **list = breakers->elts;
    ngx_buf_t *body = reply_buffer(r, bytes_needed(breakers));
    if (body == NULL)
        return admin_tell(r, state, NGX_HTTP_OK, NULL);
    TEXT_ADD(body, "{\"breakers\":[");
    for (ngx_uint_t i = 0; i < breakers->nelts; i++) {
        if (i > 0)
            TEXT_ADD(body, ",");
        breaker_add(body, list[i]);
    }
    TEXT_ADD(body, "]}");
    return admin_tell(r, state, NGX_HTTP_OK, body);
}

static size_t bytes_needed(const ngx_array_t *breakers)
{
    struct breaker_conf **list = breakers->elts;
    size_t bytes = sizeof("{\"breakers\":[]}");
    for (ngx_uint_t i = 0; i < breakers->nelts; i++)
        bytes += BREAKER_BYTES + 2 * list[i]->upstream.len;
    return bytes;
}

static void breaker_add(ngx_buf_t *body, const struct breaker_conf *conf)
{
    struct breaker breaker = breaker_zone_look(conf);
    uint64_t now_ms = ngx_current_msec > breaker.now_ms ? ngx_current_msec : breaker.now_ms;
    enum breaker_state state = breaker_look(&breaker, now_ms);
    struct breaker_step window = breaker_window(&breaker, now_ms);
    TEXT_ADD(body, "{\"upstream\":\"");
    text_add_message(body, span_of_str(conf->upstream));
    TEXT_ADD(body, "\",\"state\":\"");
    text_add(body, words[state]);
    text_add_count(body, SPAN("\",\"since_sec\":"), (now_ms - breaker.since_ms) / 1000);
    text_add_count(body, SPAN(",\"retry_after\":"),
                   state == BREAKER_OPEN ? (breaker_wait_ms(&breaker, now_ms) + 999) / 1000 : 0);
    text_add_count(body, SPAN(",\"window_requests\":"), window.requests);
    text_add_count(body, SPAN(",\"window_failed\":"), window.failed);
    counts_add(body, &breaker.counts);
    TEXT_ADD(body, "}");
}

static void counts_add(ngx_buf_t *body, const struct breaker_counts *counts)
{
    text_add_count(body, SPAN(",\"requests\":"), counts->requests);
    text_add_count(body, SPAN(",\"failed\":"), counts->failed);
    text_add_count(body, SPAN(",\"aborted\":"), counts->untold);
    text_add_count(body, SPAN(",\"refused\":"), counts->refused);
    text_add_count(body, SPAN(",\"trials\":"), counts->trials);
    text_add_count(body, SPAN(",\"retries\":"), counts->retries);
    text_add_count(body, SPAN(",\"retries_denied\":"), counts->retries_denied);
    text_add_count(body, SPAN(",\"opened\":"), counts->opened);
    text_add_count(body, SPAN(",\"half_opened\":"), counts->half_opened);
    text_add_count(body, SPAN(",\"closed\":"), counts->closed);
}
