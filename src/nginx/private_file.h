/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_PRIVATE_FILE_H
#define WEIR_NGINX_PRIVATE_FILE_H

/* A small file with a secret in it, which its owner alone may read: weir_secret_file, weir_admin_token_file, weir_pass_key. */

#include "nginx/conf.h"

#define PRIVATE_FILE_MAX   16384
#define PRIVATE_REASON_MAX 160

struct private_file {
    const char *what; /* "secret file": for a sentence about it */

    /* Takes what is in it, or says in `reason` why not, without quoting the text, which is wiped afterwards. */
    bool (*take)(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX]);
};

/* Reads the file that the directive being read names by `path`, relative to the folder of nginx.conf. */
char *private_file_read(ngx_conf_t *cf, const struct private_file *file, ngx_str_t path);

#endif
