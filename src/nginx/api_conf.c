/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of different systems ask at the same addresses, /api/v1/queue/ above all: so a location may answer several of them at
 * once, and what a request carries says whose it is (family.c).
 */
#include "nginx/api_conf.h"

#include "nginx/api_admin.h"
#include "nginx/api_queue.h"
#include "nginx/family.h"
#include "nginx/health.h"
#include "nginx/jwks.h"
#include "nginx/rooms.h"

#define CONCERT_ROOM "concert"

static bool family_read(struct span word, ngx_uint_t *family);
static char *families_take(ngx_conf_t *cf, struct loc_conf *conf);
static bool go_together(ngx_uint_t families);
static char *concert_room_take(ngx_conf_t *cf, struct loc_conf *conf, ngx_str_t room);
static char *other_take(ngx_conf_t *cf, struct loc_conf *conf);
static char *families_place_check(ngx_conf_t *cf, const struct loc_conf *conf);
static char *admin_place_check(ngx_conf_t *cf);

char *api_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    ngx_uint_t family;
    if (conf->handler != NULL)
        return "stands in a location that has a weir_api, a weir_page or a weir_verify already";
    char *answer =
        family_read(span_of_str(words[1]), &family) ? families_take(cf, conf) : other_take(cf, conf);
    if (answer != NGX_CONF_OK)
        return answer;
    conf->is_api = true;
    struct srv_conf *server = ngx_http_conf_get_module_srv_conf(cf, ngx_http_weir_module);
    server->has_api = true;
    server->has_lobby = server->has_lobby || conf->families & FAMILY_LOBBY;
    conf_note_need(cf);
    return families_place_check(cf, conf);
}

static bool family_read(struct span word, ngx_uint_t *family)
{
    static const struct {
        struct span word;
        ngx_uint_t family;
    } families[] = {
        {SPAN("queue"), FAMILY_QUEUE}, {SPAN("tier2"), FAMILY_TIER2},     {SPAN("lobby"), FAMILY_LOBBY},
        {SPAN("admin"), FAMILY_ADMIN}, {SPAN("concert"), FAMILY_CONCERT},
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (span_equal(families[i].word, word)) {
            *family = families[i].family;
            return true;
        }
    return false;
}

static char *families_take(ngx_conf_t *cf, struct loc_conf *conf)
{
    ngx_str_t *words = cf->args->elts, room = ngx_null_string;
    ngx_uint_t family;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        if (conf_parameter(&words[i], "room=", &room))
            continue;
        if (span_equal(span_of_str(words[i]), SPAN("user_id=trusted"))) {
            conf->trusts_user_id = true;
            continue;
        }
        if (!family_read(span_of_str(words[i]), &family) || conf->families & family)
            return "takes queue, tier2 and concert, each once, or lobby, or admin, or admin lobby; and jwks "
                   "takes tier=1 or tier=2";
        conf->families |= family;
    }
    if (!go_together(conf->families))
        return "takes queue, tier2 and concert together, but lobby and admin alone, or both of these";
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    conf->prefix_len = conf_is_prefix(core) ? core->name.len : 0;
    conf->handler = conf->families == FAMILY_QUEUE   ? api_queue_handler
                    : conf->families == FAMILY_ADMIN ? api_admin_handler
                                                     : family_handler;
    return concert_room_take(cf, conf, room);
}

static bool go_together(ngx_uint_t families)
{
    return (families & ~(FAMILY_QUEUE | FAMILY_TIER2 | FAMILY_CONCERT)) == 0 || families == FAMILY_LOBBY ||
           families == FAMILY_ADMIN || families == (FAMILY_ADMIN | FAMILY_LOBBY);
}

static char *concert_room_take(ngx_conf_t *cf, struct loc_conf *conf, ngx_str_t room)
{
    if (!(conf->families & FAMILY_CONCERT))
        return room.data == NULL && !conf->trusts_user_id
                   ? NGX_CONF_OK
                   : "takes room=NAME and user_id=trusted for concert alone";
    conf->concert_room = room.data != NULL ? room : (ngx_str_t)ngx_string(CONCERT_ROOM);
    return rooms_name_check(cf, conf->concert_room);
}

static char *other_take(ngx_conf_t *cf, struct loc_conf *conf)
{
    ngx_str_t *words = cf->args->elts;
    if (span_equal(span_of_str(words[1]), SPAN("health")))
        conf->handler = health_handler;
    else if (span_equal(span_of_str(words[1]), SPAN("jwks")))
        conf->handler = jwks_handler;
    else
        return "must be queue, tier2, lobby, concert, admin, health or jwks";
    if (cf->args->nelts == 2)
        return NGX_CONF_OK;
    if (cf->args->nelts > 3 || conf->handler != jwks_handler || !jwks_tier_read(&words[2], &conf->jwks_tier))
        return "takes nothing else, but for jwks: tier=1 or tier=2";
    return NGX_CONF_OK;
}

static char *families_place_check(ngx_conf_t *cf, const struct loc_conf *conf)
{
    if (conf->families == FAMILY_ADMIN)
        return admin_place_check(cf);
    return conf->families != 0 ? conf_location_check(cf, "weir_api") : NGX_CONF_OK;
}

static char *admin_place_check(ngx_conf_t *cf)
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    ngx_str_t *words = cf->args->elts;
    if (!conf_is_prefix(core))
        return "admin belongs in a location with a prefix, such as /weir/api/";
    if (conf->admin.what.len == 0)
        conf->admin = conf_mention(cf, words[0]);
    return conf_location_check(cf, "weir_api admin");
}
