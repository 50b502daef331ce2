/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The breaker takes its place when everything is read: by then whatever shares out the load (least_conn, hash, keepalive) has
 * set itself up, in whatever order the lines stand.
 */
#include "nginx/breaker.h"

#define METHODS_ALWAYS (NGX_HTTP_GET | NGX_HTTP_HEAD | NGX_HTTP_OPTIONS)

enum kind { KIND_COUNT, KIND_TIME, KIND_PERCENT };

struct parameter {
    const char *prefix;
    enum kind kind;
    size_t offset; /* of its uint32_t in struct breaker_conf */
    uint32_t least, most;
    const char *range;
};

#define AT(field) offsetof(struct breaker_conf, field)

static const struct parameter breaker_parameters[] = {
    {"requests=", KIND_COUNT, AT(options.requests), 1, 1000000, "1 to 1000000"},
    {"window=", KIND_TIME, AT(options.window_ms), 100, 3600000, "100ms to 1h"},
    {"failed=", KIND_PERCENT, AT(options.failed_percent), 1, 100, "1% to 100%"},
    {"open=", KIND_TIME, AT(options.open_ms), 100, 3600000, "100ms to 1h"},
    {"trials=", KIND_COUNT, AT(options.trials), 1, BREAKER_TRIALS_MAX, "1 to 32"},
    {NULL, KIND_COUNT, 0, 0, 0, NULL},
};

static const struct parameter retry_parameters[] = {
    {"times=", KIND_COUNT, AT(retries), 1, 10, "1 to 10"},
    {"wait=", KIND_TIME, AT(backoff_ms), 1, 60000, "1ms to 1m"},
    {"budget=", KIND_PERCENT, AT(options.budget_percent), 0, 100, "0% to 100%"},
    {"burst=", KIND_COUNT, AT(options.burst), 1, 10000, "1 to 10000"},
    {NULL, KIND_COUNT, 0, 0, 0, NULL},
};

static struct breaker_conf *conf_of(ngx_conf_t *cf, struct srv_conf *server);
static char *word_read(ngx_conf_t *cf, const struct parameter *parameters, ngx_str_t word,
                       struct breaker_conf *conf);
static bool value_read(const struct parameter *parameter, ngx_str_t text, uint32_t *out);
static char *fallback_read(struct breaker_conf *conf, ngx_str_t name);
static char *method_read(struct breaker_conf *conf, ngx_str_t name);
static ngx_int_t conf_check_one(ngx_conf_t *cf, const struct breaker_conf *conf);
static bool is_location_somewhere(ngx_conf_t *cf, ngx_str_t name);
static void breakers_put_up(ngx_conf_t *cf);

char *breaker_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    ngx_str_t *words = cf->args->elts, value;
    struct breaker_conf *conf = conf_of(cf, data);
    if (conf == NULL)
        return NGX_CONF_ERROR;
    if (conf->at.what.len > 0)
        return "is duplicate";
    conf->at = conf_mention(cf, words[0]);
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        char *answer = conf_parameter(&words[i], "fallback=", &value)
                           ? fallback_read(conf, value)
                           : word_read(cf, breaker_parameters, words[i], conf);
        if (answer != NGX_CONF_OK)
            return answer;
    }
    return NGX_CONF_OK;
}

char *breaker_retry_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    ngx_str_t *words = cf->args->elts, value;
    struct breaker_conf *conf = conf_of(cf, data);
    if (conf == NULL)
        return NGX_CONF_ERROR;
    if (conf->retry.what.len > 0)
        return "is duplicate";
    conf->retry = conf_mention(cf, words[0]);
    conf->retries = 2;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        char *answer = conf_parameter(&words[i], "also=", &value)
                           ? method_read(conf, value)
                           : word_read(cf, retry_parameters, words[i], conf);
        if (answer != NGX_CONF_OK)
            return answer;
    }
    return NGX_CONF_OK;
}

static struct breaker_conf *conf_of(ngx_conf_t *cf, struct srv_conf *server)
{
    struct main_conf *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    const ngx_http_upstream_srv_conf_t *upstream =
        ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);
    if (server->breaker != NULL)
        return server->breaker;
    struct breaker_conf **place = ngx_array_push(&main->breakers);
    struct breaker_conf *conf = ngx_pcalloc(cf->pool, sizeof(*conf));
    if (place == NULL || conf == NULL)
        return NULL;
    conf->upstream = upstream->host;
    conf->options = (struct breaker_options){.requests = 10,
                                             .window_ms = 10000,
                                             .failed_percent = 60,
                                             .open_ms = 30000,
                                             .trials = 3,
                                             .budget_percent = 10,
                                             .burst = 10};
    conf->backoff_ms = 100;
    conf->methods = METHODS_ALWAYS;
    return *place = server->breaker = conf;
}

