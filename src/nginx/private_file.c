/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Such a file is read while the configuration is, by the master and by nginx -t, so that a wrong one is refused before it
 * matters and workers need no right to read it.
 */
#include "nginx/private_file.h"

#include <openssl/crypto.h>

static char *file_take(ngx_conf_t *cf, const struct private_file *file, ngx_str_t path, ngx_fd_t fd);
static const char *file_problem(const ngx_file_info_t *info);

char *private_file_read(ngx_conf_t *cf, const struct private_file *file, ngx_str_t path)
{
    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK)
        return NGX_CONF_ERROR;
    ngx_fd_t fd = ngx_open_file(path.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno, "the %s \"%V\" cannot be read", file->what, &path);
        return NGX_CONF_ERROR;
    }
    char *answer = file_take(cf, file, path, fd);
    ngx_close_file(fd);
    return answer;
}

static char *file_take(ngx_conf_t *cf, const struct private_file *file, ngx_str_t path, ngx_fd_t fd)
{
    ngx_file_info_t info;
    const char *problem = ngx_fd_info(fd, &info) == NGX_FILE_ERROR ? "cannot be read" : file_problem(&info);
    if (problem != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the %s \"%V\" %s", file->what, &path, problem);
        return NGX_CONF_ERROR;
    }
    char text[PRIVATE_FILE_MAX], reason[PRIVATE_REASON_MAX] = "out of memory";
    ssize_t len = ngx_read_fd(fd, text, sizeof(text));
    if (len == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno, "the %s \"%V\" cannot be read", file->what, &path);
        return NGX_CONF_ERROR;
    }
    bool is_taken = file->take(cf, (struct span){text, (size_t)len}, reason);
    OPENSSL_cleanse(text, sizeof(text));
    if (is_taken)
        return NGX_CONF_OK;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the %s \"%V\" is refused: %s", file->what, &path, reason);
    return NGX_CONF_ERROR;
}

static const char *file_problem(const ngx_file_info_t *info)
{
    if (!ngx_is_file(info))
        return "is not a regular file";
    if (ngx_file_access(info) & 0077)
        return "can be read or written by others than its owner: chmod 600 it";
    if (ngx_file_size(info) > PRIVATE_FILE_MAX)
        return "is longer than 16384 bytes";
    return NULL;
}
