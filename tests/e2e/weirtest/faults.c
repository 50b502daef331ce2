/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A disk in trouble: loaded before libc, it stands between nginx and the calls that write. The file $WEIR_FAULTS says what
 * becomes of them, a line each, and may be changed at any time:
 *
 *     fdatasync EIO        it fails, and nothing is done
 *     fdatasync 300        it takes 300 ms longer
 *
 * Every call is noted in $WEIR_FAULTS.log: its name, and what was done to it. Calls on files that lie outside the folder of
 * $WEIR_FAULTS_IN are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char control[4096], folder[4096];

/* nginx's workers have no environment, and write their title over where it was. */
__attribute__((constructor)) static void environment_keep(void)
{
    const char *file = getenv("WEIR_FAULTS"), *in = getenv("WEIR_FAULTS_IN");
    snprintf(control, sizeof(control), "%s", file != NULL ? file : "");
    snprintf(folder, sizeof(folder), "%s", in != NULL ? in : "");
}

static int is_watched(int fd)
{
    char link[64], target[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, target, sizeof(target) - 1);
    if (control[0] == '\0' || folder[0] == '\0' || len < 0)
        return 0;
    target[len] = '\0';
    return strncmp(target, folder, strlen(folder)) == 0;
}

static void note(const char *call, const char *fate)
{
    char path[4096], line[128];
    snprintf(path, sizeof(path), "%s.log", control);
    int len = snprintf(line, sizeof(line), "%s %s\n", call, fate);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0 && write(fd, line, (size_t)len) != len)
        abort();
    close(fd);
}

static int errno_of(const char *name)
{
    return strcmp(name, "ENOSPC") == 0 ? ENOSPC : strcmp(name, "EIO") == 0 ? EIO : EINVAL;
}

/* 0, or what the call has to fail with. */
static int fate_of(const char *call, int fd)
{
    char line[128], name[64], fate[64] = "";
    int saved = errno;
    if (!is_watched(fd))
        return 0;
    FILE *file = fopen(control, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "%63s %63s", name, fate) == 2 && strcmp(name, call) == 0)
            break;
        else
            fate[0] = '\0';
    if (file != NULL)
        fclose(file);
    note(call, fate[0] != '\0' ? fate : "done");
    if (fate[0] >= '0' && fate[0] <= '9')
        usleep((useconds_t)(1000 * strtoul(fate, NULL, 10)));
    errno = saved;
    return fate[0] == 'E' ? errno_of(fate) : 0;
}

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define CALL(name, parameters, fd, arguments) \
    int name parameters                       \
    {                                         \
        int error = fate_of(#name, fd);       \
        if (error == 0)                       \
            return REAL(name) arguments;      \
        errno = error;                        \
        return -1;                            \
    }

CALL(fdatasync, (int fildes), fildes, (fildes))
CALL(fsync, (int fd), fd, (fd))
CALL(fallocate, (int fd, int mode, off_t offset, off_t len), fd, (fd, mode, offset, len))

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    int error = fate_of("pwrite", fd);
    if (error == 0)
        return REAL(pwrite)(fd, buf, n, offset);
    errno = error;
    return -1;
}
