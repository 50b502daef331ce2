/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be wrong with a gate is said when the configuration is read. A room that is named in so many words is checked
 * against the configured ones at the end (gate_conf_check), since it may stand further down.
 */
#include "base/ascii.h"
#include "nginx/gate.h"
#include "nginx/gate_count.h"
#include "nginx/rooms.h"

#define FIELD_MAX 64

/* A gate that names a room in so many words, or room=*. */
struct gate_mention {
    struct conf_mention at;
    int tier;
    bool takes_all;
};

static char *gate_parameter(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t word);
static char *gate_room(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t room);
static bool has_numbered_capture(ngx_str_t text);
static char *gate_tier(struct gate_conf *gate, ngx_str_t tier);
static char *gate_page(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t page);
static char *gate_field(struct gate_conf *gate, ngx_str_t field);
static char *gate_finish(ngx_conf_t *cf, struct gate_conf *gate);
static char *rooms_mention(ngx_conf_t *cf, const struct gate_conf *gate);
static char *room_mention(ngx_conf_t *cf, const struct gate_conf *gate, ngx_str_t room, bool takes_all);
static void open_ways_look(ngx_conf_t *cf, struct main_conf *conf, const struct gate_mention *gate);
static uintptr_t page_returned(ngx_conf_t *cf);

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
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        char *answer = gate_parameter(cf, gate, words[i]);
        if (answer != NGX_CONF_OK)
            return answer;
    }
    conf->gate = gate;
    conf_note_need(cf);
    return gate_counts_need(cf) == NGX_OK ? gate_finish(cf, gate) : NGX_CONF_ERROR;
}

static char *gate_parameter(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t word)
{
    ngx_str_t value;
    if (conf_parameter(&word, "room=", &value))
        return gate_room(cf, gate, value);
    if (conf_parameter(&word, "tier=", &value))
        return gate_tier(gate, value);
    if (conf_parameter(&word, "page=", &value))
        return gate_page(cf, gate, value);
    if (conf_parameter(&word, "body=", &value))
        return gate_field(gate, value);
    if (span_equal(span_of_str(word), SPAN("ticket=on"))) {
        gate->takes_tickets = true;
        return NGX_CONF_OK;
    }
    return "knows tier=N, room=NAME, room=$variable, room=*, page=PREFIX, body=FIELD, ticket=on and off";
}

static char *gate_room(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t room)
{
    if (room.len == 0)
        return "needs room=NAME, room=$variable, room=* or off";
    if (gate->room_count == GATE_ROOMS_MAX)
        return "takes no more than 4 rooms";
    if (has_numbered_capture(room))
        return "takes a capture by its name, as of (?<event>[\\w-]+): $1 is that of whichever expression was "
               "tried last, be it on a header";
    ngx_http_compile_complex_value_t compile = {
        .cf = cf, .value = &room, .complex_value = &gate->rooms[gate->room_count]};
    if (ngx_http_compile_complex_value(&compile) != NGX_OK)
        return NGX_CONF_ERROR;
    gate->room_count++;
    return NGX_CONF_OK;
}

static bool has_numbered_capture(ngx_str_t text)
{
    for (size_t i = 0; i + 1 < text.len; i++) {
        size_t at = i + 1 + (text.data[i + 1] == '{');
        if (text.data[i] == '$' && at < text.len && text.data[at] >= '0' && text.data[at] <= '9')
            return true;
    }
    return false;
}

static char *gate_tier(struct gate_conf *gate, ngx_str_t tier)
{
    if (gate->tier != 0)
        return "takes one tier";
    if (tier.len != 1 || (tier.data[0] != '1' && tier.data[0] != '2'))
        return "takes tier=1 or tier=2";
    gate->tier = tier.data[0] - '0';
    return NGX_CONF_OK;
}

