/* SPDX-License-Identifier: BSD-2-Clause */
/* Any error of a server: what comes of it is whole, and a place to go is one that can be written down. */
#include "base/must.h"
#include "redis/refusal.h"
#include "redis/slots.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct address asked = {"10.0.0.9", 7000};
    char text[ADDRESS_TEXT_MAX], *copy = malloc(size + 1);
    struct address again;
    memcpy(copy, data, size);
    struct refusal refusal = refusal_read((struct span){copy, size}, &asked);
    free(copy);
    must(refusal.word != NULL && refusal.deed <= REFUSAL_OPERATOR);
    must((refusal.deed == REFUSAL_FAILED) == (strcmp(refusal.word, "ERR") == 0));
    if (refusal.deed != REFUSAL_FOLLOW && refusal.deed != REFUSAL_ASK)
        return 0;
    must(refusal.slot < SLOTS && refusal.address.port > 0);
    must(address_read((struct span){text, address_write(&refusal.address, text)}, 1, &again));
    must(address_equal(&again, &refusal.address));
    return 0;
}
