/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The token is looked for in one place, the Authorization header: what a browser sends by itself (a cookie) opens nothing,
 * so that another site's page cannot use an operator's browser.
 *
 * $weir_admin is there for nginx's own limits: a limit_req whose key is empty for those with a valid token counts the failed
 * logins of an address alone.
 */
#include "nginx/admin_token.h"

#include "base/ascii.h"
#include "nginx/identity.h"
#include "nginx/private_file.h"
#include "nginx/request.h"
#include "token/operators.h"

_Static_assert(OPERATORS_REASON_MAX <= PRIVATE_REASON_MAX, "the reasons fit");

static bool operators_make(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX]);
static ngx_int_t name_variable(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data);

char *admin_token_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    static const struct private_file file = {"admin token file", operators_make};
    struct main_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    return conf->operators != NULL ? "is duplicate" : private_file_read(cf, &file, words[1]);
}

static bool operators_make(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX])
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    conf->operators = ngx_pcalloc(cf->pool, sizeof(*conf->operators));
    return conf->operators != NULL && operators_read(conf->operators, text, reason);
}

struct span admin_token_name(ngx_http_request_t *r)
{
    const struct operators *operators = conf_main(r)->operators;
    struct span token = request_bearer(r);
    return operators != NULL && token.data != NULL ? operators_find(operators, token) : SPAN_NONE;
}

char *admin_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    return conf_predicates(cf, &conf->admins, offsetof(struct loc_conf, admins), conf);
}

/* Who they are is known where weir_user is on. */
struct span admin_name(ngx_http_request_t *r)
{
    struct span name = admin_token_name(r);
    ngx_array_t *admins = conf_loc(r)->admins;
    if (name.data != NULL || admins == NULL || ngx_http_test_predicates(r, admins) != NGX_DECLINED)
        return name;
    name = identity_of(r);
    return name.data != NULL && ascii_all_visible(name) ? name : SPAN("weir_admin");
}

ngx_int_t admin_token_add_variable(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("weir_admin");
    ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOHASH);
    if (variable == NULL)
        return NGX_ERROR;
    variable->get_handler = name_variable;
    return NGX_OK;
}

static ngx_int_t name_variable(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
    struct span name = admin_token_name(r);
    value->data = (u_char *)name.data;
    value->len = (unsigned)name.len;
    value->valid = 1;
    value->no_cacheable = 0;
    value->not_found = 0;
    return NGX_OK;
}
