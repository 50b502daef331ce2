/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The secret is read while the configuration is, by the master and by nginx -t, so that a wrong file is refused before it
 * matters and workers need no right to read it. What stays in memory is the keyring; the text is wiped.
 */
#include "nginx/secret.h"

#include "token/keyring.h"

#include <openssl/crypto.h>

#define SECRET_FILE_MAX 16384

static char *secret_read(ngx_conf_t *cf, ngx_str_t path, ngx_fd_t fd, struct main_conf *conf);
static const char *file_problem(const ngx_file_info_t *info);
static char *keys_make(ngx_conf_t *cf, ngx_str_t path, struct span text, struct main_conf *conf);
static void keys_free(void *keys);

char *secret_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct main_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->keys != NULL)
        return "is duplicate";
    ngx_str_t path = words[1];
    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK)
        return NGX_CONF_ERROR;
    ngx_fd_t fd = ngx_open_file(path.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno, "the secret file \"%V\" cannot be read", &path);
        return NGX_CONF_ERROR;
    }
    char *answer = secret_read(cf, path, fd, conf);
    ngx_close_file(fd);
    return answer;
}

static char *secret_read(ngx_conf_t *cf, ngx_str_t path, ngx_fd_t fd, struct main_conf *conf)
{
    ngx_file_info_t info;
    const char *problem = ngx_fd_info(fd, &info) == NGX_FILE_ERROR ? "cannot be read" : file_problem(&info);
    if (problem != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the secret file \"%V\" %s", &path, problem);
        return NGX_CONF_ERROR;
    }
    char text[SECRET_FILE_MAX];
    ssize_t len = ngx_read_fd(fd, text, sizeof(text));
    if (len == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno, "the secret file \"%V\" cannot be read", &path);
        return NGX_CONF_ERROR;
    }
    char *answer = keys_make(cf, path, (struct span){text, (size_t)len}, conf);
    OPENSSL_cleanse(text, sizeof(text));
    return answer;
}

static const char *file_problem(const ngx_file_info_t *info)
{
    if (!ngx_is_file(info))
        return "is not a regular file";
    if (ngx_file_access(info) & 0077)
        return "can be read or written by others than its owner: chmod 600 it";
    if (ngx_file_size(info) > SECRET_FILE_MAX)
        return "is longer than 16384 bytes";
    return NULL;
}

static char *keys_make(ngx_conf_t *cf, ngx_str_t path, struct span text, struct main_conf *conf)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    if (cleanup == NULL)
        return NGX_CONF_ERROR;
    char reason[KEYRING_REASON_MAX];
    conf->keys = keyring_new(text, reason);
    if (conf->keys == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the secret file \"%V\" is refused: %s", &path, reason);
        return NGX_CONF_ERROR;
    }
    cleanup->handler = keys_free;
    cleanup->data = conf->keys;
    return NGX_CONF_OK;
}

static void keys_free(void *keys)
{
    keyring_free(keys);
}
