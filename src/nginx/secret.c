/* SPDX-License-Identifier: BSD-2-Clause */
/* What stays in memory of the secret is the keyring. */
#include "nginx/secret.h"

#include "nginx/private_file.h"
#include "token/keyring.h"

_Static_assert(KEYRING_REASON_MAX <= PRIVATE_REASON_MAX, "the keyring's reasons fit");

static bool keys_make(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX]);
static void keys_free(void *keys);

char *secret_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    static const struct private_file file = {"secret file", keys_make};
    struct main_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    return conf->keys != NULL ? "is duplicate" : private_file_read(cf, &file, words[1]);
}

static bool keys_make(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX])
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    conf->keys = cleanup != NULL ? keyring_new(text, reason) : NULL;
    if (conf->keys == NULL)
        return false;
    cleanup->handler = keys_free;
    cleanup->data = conf->keys;
    return true;
}

static void keys_free(void *keys)
{
    keyring_free(keys);
}
