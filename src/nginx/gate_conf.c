/* SPDX-License-Identifier: BSD-2-Clause */
/* A room that is named in so many words is checked against the configured ones at the end (conf_check). */
#include "base/ascii.h"
#include "nginx/gate.h"
#include "nginx/rooms.h"

static char *gate_parameter(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t word);
static char *gate_room(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t room);
static char *gate_room_mention(ngx_conf_t *cf, ngx_str_t room);
static bool is_path(ngx_str_t text);

char *gate_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->gate != NGX_CONF_UNSET_PTR)
        return "is duplicate";
    conf->gate = NULL;
    if (cf->args->nelts == 2 && span_equal(span_of_str(words[1]), SPAN("off")))
        return NGX_CONF_OK;
    struct gate_conf *gate = ngx_pcalloc(cf->pool, sizeof(*gate));
    if (gate == NULL)
        return NGX_CONF_ERROR;
    ngx_str_set(&gate->page, "/queue/");
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        char *answer = gate_parameter(cf, gate, words[i]);
        if (answer != NGX_CONF_OK)
            return answer;
    }
    if (gate->room.value.data == NULL)
        return "needs room=NAME, room=$variable or off";
    conf->gate = gate;
    conf_note_need(cf);
    return NGX_CONF_OK;
}

static char *gate_parameter(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t word)
{
    ngx_str_t value;
    if (conf_parameter(&word, "room=", &value))
        return gate_room(cf, gate, value);
    if (!conf_parameter(&word, "page=", &value))
        return "knows room=NAME, room=$variable, page=PREFIX and off";
    if (!is_path(value))
        return "takes as page=PREFIX a path that begins and ends with / and has no more than letters, digits "
               "and - _ . ~ in it";
    gate->page = value;
    return NGX_CONF_OK;
}

static char *gate_room(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t room)
{
    ngx_http_compile_complex_value_t compile = {.cf = cf, .value = &room, .complex_value = &gate->room};
    if (room.len == 0)
        return "needs room=NAME, room=$variable or off";
    if (ngx_http_compile_complex_value(&compile) != NGX_OK)
        return NGX_CONF_ERROR;
    return gate->room.lengths == NULL ? gate_room_mention(cf, room) : NGX_CONF_OK;
}

static char *gate_room_mention(ngx_conf_t *cf, ngx_str_t room)
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    if (rooms_name_check(cf, room) != NGX_CONF_OK)
        return NGX_CONF_ERROR;
    struct conf_mention *mention = ngx_array_push(&conf->gates);
    if (mention == NULL)
        return NGX_CONF_ERROR;
    *mention = conf_mention(cf, room);
    return NGX_CONF_OK;
}

/* It goes into a header and into JSON as it is. */
static bool is_path(ngx_str_t text)
{
    if (text.len < 1 || text.len > 256 || text.data[0] != '/' || text.data[text.len - 1] != '/')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        u_char c = text.data[i];
        if (!ascii_is_alnum((char)c) && ngx_strchr("-_.~/", c) == NULL)
            return false;
    }
    return text.len < 2 || text.data[1] != '/';
}
