/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * $weir_gate is for the access log: how the request fared. $weir_session is for nginx's own limits, which come before the gate
 * (`limit_req_zone $weir_session …` limits each session by itself): whose pass was shown, by its signature alone.
 */
#include "nginx/gate_state.h"
#include "nginx/request.h"

static ngx_int_t variable_add(ngx_conf_t *cf, const char *name, ngx_http_get_variable_pt get);
static ngx_int_t outcome_get(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data);
static ngx_int_t session_get(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data);
static void value_set(ngx_http_variable_value_t *value, struct span text);

ngx_int_t gate_add_variables(ngx_conf_t *cf)
{
    return variable_add(cf, "weir_gate", outcome_get) == NGX_OK
               ? variable_add(cf, "weir_session", session_get)
               : NGX_ERROR;
}

static ngx_int_t variable_add(ngx_conf_t *cf, const char *name, ngx_http_get_variable_pt get)
{
    ngx_str_t text = {ngx_strlen(name), (u_char *)name};
    ngx_http_variable_t *variable =
        ngx_http_add_variable(cf, &text, NGX_HTTP_VAR_NOCACHEABLE | NGX_HTTP_VAR_NOHASH);
    if (variable == NULL)
        return NGX_ERROR;
    variable->get_handler = get;
    return NGX_OK;
}

static ngx_int_t outcome_get(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
    const struct gate_note *note = gate_note_peek(r);
    value_set(value, note != NULL ? gate_outcome_word(note->outcome) : SPAN_NONE);
    return NGX_OK;
}

static ngx_int_t session_get(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
    const struct gate_conf *conf = conf_loc(r)->gate;
    struct gate *gate = conf != NULL && request_of(r) != NULL ? gate_new(r, conf) : NULL;
    value_set(value, SPAN_NONE);
    if (gate == NULL)
        return conf == NULL ? NGX_OK : NGX_ERROR;
    gate_passes_find(r, gate);
    if (gate->passes.count == 0)
        return NGX_OK;
    pass_id_write(&gate->passes.of[0], gate->session);
    value_set(value, (struct span){gate->session, sizeof(gate->session)});
    return NGX_OK;
}

static void value_set(ngx_http_variable_value_t *value, struct span text)
{
    value->data = (u_char *)text.data;
    value->len = (unsigned)text.len;
    value->valid = 1;
    value->no_cacheable = 1;
    value->not_found = text.len == 0;
}
