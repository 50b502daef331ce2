/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration that only makes sense as a whole is checked at its end (conf_check), where nginx -t sees it too: an API
 * without a zone is refused when it is written, not when the first visitor comes.
 *
 * In the locations of the API two settings of nginx's own are overruled while they are merged. client_max_body_size would
 * answer a large body before a location's handlers run, with an HTML page and with the token in the error log; so it is
 * switched off there and the body reader keeps its own limit. Buffers for large headers grow to 16 KiB for such a server:
 * a token of 10,000 characters is a wrong token like any other, and gets that answer.
 */
#include "nginx/conf.h"

#include "nginx/api_admin.h"
#include "nginx/body.h"
#include "nginx/gate.h"
#include "nginx/page.h"
#include "nginx/pass_conf.h"
#include "nginx/store.h"
#include "nginx/store_conf.h"

#define HEADER_BYTES_MIN (16 * 1024)

static void conf_install(ngx_conf_t *cf, struct loc_conf *conf);
static void api_relax(ngx_conf_t *cf, ngx_http_core_loc_conf_t *core);
static ngx_int_t keeper_check(ngx_conf_t *cf, struct main_conf *conf);

void *conf_create_main(ngx_conf_t *cf)
{
    struct main_conf *conf = ngx_pcalloc(cf->pool, sizeof(*conf));
    if (conf == NULL || ngx_array_init(&conf->rooms, cf->pool, 4, sizeof(struct room_conf)) != NGX_OK ||
        ngx_array_init(&conf->breakers, cf->pool, 4, sizeof(struct breaker_conf *)) != NGX_OK ||
        gate_conf_init(cf, conf) != NGX_OK)
        return NULL;
    conf->real_peer = NGX_ERROR;
    conf->made_settings = settings_default();
    return conf;
}

void *conf_create_srv(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(struct srv_conf));
}

void *conf_create_loc(ngx_conf_t *cf)
{
    struct loc_conf *conf = ngx_pcalloc(cf->pool, sizeof(*conf));
    if (conf == NULL)
        return NULL;
    conf->identity = NGX_CONF_UNSET_PTR;
    conf->origins = NGX_CONF_UNSET_PTR;
    conf->gate = NGX_CONF_UNSET_PTR;
    conf->bypass = NGX_CONF_UNSET_PTR;
    conf->admins = NGX_CONF_UNSET_PTR;
    conf->when_down = NGX_CONF_UNSET_UINT;
    conf->idempotency = NGX_CONF_UNSET_UINT;
    return conf;
}

char *conf_merge_loc(ngx_conf_t *cf, void *parent, void *child)
{
    struct loc_conf *above = parent, *conf = child;
    ngx_conf_merge_ptr_value(conf->identity, above->identity, NULL);
    ngx_conf_merge_ptr_value(conf->origins, above->origins, NULL);
    ngx_conf_merge_ptr_value(conf->gate, above->gate, NULL);
    ngx_conf_merge_ptr_value(conf->bypass, above->bypass, NULL);
    ngx_conf_merge_ptr_value(conf->admins, above->admins, NULL);
    ngx_conf_merge_uint_value(conf->when_down, above->when_down, WHEN_DOWN_SIGNED);
    ngx_conf_merge_str_value(conf->lobby, above->lobby, "");
    ngx_conf_merge_uint_value(conf->idempotency, above->idempotency, IDEMPOTENCY_OPTIONAL);
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    if (conf->handler == NULL && core->noname) { /* an `if` block is the location it stands in */
        conf->handler = above->handler;
        conf->verify = above->verify;
        conf->is_api = above->is_api;
        conf->families = above->families;
        conf->prefix_len = above->prefix_len;
        conf->concert_room = above->concert_room;
        conf->trusts_user_id = above->trusts_user_id;
        conf->page = above->page;
        conf->jwks_tier = above->jwks_tier;
    }
    if (conf->handler == api_admin_handler ||
        conf->families & FAMILY_ADMIN) /* no other site's page has any business there */
        conf->origins = NULL;
    if (conf->gate != NULL) {
        struct srv_conf *server = ngx_http_conf_get_module_srv_conf(cf, ngx_http_weir_module);
        server->has_gate = true;
        gate_conf_look(cf);
    }
    if (conf->families & FAMILY_TIER2 && conf->identity == NULL)
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "weir: \"weir_api tier2\" in the location \"%V\" tells everybody to sign in: there is "
                      "no weir_user",
                      &core->name);
    conf_install(cf, conf);
    return NGX_CONF_OK;
}

static void conf_install(ngx_conf_t *cf, struct loc_conf *conf)
{
    if (conf->handler == NULL)
        return;
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    core->handler = conf->handler;
    if (conf->is_api)
        api_relax(cf, core);
}

static void api_relax(ngx_conf_t *cf, ngx_http_core_loc_conf_t *core)
{
    core->client_max_body_size = 0;
    if (core->client_body_buffer_size < BODY_MAX)
        core->client_body_buffer_size = BODY_MAX;
    ngx_http_core_srv_conf_t *server = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    if (server->large_client_header_buffers.size < HEADER_BYTES_MIN)
        server->large_client_header_buffers.size = HEADER_BYTES_MIN;
}

