/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line for each change, at `notice`: who, what, before, after. Operators' names, rooms and settings are all of alphabets that
 * cannot break a line; texts stand in quotes, as in JSON, and long ones are cut.
 */
#include "nginx/admin.h"

#include "base/json.h"
#include "base/utf8.h"

#define LINE_BYTES 1536
#define TEXT_BYTES 64 /* of a text, before quotes are escaped */

static u_char *difference_add(u_char *at, u_char *end, const struct setting_info *info,
                              const struct admin_settings *before, const struct admin_settings *after);
static u_char *value_add(u_char *at, u_char *end, const struct setting_info *info,
                         const struct admin_settings *settings);
static bool is_same(const struct setting_info *info, const struct admin_settings *before,
                    const struct admin_settings *after);
static void admin_log(ngx_http_request_t *r, const struct admin_state *state, const char *deed,
                      ngx_str_t what);

void admin_log_settings(ngx_http_request_t *r, const struct admin_state *state, const char *deed,
                        const struct admin_settings *before, const struct admin_settings *after)
{
    u_char line[LINE_BYTES], *at = line, *end = line + sizeof(line);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting_info *info = &setting_list[i];
        if (is_same(info, before, after))
            continue;
        at = ngx_slprintf(at, end, at == line ? "" : ", ");
        at = difference_add(at, end, info, before, after);
    }
    if (at == line)
        at = ngx_slprintf(at, end, "every setting as it was");
    admin_log(r, state, deed, (ngx_str_t){(size_t)(at - line), line});
}

static bool is_same(const struct setting_info *info, const struct admin_settings *before,
                    const struct admin_settings *after)
{
    if (setting_is_text(info))
        return after->texts == NULL ||
               span_equal(setting_text(before->texts, info), setting_text(after->texts, info));
    return setting_value(before->numbers, info) == setting_value(after->numbers, info);
}

static u_char *difference_add(u_char *at, u_char *end, const struct setting_info *info,
                              const struct admin_settings *before, const struct admin_settings *after)
{
    at = ngx_slprintf(at, end, "%s ", info->name);
    at = value_add(at, end, info, before);
    at = ngx_slprintf(at, end, " -> ");
    return value_add(at, end, info, after);
}

static u_char *value_add(u_char *at, u_char *end, const struct setting_info *info,
                         const struct admin_settings *settings)
{
    char memory[SETTING_NUMBER_MAX], escaped[2 * TEXT_BYTES];
    struct span value = setting_written(info, settings->numbers, settings->texts, memory);
    size_t whole = value.len, len = 0;
    if (!setting_is_text(info))
        return ngx_slprintf(at, end, "%*s", value.len, value.data);
    if (whole > TEXT_BYTES)
        for (value.len = 0; value.len + 4 <= TEXT_BYTES;)
            value.len += utf8_length(value.data + value.len, value.data + whole);
    must(json_escape(value, escaped, sizeof(escaped), &len));
    return ngx_slprintf(at, end, "\"%*s\"%s", len, escaped, value.len < whole ? "…" : "");
}

void admin_log_people(ngx_http_request_t *r, const struct admin_state *state, const char *deed,
                      const char *what, const struct figures *after)
{
    static const struct figures nobody;
    u_char line[LINE_BYTES];
    after = after != NULL ? after : &nobody;
    u_char *end =
        ngx_slprintf(line, line + sizeof(line), "%swaiting %uL -> %uL, away %uL -> %uL, inside %uL -> %uL",
                     what, state->before.in_state[TICKET_WAITING], after->in_state[TICKET_WAITING],
                     state->before.in_state[TICKET_AWAY], after->in_state[TICKET_AWAY],
                     admin_inside(&state->before), admin_inside(after));
    admin_log(r, state, deed, (ngx_str_t){(size_t)(end - line), line});
}

void admin_log_ticket(ngx_http_request_t *r, const struct admin_state *state, uint32_t epoch, uint32_t count,
                      struct span was)
{
    u_char line[LINE_BYTES];
    u_char *end = ngx_slprintf(line, line + sizeof(line), "epoch %uD, count %uD, %*s -> done", epoch, count,
                               was.len, was.data);
    admin_log(r, state, "revoked a ticket of", (ngx_str_t){(size_t)(end - line), line});
}

static void admin_log(ngx_http_request_t *r, const struct admin_state *state, const char *deed,
                      ngx_str_t what)
{
    ngx_str_t name = {state->operator_name.len, (u_char *)state->operator_name.data};
    ngx_str_t room = {state->room.len, (u_char *)state->room.data};
    ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0, "weir: admin \"%V\" %s room \"%V\": %V", &name, deed,
                  &room, &what);
}
