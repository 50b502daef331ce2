/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other proxy sends the address of the request in a header (X-Forwarded-Uri). nginx parses and normalises it as it does with
 * every request's, finds the location for it, and runs it up to the gate: so all that a gate knows of paths, rooms, free ways
 * and identities is configured once, and a path that is written in another way is judged in no other way.
 *
 * Nobody is let in unnoticed here. The answer goes to the proxy, and most proxies do not hand a cookie on: each request would
 * take a slot. Visitors get their pass on the waiting page.
 */
#include "nginx/verify.h"

#include "nginx/gate_note.h"
#include "nginx/reply.h"
#include "nginx/request.h"

struct verify_conf {
    ngx_http_complex_value_t address;
    ngx_str_t header; /* that the address comes in, in lower case; empty: in none */
    bool redirects;
};

static ngx_int_t verify_handler(ngx_http_request_t *r);
static void variables_forget(ngx_http_request_t *r);
static ngx_int_t address_set(ngx_http_request_t *r, ngx_str_t address);
static ngx_uint_t method_of(struct span name);
static char *header_note(ngx_conf_t *cf, struct verify_conf *verify, ngx_str_t variable);
static struct span forwarded_method(ngx_http_request_t *r);
static ngx_uint_t header_count(ngx_http_request_t *r, struct span name, struct span *first);

char *verify_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->handler != NULL)
        return "stands in a location that has a weir_api, a weir_page or a weir_verify already";
    struct verify_conf *verify = ngx_pcalloc(cf->pool, sizeof(*verify));
    if (verify == NULL)
        return NGX_CONF_ERROR;
    if (words[1].len < 2 || words[1].data[0] != '$')
        return "needs the variable that has the forwarded address, such as $http_x_forwarded_uri";
    if (span_equal(span_of_str(words[1]), SPAN("$uri")) ||
        span_equal(span_of_str(words[1]), SPAN("$document_uri")))
        return "needs the address as the client wrote it: this variable is decoded already";
    ngx_http_compile_complex_value_t compile = {
        .cf = cf, .value = &words[1], .complex_value = &verify->address};
    if (ngx_http_compile_complex_value(&compile) != NGX_OK ||
        header_note(cf, verify, words[1]) != NGX_CONF_OK)
        return NGX_CONF_ERROR;
    verify->redirects = true;
    if (cf->args->nelts == 3) {
        if (!span_equal(span_of_str(words[2]), SPAN("redirect=off")))
            return "knows a variable and redirect=off";
        verify->redirects = false;
    }
    struct srv_conf *server = ngx_http_conf_get_module_srv_conf(cf, ngx_http_weir_module);
    server->has_verify = true;
    conf->verify = verify;
    conf->handler = verify_handler;
    conf->is_api = true;
    conf_note_need(cf);
    return NGX_CONF_OK;
}

static char *header_note(ngx_conf_t *cf, struct verify_conf *verify, ngx_str_t variable)
{
    ngx_str_t name;
    if (!conf_parameter(&variable, "$http_", &name))
        return NGX_CONF_OK;
    verify->header = (ngx_str_t){name.len, ngx_pnalloc(cf->pool, name.len)};
    if (verify->header.data == NULL)
        return NGX_CONF_ERROR;
    for (size_t i = 0; i < name.len; i++)
        verify->header.data[i] = name.data[i] == '_' ? '-' : ngx_tolower(name.data[i]);
    return NGX_CONF_OK;
}

static ngx_int_t verify_handler(ngx_http_request_t *r)
{
    const struct verify_conf *verify = conf_loc(r)->verify;
    /* Redirected, a subrequest would be served where it should be judged: its answer is not its own. */
    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "weir: weir_verify answers requests of other proxies, not subrequests of this one: a "
                      "location here has weir_gate");
        return NGX_HTTP_FORBIDDEN;
    }
    struct gate_note *note = request_of(r) != NULL ? gate_note_of(r) : NULL;
    ngx_str_t address;
    if (note == NULL ||
        ngx_http_complex_value(r, (ngx_http_complex_value_t *)&verify->address, &address) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ngx_int_t rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK)
        return rc;
    /* Of two one is the client's own: a proxy that adds its header to those that came must not be led by them. */
    if (header_count(r, span_of_str(verify->header), NULL) > 1)
        return reply_error_saying(r, ERROR_INVALID_REQUEST, 0, SPAN("The forwarded address is there twice"));
    if (address.len == 0 || address.data[0] != '/')
        return reply_error_saying(r, ERROR_INVALID_REQUEST, 0,
                                  SPAN("The forwarded address is missing, or is no path"));
    note->verify.is_on = true;
    note->verify.redirects = verify->redirects;
    note->verify.method = method_of(forwarded_method(r));
    r->main->count++; /* address_set may finalize the request */
    if (address_set(r, address) != NGX_OK)
        return NGX_DONE;
    r->main->count--;
    variables_forget(r);
    return ngx_http_internal_redirect(r, &r->uri, &r->args);
}

