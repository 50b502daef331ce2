/* SPDX-License-Identifier: BSD-2-Clause */
/* A handle is the index of its file. */
#include "shelf.h"

#include "base/must.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shelf_file *shelf_find(struct shelf *shelf, const char *name)
{
    for (int n = 0; n < SHELF_FILES; n++)
        if (strcmp(shelf->files[n].name, name) == 0)
            return &shelf->files[n];
    return NULL;
}

static void file_resize(struct shelf_file *file, size_t len)
{
    file->bytes = realloc(file->bytes, len > 0 ? len : 1);
    must(file->bytes != NULL);
    if (len > file->len)
        memset(file->bytes + file->len, 0, len - file->len);
    file->len = len;
}

struct shelf_file *shelf_put(struct shelf *shelf, const char *name, size_t len)
{
    struct shelf_file *file = shelf_find(shelf, name);

    if (file == NULL) {
        file = shelf_find(shelf, "");
        must(file != NULL && strlen(name) < sizeof(file->name));
        memcpy(file->name, name, strlen(name) + 1);
    }
    file_resize(file, len);
    return file;
}

static struct shelf *shelf_of(struct disk *disk)
{
    return (struct shelf *)disk;
}

static struct shelf_file *file_of(struct disk *disk, int handle)
{
    must(handle >= 0 && handle < SHELF_FILES && shelf_of(disk)->files[handle].name[0] != '\0');
    return &shelf_of(disk)->files[handle];
}

static bool is_failing(struct disk *disk)
{
    return ++shelf_of(disk)->calls == shelf_of(disk)->fails_at;
}

static int shelf_open(struct disk *disk, const char *name, enum disk_open how)
{
    struct shelf *shelf = shelf_of(disk);
    struct shelf_file *file = shelf_find(shelf, name);

    if (is_failing(disk))
        return -EIO;
    if ((file != NULL) == (how == DISK_MAKE))
        return how == DISK_MAKE ? -EEXIST : -ENOENT;
    if (how == DISK_MAKE)
        file = shelf_put(shelf, name, 0);
    shelf->opened++;
    return (int)(file - shelf->files);
}

static int shelf_close(struct disk *disk, int handle)
{
    (void)handle;
    shelf_of(disk)->opened--;
    return 0;
}

static int64_t shelf_read(struct disk *disk, int handle, void *out, size_t len, uint64_t offset)
{
    struct shelf_file *file = file_of(disk, handle);

    if (shelf_of(disk)->before_read != NULL)
        shelf_of(disk)->before_read(shelf_of(disk));
    if (is_failing(disk))
        return -EIO;
    if (offset >= file->len)
        return 0;
    if (len > file->len - offset)
        len = file->len - offset;
    memcpy(out, file->bytes + offset, len);
    return (int64_t)len;
}

static int shelf_write(struct disk *disk, int handle, const void *data, size_t len, uint64_t offset)
{
    struct shelf_file *file = file_of(disk, handle);

    if (is_failing(disk))
        return -EIO;
    if (offset + len > file->len)
        file_resize(file, offset + len);
    memcpy(file->bytes + offset, data, len);
    return 0;
}

static int shelf_sync(struct disk *disk, int handle)
{
    file_of(disk, handle);
    return is_failing(disk) ? -EIO : 0;
}

static int shelf_allocate(struct disk *disk, int handle, uint64_t bytes)
{
    struct shelf_file *file = file_of(disk, handle);

    if (is_failing(disk))
        return -EIO;
    if (bytes > file->len)
        file_resize(file, bytes);
    return 0;
}

static int64_t shelf_size(struct disk *disk, int handle)
{
    return is_failing(disk) ? -EIO : (int64_t)file_of(disk, handle)->len;
}

static int shelf_remove(struct disk *disk, const char *name)
{
    struct shelf_file *file = shelf_find(shelf_of(disk), name);

    if (is_failing(disk))
        return -EIO;
    if (file == NULL)
        return -ENOENT;
    free(file->bytes);
    memset(file, 0, sizeof(*file));
    return 0;
}

static int shelf_rename(struct disk *disk, const char *from, const char *to)
{
    struct shelf_file *file = shelf_find(shelf_of(disk), from);

    if (is_failing(disk))
        return -EIO;
    if (file == NULL)
        return -ENOENT;
    shelf_remove(disk, to);
    memcpy(file->name, to, strlen(to) + 1);
    return 0;
}

static int shelf_sync_folder(struct disk *disk)
{
    return is_failing(disk) ? -EIO : 0;
}

static int shelf_list(struct disk *disk, void (*each)(void *context, const char *name), void *context)
{
    if (is_failing(disk))
        return -EIO;
    for (int n = 0; n < SHELF_FILES; n++)
        if (shelf_of(disk)->files[n].name[0] != '\0')
            each(context, shelf_of(disk)->files[n].name);
    return 0;
}

static void shelf_boot(struct disk *disk, unsigned char id[DISK_BOOT_BYTES])
{
    memcpy(id, shelf_of(disk)->boot, DISK_BOOT_BYTES);
}

void shelf_init(struct shelf *shelf)
{
    *shelf = (struct shelf){
        .disk = {.open = shelf_open,
                 .close = shelf_close,
                 .read = shelf_read,
                 .write = shelf_write,
                 .sync = shelf_sync,
                 .allocate = shelf_allocate,
                 .size = shelf_size,
                 .rename = shelf_rename,
                 .remove = shelf_remove,
                 .sync_folder = shelf_sync_folder,
                 .list = shelf_list,
                 .boot = shelf_boot},
        .boot = "the first start",
    };
}

void shelf_fini(struct shelf *shelf)
{
    for (int n = 0; n < SHELF_FILES; n++)
        free(shelf->files[n].bytes);
    memset(shelf->files, 0, sizeof(shelf->files));
}

void shelf_copy(struct shelf *to, const struct shelf *from)
{
    *to = *from;
    for (int n = 0; n < SHELF_FILES; n++) {
        if (to->files[n].name[0] == '\0')
            continue;
        to->files[n].bytes = malloc(to->files[n].len + 1);
        must(to->files[n].bytes != NULL);
        memcpy(to->files[n].bytes, from->files[n].bytes, to->files[n].len);
    }
}
