/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's own time limits of a socket bound connect and the TLS handshake, so that neither needs a loop. The certificate's
 * name is checked by OpenSSL as a part of the verification, for that knows addresses too.
 */
#include "cli/store_wire.h"

#include "cli/say.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct store_wire {
    int fd;
    SSL *ssl; /* NULL: without TLS */
};

static const char *trust_set(SSL_CTX *context, const struct store_tls *tls);
static int host_connect(const struct address *address, uint32_t timeout_ms, const char **why);
static int socket_connect(const struct addrinfo *to, uint32_t timeout_ms, const char **why);
static const char *tls_begin(struct store_wire *wire, const struct address *address,
                             const struct store_tls *tls, SSL_CTX *context);
static bool name_expect(SSL *ssl, const char *name, enum store_verify verify);
static const char *tls_refusal(const SSL *ssl);
static ssize_t tls_moved(const struct store_wire *wire, int result);

bool store_tls_new(const struct store_tls *tls, SSL_CTX **out, const char **why)
{
    *out = NULL;
    *why = NULL;
    if (!tls->is_on)
        return true;
    SSL_CTX *context = say_no_memory_if_null(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, tls->verify == STORE_VERIFY_NONE ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    *why = trust_set(context, tls);
    if (*why == NULL)
        *out = context;
    else
        SSL_CTX_free(context);
    return *why == NULL;
}

static const char *trust_set(SSL_CTX *context, const struct store_tls *tls)
{
    if (tls->ca.len > 0 ? SSL_CTX_load_verify_file(context, tls->ca.data) != 1
                        : SSL_CTX_set_default_verify_paths(context) != 1)
        return "The certificates that are to be trusted cannot be read.";
    if (tls->cert.len > 0 && (SSL_CTX_use_certificate_chain_file(context, tls->cert.data) != 1 ||
                              SSL_CTX_use_PrivateKey_file(context, tls->key.data, SSL_FILETYPE_PEM) != 1))
        return "The client's certificate and key cannot be read, or do not belong together.";
    return NULL;
}

struct store_wire *store_wire_new(const struct address *address, const struct store_tls *tls,
                                  SSL_CTX *context, uint32_t timeout_ms, const char **why)
{
    int fd = host_connect(address, timeout_ms, why);
    if (fd == -1)
        return NULL;
    struct store_wire *wire = say_no_memory_if_null(calloc(1, sizeof(*wire)));
    wire->fd = fd;
    *why = context == NULL ? NULL : tls_begin(wire, address, tls, context);
    if (*why == NULL && fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        *why = "A connection could not be made.";
    if (*why == NULL)
        return wire;
    store_wire_free(wire);
    return NULL;
}

void store_wire_free(struct store_wire *wire)
{
    if (wire == NULL)
        return;
    SSL_free(wire->ssl);
    (void)close(wire->fd);
    free(wire);
}

int store_wire_fd(const struct store_wire *wire)
{
    return wire->fd;
}

/* The first of its addresses that somebody answers at. -1: none. */
static int host_connect(const struct address *address, uint32_t timeout_ms, const char **why)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char port[8];
    int fd = -1;
    (void)snprintf(port, sizeof(port), "%u", address->port);
    if (getaddrinfo(address->host, port, &hints, &found) != 0) {
        *why = "The name of the host is not known.";
        return -1;
    }
    for (const struct addrinfo *to = found; fd == -1 && to != NULL; to = to->ai_next)
        fd = socket_connect(to, timeout_ms, why);
    freeaddrinfo(found);
    return fd;
}

static int socket_connect(const struct addrinfo *to, uint32_t timeout_ms, const char **why)
{
    const struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    int on = 1, fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol);
    *why = "A connection could not be made.";
    if (fd == -1)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
        connect(fd, to->ai_addr, to->ai_addrlen) == 0)
        return fd;
    if (errno == ECONNREFUSED)
        *why = "Nobody listens there.";
    else if (errno == EINPROGRESS)
        *why = "Nobody answered in time.";
    else if (errno == EHOSTUNREACH || errno == ENETUNREACH)
        *why = "There is no way to the host.";
    (void)close(fd);
    return -1;
}

/* ---- TLS ---- */

static const char *tls_begin(struct store_wire *wire, const struct address *address,
                             const struct store_tls *tls, SSL_CTX *context)
{
    const char *name = tls->name.len > 0 ? tls->name.data : address->host;
    wire->ssl = say_no_memory_if_null(SSL_new(context));
    if (!name_expect(wire->ssl, name, tls->verify) || SSL_set_fd(wire->ssl, wire->fd) != 1)
        return "TLS could not be begun.";
    return SSL_connect(wire->ssl) == 1 ? NULL : tls_refusal(wire->ssl);
}

static bool name_expect(SSL *ssl, const char *name, enum store_verify verify)
{
    unsigned char literal[sizeof(struct in6_addr)];
    bool is_literal = inet_pton(AF_INET, name, literal) == 1 || inet_pton(AF_INET6, name, literal) == 1;
    /* SSL_set_tlsext_host_name is this, but for the const that it casts away where everybody sees it. */
    if (!is_literal &&
        SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)name) != 1)
        return false;
    if (verify != STORE_VERIFY_FULL)
        return true;
    return is_literal ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1
                      : SSL_set1_host(ssl, name) == 1;
}

static const char *tls_refusal(const SSL *ssl)
{
    switch (SSL_get_verify_result(ssl)) {
    case X509_V_OK:
        return "TLS could not be agreed on.";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "The server's certificate is for another name.";
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "The server's certificate has expired.";
    default:
        return "The server's certificate is not one that is trusted.";
    }
}

/* ---- bytes ---- */

ssize_t store_wire_read(struct store_wire *wire, char *bytes, size_t size)
{
    if (wire->ssl != NULL)
        return tls_moved(wire, SSL_read(wire->ssl, bytes, (int)(size < INT_MAX ? size : INT_MAX)));
    ssize_t got = recv(wire->fd, bytes, size, 0);
    if (got > 0)
        return got;
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

ssize_t store_wire_write(struct store_wire *wire, struct span bytes)
{
    if (wire->ssl != NULL)
        return tls_moved(wire,
                         SSL_write(wire->ssl, bytes.data, (int)(bytes.len < INT_MAX ? bytes.len : INT_MAX)));
    ssize_t sent = send(wire->fd, bytes.data, bytes.len, MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static ssize_t tls_moved(const struct store_wire *wire, int result)
{
    if (result > 0)
        return result;
    int error = SSL_get_error(wire->ssl, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}
