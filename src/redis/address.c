/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host is judged by its characters alone: whether there is such a one, the resolver says. That is enough to keep out what could
 * be half of a mistyped password, or would break a log line.
 */
#include "redis/address.h"

#include "base/ascii.h"
#include "base/decimal.h"
#include "base/must.h"

#include <stdio.h>
#include <strings.h>

static bool port_read(struct span text, uint64_t *port);
static bool is_ipv6(struct span host);
static bool is_name(struct span host);
static const char *last_colon(struct span text);

bool address_read(struct span text, uint16_t default_port, struct address *out)
{
    bool is_bracketed = text.len > 0 && text.data[0] == '[';
    const char *end = text.len == 0 ? NULL : memchr(text.data, is_bracketed ? ']' : ':', text.len);
    if (is_bracketed && end == NULL)
        return false;
    size_t used = end == NULL ? text.len : (size_t)(end - text.data) + is_bracketed;
    struct span host = is_bracketed ? (struct span){text.data + 1, used - 2} : (struct span){text.data, used};
    struct span rest = {text.data + used, text.len - used};
    uint64_t port = default_port;
    if (is_bracketed && !is_ipv6(host))
        return false;
    if (rest.len > 0 &&
        (rest.data[0] != ':' || !port_read((struct span){rest.data + 1, rest.len - 1}, &port)))
        return false;
    return address_make(host, port, out);
}

bool address_read_told(struct span text, const struct address *asked, struct address *out)
{
    const char *colon = last_colon(text);
    uint64_t port;
    if (colon == NULL)
        return false;
    struct span host = {text.data, (size_t)(colon - text.data)};
    if (!port_read((struct span){colon + 1, text.len - host.len - 1}, &port))
        return false;
    return address_make(host.len == 0 ? span_of(asked->host) : host, port, out);
}

bool address_make(struct span host, uint64_t port, struct address *out)
{
    if (host.len == 0 || host.len > ADDRESS_HOST_MAX || port == 0 || port > UINT16_MAX)
        return false;
    if (!is_name(host) && !is_ipv6(host))
        return false;
    memcpy(out->host, host.data, host.len);
    out->host[host.len] = '\0';
    out->port = (uint16_t)port;
    return true;
}

bool address_equal(const struct address *a, const struct address *b)
{
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

size_t address_write(const struct address *address, char out[ADDRESS_TEXT_MAX])
{
    bool is_bracketed = is_ipv6(span_of(address->host));
    int len = snprintf(out, ADDRESS_TEXT_MAX, "%s%s%s:%u", is_bracketed ? "[" : "", address->host,
                       is_bracketed ? "]" : "", address->port);
    must(len > 0 && len < ADDRESS_TEXT_MAX);
    return (size_t)len;
}

static bool port_read(struct span text, uint64_t *port)
{
    return text.len <= 5 && decimal_read(text, 0, port);
}

/* An IPv4 address may stand at its end. */
static bool is_ipv6(struct span host)
{
    if (host.len < 2 || memchr(host.data, ':', host.len) == NULL)
        return false;
    for (size_t i = 0; i < host.len; i++)
        if (strchr("0123456789abcdefABCDEF:.", host.data[i]) == NULL || host.data[i] == '\0')
            return false;
    return true;
}

static bool is_name(struct span host)
{
    for (size_t i = 0; i < host.len; i++)
        if (!ascii_is_alnum(host.data[i]) && host.data[i] != '.' && host.data[i] != '-' &&
            host.data[i] != '_')
            return false;
    return host.len > 0 && host.data[0] != '-' && host.data[0] != '.';
}

static const char *last_colon(struct span text)
{
    for (size_t i = text.len; i > 0; i--)
        if (text.data[i - 1] == ':')
            return text.data + i - 1;
    return NULL;
}