static char *word_read(ngx_conf_t *cf, const struct parameter *parameters, ngx_str_t word,
                       struct breaker_conf *conf)
{
    ngx_str_t value;
    for (const struct parameter *parameter = parameters; parameter->prefix != NULL; parameter++) {
        if (!conf_parameter(&word, parameter->prefix, &value))
            continue;
        if (value_read(parameter, value, (uint32_t *)(void *)((u_char *)conf + parameter->offset)))
            return NGX_CONF_OK;
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" cannot be: %s takes %s", &word, parameter->prefix,
                           parameter->range);
        return NGX_CONF_ERROR;
    }
    ngx_str_t *words = cf->args->elts;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" knows no \"%V\"", &words[0], &word);
    return NGX_CONF_ERROR;
}

static bool value_read(const struct parameter *parameter, ngx_str_t text, uint32_t *out)
{
    ngx_int_t value = NGX_ERROR;
    switch (parameter->kind) {
    case KIND_COUNT:
        value = ngx_atoi(text.data, text.len);
        break;
    case KIND_TIME:
        value = ngx_parse_time(&text, 0);
        break;
    case KIND_PERCENT:
        if (text.len > 1 && text.data[text.len - 1] == '%')
            value = ngx_atoi(text.data, text.len - 1);
        break;
    }
    if (value < (ngx_int_t)parameter->least || value > (ngx_int_t)parameter->most)
        return false;
    *out = (uint32_t)value;
    return true;
}

static char *fallback_read(struct breaker_conf *conf, ngx_str_t name)
{
    if (name.len < 2 || name.data[0] != '@')
        return "takes fallback=@NAME, a named location";
    conf->fallback = name;
    return NGX_CONF_OK;
}

static char *method_read(struct breaker_conf *conf, ngx_str_t name)
{
    if (span_equal(span_of_str(name), SPAN("PUT")))
        conf->methods |= NGX_HTTP_PUT;
    else if (span_equal(span_of_str(name), SPAN("DELETE")))
        conf->methods |= NGX_HTTP_DELETE;
    else
        return "takes also=PUT and also=DELETE: nothing else can be done twice";
    return NGX_CONF_OK;
}

ngx_int_t breaker_conf_finish(ngx_conf_t *cf)
{
    struct main_conf *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    struct breaker_conf **breakers = main->breakers.elts;
    if (main->breakers.nelts == 0)
        return NGX_OK;
    for (ngx_uint_t i = 0; i < main->breakers.nelts; i++)
        if (conf_check_one(cf, breakers[i]) != NGX_OK || breaker_zone_add(cf, breakers[i]) != NGX_OK)
            return NGX_ERROR;
    breakers_put_up(cf);
    return breaker_filter_init(cf);
}

static ngx_int_t conf_check_one(ngx_conf_t *cf, const struct breaker_conf *conf)
{
    if (conf->at.what.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"weir_retry\" in %V:%ui needs a \"weir_breaker\" in the same upstream",
                      &conf->retry.file, conf->retry.line);
        return NGX_ERROR;
    }
    if (conf->fallback.len > 0 && !is_location_somewhere(cf, conf->fallback)) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "no server has the location \"%V\" of \"%V\" in %V:%ui",
                      &conf->fallback, &conf->at.what, &conf->at.file, conf->at.line);
        return NGX_ERROR;
    }
    return NGX_OK;
}

static bool is_location_somewhere(ngx_conf_t *cf, ngx_str_t name)
{
    const ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_core_srv_conf_t **servers = core->servers.elts;
    for (ngx_uint_t i = 0; i < core->servers.nelts; i++) {
        ngx_http_core_loc_conf_t **locations = servers[i]->named_locations;
        for (; locations != NULL && *locations != NULL; locations++)
            if (span_equal(span_of_str((*locations)->name), span_of_str(name)))
                return true;
    }
    return false;
}

static void breakers_put_up(ngx_conf_t *cf)
{
    const ngx_http_upstream_main_conf_t *main =
        ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    ngx_http_upstream_srv_conf_t **upstreams = main->upstreams.elts;
    for (ngx_uint_t i = 0; i < main->upstreams.nelts; i++) {
        if (upstreams[i]->srv_conf == NULL) /* of a bare proxy_pass */
            continue;
        const struct srv_conf *server = ngx_http_conf_upstream_srv_conf(upstreams[i], ngx_http_weir_module);
        if (server->breaker == NULL)
            continue;
        server->breaker->init = upstreams[i]->peer.init;
        upstreams[i]->peer.init = breaker_on_init;
    }
}
