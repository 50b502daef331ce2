/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that does not say whether it is a cluster is refused: a guess would work until the first key of another node. */
#include "redis/peer.h"

#include "base/ascii.h"
#include "base/decimal.h"
#include "base/words.h"

static bool mode_read(struct span server, enum peer_mode *mode);
static bool role_read(struct span replication, struct peer *out);
static void text_read(struct span info, struct span name, char *out, size_t max);

const char *peer_read(struct span server, struct span replication, struct peer *out)
{
    struct span value;
    *out = (struct peer){.is_primary = false};
    if (!mode_read(server, &out->mode))
        return "The server does not say whether it is a cluster.";
    if (out->mode != PEER_SENTINEL && !role_read(replication, out))
        return "The server does not say whether it is a primary.";
    text_read(server, SPAN("run_id"), out->run_id, PEER_RUN_ID_MAX);
    out->is_valkey = peer_find(server, SPAN("valkey_version"), &value);
    text_read(server, out->is_valkey ? SPAN("valkey_version") : SPAN("redis_version"), out->version,
              PEER_VERSION_MAX);
    return NULL;
}

bool peer_find(struct span info, struct span name, struct span *value)
{
    while (info.len > 0) {
        struct span line = words_take_line(&info);
        if (line.len > 0 && line.data[line.len - 1] == '\r')
            line.len--;
        if (line.len <= name.len || line.data[name.len] != ':' || memcmp(line.data, name.data, name.len) != 0)
            continue;
        *value = (struct span){line.data + name.len + 1, line.len - name.len - 1};
        return true;
    }
    return false;
}

/* Valkey 8 calls it by another name, unless it is told to be like Redis. */
static bool mode_read(struct span server, enum peer_mode *mode)
{
    static const struct span words[] = {SPAN("standalone"), SPAN("cluster"), SPAN("sentinel")};
    struct span value;
    if (!peer_find(server, SPAN("redis_mode"), &value) && !peer_find(server, SPAN("server_mode"), &value))
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (span_equal(value, words[i])) {
            *mode = (enum peer_mode)i;
            return true;
        }
    return false;
}

static bool role_read(struct span replication, struct peer *out)
{
    struct span value;
    uint64_t replicas;
    if (!peer_find(replication, SPAN("role"), &value))
        return false;
    out->is_primary = span_equal(value, SPAN("master"));
    if (out->is_primary && peer_find(replication, SPAN("connected_slaves"), &value) &&
        decimal_read(value, 0, &replicas) && replicas <= UINT32_MAX)
        out->replicas = (uint32_t)replicas;
    return true;
}

/* What is too long or could break a log line counts as not told. */
static void text_read(struct span info, struct span name, char *out, size_t max)
{
    struct span value;
    if (!peer_find(info, name, &value) || value.len > max || !ascii_all_visible(value))
        value = SPAN("");
    memcpy(out, value.data, value.len);
    out[value.len] = '\0';
}