/* What was looked up for the question ($request_uri, a map of it) is something else for the address that it is about. */
static void variables_forget(ngx_http_request_t *r)
{
    const ngx_http_core_main_conf_t *core = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    ngx_memzero(r->variables, core->variables.nelts * sizeof(ngx_http_variable_value_t));
}

/* As nginx itself sets the address of a request over HTTP/2. NGX_ERROR: the request is refused already. */
static ngx_int_t address_set(ngx_http_request_t *r, ngx_str_t address)
{
    u_char *text = ngx_pnalloc(r->pool, address.len + 1); /* nginx looks one byte further */
    if (text == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_ERROR;
    }
    *ngx_cpymem(text, address.data, address.len) = '\0';
    r->unparsed_uri = (ngx_str_t){address.len, text};
    r->uri_start = text;
    r->uri_end = text + address.len;
    r->args_start = r->uri_ext = NULL;
    r->complex_uri = r->quoted_uri = r->plus_in_uri = r->empty_path_in_uri = 0;
    ngx_str_null(&r->args);
    ngx_str_null(&r->exten);
    if (ngx_http_parse_uri(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_BAD_REQUEST);
        return NGX_ERROR;
    }
    return ngx_http_process_request_uri(r);
}

/* Said twice it is none that gets by, for the same reason. */
static struct span forwarded_method(ngx_http_request_t *r)
{
    struct span method = SPAN("GET");
    return header_count(r, SPAN("x-forwarded-method"), &method) > 1 ? SPAN_NONE : method;
}

/* `first`: its value, if there is any. */
static ngx_uint_t header_count(ngx_http_request_t *r, struct span name, struct span *first)
{
    ngx_uint_t count = 0;
    for (ngx_list_part_t *part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        const ngx_table_elt_t *headers = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            if (headers[i].key.len != name.len ||
                ngx_memcmp(headers[i].lowcase_key, name.data, name.len) != 0)
                continue;
            if (count++ == 0 && first != NULL)
                *first = span_of_str(headers[i].value);
        }
    }
    return count;
}

/* Only those that the gate treats apart. */
static ngx_uint_t method_of(struct span name)
{
    if (span_equal(name, SPAN("GET")))
        return NGX_HTTP_GET;
    if (span_equal(name, SPAN("HEAD")))
        return NGX_HTTP_HEAD;
    if (span_equal(name, SPAN("POST")))
        return NGX_HTTP_POST;
    return span_equal(name, SPAN("OPTIONS")) ? NGX_HTTP_OPTIONS : NGX_HTTP_UNKNOWN;
}

bool verify_is_on(ngx_http_request_t *r)
{
    const struct srv_conf *server = ngx_http_get_module_srv_conf(r, ngx_http_weir_module);
    const struct gate_note *note =
        server->has_verify && r == r->main && r->internal ? gate_note_peek(r) : NULL;
    return note != NULL && note->verify.is_on;
}

ngx_uint_t verify_method(ngx_http_request_t *r)
{
    return verify_is_on(r) ? gate_note_peek(r)->verify.method : r->method;
}

bool verify_redirects(ngx_http_request_t *r)
{
    return !verify_is_on(r) || gate_note_peek(r)->verify.redirects;
}

ngx_int_t verify_allow(ngx_http_request_t *r, const struct gate_said *said, struct span signature)
{
    static const struct gate_said nothing;
    const struct gate_said *what = said != NULL ? said : &nothing;
    const struct span headers[][2] = {
        {SPAN("X-Weir-Room"), what->room},       {SPAN("X-Weir-User"), what->user},
        {SPAN("X-Weir-Session"), what->session}, {SPAN("X-Weir-Tier"), what->tier},
        {SPAN("X-Weir-Signature"), signature},
    };
    ngx_int_t rc = NGX_OK;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]) && rc == NGX_OK; i++)
        if (headers[i][1].len > 0)
            rc = reply_header(r, headers[i][0], headers[i][1]);
    ngx_http_finalize_request(r, rc == NGX_OK ? reply_empty(r, NGX_HTTP_OK) : NGX_HTTP_INTERNAL_SERVER_ERROR);
    return NGX_DONE;
}
