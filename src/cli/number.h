/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_NUMBER_H
#define WEIR_CLI_NUMBER_H

/*
 * Numbers as people type and read them. Decimals are kept in thousandths, shares in thousandths of a percent: what is
 * typed is what is computed with, to the last digit.
 */

#include <stdbool.h>
#include <stdint.h>

#define NUMBER_TEXT_MAX 48

/* 100 %. */
#define SHARE_WHOLE 100000u

/* Each reads the whole text or returns false. No sign, no exponent, no separators; at most 12 digits before the dot. */
bool number_read_whole(const char *text, uint64_t *out);
bool number_read_milli(const char *text, uint64_t *out);

/* `15%`, `12.5%`, or a fraction of one: `0.15`, `1`. A bare number above one is refused: it may mean either. */
bool number_read_share(const char *text, uint64_t *out);

/* 1234567 -> 1,234,567. The buffer is returned. */
char *number_group(uint64_t number, char out[NUMBER_TEXT_MAX]);

/* Thousandths, without needless zeros: 6900 -> 6.9, 1234000 -> 1,234. */
char *number_milli(uint64_t milli, char out[NUMBER_TEXT_MAX]);

/* 80000 -> 80% */
char *number_share(uint64_t share, char out[NUMBER_TEXT_MAX]);

/* The same as a fraction of one: 80000 -> 0.8 */
char *number_fraction(uint64_t share, char out[NUMBER_TEXT_MAX]);

/* 45 s · 6 min 15 s · 1 h 05 min · 3 d 4 h */
char *number_duration(uint64_t seconds, char out[NUMBER_TEXT_MAX]);

#endif
