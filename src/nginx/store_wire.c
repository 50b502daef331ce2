/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long anything may take is the link's business: it wants to be hung up on, whatever its wire is at.
 *
 * Of what goes wrong nginx would write a line each time. A server that is away is dialed several times a second by every worker,
 * so a wire has a log of its own, which lets only alerts through; the links know why they were lost, and that is logged when it
 * changes (store.c). With a debug log everything is there.
 */
#include "nginx/store_wire.h"

#include "base/must.h"
#include "nginx/store_tls.h"

#include <ngx_event_connect.h>

#define READ_BYTES (64 * 1024)
#define POOL_BYTES 1024

#define NO_MEMORY "There is no memory for a connection to the store."
#define NO_ANSWER "The server cannot be reached."
#define NO_NAME   "The server's name cannot be resolved."
#define NO_RESOLVER \
    "A server of the store has a name that only a resolver knows: nginx needs a resolver in its http block."
#define IS_CLOSED "The server closed the connection."
#define IS_STRANGE \
    "The server hung up before it said who it is: does it want TLS, or a certificate, or neither of them?"
#define IS_BROKEN "The connection to the server broke."
#define IS_ENDING "This worker ends."
#define NO_TLS    "TLS could not be agreed on with the server."

struct wire {
    struct wire_common *common;
    struct store_line *line;
    ngx_log_t log;
    ngx_resolver_ctx_t *resolving; /* NULL: nothing is asked */
    ngx_sockaddr_t address;
    socklen_t address_len;
    u_char text[NGX_SOCKADDR_STRLEN];
    ngx_str_t name; /* of the address, for the log */
    ngx_connection_t *connection;
    bool is_open; /* the link may speak */
};

static void log_begin(struct wire *wire);
static void name_find(struct wire *wire);
static bool literal_read(struct wire *wire);
static const struct store_host *host_find(const struct wire *wire);
static bool host_use(struct wire *wire);
static void name_ask(struct wire *wire);
static void name_on_answer(ngx_resolver_ctx_t *answer);
static void address_take(struct wire *wire, const struct sockaddr *address, socklen_t len);
static void wire_connect(struct wire *wire);
static bool connection_begin(struct wire *wire, ngx_connection_t *c);
static void wire_on_connect(ngx_event_t *event);
static bool is_connected(const ngx_connection_t *c);
static void wire_secure(struct wire *wire);
static void wire_open(struct wire *wire);
static void wire_on_read(ngx_event_t *event);
static const char *wire_read(struct wire *wire);
static const char *end_of(const struct wire *wire, ssize_t received);
static void wire_on_write(ngx_event_t *event);
static void wire_lose(struct wire *wire, const char *why);
static void wire_free(struct wire *wire);

void wire_dial(struct wire_common *common, struct store_line *line)
{
    must(line->connection == NULL);
    link_dialing(line->link, ngx_current_msec);
    struct wire *wire = ngx_calloc(sizeof(*wire), ngx_cycle->log);
    if (wire == NULL) {
        link_closed(line->link, NO_MEMORY, ngx_current_msec);
        return;
    }
    wire->common = common;
    wire->line = line;
    line->connection = wire;
    log_begin(wire);
    name_find(wire);
}

static void log_begin(struct wire *wire)
{
    wire->log = *ngx_cycle->log;
    if (wire->log.log_level > NGX_LOG_ALERT && !(wire->log.log_level & NGX_LOG_DEBUG_ALL))
        wire->log.log_level = NGX_LOG_ALERT;
}

/* ---- names ---- */

/* Names that were resolved with the configuration may have moved since: a resolver is asked first. It knows no /etc/hosts. */
static void name_find(struct wire *wire)
{
    bool is_localhost = strcasecmp(wire->line->address.host, "localhost") == 0;
    if (literal_read(wire))
        wire_connect(wire);
    else if (wire->common->resolver != NULL && !(is_localhost && host_find(wire) != NULL))
        name_ask(wire);
    else if (host_use(wire))
        wire_connect(wire);
    else
        wire_lose(wire, NO_RESOLVER);
}

static bool literal_read(struct wire *wire)
{
    u_char *host = (u_char *)wire->line->address.host;
    size_t len = ngx_strlen(host);
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_addr.s_addr = ngx_inet_addr(host, len)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6};
    if (ipv4.sin_addr.s_addr != INADDR_NONE)
        address_take(wire, (struct sockaddr *)&ipv4, sizeof(ipv4));
    else if (ngx_inet6_addr(host, len, ipv6.sin6_addr.s6_addr) == NGX_OK)
        address_take(wire, (struct sockaddr *)&ipv6, sizeof(ipv6));
    else
        return false;
    return true;
}

