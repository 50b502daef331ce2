/* SPDX-License-Identifier: BSD-2-Clause */
/* One list of errors, told in the words that each family of clients knows. */
#include "nginx/shape.h"

#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"

#define SAID_BYTES 1024 /* code and message of the longest row, an id of 128 bytes, a number */

/* What the clients of a concert queue call it. Everything else keeps its status, and its code in small letters. */
static const struct concert_word {
    enum error error;
    ngx_uint_t status;
    struct span code;
} concert_words[] = {
    {ERROR_MISSING_TOKEN, 400, SPAN("invalid_token")},
    {ERROR_TOKEN_NOT_FOUND, 400, SPAN("invalid_token")},
    {ERROR_NOT_READY, 400, SPAN("token_not_processable")},
    {ERROR_ADMISSION_REQUIRED, 400, SPAN("token_not_processable")},
    {ERROR_ROOM_NOT_FOUND, 400, SPAN("queue_not_available")},
    {ERROR_ROOM_CLOSED, 400, SPAN("queue_not_available")},
    {ERROR_QUEUE_FULL, 400, SPAN("queue_not_available")},
    {ERROR_WAIT_TOO_LONG, 400, SPAN("queue_not_available")},
    {ERROR_ENGINE_UNAVAILABLE, 500, SPAN("internal_server_error")},
};

static enum shape shape_of(ngx_http_request_t *r);
static const struct concert_word *concert_word(enum error error);
static void envelope_add(ngx_buf_t *body, const struct shape_said *said, struct span id);
static void flat_add(ngx_buf_t *body, const struct shape_said *said);
static void concert_add(ngx_buf_t *body, const struct shape_said *said);

ngx_uint_t shape_status(ngx_http_request_t *r, enum error error)
{
    const struct concert_word *word = shape_of(r) == SHAPE_CONCERT ? concert_word(error) : NULL;
    return word != NULL ? word->status : (ngx_uint_t)error_info(error)->http_status;
}

static enum shape shape_of(ngx_http_request_t *r)
{
    const struct request *request = request_peek(r);
    ngx_uint_t families = conf_loc(r)->families;
    if (request != NULL && request->shape != SHAPE_OF_LOCATION)
        return request->shape;
    if (families & (FAMILY_QUEUE | FAMILY_TIER2 | FAMILY_LOBBY))
        return families & FAMILY_QUEUE ? SHAPE_ENVELOPE : SHAPE_FLAT;
    return families & FAMILY_CONCERT ? SHAPE_CONCERT : SHAPE_ENVELOPE;
}

static const struct concert_word *concert_word(enum error error)
{
    for (size_t i = 0; i < sizeof(concert_words) / sizeof(concert_words[0]); i++)
        if (concert_words[i].error == error)
            return &concert_words[i];
    return NULL;
}

ngx_buf_t *shape_write(ngx_http_request_t *r, const struct shape_said *said)
{
    struct request *request = request_of(r);
    size_t size = SAID_BYTES + 2 * said->message.len + said->redirect_to.len;
    ngx_buf_t *body = request != NULL ? reply_buffer(r, size) : NULL;
    if (body == NULL)
        return NULL;
    TEXT_ADD(body, "{\"error\":");
    switch (shape_of(r)) {
    case SHAPE_FLAT:
        flat_add(body, said);
        break;
    case SHAPE_CONCERT:
        concert_add(body, said);
        break;
    default:
        envelope_add(body, said, request->id);
    }
    if (said->redirect_to.len > 0) {
        TEXT_ADD(body, ",\"redirectTo\":\"");
        text_add(body, said->redirect_to);
        TEXT_ADD(body, "\"");
    }
    TEXT_ADD(body, "}");
    return body;
}

static void envelope_add(ngx_buf_t *body, const struct shape_said *said, struct span id)
{
    TEXT_ADD(body, "{\"code\":\"");
    text_add(body, span_of(error_info(said->error)->code));
    TEXT_ADD(body, "\",\"message\":\"");
    text_add_message(body, said->message);
    TEXT_ADD(body, "\",\"trace_id\":\"");
    text_add(body, id);
    TEXT_ADD(body, "\"");
    if (said->retry_after_sec > 0)
        text_add_count(body, SPAN(",\"retry_after\":"), said->retry_after_sec);
    TEXT_ADD(body, "}");
}

static void flat_add(ngx_buf_t *body, const struct shape_said *said)
{
    TEXT_ADD(body, "\"");
    text_add_message(body, said->message);
    TEXT_ADD(body, "\"");
}

static void concert_add(ngx_buf_t *body, const struct shape_said *said)
{
    const struct concert_word *word = concert_word(said->error);
    const char *code = error_info(said->error)->code;
    TEXT_ADD(body, "{\"code\":\"");
    if (word != NULL)
        text_add(body, word->code);
    for (; word == NULL && *code != '\0'; code++)
        text_add(body, (struct span){(const char[]){(char)ngx_tolower(*code)}, 1});
    TEXT_ADD(body, "\",\"message\":\"");
    text_add_message(body, said->message);
    TEXT_ADD(body, "\"}");
}
