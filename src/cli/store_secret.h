/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_STORE_SECRET_H
#define WEIR_CLI_STORE_SECRET_H

/* The password of a store: given in the URL, in the environment, or in a file. For store_options. */

#include "redis/store_url.h"

/* NULL, or a constant sentence why there is none. */
const char *store_secret_read(void *context, const struct store_login *login, struct store_text *out);

#endif
