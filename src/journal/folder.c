/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names are resolved against a descriptor of the folder, so that nobody needs its path again and a moved folder stays ours.
 * Links are not followed: the folder belongs to nginx's workers, but the one who recovers it at start is root.
 *
 * A sync that was interrupted counts as failed like any other: after a failure the kernel may have dropped the pages that it
 * could not write, and a second try would report a success that never was.
 */
#define _GNU_SOURCE /* fallocate */
#include "journal/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

static int file_open(struct disk *disk, const char *name, enum disk_open how);
static int file_close(struct disk *disk, int file);
static int64_t file_read(struct disk *disk, int file, void *out, size_t len, uint64_t offset);
static int file_write(struct disk *disk, int file, const void *data, size_t len, uint64_t offset);
static int file_sync(struct disk *disk, int file);
static int file_allocate(struct disk *disk, int file, uint64_t bytes);
static int64_t file_size(struct disk *disk, int file);
static int file_rename(struct disk *disk, const char *from, const char *to);
static int file_remove(struct disk *disk, const char *name);
static int folder_sync(struct disk *disk);
static int folder_list(struct disk *disk, void (*each)(void *context, const char *name), void *context);
static void machine_boot(struct disk *disk, unsigned char id[DISK_BOOT_BYTES]);

int folder_open(struct folder *folder, const char *path)
{
    return folder_open_at(folder, AT_FDCWD, path);
}

int folder_open_at(struct folder *folder, int fd, const char *path)
{
    folder->disk = (struct disk){
        .open = file_open,
        .close = file_close,
        .read = file_read,
        .write = file_write,
        .sync = file_sync,
        .allocate = file_allocate,
        .size = file_size,
        .rename = file_rename,
        .remove = file_remove,
        .sync_folder = folder_sync,
        .list = folder_list,
        .boot = machine_boot,
    };
    folder->fd = openat(fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder->fd < 0 ? -errno : 0;
}

void folder_close(struct folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    folder->fd = -1;
}

static int fd_of(const struct disk *disk)
{
    return ((const struct folder *)disk)->fd;
}

static int result_of(int returned)
{
    return returned < 0 ? -errno : 0;
}

static int file_open(struct disk *disk, const char *name, enum disk_open how)
{
    static const int flags[] = {
        [DISK_READ] = O_RDONLY, [DISK_WRITE] = O_RDWR, [DISK_MAKE] = O_RDWR | O_CREAT | O_EXCL};
    int file;

    do
        file = openat(fd_of(disk), name, flags[how] | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (file < 0 && errno == EINTR);
    return file < 0 ? -errno : file;
}

static int file_close(struct disk *disk, int file)
{
    (void)disk;
    return result_of(close(file));
}

static int64_t file_read(struct disk *disk, int file, void *out, size_t len, uint64_t offset)
{
    size_t done = 0;

    (void)disk;
    while (done < len) {
        ssize_t got = pread(file, (char *)out + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            break;
        done += got > 0 ? (size_t)got : 0;
    }
    return (int64_t)done;
}

static int file_write(struct disk *disk, int file, const void *data, size_t len, uint64_t offset)
{
    size_t done = 0;

    (void)disk;
    while (done < len) {
        ssize_t put = pwrite(file, (const char *)data + done, len - done, (off_t)(offset + done));
        if (put == 0)
            return -EIO;
        if (put < 0 && errno != EINTR)
            return -errno;
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

/* Times of access and change are all that fdatasync leaves out; a size that changed it writes. */
static int file_sync(struct disk *disk, int file)
{
    (void)disk;
    return result_of(fdatasync(file));
}

static int fill_with_zeros(struct disk *disk, int file, uint64_t bytes)
{
    static const char zeros[65536];
    int64_t size = file_size(disk, file);
    int result = size < 0 ? (int)size : 0;

    for (uint64_t at = (uint64_t)size; result == 0 && at < bytes; at += sizeof(zeros)) {
        uint64_t left = bytes - at;
        result = file_write(disk, file, zeros, left < sizeof(zeros) ? left : sizeof(zeros), at);
    }
    return result;
}

/*
 * Not posix_fallocate: where the file system has no such thing, glibc writes into every block of the file, and over what another
 * process writes there meanwhile.
 */
static int file_allocate(struct disk *disk, int file, uint64_t bytes)
{
    int result;

    do
        result = result_of(fallocate(file, 0, 0, (off_t)bytes));
    while (result == -EINTR);
    return result == -EOPNOTSUPP || result == -ENOSYS ? fill_with_zeros(disk, file, bytes) : result;
}

static int64_t file_size(struct disk *disk, int file)
{
    struct stat info;

    (void)disk;
    return fstat(file, &info) < 0 ? -errno : info.st_size;
}

static int file_rename(struct disk *disk, const char *from, const char *to)
{
    return result_of(renameat(fd_of(disk), from, fd_of(disk), to));
}

static int file_remove(struct disk *disk, const char *name)
{
    return result_of(unlinkat(fd_of(disk), name, 0));
}

/* EINVAL: a file system on which folders cannot be synced, nor need to be. */
static int folder_sync(struct disk *disk)
{
    int result = result_of(fsync(fd_of(disk)));

    return result == -EINVAL ? 0 : result;
}

static int folder_list(struct disk *disk, void (*each)(void *context, const char *name), void *context)
{
    int fd = openat(fd_of(disk), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (listing == NULL) {
        int result = -errno;
        if (fd >= 0)
            close(fd);
        return result;
    }
    for (errno = 0; (entry = readdir(listing)) != NULL; errno = 0)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(context, entry->d_name);
    int result = -errno;
    closedir(listing);
    return result;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Zeros where the kernel does not say. */
static void machine_boot(struct disk *disk, unsigned char id[DISK_BOOT_BYTES])
{
    char text[64] = "";
    int file = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
    int64_t len = file < 0 ? 0 : file_read(disk, file, text, sizeof(text) - 1, 0);
    unsigned digits = 0;

    if (file >= 0)
        close(file);
    memset(id, 0, DISK_BOOT_BYTES);
    for (int64_t n = 0; n < len && digits < 2 * DISK_BOOT_BYTES; n++) {
        if (hex_digit(text[n]) < 0)
            continue;
        id[digits / 2] |= (unsigned char)(hex_digit(text[n]) << (digits % 2 == 0 ? 4 : 0));
        digits++;
    }
}
