/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a room are read by the table in room/settings.h, which also words the refusal; here only the file and the
 * line are added to it.
 */
#include "nginx/rooms.h"

#include "base/room_id.h"

static char *settings_read(ngx_conf_t *cf, ngx_uint_t first, struct settings *settings, struct texts *texts);
static bool change_read(ngx_str_t word, struct setting_change *change);

char *rooms_room_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct main_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (rooms_name_check(cf, words[1]) != NGX_CONF_OK)
        return NGX_CONF_ERROR;
    if (rooms_settings(conf, words[1]) != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "room \"%V\" is configured twice", &words[1]);
        return NGX_CONF_ERROR;
    }
    struct room_conf *room = ngx_array_push(&conf->rooms);
    if (room == NULL)
        return NGX_CONF_ERROR;
    room->name = words[1];
    room->settings = settings_default();
    room->texts = (struct texts){0};
    conf_note_need(cf);
    return settings_read(cf, 2, &room->settings, &room->texts);
}

char *rooms_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct main_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->has_rooms_rule)
        return "is duplicate";
    conf->has_rooms_rule = true;
    conf->makes_rooms = span_equal(span_of_str(words[1]), SPAN("auto"));
    if (conf->makes_rooms)
        return settings_read(cf, 2, &conf->made_settings, &conf->made_texts);
    if (cf->args->nelts > 2 || !span_equal(span_of_str(words[1]), SPAN("listed")))
        return "must be listed, or auto and the settings of the rooms it makes";
    return NGX_CONF_OK;
}

static char *settings_read(ngx_conf_t *cf, ngx_uint_t first, struct settings *settings, struct texts *texts)
{
    ngx_uint_t count = cf->args->nelts - first;
    struct setting_change *changes = ngx_palloc(cf->temp_pool, (count + 1) * sizeof(*changes));
    ngx_str_t *words = (ngx_str_t *)cf->args->elts + first;
    if (changes == NULL)
        return NGX_CONF_ERROR;
    for (ngx_uint_t i = 0; i < count; i++)
        if (!change_read(words[i], &changes[i])) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" is not a setting: write name=value", &words[i]);
            return NGX_CONF_ERROR;
        }
    char reason[256];
    if (settings_apply(settings, texts, changes, count, reason, sizeof(reason)))
        return NGX_CONF_OK;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", reason);
    return NGX_CONF_ERROR;
}

static bool change_read(ngx_str_t word, struct setting_change *change)
{
    u_char *equals = ngx_strlchr(word.data, word.data + word.len, '=');
    if (equals == NULL)
        return false;
    change->name = (struct span){(const char *)word.data, (size_t)(equals - word.data)};
    change->value = (struct span){(const char *)equals + 1, word.len - change->name.len - 1};
    return true;
}

char *rooms_name_check(ngx_conf_t *cf, ngx_str_t name)
{
    if (room_id_is_valid(span_of_str(name)))
        return NGX_CONF_OK;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "room name \"%V\" must be 1 to %d characters of A-Z a-z 0-9 _ . : -", &name,
                       ROOM_ID_MAX);
    return NGX_CONF_ERROR;
}

const struct settings *rooms_settings(const struct main_conf *conf, ngx_str_t name)
{
    const struct room_conf *rooms = conf->rooms.elts;
    for (ngx_uint_t i = 0; i < conf->rooms.nelts; i++)
        if (span_equal(span_of_str(rooms[i].name), span_of_str(name)))
            return &rooms[i].settings;
    return NULL;
}