static char *gate_page(ngx_conf_t *cf, struct gate_conf *gate, ngx_str_t page)
{
    ngx_http_compile_complex_value_t compile = {.cf = cf, .value = &page, .complex_value = &gate->page};
    if (gate->page.value.data != NULL)
        return "takes one page";
    if (page.len == 0 || ngx_http_compile_complex_value(&compile) != NGX_OK)
        return page.len == 0 ? "takes as page=PREFIX a path" : NGX_CONF_ERROR;
    if (gate->page.lengths == NULL && !(gate_page_is_safe(page) && page.data[page.len - 1] == '/'))
        return "takes as page=PREFIX a path that begins and ends with / and has no more than letters, digits "
               "and - _ . ~ : in it";
    return NGX_CONF_OK;
}

static char *gate_field(struct gate_conf *gate, ngx_str_t field)
{
    if (gate->field.data != NULL)
        return "takes one field of the body";
    if (field.len < 1 || field.len > FIELD_MAX)
        return "takes as body=FIELD a name of 1 to 64 characters";
    gate->field = field;
    return NGX_CONF_OK;
}

static char *gate_finish(ngx_conf_t *cf, struct gate_conf *gate)
{
    if (gate->room_count == 0)
        return "needs room=NAME, room=$variable, room=* or off";
    for (ngx_uint_t i = 0; i < gate->room_count; i++)
        if (span_equal(span_of_str(gate->rooms[i].value), SPAN("*"))) {
            if (gate->room_count > 1)
                return "takes no other room beside room=*";
            gate->room_count = 0;
            return room_mention(cf, gate, gate->rooms[i].value, true);
        }
    if (gate->page.value.data == NULL)
        gate->page.value = (ngx_str_t)ngx_string("/queue/");
    return rooms_mention(cf, gate);
}

static char *rooms_mention(ngx_conf_t *cf, const struct gate_conf *gate)
{
    for (ngx_uint_t i = 0; i < gate->room_count; i++) {
        if (gate->rooms[i].lengths != NULL)
            continue;
        if (rooms_name_check(cf, gate->rooms[i].value) != NGX_CONF_OK ||
            room_mention(cf, gate, gate->rooms[i].value, false) != NGX_CONF_OK)
            return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

static char *room_mention(ngx_conf_t *cf, const struct gate_conf *gate, ngx_str_t room, bool takes_all)
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    struct gate_mention *mention = ngx_array_push(&conf->gates);
    if (mention == NULL)
        return NGX_CONF_ERROR;
    *mention = (struct gate_mention){conf_mention(cf, room), gate->tier, takes_all};
    return NGX_CONF_OK;
}

char *gate_bypass_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    return conf_predicates(cf, &conf->bypass, offsetof(struct loc_conf, bypass), conf);
}

char *gate_when_down_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    static const struct span policies[] = {
        [WHEN_DOWN_CLOSED] = SPAN("closed"),
        [WHEN_DOWN_SIGNED] = SPAN("signed"),
        [WHEN_DOWN_OPEN] = SPAN("open"),
    };
    struct loc_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->when_down != NGX_CONF_UNSET_UINT)
        return "is duplicate";
    for (ngx_uint_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
        if (span_equal(span_of_str(words[1]), policies[i]))
            conf->when_down = i;
    return conf->when_down != NGX_CONF_UNSET_UINT ? NGX_CONF_OK : "must be closed, signed or open";
}

ngx_int_t gate_conf_init(ngx_conf_t *cf, struct main_conf *conf)
{
    return ngx_array_init(&conf->gates, cf->pool, 4, sizeof(struct gate_mention));
}

