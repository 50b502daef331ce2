/* SPDX-License-Identifier: BSD-2-Clause */
/* A file is read by whoever connects, so that a changed password is used without a reload. */
#include "nginx/store_secret.h"

static ngx_int_t variable_take(ngx_conf_t *cf, struct store_login *login);
static ngx_int_t file_check(ngx_conf_t *cf, struct store_login *login);
static const char *file_read(const char *path, struct store_text *out);
static const char *file_take(ngx_fd_t fd, struct store_text *out);

ngx_int_t store_secret_prepare(ngx_conf_t *cf, struct store_login *login)
{
    if (login->source == SECRET_ENVIRONMENT)
        return variable_take(cf, login);
    return login->source == SECRET_FILE ? file_check(cf, login) : NGX_OK;
}

static ngx_int_t variable_take(ngx_conf_t *cf, struct store_login *login)
{
    const char *value = getenv(login->secret.data);
    struct store_text password;
    const char *refusal = value == NULL
                              ? "The variable is not set (an nginx that replaces another needs an env of it)."
                              : store_password_read(span_of(value), &password);
    if (refusal != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir_store, password from the environment, \"%s\": %s",
                           login->secret.data, refusal);
        return NGX_ERROR;
    }
    login->source = SECRET_GIVEN;
    login->secret = password;
    ngx_explicit_memzero(&password, sizeof(password));
    return NGX_OK;
}

static ngx_int_t file_check(ngx_conf_t *cf, struct store_login *login)
{
    ngx_str_t path = {login->secret.len, (u_char *)login->secret.data};
    struct store_text password;
    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK)
        return NGX_ERROR;
    const char *refusal = path.len > STORE_TEXT_MAX ? "The path of the store's password file is too long."
                                                    : file_read((const char *)path.data, &password);
    if (refusal != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir_store, password from the file \"%V\": %s", &path,
                           refusal);
        return NGX_ERROR;
    }
    ngx_explicit_memzero(&password, sizeof(password));
    ngx_memmove(login->secret.data, path.data, path.len + 1);
    login->secret.len = path.len;
    return NGX_OK;
}

const char *store_secret_read(void *context, const struct store_login *login, struct store_text *out)
{
    if (login->source == SECRET_FILE)
        return file_read(login->secret.data, out);
    *out = login->secret;
    return NULL;
}

static const char *file_read(const char *path, struct store_text *out)
{
    ngx_fd_t fd = ngx_open_file((u_char *)path, NGX_FILE_RDONLY | NGX_FILE_NONBLOCK, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE)
        return ngx_errno == NGX_EACCES ? "The store's password file may not be read by this user."
                                       : "The store's password file cannot be opened.";
    const char *refusal = file_take(fd, out);
    ngx_close_file(fd);
    return refusal;
}

static const char *file_take(ngx_fd_t fd, struct store_text *out)
{
    ngx_file_info_t info = {.st_mode = 0};
    char text[STORE_PASSWORD_FILE_MAX];
    bool is_regular = ngx_fd_info(fd, &info) != NGX_FILE_ERROR && ngx_is_file(&info);
    const char *refusal =
        store_password_file_refusal(is_regular, ngx_file_access(&info), (uint64_t)ngx_file_size(&info));
    if (refusal != NULL)
        return refusal;
    ssize_t len = ngx_read_fd(fd, text, sizeof(text));
    refusal = len < 0 ? "The store's password file cannot be read."
                      : store_password_read((struct span){text, (size_t)len}, out);
    ngx_explicit_memzero(text, sizeof(text));
    return refusal;
}
