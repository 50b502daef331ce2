/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The certificate's name is checked by OpenSSL as a part of the verification, for that knows addresses too, which
 * ngx_ssl_check_host does not: rediss://10.0.0.1 is checked against the addresses in the certificate.
 *
 * OpenSSL is nginx's: its SSL functions are found in the nginx that loads the module.
 */
#include "nginx/store_tls.h"

#if (NGX_SSL)

#define PROTOCOLS (NGX_SSL_TLSv1_2 | NGX_SSL_TLSv1_3)
#define DEPTH     9

static ngx_int_t trust_set(ngx_conf_t *cf, ngx_ssl_t *ssl, const struct store_tls *tls);
static ngx_int_t certificate_set(ngx_conf_t *cf, ngx_ssl_t *ssl, const struct store_tls *tls);
static ngx_str_t path_of(ngx_conf_t *cf, const struct store_text *text);
static bool is_literal(const char *host);

ngx_int_t store_tls_prepare(ngx_conf_t *cf, struct store_conf *store)
{
    const struct store_tls *tls = &store->url.tls;
    if (!tls->is_on)
        return NGX_OK;
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_ssl_t));
    if (cleanup == NULL)
        return NGX_ERROR;
    ngx_ssl_t *ssl = cleanup->data;
    ngx_memzero(ssl, sizeof(*ssl));
    ssl->log = cf->log;
    if (ngx_ssl_create(ssl, PROTOCOLS, NULL) != NGX_OK)
        return NGX_ERROR;
    cleanup->handler = ngx_ssl_cleanup_ctx;
    /* What a link has to say may move, and grow, before the rest of it is written. */
    SSL_CTX_set_mode(ssl->ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_ENABLE_PARTIAL_WRITE);
    store->ssl = ssl;
    return trust_set(cf, ssl, tls) == NGX_OK ? certificate_set(cf, ssl, tls) : NGX_ERROR;
}

static ngx_int_t trust_set(ngx_conf_t *cf, ngx_ssl_t *ssl, const struct store_tls *tls)
{
    if (tls->ca.len > 0) {
        ngx_str_t ca = path_of(cf, &tls->ca);
        return ca.data == NULL ? NGX_ERROR : ngx_ssl_trusted_certificate(cf, ssl, &ca, DEPTH);
    }
    if (SSL_CTX_set_default_verify_paths(ssl->ctx) == 1)
        return NGX_OK;
    ngx_ssl_error(NGX_LOG_EMERG, cf->log, 0, "weir_store: what the system trusts cannot be read");
    return NGX_ERROR;
}

static ngx_int_t certificate_set(ngx_conf_t *cf, ngx_ssl_t *ssl, const struct store_tls *tls)
{
    if (tls->cert.len == 0)
        return NGX_OK;
    ngx_str_t certificate = path_of(cf, &tls->cert), key = path_of(cf, &tls->key);
    if (certificate.data == NULL || key.data == NULL)
        return NGX_ERROR;
    return ngx_ssl_certificate(cf, ssl, &certificate, &key, NULL);
}

/* For nginx, which makes it whole. */
static ngx_str_t path_of(ngx_conf_t *cf, const struct store_text *text)
{
    ngx_str_t whole = {text->len + 1, (u_char *)text->data};
    u_char *copy = ngx_pstrdup(cf->pool, &whole);
    return (ngx_str_t){text->len, copy};
}

const char *store_tls_begin(const struct store_conf *store, ngx_connection_t *connection, const char *host)
{
    static const char no_memory[] = "There is no memory for TLS.";
    const struct store_tls *tls = &store->url.tls;
    const char *name = tls->name.len > 0 ? tls->name.data : host;
    if (ngx_ssl_create_connection(store->ssl, connection, NGX_SSL_CLIENT) != NGX_OK)
        return no_memory;
    SSL *ssl = connection->ssl->connection;
    if (!is_literal(name) && SSL_set_tlsext_host_name(ssl, name) != 1)
        return no_memory;
    if (tls->verify != STORE_VERIFY_FULL)
        return NULL;
    X509_VERIFY_PARAM *expected = SSL_get0_param(ssl);
    bool is_set = is_literal(name) ? X509_VERIFY_PARAM_set1_ip_asc(expected, name) == 1
                                   : X509_VERIFY_PARAM_set1_host(expected, name, 0) == 1;
    return is_set ? NULL : no_memory;
}

const char *store_tls_judge(const struct store_conf *store, ngx_connection_t *connection)
{
    if (store->url.tls.verify == STORE_VERIFY_NONE)
        return NULL;
    X509 *certificate = SSL_get_peer_certificate(connection->ssl->connection);
    if (certificate == NULL) /* then OpenSSL has nothing to object to */
        return "The server shows no certificate.";
    X509_free(certificate);
    switch (SSL_get_verify_result(connection->ssl->connection)) {
    case X509_V_OK:
        return NULL;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "The server's certificate is for another name.";
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "The server's certificate has expired.";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "The server's certificate is not valid yet.";
    default:
        return "The server's certificate is not one that we trust.";
    }
}

static bool is_literal(const char *host)
{
    size_t len = ngx_strlen(host);
    u_char ipv6[16];
    return ngx_inet_addr((u_char *)host, len) != INADDR_NONE ||
           ngx_inet6_addr((u_char *)host, len, ipv6) == NGX_OK;
}

#else

ngx_int_t store_tls_prepare(ngx_conf_t *cf, struct store_conf *store)
{
    if (!store->url.tls.is_on)
        return NGX_OK;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir_store: this nginx was built without TLS");
    return NGX_ERROR;
}

#endif
