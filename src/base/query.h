/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_QUERY_H
#define WEIR_BASE_QUERY_H

/*
 * Reads one parameter of a raw query string, and the last segment of a path.
 *
 * Only the parameter that is asked for is judged: what else a client appends (trackers, half an escape) is
 * not ours. Parameters are separated by `&`; names compare after decoding (`%74oken` is `token`),
 * case-sensitively; the value is what follows the first `=`, and a parameter without `=` has an empty value.
 */

#include "base/error.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The percent-decoded value of `name` (`+` is a space), always a copy in `out`: the raw text may then be
 * masked in place. A parameter that is absent gives a value with data NULL; one that is empty does not.
 * ERROR_INVALID_REQUEST: the name occurs twice, or its value has a bad escape, a NUL, or more than `cap`
 * bytes.
 */
enum error query_find(struct span args, struct span name, char *out, size_t cap, struct span *value);

/*
 * Walks the occurrences of `name` from `*at` (0 at first): true with the raw value, a part of `args`, and
 * `*at` moved behind it; false when there are no more. It finds what query_find would refuse, too: whoever
 * masks a secret in the log must mask every occurrence.
 */
bool query_next(struct span args, struct span name, size_t *at, struct span *raw);

/*
 * True if `uri` (already normalised) is `prefix`, which ends in '/', and exactly one more segment, not empty,
 * which `tail` then is.
 */
bool path_tail(struct span uri, struct span prefix, struct span *tail);

#endif
