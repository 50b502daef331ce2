/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text for an INFO: what is warned of has a name and can be true at once with the rest. */
#include "base/must.h"
#include "redis/probe.h"

#include <stdlib.h>

#define BIT(warning) (1U << PROBE_##warning)

static bool both(uint32_t found, uint32_t bits)
{
    return (found & bits) == bits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* First byte: replicas= and what CONFIG GET says. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *copy = malloc(size);
    memcpy(copy, data + 1, size - 1);
    struct probe probe = {
        .info = {copy, size - 1},
        .appendfsync = (data[0] & 8) != 0 ? SPAN("no") : SPAN_NONE,
        .replicas = data[0] & 7,
    };
    uint32_t found = probe_read(&probe);
    free(copy);
    must(found < 1U << PROBE_COUNT);
    must(!both(found, BIT(NO_AOF) | BIT(AOF_NOT_SYNCED)));
    must(!both(found, BIT(NO_REPLICA) | BIT(UNASKED_REPLICAS)));
    must(!both(found, BIT(TOO_FEW_REPLICAS) | BIT(UNASKED_REPLICAS)));
    must((found & BIT(TOO_FEW_REPLICAS)) == 0 || probe.replicas > 0);
    for (int i = 0; i < PROBE_COUNT; i++)
        must(probe_name((enum probe_warning)i)[0] != '\0' &&
             probe_sentence((enum probe_warning)i)[0] != '\0');
    return 0;
}
