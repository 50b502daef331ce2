/* SPDX-License-Identifier: BSD-2-Clause */
/* `GET gate`: how requests fared at the gates, and whether the gates have their engine. */
#include "nginx/admin.h"
#include "nginx/gate_count.h"
#include "nginx/reply.h"
#include "nginx/text.h"

#define GATE_BYTES 1024

enum admin_next gate_counts_begin(ngx_http_request_t *r, struct admin_state *state)
{
    static const struct gate_counts none;
    const struct gate_counts *counts = conf_main(r)->gate_counts;
    ngx_buf_t *body = reply_buffer(r, GATE_BYTES);
    if (body == NULL)
        return admin_tell(r, state, NGX_HTTP_OK, NULL);
    if (counts == NULL) /* there is no gate */
        counts = &none;
    else
        gate_counts_look(r);
    TEXT_ADD(body, "{\"requests\":{");
    for (int i = GATE_UNDECIDED + 1; i < GATE_OUTCOME_COUNT; i++) {
        text_add(body, i > GATE_UNDECIDED + 1 ? SPAN(",\"") : SPAN("\""));
        text_add(body, gate_outcome_word(i));
        text_add_count(body, SPAN("\":"), counts->of[i]);
    }
    TEXT_ADD(body, "},\"engine_is_away\":");
    text_add_flag(body, counts->is_away);
    text_add_count(body, SPAN(",\"engine_went_away\":"), counts->went_away);
    text_add_count(body, SPAN(",\"engine_came_back\":"), counts->came_back);
    TEXT_ADD(body, "}");
    return admin_tell(r, state, NGX_HTTP_OK, body);
}
