/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an operator does to a room through the API of a client's own system: settings, calls beyond the pace, a clear. It is the same
 * that the operator's API does, and is logged as such. Settings are put back only if nobody changed them meanwhile, else the
 * change is made again from the new ones.
 */
#include "nginx/admin.h"
#include "nginx/family.h"

#include "base/must.h"

static enum family_next settings_put(ngx_http_request_t *r, struct family *family);
static struct settings settings_of_lobby(void);
static family_step deed_done, deed_tell;
static void deed_log(ngx_http_request_t *r, const struct family *family, const struct engine_call *call);

enum family_next family_deed(ngx_http_request_t *r, struct family *family)
{
    const struct family_deed *deed = family->row->deed;
    struct engine_call *call = admin_call(r);
    bool is_new = call->error == ERROR_ROOM_NOT_FOUND && deed->makes_lobby;
    if (call->error != ERROR_NONE && !is_new)
        return family_refuse(r, family, call->error);
    family->before = is_new ? (struct figures){0} : call->figures;
    family->settings_before = is_new ? settings_of_lobby() : call->settings;
    if (deed->op == ENGINE_PUT)
        return settings_put(r, family);
    if (family->number == 0)
        family->number = call->settings.batch > 0 ? call->settings.batch : 1;
    call->people = family->number;
    return family_ask(r, family, deed->op, deed_done);
}

static enum family_next settings_put(ngx_http_request_t *r, struct family *family)
{
    struct engine_put put = {
        .settings = family->settings_before, .version = family->before.settings_version, .is_from_api = true};
    family->row->deed->change(&put.settings, family);
    admin_call(r)->put = put;
    return family_ask(r, family, ENGINE_PUT, deed_done);
}

static struct settings settings_of_lobby(void)
{
    const struct setting_change preset = {SPAN("preset"), SPAN("lobby")};
    struct settings settings = settings_default();
    char reason[256];
    must(settings_apply(&settings, NULL, &preset, 1, reason, sizeof(reason)));
    return settings;
}

static enum family_next deed_done(ngx_http_request_t *r, struct family *family)
{
    const struct engine_call *call = admin_call(r);
    if (call->error == ERROR_CONFLICT && ++family->tries < ADMIN_TRIES_MAX)
        return family_ask(r, family, ENGINE_FIGURES, family_deed);
    if (call->error != ERROR_NONE)
        return family_refuse(r, family, call->error);
    if (call->op == ENGINE_PUT)
        deed_log(r, family, call);
    return family_ask(r, family, ENGINE_FIGURES, deed_tell);
}

static enum family_next deed_tell(ngx_http_request_t *r, struct family *family)
{
    const struct engine_call *call = admin_call(r);
    if (call->error != ERROR_NONE)
        return family_refuse(r, family, call->error);
    if (family->row->deed->op != ENGINE_PUT)
        deed_log(r, family, call);
    return family_tell(r, family);
}

static void deed_log(ngx_http_request_t *r, const struct family *family, const struct engine_call *call)
{
    const struct admin_state state = {
        .operator_name = family->operator_name, .room = family->room, .before = family->before};
    u_char what[80];
    if (call->op == ENGINE_PUT) {
        admin_log_settings(r, &state, family->before.epoch == 0 ? "made" : "changed",
                           &(struct admin_settings){&family->settings_before, NULL},
                           &(struct admin_settings){&call->put.settings, NULL});
        return;
    }
    *ngx_snprintf(what, sizeof(what) - 1, "asked for %uD, called %uD at once, ", family->number,
                  call->people) = '\0';
    bool is_advance = family->row->deed->op == ENGINE_ADVANCE;
    admin_log_people(r, &state, is_advance ? "advanced" : "cleared", is_advance ? (const char *)what : "",
                     &call->figures);
}
