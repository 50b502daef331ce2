/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line for each change, at `notice`: who, what, before, after. Operators' names, rooms and settings are all of alphabets that
 * cannot break a line.
 */
#include "nginx/admin.h"

#define LINE_BYTES 1536

static u_char *difference_add(u_char *at, u_char *end, const struct setting_info *info,
                              const struct settings *before, const struct settings *after);
static void admin_log(ngx_http_request_t *r, const struct admin_state *state, const char *deed,
                      ngx_str_t what);

void admin_log_settings(ngx_http_request_t *r, const struct admin_state *state, const char *deed,
                        const struct settings *before, const struct settings *after)
{
    u_char line[LINE_BYTES], *at = line, *end = line + sizeof(line);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting_info *info = &setting_list[i];
        if (setting_value(before, info) == setting_value(after, info))
            continue;
        at = ngx_slprintf(at, end, at == line ? "" : ", ");
        at = difference_add(at, end, info, before, after);
    }
    if (at == line)
        at = ngx_slprintf(at, end, "every setting as it was");
    admin_log(r, state, deed, (ngx_str_t){(size_t)(at - line), line});
}

static u_char *difference_add(u_char *at, u_char *end, const struct setting_info *info,
                              const struct settings *before, const struct settings *after)
{
    char old[32], new[32];
    setting_format(info, setting_value(before, info), old, sizeof(old));
    setting_format(info, setting_value(after, info), new, sizeof(new));
    return ngx_slprintf(at, end, "%s %s -> %s", info->name, old, new);
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