char *conf_idempotency_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->idempotency != NGX_CONF_UNSET_UINT)
        return "is duplicate";
    if (span_equal(span_of_str(words[1]), SPAN("required")))
        conf->idempotency = IDEMPOTENCY_REQUIRED;
    else if (span_equal(span_of_str(words[1]), SPAN("optional")))
        conf->idempotency = IDEMPOTENCY_OPTIONAL;
    else
        return "must be optional or required";
    return NGX_CONF_OK;
}

char *conf_page_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    if (conf->handler != NULL)
        return "stands in a location that has a weir_api, a weir_page or a weir_verify already";
    ngx_str_t *words = cf->args->elts;
    if (cf->args->nelts == 2 && !page_contract_find(span_of_str(words[1]), &conf->page))
        return "speaks queue, lobby or tier2";
    conf->handler = page_handler;
    conf_note_need(cf);
    return conf_location_check(cf, "weir_page");
}

/* What follows the location's name is one segment of the path; without the slash it would be half a word. */
char *conf_location_check(ngx_conf_t *cf, const char *directive)
{
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    if (!conf_is_prefix(core))
        return NGX_CONF_OK;
    if (core->name.len > 0 && core->name.data[core->name.len - 1] == '/')
        return NGX_CONF_OK;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%s\" belongs in a location whose name ends in \"/\", and \"%V\" does not",
                       directive, &core->name);
    return NGX_CONF_ERROR;
}

void conf_note_need(ngx_conf_t *cf)
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    ngx_str_t *words = cf->args->elts;
    if (conf->need.what.len == 0)
        conf->need = conf_mention(cf, words[0]);
}

struct conf_mention conf_mention(ngx_conf_t *cf, ngx_str_t what)
{
    return (struct conf_mention){what, cf->conf_file->file.name, cf->conf_file->line};
}

ngx_int_t conf_check(ngx_conf_t *cf)
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    const struct conf_mention *need = &conf->need;
    if (pass_conf_finish(cf) != NGX_OK)
        return NGX_ERROR;
    if (keeper_check(cf, conf) != NGX_OK)
        return NGX_ERROR;
    if (need->what.len == 0)
        return NGX_OK;
    bool has_keeper = conf->shm != NULL || conf->store != NULL;
    if (!has_keeper || conf->keys == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "\"%V\" in %V:%ui needs a %s in the http block", &need->what,
                      &need->file, need->line,
                      has_keeper ? "\"weir_secret_file\"" : "\"weir_zone\" or a \"weir_store\"");
        return NGX_ERROR;
    }
    if (conf->rooms.nelts > conf->rooms_max) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "%ui rooms are configured and %s has place for %uD: say rooms=%ui", conf->rooms.nelts,
                      conf->store != NULL ? "weir_store" : "weir_zone", conf->rooms_max, conf->rooms.nelts);
        return NGX_ERROR;
    }
    if (conf->admin.what.len > 0 && conf->operators == NULL)
        ngx_log_error(
            NGX_LOG_WARN, cf->log, 0,
            "\"weir_api admin\" in %V:%ui answers 404 to everybody: there is no weir_admin_token_file",
            &conf->admin.file, conf->admin.line);
    return gate_conf_check(cf, conf);
}

/* One process alone has nobody to take its store over in a reload: its connections go on with what the old cycle had. */
static ngx_int_t keeper_check(ngx_conf_t *cf, struct main_conf *conf)
{
    if (store_is_begun()) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "with master_process off, an nginx with a weir_store cannot be reloaded: restart it");
        return NGX_ERROR;
    }
    if (conf->store == NULL)
        return NGX_OK;
    if (conf->journal_conf != NULL) {
        ngx_log_error(
            NGX_LOG_EMERG, cf->log, 0,
            "weir_journal needs a weir_zone: what a weir_store keeps is written down by its servers");
        return NGX_ERROR;
    }
    return store_conf_finish(cf, conf->store);
}

bool conf_parameter(const ngx_str_t *argument, const char *prefix, ngx_str_t *value)
{
    size_t len = ngx_strlen(prefix);
    if (argument->len < len || ngx_strncmp(argument->data, prefix, len) != 0)
        return false;
    value->data = argument->data + len;
    value->len = argument->len - len;
    return true;
}

char *conf_predicates(ngx_conf_t *cf, ngx_array_t **list, size_t offset, void *conf)
{
    ngx_str_t *words = cf->args->elts;
    if (*list != NGX_CONF_UNSET_PTR)
        return "is duplicate";
    *list = NULL;
    if (cf->args->nelts == 2 && span_equal(span_of_str(words[1]), SPAN("off")))
        return NGX_CONF_OK;
    /* A word that is no variable would be true for everybody. */
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++)
        if (words[i].len < 2 || words[i].data[0] != '$')
            return "takes variables, such as $staff, or off";
    *list = NGX_CONF_UNSET_PTR;
    ngx_command_t slot = {.offset = offset};
    return ngx_http_set_predicate_slot(cf, &slot, conf);
}