static const struct store_host *host_find(const struct wire *wire)
{
    const struct store_conf *conf = wire->common->conf;
    for (size_t i = 0; i < conf->host_count; i++)
        if (conf->hosts[i].count > 0 && strcasecmp(conf->hosts[i].name, wire->line->address.host) == 0)
            return &conf->hosts[i];
    return NULL;
}

/* Of several addresses another one each time. */
static bool host_use(struct wire *wire)
{
    const struct store_host *host = host_find(wire);
    if (host == NULL)
        return false;
    const ngx_addr_t *address = &host->addresses[link_counts(wire->line->link).dials % host->count];
    address_take(wire, address->sockaddr, address->socklen);
    return true;
}

static void name_ask(struct wire *wire)
{
    ngx_resolver_ctx_t *question = ngx_resolve_start(wire->common->resolver, NULL);
    if (question == NULL || question == NGX_NO_RESOLVER) {
        wire_lose(wire, NO_MEMORY);
        return;
    }
    question->name = (ngx_str_t){ngx_strlen(wire->line->address.host), (u_char *)wire->line->address.host};
    question->handler = name_on_answer;
    question->data = wire;
    question->timeout = wire->common->conf->timeout_ms;
    question->cancelable = 1;
    wire->resolving = question;
    if (ngx_resolve_name(question) == NGX_OK) /* it may be answered, and the wire be gone */
        return;
    wire->resolving = NULL;
    wire_lose(wire, NO_NAME);
}

static void name_on_answer(ngx_resolver_ctx_t *answer)
{
    struct wire *wire = answer->data;
    bool is_known = answer->state == NGX_OK && answer->naddrs > 0;
    if (is_known) {
        const ngx_resolver_addr_t *address =
            &answer->addrs[link_counts(wire->line->link).dials % answer->naddrs];
        address_take(wire, address->sockaddr, address->socklen);
    }
    ngx_resolve_name_done(answer);
    wire->resolving = NULL;
    if (is_known || host_use(wire))
        wire_connect(wire);
    else
        wire_lose(wire, NO_NAME);
}

static void address_take(struct wire *wire, const struct sockaddr *address, socklen_t len)
{
    must(len <= sizeof(wire->address));
    ngx_memcpy(&wire->address, address, len);
    wire->address_len = len;
    ngx_inet_set_port(&wire->address.sockaddr, wire->line->address.port);
    wire->name.data = wire->text;
    wire->name.len = ngx_sock_ntop(&wire->address.sockaddr, len, wire->text, sizeof(wire->text), 1);
}

/* ---- the connection ---- */

static void wire_connect(struct wire *wire)
{
    ngx_peer_connection_t peer = {
        .sockaddr = &wire->address.sockaddr,
        .socklen = wire->address_len,
        .name = &wire->name,
        .get = ngx_event_get_peer,
        .log = &wire->log,
        .log_error = NGX_ERROR_INFO,
        .so_keepalive = 1,
    };
    ngx_int_t answer = ngx_event_connect_peer(&peer);
    if ((answer != NGX_OK && answer != NGX_AGAIN) || !connection_begin(wire, peer.connection)) {
        wire_lose(wire, answer == NGX_ERROR ? NO_MEMORY : NO_ANSWER);
        return;
    }
    if (answer == NGX_OK)
        wire_on_connect(wire->connection->write);
}

static bool connection_begin(struct wire *wire, ngx_connection_t *c)
{
    wire->connection = c;
    wire->log.connection = c->number;
    c->data = wire;
    c->read->handler = wire_on_connect;
    c->write->handler = wire_on_connect;
    c->pool = ngx_create_pool(POOL_BYTES, &wire->log);
    return c->pool != NULL;
}

static void wire_on_connect(ngx_event_t *event)
{
    ngx_connection_t *c = event->data;
    struct wire *wire = c->data;
    if (c->close || !is_connected(c)) {
        wire->common->is_over |= c->close;
        wire_lose(wire, c->close ? IS_ENDING : NO_ANSWER);
        return;
    }
    if (!c->write->ready)
        return;
    c->read->handler = wire_on_read;
    c->write->handler = wire_on_write;
    (void)ngx_tcp_nodelay(c);
    if (wire->common->conf->url.tls.is_on)
        wire_secure(wire);
    else
        wire_open(wire);
}