ngx_int_t gate_conf_check(ngx_conf_t *cf, struct main_conf *conf)
{
    const struct gate_mention *gates = conf->gates.elts;
    for (ngx_uint_t i = 0; i < conf->gates.nelts; i++) {
        const struct conf_mention *at = &gates[i].at;
        if (gates[i].takes_all) {
            open_ways_look(cf, conf, &gates[i]);
            continue;
        }
        const struct settings *room = rooms_settings(conf, at->what);
        if (room == NULL && conf->makes_rooms)
            room = &conf->made_settings;
        if (room != NULL && (int)room->tier >= gates[i].tier)
            continue;
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "\"weir_gate\" in %V:%ui: %s \"%V\"%s", &at->file, at->line,
                      room == NULL ? "there is no room" : "no pass of the room", &at->what,
                      room == NULL ? ": no weir_room names it" : " is of tier 2: its settings say tier=1");
        return NGX_ERROR;
    }
    return NGX_OK;
}

/* Whoever comes to the gate of an open room has its pass, and whoever may make rooms has one of their own. */
static void open_ways_look(ngx_conf_t *cf, struct main_conf *conf, const struct gate_mention *gate)
{
    const struct gate_mention *gates = conf->gates.elts;
    const struct conf_mention *at = &gate->at;
    for (ngx_uint_t i = 0; i < conf->gates.nelts; i++) {
        const struct settings *room = gates[i].takes_all ? NULL : rooms_settings(conf, gates[i].at.what);
        if (room != NULL && room->mode == MODE_OPEN && (int)room->tier >= gate->tier)
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "weir: \"weir_gate room=*\" in %V:%ui takes passes of the room \"%V\", and that is "
                          "open: everybody has one. Give it a lower tier than this gate",
                          &at->file, at->line, &gates[i].at.what);
    }
    if (conf->makes_rooms && (int)conf->made_settings.tier >= gate->tier)
        ngx_log_error(
            NGX_LOG_WARN, cf->log, 0,
            "weir: \"weir_gate room=*\" in %V:%ui takes passes of every room, and with \"weir_rooms "
            "auto\" everybody can make one",
            &at->file, at->line);
}

bool gate_page_is_safe(ngx_str_t page)
{
    if (page.len < 1 || page.len > 256 || page.data[0] != '/')
        return false;
    for (size_t i = 0; i < page.len; i++) {
        u_char c = page.data[i];
        if (c == '\0' || (!ascii_is_alnum((char)c) && ngx_strchr("-_.~:/", c) == NULL))
            return false;
    }
    return page.len < 2 || page.data[1] != '/';
}

/* `return` answers in the rewrite phase, before any gate. A refusal or a redirect gives nothing away; a page does. */
void gate_conf_look(ngx_conf_t *cf)
{
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    uintptr_t status =
        core->noname ? 0 : page_returned(cf); /* an `if` shares the code of the location it stands in */
    if (status > 0)
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "weir: \"return %ui\" in the gated %s \"%V\" answers before the gate is reached: "
                      "everybody sees it",
                      (ngx_uint_t)status, core->name.len > 0 ? "location" : "server", &core->name);
}

/*
 * The status of a `return` that shows something; 0 if there is none. What the rewrite module has compiled is a row of pieces that each
 * begin with the function that runs them, and the row is the first thing in its configuration.
 */
static uintptr_t page_returned(ngx_conf_t *cf)
{
    ngx_http_conf_ctx_t *context = cf->ctx;
    ngx_array_t *codes = NULL;
    for (ngx_uint_t i = 0; cf->cycle->modules[i] != NULL; i++)
        if (ngx_strcmp(cf->cycle->modules[i]->name, "ngx_http_rewrite_module") == 0)
            codes = *(ngx_array_t **)context->loc_conf[cf->cycle->modules[i]->ctx_index];
    if (codes == NULL)
        return 0;
    for (size_t at = 0; at + sizeof(ngx_http_script_return_code_t) <= codes->nelts; at += sizeof(void *)) {
        const ngx_http_script_return_code_t *code =
            (const ngx_http_script_return_code_t *)(void *)((u_char *)codes->elts + at);
        if (code->code == ngx_http_script_return_code && code->status >= NGX_HTTP_OK &&
            code->status < NGX_HTTP_SPECIAL_RESPONSE && code->status != NGX_HTTP_NO_CONTENT)
            return code->status;
    }
    return 0;
}
