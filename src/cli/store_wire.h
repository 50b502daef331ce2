/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_STORE_WIRE_H
#define WEIR_CLI_STORE_WIRE_H

/*
 * One connection to a server of a store, with or without TLS. Connecting waits; after that nothing does.
 *
 * What goes wrong is said in constant sentences, as redis/link.h wants them.
 */

#include "redis/store_url.h"

#include <openssl/ssl.h>
#include <sys/types.h>

/* Whom to trust and who we are. NULL: `why` says it. Without TLS `out` stays NULL. */
bool store_tls_new(const struct store_tls *tls, SSL_CTX **out, const char **why);

struct store_wire;

/* Within so many milliseconds for each address of the host. NULL: `why` says it. */
struct store_wire *store_wire_new(const struct address *address, const struct store_tls *tls,
                                  SSL_CTX *context, uint32_t timeout_ms, const char **why);
void store_wire_free(struct store_wire *wire);

int store_wire_fd(const struct store_wire *wire);

/* Bytes that came or went; 0: none for now; -1: it is over. */
ssize_t store_wire_read(struct store_wire *wire, char *bytes, size_t size);
ssize_t store_wire_write(struct store_wire *wire, struct span bytes);

#endif
