/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A variable that a client can fill (a header) is believed only from peers the operator named, and the peer is who holds the
 * other end of the connection: realip replaces the connection's address by what a header claims, so its note of the original
 * is asked. The client's address, where one is needed, is realip's.
 */
#include "nginx/identity.h"

#include "base/json.h"
#include "base/must.h"
#include "nginx/reply.h"
#include "nginx/request.h"

#include <openssl/rand.h>

#define VISITOR_COOKIE     "weir-visitor"
#define VISITOR_ATTRIBUTES "; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax"

struct identity_conf {
    ngx_int_t variable;
    ngx_array_t *from; /* ngx_cidr_t; NULL: believed from everywhere */
};

static char *variable_read(ngx_conf_t *cf, struct identity_conf *identity, ngx_str_t name);
static char *range_add(ngx_conf_t *cf, struct identity_conf *identity, ngx_str_t word);
static char *real_peer_prepare(ngx_conf_t *cf);
static bool peer_is_within(ngx_http_request_t *r, ngx_array_t *from);
static bool identity_is_usable(struct span text);

char *identity_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->identity != NGX_CONF_UNSET_PTR)
        return "is duplicate";
    conf->identity = NULL;
    if (cf->args->nelts == 2 && span_equal(span_of_str(words[1]), SPAN("off")))
        return NGX_CONF_OK;
    struct identity_conf *identity = ngx_pcalloc(cf->pool, sizeof(*identity));
    if (identity == NULL)
        return NGX_CONF_ERROR;
    conf->identity = identity;
    char *answer = variable_read(cf, identity, words[1]);
    for (ngx_uint_t i = 2; i < cf->args->nelts && answer == NGX_CONF_OK; i++)
        answer = range_add(cf, identity, words[i]);
    return answer == NGX_CONF_OK && identity->from != NULL ? real_peer_prepare(cf) : answer;
}

static char *variable_read(ngx_conf_t *cf, struct identity_conf *identity, ngx_str_t name)
{
    if (name.len < 2 || name.data[0] != '$')
        return "needs a variable, such as $remote_user, or off";
    name.data++;
    name.len--;
    identity->variable = ngx_http_get_variable_index(cf, &name);
    return identity->variable == NGX_ERROR ? NGX_CONF_ERROR : NGX_CONF_OK;
}

static char *range_add(ngx_conf_t *cf, struct identity_conf *identity, ngx_str_t word)
{
    ngx_str_t range;
    if (!conf_parameter(&word, "from=", &range))
        return "knows a variable and from=CIDR";
    if (identity->from == NULL)
        identity->from = ngx_array_create(cf->pool, 2, sizeof(ngx_cidr_t));
    ngx_cidr_t *cidr = identity->from != NULL ? ngx_array_push(identity->from) : NULL;
    if (cidr == NULL)
        return NGX_CONF_ERROR;
    ngx_memzero(cidr, sizeof(*cidr));
    if (span_equal(span_of_str(range), SPAN("unix:"))) {
        cidr->family = AF_UNIX;
        return NGX_CONF_OK;
    }
    ngx_int_t rc = ngx_ptocidr(&range, cidr);
    if (rc == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is not an address range: write 10.0.0.0/8, fd00::/8 or unix:", &range);
        return NGX_CONF_ERROR;
    }
    if (rc == NGX_DONE)
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "low address bits of \"%V\" are meaningless", &range);
    return NGX_CONF_OK;
}

static char *real_peer_prepare(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("realip_remote_addr");
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    for (ngx_uint_t i = 0; cf->cycle->modules[i] != NULL; i++)
        if (ngx_strcmp(cf->cycle->modules[i]->name, "ngx_http_realip_module") == 0)
            conf->real_peer = ngx_http_get_variable_index(cf, &name);
    return NGX_CONF_OK;
}

struct span identity_of(ngx_http_request_t *r)
{
    const struct identity_conf *identity = conf_loc(r)->identity;
    if (identity == NULL)
        return SPAN_NONE;
    ngx_http_variable_value_t *value = ngx_http_get_indexed_variable(r, (ngx_uint_t)identity->variable);
    if (value == NULL || value->not_found)
        return SPAN_NONE;
    struct span text = {(const char *)value->data, value->len};
    if (!identity_is_usable(text))
        return SPAN_NONE;
    if (identity->from != NULL && !peer_is_within(r, identity->from))
        return SPAN_NONE;
    return text;
}

/* It goes into a pass and into a header for the shop. */
static bool identity_is_usable(struct span text)
{
    if (text.len < 1 || text.len > IDENTITY_MAX)
        return false;
    bool is_ascii = true;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < 0x20 || c == 0x7f)
            return false;
        is_ascii = is_ascii && c < 0x80;
    }
    char escaped[6 * IDENTITY_MAX];
    size_t len = 0;
    return is_ascii || json_escape(text, escaped, sizeof(escaped), &len);
}

