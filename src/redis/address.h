/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_ADDRESS_H
#define WEIR_REDIS_ADDRESS_H

/* Where a server listens: a host name or an IP address, and a port. */

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_HOST_MAX 253                            /* characters of a name of the DNS */
#define ADDRESS_TEXT_MAX (ADDRESS_HOST_MAX + 2 + 6 + 1) /* with brackets, colon, port and NUL */

struct address {
    char host[ADDRESS_HOST_MAX + 1]; /* without brackets; NUL-terminated */
    uint16_t port;                   /* never 0 */
};

/* As people write it: `host`, `host:port`, `[ipv6]`, `[ipv6]:port`. False for anything else; `out` is then undefined. */
bool address_read(struct span text, uint16_t default_port, struct address *out);

/*
 * As servers write it in MOVED and ASK: `host:port`, an IPv6 address without brackets, and an empty host for "the one that you
 * asked", which is `asked`.
 */
bool address_read_told(struct span text, const struct address *asked, struct address *out);

/* From a host and a port that came apart, as in the replies of CLUSTER SLOTS and SENTINEL. */
bool address_make(struct span host, uint64_t port, struct address *out);

/* Names are compared without case. */
bool address_equal(const struct address *a, const struct address *b);

/* As address_read reads it, NUL-terminated; returns its length. */
size_t address_write(const struct address *address, char out[ADDRESS_TEXT_MAX]);

#endif
