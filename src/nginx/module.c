/* SPDX-License-Identifier: BSD-2-Clause */
/* The module as nginx sees it: its directives, its contexts and where it hooks in. */
#include "nginx/admin_token.h"
#include "nginx/api_conf.h"
#include "nginx/breaker.h"
#include "nginx/conf.h"
#include "nginx/cors.h"
#include "nginx/directives.h"
#include "nginx/envelope.h"
#include "nginx/gate.h"
#include "nginx/gate_response.h"
#include "nginx/gate_sign.h"
#include "nginx/identity.h"
#include "nginx/journal.h"
#include "nginx/lobby.h"
#include "nginx/mask.h"
#include "nginx/page.h"
#include "nginx/pass_conf.h"
#include "nginx/rooms.h"
#include "nginx/secret.h"
#include "nginx/shop.h"
#include "nginx/store.h"
#include "nginx/verify.h"
#include "nginx/worker.h"
#include "nginx/zone.h"

static ngx_int_t module_add_variables(ngx_conf_t *cf);
static ngx_int_t module_init(ngx_conf_t *cf);
static ngx_int_t module_join(ngx_conf_t *cf);
static ngx_int_t module_settle(ngx_cycle_t *cycle);
static ngx_int_t module_on_rewrite(ngx_http_request_t *r);
static ngx_int_t phase_join(ngx_conf_t *cf, ngx_http_phases phase, ngx_http_handler_pt handler);
static ngx_int_t phase_join_first(ngx_conf_t *cf, ngx_http_phases phase, ngx_http_handler_pt handler);

static ngx_command_t commands[] = {
#define DIRECTIVE_COMMAND(name, syntax, value, contexts, flags, level, set, help) \
    {ngx_string(name), flags, set, level, 0, NULL},
    DIRECTIVE_LIST(DIRECTIVE_COMMAND)
#undef DIRECTIVE_COMMAND
        ngx_null_command};

static ngx_http_module_t context = {
    .preconfiguration = module_add_variables,
    .postconfiguration = module_init,
    .create_main_conf = conf_create_main,
    .create_srv_conf = conf_create_srv,
    .create_loc_conf = conf_create_loc,
    .merge_loc_conf = conf_merge_loc,
};

ngx_module_t ngx_http_weir_module = {
    NGX_MODULE_V1,
    &context,
    commands,
    NGX_HTTP_MODULE,
    NULL, /* init master */
    module_settle,
    worker_init,
    NULL, /* init thread */
    NULL, /* exit thread */
    worker_exit,
    journal_close,
    NGX_MODULE_V1_PADDING,
};

static ngx_int_t module_add_variables(ngx_conf_t *cf)
{
    return admin_token_add_variable(cf) == NGX_OK ? gate_add_variables(cf) : NGX_ERROR;
}

/* Where no directive of ours is used, nothing of ours runs. */
static ngx_int_t module_init(ngx_conf_t *cf)
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    if (conf_check(cf) != NGX_OK || zone_check_kept(cf) != NGX_OK)
        return NGX_ERROR;
    if (conf->need.what.len > 0 && module_join(cf) != NGX_OK)
        return NGX_ERROR;
    return breaker_conf_finish(
        cf); /* last: its filter drops answers, and the others' see only what is sent */
}

static ngx_int_t module_join(ngx_conf_t *cf)
{
    if (page_init(cf) != NGX_OK || envelope_init(cf) != NGX_OK || gate_response_init(cf) != NGX_OK)
        return NGX_ERROR;
    if (phase_join(cf, NGX_HTTP_POST_READ_PHASE, gate_on_read) != NGX_OK ||
        phase_join(cf, NGX_HTTP_REWRITE_PHASE, module_on_rewrite) != NGX_OK ||
        phase_join(cf, NGX_HTTP_PRECONTENT_PHASE, gate_handler) != NGX_OK ||
        phase_join(cf, NGX_HTTP_LOG_PHASE, shop_on_log) != NGX_OK)
        return NGX_ERROR;
    return phase_join_first(cf, NGX_HTTP_LOG_PHASE, mask_on_log);
}

/* Nothing can go wrong with the configuration any more. */
static ngx_int_t module_settle(ngx_cycle_t *cycle)
{
    struct main_conf *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_weir_module);
    if (conf == NULL)
        return NGX_OK;
    journal_settle(conf);
    breaker_zone_settle(conf);
    return NGX_OK;
}

static ngx_int_t module_on_rewrite(ngx_http_request_t *r)
{
    ngx_int_t rc = mask_on_rewrite(r);
    return rc == NGX_DECLINED ? gate_on_rewrite(r) : rc;
}

/* nginx runs the handler that joined last first: ours comes before try_files, mirror and rewrite. */
static ngx_int_t phase_join(ngx_conf_t *cf, ngx_http_phases phase, ngx_http_handler_pt handler)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_handler_pt *place = ngx_array_push(&core->phases[phase].handlers);
    if (place == NULL)
        return NGX_ERROR;
    *place = handler;
    return NGX_OK;
}

/* The log phase alone runs in the order of joining. */
static ngx_int_t phase_join_first(ngx_conf_t *cf, ngx_http_phases phase, ngx_http_handler_pt handler)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_array_t *handlers = &core->phases[phase].handlers;
    if (phase_join(cf, phase, handler) != NGX_OK)
        return NGX_ERROR;
    ngx_http_handler_pt *list = handlers->elts;
    ngx_memmove(list + 1, list, (handlers->nelts - 1) * sizeof(*list));
    list[0] = handler;
    return NGX_OK;
}
