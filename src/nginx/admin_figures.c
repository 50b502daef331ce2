/* SPDX-License-Identifier: BSD-2-Clause */
/* A room's figures as the operator sees them: in `GET rooms`, in the stream and alone. */
#include "nginx/admin.h"
#include "nginx/reply.h"
#include "nginx/text.h"

static enum admin_next figures_tell(ngx_http_request_t *r, struct admin_state *state);
static void milli_add(ngx_buf_t *body, struct span name, uint64_t milli);
static void count_add(ngx_buf_t *body, struct span name, uint64_t count);
static void word_add(ngx_buf_t *body, struct span name, uint32_t value);
static void text_field_add(ngx_buf_t *body, struct span name, struct span value);

enum admin_next room_figures_begin(ngx_http_request_t *r, struct admin_state *state)
{
    return admin_ask(r, state, ENGINE_FIGURES, figures_tell);
}

static enum admin_next figures_tell(ngx_http_request_t *r, struct admin_state *state)
{
    const struct engine_call *call = admin_call(r);
    if (call->error != ERROR_NONE)
        return admin_refuse(r, state, call->error);
    ngx_buf_t *body = reply_buffer(r, ADMIN_FIGURES_BYTES);
    if (body != NULL)
        admin_figures_add(body, state->room, &call->figures, &call->settings);
    return admin_tell(r, state, NGX_HTTP_OK, body);
}

void admin_figures_add(ngx_buf_t *body, struct span room, const struct figures *figures,
                       const struct settings *settings)
{
    TEXT_ADD(body, "{\"id\":\"");
    text_add(body, room);
    TEXT_ADD(body, "\"");
    word_add(body, SPAN("mode"), settings->mode);
    count_add(body, SPAN("epoch"), figures->epoch);
    count_add(body, SPAN("issued"), figures->issued);
    for (int state = TICKET_WAITING; state <= TICKET_DONE; state++) {
        count_add(body, span_of(ticket_life(state)->name), figures->in_state[state]);
        if (state == TICKET_ACTIVE)
            count_add(body, SPAN("inside"), admin_inside(figures));
    }
    count_add(body, SPAN("max_active"), settings->max_active);
    milli_add(body, SPAN("rate"), figures->rate_milli);
    word_add(body, SPAN("pace"), settings->pace);
    text_field_add(body, SPAN("pace_reason"), span_of(follow_reason_word(figures->pace_reason)));
    count_add(body, SPAN("shop_ms"), figures->shop_time_ms);
    count_add(body, SPAN("shop_target_ms"), figures->shop_target_ms);
    milli_add(body, SPAN("shop_failed_percent"), figures->shop_failed_permille * 100ULL);
    count_add(body, SPAN("calls"), figures->calls);
    count_add(body, SPAN("refunds"), figures->refunds);
    count_add(body, SPAN("last_called"), figures->last_called);
    milli_add(body, SPAN("joined_per_sec"), figures->joined_milli);
    milli_add(body, SPAN("called_per_sec"), figures->called_milli);
    count_add(body, SPAN("eta_sec"), figures->newcomer_eta_sec);
    count_add(body, SPAN("eta_inside_band"), figures->eta_kept);
    count_add(body, SPAN("eta_checked"), figures->eta_checked);
    count_add(body, SPAN("keys_dropped"), figures->keys_dropped);
    TEXT_ADD(body, "}");
}

uint64_t admin_inside(const struct figures *figures)
{
    return figures->in_state[TICKET_CALLED] + figures->in_state[TICKET_ENTERED] +
           figures->in_state[TICKET_ACTIVE];
}

/* A setting whose values are words. */
static void word_add(ngx_buf_t *body, struct span name, uint32_t value)
{
    char word[16];
    setting_format(setting_find(name), value, word, sizeof(word));
    text_field_add(body, name, span_of(word));
}

static void text_field_add(ngx_buf_t *body, struct span name, struct span value)
{
    TEXT_ADD(body, ",\"");
    text_add(body, name);
    TEXT_ADD(body, "\":\"");
    text_add(body, value);
    TEXT_ADD(body, "\"");
}

static void count_add(ngx_buf_t *body, struct span name, uint64_t count)
{
    TEXT_ADD(body, ",\"");
    text_add(body, name);
    text_add_count(body, SPAN("\":"), count);
}

static void milli_add(ngx_buf_t *body, struct span name, uint64_t milli)
{
    u_char decimals[8];
    count_add(body, name, milli / 1000);
    if (milli % 1000 == 0)
        return;
    u_char *end = ngx_sprintf(decimals, ".%03uL", milli % 1000);
    while (end[-1] == '0')
        end--;
    text_add(body, (struct span){(const char *)decimals, (size_t)(end - decimals)});
}