static bool is_connected(const ngx_connection_t *c)
{
    int error = 0;
    socklen_t len = sizeof(error);
    return getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

#if (NGX_SSL)

static void wire_on_handshake(ngx_connection_t *c)
{
    struct wire *wire = c->data;
    const char *trouble = c->ssl->handshaked ? store_tls_judge(wire->common->conf, c) : NO_TLS;
    if (trouble != NULL) {
        wire_lose(wire, trouble);
        return;
    }
    c->read->handler = wire_on_read;
    c->write->handler = wire_on_write;
    wire_open(wire);
}

static void wire_secure(struct wire *wire)
{
    ngx_connection_t *c = wire->connection;
    const char *trouble = store_tls_begin(wire->common->conf, c, wire->line->address.host);
    if (trouble != NULL) {
        wire_lose(wire, trouble);
        return;
    }
    if (ngx_ssl_handshake(c) == NGX_AGAIN)
        c->ssl->handler = wire_on_handshake;
    else
        wire_on_handshake(c);
}

#else

static void wire_secure(struct wire *wire)
{
    wire_lose(wire, NO_TLS); /* nginx -t refuses it */
}

#endif

static void wire_open(struct wire *wire)
{
    wire->is_open = true;
    link_connected(wire->line->link, ngx_current_msec);
    wire->common->happened();
    if (wire->connection->read->ready)
        wire_on_read(wire->connection->read);
}

static void wire_on_read(ngx_event_t *event)
{
    ngx_connection_t *c = event->data;
    struct wire *wire = c->data;
    wire->common->is_over |= c->close;
    const char *end = c->close ? IS_ENDING : wire_read(wire);
    if (end != NULL)
        wire_lose(wire, end);
    else
        wire->common->happened();
}

/* NULL: there is nothing more for now. */
static const char *wire_read(struct wire *wire)
{
    static u_char bytes[READ_BYTES]; /* the link keeps what it needs of them */
    ngx_connection_t *c = wire->connection;
    for (;;) {
        ssize_t len = c->recv(c, bytes, sizeof(bytes));
        if (len == NGX_AGAIN)
            return ngx_handle_read_event(c->read, 0) == NGX_OK ? NULL : IS_BROKEN;
        if (len <= 0)
            return end_of(wire, len);
        link_received(wire->line->link, (struct span){(const char *)bytes, (size_t)len}, ngx_current_msec);
    }
}

static const char *end_of(const struct wire *wire, ssize_t received)
{
    if (link_state(wire->line->link) == LINK_GREETING)
        return IS_STRANGE;
    return received == 0 ? IS_CLOSED : IS_BROKEN;
}

static void wire_on_write(ngx_event_t *event)
{
    ngx_connection_t *c = event->data;
    struct wire *wire = c->data;
    wire->common->happened();
}

/* What the socket does not take now is not asked for: the link still can take it back. */
void wire_write(struct store_line *line)
{
    struct wire *wire = line->connection;
    if (wire == NULL || !wire->is_open)
        return;
    ngx_connection_t *c = wire->connection;
    while (c->write->ready) {
        struct span bytes = link_output(line->link);
        ssize_t len = bytes.len > 0 ? c->send(c, (u_char *)bytes.data, bytes.len) : NGX_AGAIN;
        if (len == NGX_ERROR) {
            wire_lose(wire, IS_BROKEN);
            return;
        }
        if (len <= 0)
            break;
        link_sent(line->link, (size_t)len);
    }
    if (ngx_handle_write_event(c->write, 0) != NGX_OK)
        wire_lose(wire, IS_BROKEN);
}

/* ---- the end ---- */

void wire_hang_up(struct store_line *line)
{
    wire_lose(line->connection, IS_CLOSED);
}

void wire_drop(struct store_line *line)
{
    if (line->connection != NULL)
        wire_free(line->connection);
    line->connection = NULL;
}

static void wire_lose(struct wire *wire, const char *why)
{
    struct store_line *line = wire->line;
    void (*happened)(void) = wire->common->happened;
    wire_free(wire);
    line->connection = NULL;
    link_closed(line->link, why, ngx_current_msec);
    happened();
}

static void wire_free(struct wire *wire)
{
    ngx_connection_t *c = wire->connection;
    if (wire->resolving != NULL)
        ngx_resolve_name_done(wire->resolving);
    if (c != NULL) {
        ngx_pool_t *pool = c->pool;
#if (NGX_SSL)
        if (c->ssl != NULL) { /* without a goodbye, which might have to wait */
            c->ssl->no_wait_shutdown = 1;
            c->ssl->no_send_shutdown = 1;
            (void)ngx_ssl_shutdown(c);
        }
#endif
        ngx_close_connection(c);
        if (pool != NULL)
            ngx_destroy_pool(pool);
    }
    ngx_free(wire);
}
