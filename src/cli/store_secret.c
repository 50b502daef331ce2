/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule for the file is the one that nginx goes by (store_url.h): what this command can use, a worker can. */
#include "cli/store_secret.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *file_read(const char *path, struct store_text *out);
static const char *file_take(int fd, struct store_text *out);

const char *store_secret_read(void *context, const struct store_login *login, struct store_text *out)
{
    (void)context;
    if (login->source == SECRET_FILE)
        return file_read(login->secret.data, out);
    if (login->source != SECRET_ENVIRONMENT) {
        *out = login->secret;
        return NULL;
    }
    const char *value = getenv(login->secret.data);
    return value == NULL ? "The variable with the store's password is not set."
                         : store_password_read(span_of(value), out);
}

static const char *file_read(const char *path, struct store_text *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd == -1)
        return "The store's password file cannot be opened.";
    const char *refusal = file_take(fd, out);
    (void)close(fd);
    return refusal;
}

static const char *file_take(int fd, struct store_text *out)
{
    struct stat info = {.st_mode = 0};
    char text[STORE_PASSWORD_FILE_MAX];
    bool is_regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const char *refusal = store_password_file_refusal(is_regular, info.st_mode, (uint64_t)info.st_size);
    if (refusal != NULL)
        return refusal;
    ssize_t len = read(fd, text, sizeof(text));
    refusal = len < 0 ? "The store's password file cannot be read."
                      : store_password_read((struct span){text, (size_t)len}, out);
    explicit_bzero(text, sizeof(text));
    return refusal;
}