static bool peer_is_within(ngx_http_request_t *r, ngx_array_t *from)
{
    ngx_int_t index = conf_main(r)->real_peer;
    ngx_connection_t *c = r->connection;
    if (index == NGX_ERROR)
        return ngx_cidr_match(c->sockaddr, from) == NGX_OK;
    ngx_http_variable_value_t *peer = ngx_http_get_indexed_variable(r, (ngx_uint_t)index);
    if (peer == NULL || peer->not_found)
        return false;
    if (peer->data == c->addr_text.data)
        return ngx_cidr_match(c->sockaddr, from) == NGX_OK;
    ngx_addr_t address;
    if (ngx_strncmp(peer->data, "unix:", ngx_min(peer->len, 5)) == 0)
        return ngx_cidr_match(&(struct sockaddr){.sa_family = AF_UNIX}, from) == NGX_OK;
    if (ngx_parse_addr(r->pool, &address, peer->data, peer->len) != NGX_OK)
        return false;
    return ngx_cidr_match(address.sockaddr, from) == NGX_OK;
}

struct span identity_anonymous(const struct holder *holder, char memory[ANONYMOUS_LEN])
{
    memory[0] = 'v';
    memory[1] = '-';
    size_t len = base64url_encode(holder->id, sizeof(holder->id), memory + 2, ANONYMOUS_LEN - 2);
    return (struct span){memory, 2 + len};
}

bool identity_is_anonymous(const struct pass_claims *pass)
{
    char memory[ANONYMOUS_LEN];
    return span_equal(identity_anonymous(&pass->holder, memory), pass->uid);
}

struct visitor visitor_of(ngx_http_request_t *r)
{
    struct visitor visitor = {.identity = identity_of(r)};
    if (visitor.identity.data != NULL)
        return visitor;
    struct cookie_walk walk = {0};
    struct span cookie;
    while (!visitor.has_cookie && request_cookie_next(request_of(r), SPAN(VISITOR_COOKIE), &walk, &cookie))
        visitor.has_cookie = visitor_verify(conf_main(r)->keys, cookie, visitor.id);
    return visitor;
}

/* Random numbers are drawn by the score: most of what one costs is the asking. */
void visitor_invent(struct visitor *visitor)
{
    static uint8_t drawn[32][VISITOR_ID_SIZE];
    static size_t left; /* 0 in a worker that has just been forked: the master draws none */
    if (left == 0) {
        must(RAND_bytes(drawn[0], sizeof(drawn)) == 1);
        left = sizeof(drawn) / sizeof(drawn[0]);
    }
    left--;
    memcpy(visitor->id, drawn[left], sizeof(visitor->id));
    ngx_explicit_memzero(drawn[left], sizeof(drawn[left]));
}

void visitor_holder(ngx_http_request_t *r, const struct visitor *visitor, struct holder *holder)
{
    if (visitor->identity.data != NULL)
        must(holder_of_identity(conf_main(r)->keys, visitor->identity, holder));
    else
        holder_of_visitor(conf_main(r)->keys, visitor->id, holder);
}

ngx_int_t visitor_keep(ngx_http_request_t *r, const struct visitor *visitor, const struct holder *holder)
{
    struct holder ours;
    if (visitor->identity.data != NULL || visitor->has_cookie)
        return NGX_OK;
    visitor_holder(r, visitor, &ours);
    return holder_equal(&ours, holder) ? visitor_set_cookie(r, visitor) : NGX_OK;
}

ngx_int_t visitor_set_cookie(ngx_http_request_t *r, const struct visitor *visitor)
{
    static const char start[] = VISITOR_COOKIE "=", attributes[] = VISITOR_ATTRIBUTES, secure[] = "; Secure";
    u_char *text =
        ngx_pnalloc(r->pool, sizeof(start) + VISITOR_TOKEN_LEN + sizeof(attributes) + sizeof(secure));
    if (text == NULL)
        return NGX_ERROR;
    u_char *at = ngx_cpymem(text, start, sizeof(start) - 1);
    visitor_sign(conf_main(r)->keys, visitor->id, (char *)at);
    at = ngx_cpymem(at + VISITOR_TOKEN_LEN, attributes, sizeof(attributes) - 1);
    if (request_is_tls(r))
        at = ngx_cpymem(at, secure, sizeof(secure) - 1);
    return reply_header(r, SPAN("Set-Cookie"), (struct span){(const char *)text, (size_t)(at - text)});
}
