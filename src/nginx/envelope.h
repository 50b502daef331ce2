/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_ENVELOPE_H
#define WEIR_NGINX_ENVELOPE_H

/* Refusals that nginx itself makes in a location of the API: its HTML page becomes our envelope. */

#include "nginx/conf.h"

/* Puts the two output filters in place. */
ngx_int_t envelope_init(ngx_conf_t *cf);

#endif
