/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's rule for the file: its group may read it, for workers are seldom its owner, and nobody else. */
#include "cli/store_secret.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (STORE_TEXT_MAX + 2) /* and a line end */

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
    struct stat info;
    char text[FILE_MAX];
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return "The store's password file is not a regular file.";
    if ((info.st_mode & 0027) != 0)
        return "The store's password file can be read by everybody, or written by others than its owner: "
               "chmod 640 it.";
    if (info.st_size > FILE_MAX)
        return "The store's password file is longer than a password can be.";
    ssize_t len = read(fd, text, sizeof(text));
    const char *refusal = len < 0 ? "The store's password file cannot be read."
                                  : store_password_read((struct span){text, (size_t)len}, out);
    explicit_bzero(text, sizeof(text));
    return refusal;
}
