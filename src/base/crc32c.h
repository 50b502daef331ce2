/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_CRC32C_H
#define WEIR_BASE_CRC32C_H

/*
 * CRC-32C (Castagnoli), as in RFC 3720: finds every error in up to 32 bits in a row, and all others but one in 2^32. It guards
 * against accidents, not against people.
 */

#include <stddef.h>
#include <stdint.h>

/* The checksum of what `seed` is the checksum of, followed by these bytes. `seed` is 0 at first. */
uint32_t crc32c(uint32_t seed, const void *data, size_t len);

/* The same without the processor's own instruction: for machines that have none, and for the test that compares the two. */
uint32_t crc32c_portable(uint32_t seed, const void *data, size_t len);

#endif
