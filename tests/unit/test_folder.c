/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder as the journal's disk, on the real file system; and the calls below it failing in the ways that they may:
 * interrupted, short, unsupported. (Those stand in for libc's: the linker finds ours first.)
 */
#define _GNU_SOURCE
#include "rig.h"

#include "journal/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_rough;      /* every other read and write is interrupted, and the others do three bytes */
static bool has_fallocate; /* the file system can */
static unsigned rough_calls;

ssize_t pread(int fd, void *buf, size_t nbytes, off_t offset)
{
    if (is_rough && rough_calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_pread64, fd, buf, is_rough && nbytes > 3 ? 3 : nbytes, offset);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    if (is_rough && rough_calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, buf, is_rough && n > 3 ? 3 : n, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t len)
{
    if (!has_fallocate) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

struct fixture {
    char path[64];
    struct folder folder;
    struct disk *disk;
};

static void remove_each(void *context, const char *name)
{
    struct disk *disk = context;

    assert_int_equal(disk->remove(disk, name), 0);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    is_rough = false;
    has_fallocate = true;
    snprintf(f->path, sizeof(f->path), "%s/weir-folder-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(f->path));
    assert_int_equal(folder_open(&f->folder, f->path), 0);
    f->disk = &f->folder.disk;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    is_rough = false;
    assert_int_equal(f->disk->list(f->disk, remove_each, f->disk), 0);
    folder_close(&f->folder);
    assert_int_equal(rmdir(f->path), 0);
    free(f);
    return 0;
}

static int make_file(struct disk *disk, const char *name, const char *text)
{
    int file = disk->open(disk, name, DISK_MAKE);

    assert_true(file >= 0);
    assert_int_equal(disk->write(disk, file, text, strlen(text), 0), 0);
    return file;
}

static void check_text(struct disk *disk, const char *name, const char *text)
{
    char read[256] = "";
    int file = disk->open(disk, name, DISK_READ);

    assert_true(file >= 0);
    assert_int_equal(disk->read(disk, file, read, sizeof(read) - 1, 0), strlen(text));
    assert_string_equal(read, text);
    assert_int_equal(disk->size(disk, file), strlen(text));
    assert_int_equal(disk->close(disk, file), 0);
}

static void what_is_written_is_read_also_from_another_handle(void **state)
{
    struct disk *disk = ((struct fixture *)*state)->disk;
    char read[16] = "";
    int file = make_file(disk, "one", "hello");

    assert_int_equal(disk->write(disk, file, "world", 5, 6), 0);
    assert_int_equal(disk->sync(disk, file), 0);
    assert_int_equal(disk->sync_folder(disk), 0);
    assert_int_equal(disk->close(disk, file), 0);
    file = disk->open(disk, "one", DISK_WRITE);
    assert_int_equal(disk->size(disk, file), 11);
    assert_int_equal(disk->read(disk, file, read, 16, 0), 11);
    assert_memory_equal(read, "hello\0world", 11);
    assert_int_equal(disk->read(disk, file, read, 3, 6), 3);
    assert_int_equal(disk->read(disk, file, read, 16, 8), 3);
    assert_int_equal(disk->read(disk, file, read, 16, 100), 0);
    assert_int_equal(disk->write(disk, file, "HELLO", 5, 0), 0);
    assert_int_equal(disk->close(disk, file), 0);
    assert_int_equal(disk->close(disk, file), -EBADF);
}

static void opening_says_what_it_expects_to_find(void **state)
{
    struct disk *disk = ((struct fixture *)*state)->disk;
    int file = make_file(disk, "one", "kept");

    assert_int_equal(disk->close(disk, file), 0);
    assert_int_equal(disk->open(disk, "two", DISK_READ), -ENOENT);
    assert_int_equal(disk->open(disk, "two", DISK_WRITE), -ENOENT);
    assert_int_equal(disk->open(disk, "one", DISK_MAKE), -EEXIST);
    file = disk->open(disk, "one", DISK_READ);
    assert_int_equal(disk->write(disk, file, "lost", 4, 0), -EBADF);
    assert_int_equal(disk->close(disk, file), 0);
    check_text(disk, "one", "kept");
}

static void files_are_private_and_stay_out_of_other_programs(void **state)
{
    struct disk *disk = ((struct fixture *)*state)->disk;
    mode_t mask = umask(0);
    int file = make_file(disk, "one", "");
    struct stat info;

    umask(mask);
    assert_int_equal(fstat(file, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(fcntl(file, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(((struct fixture *)*state)->folder.fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(disk->close(disk, file), 0);
}

static void a_link_is_not_followed(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(f->disk->close(f->disk, make_file(f->disk, "one", "kept")), 0);
    assert_int_equal(symlinkat("one", f->folder.fd, "link"), 0);
    assert_int_equal(f->disk->open(f->disk, "link", DISK_WRITE), -ELOOP);
}

static void an_interrupted_or_short_call_is_carried_on(void **state)
{
    struct disk *disk = ((struct fixture *)*state)->disk;
    const char *text = "more than three bytes at a time";

    is_rough = true;
    int file = make_file(disk, "one", text);
    check_text(disk, "one", text);
    has_fallocate = false;
    assert_int_equal(disk->allocate(disk, file, 100), 0);
    is_rough = false;
    assert_int_equal(disk->size(disk, file), 100);
    assert_int_equal(disk->close(disk, file), 0);
}

static void check_allocated(struct disk *disk, int file, uint64_t bytes)
{
    char *read = malloc(bytes + 1), *zeros = calloc(1, bytes + 1);
    struct stat info;

    assert_true(read != NULL && zeros != NULL);
    assert_int_equal(fstat(file, &info), 0);
    assert_int_equal(info.st_size, bytes);
    assert_true((uint64_t)info.st_blocks * 512 >= bytes);
    assert_int_equal(disk->read(disk, file, read, bytes + 1, 0), bytes);
    assert_memory_equal(read, "kept", 4);
    assert_memory_equal(read + 4, zeros, bytes - 4);
    free(read);
    free(zeros);
}

static void allocating_takes_the_space_and_keeps_what_was_written(void **state)
{
    struct disk *disk = ((struct fixture *)*state)->disk;

    for (int can = 0; can < 2; can++) {
        has_fallocate = can;
        int file = make_file(disk, can ? "can" : "cannot", "kept");
        assert_int_equal(disk->allocate(disk, file, 200001), 0);
        check_allocated(disk, file, 200001);
        assert_int_equal(disk->allocate(disk, file, 65536), 0);
        check_allocated(disk, file, 200001);
        assert_int_equal(disk->close(disk, file), 0);
    }
}

/* A limit on the size of files stands in for a disk that is full: a write stops short there, then fails. */
static void a_write_that_does_not_fit_says_so(void **state)
{
    struct disk *disk = ((struct fixture *)*state)->disk;
    struct rlimit before, limit = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY};
    int file = make_file(disk, "one", "");

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int at_once = disk->write(disk, file, "more than ten", 13, 0);
    int ahead = disk->allocate(disk, file, 13);
    has_fallocate = false;
    int by_zeros = disk->allocate(disk, file, 13);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(at_once, -EFBIG);
    assert_int_equal(ahead, -EFBIG);
    assert_int_equal(by_zeros, -EFBIG);
    assert_int_equal(disk->close(disk, file), 0);
}

static void count_each(void *context, const char *name)
{
    unsigned *seen = context;

    assert_true(strcmp(name, "one") == 0 || strcmp(name, "two") == 0);
    *seen += name[0] == 'o' ? 1 : 100;
}

static void renamed_and_removed_files_are_listed_so(void **state)
{
    struct disk *disk = ((struct fixture *)*state)->disk;
    unsigned seen = 0;

    assert_int_equal(disk->list(disk, count_each, &seen), 0);
    assert_int_equal(seen, 0);
    assert_int_equal(disk->close(disk, make_file(disk, "three", "3")), 0);
    assert_int_equal(disk->close(disk, make_file(disk, "one", "1")), 0);
    assert_int_equal(disk->rename(disk, "three", "two"), 0);
    for (int n = 0; n < 2; n++) {
        seen = 0;
        assert_int_equal(disk->list(disk, count_each, &seen), 0);
        assert_int_equal(seen, 101);
    }
    assert_int_equal(disk->rename(disk, "two", "one"), 0);
    check_text(disk, "one", "3");
    assert_int_equal(disk->remove(disk, "one"), 0);
    assert_int_equal(disk->remove(disk, "one"), -ENOENT);
    assert_int_equal(disk->rename(disk, "one", "two"), -ENOENT);
}

static void the_boot_id_is_that_of_the_kernel_and_stays(void **state)
{
    struct disk *disk = ((struct fixture *)*state)->disk;
    unsigned char id[DISK_BOOT_BYTES], again[DISK_BOOT_BYTES];
    char text[64] = "", expected[64] = "";
    size_t len = 0;

    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    assert_int_equal(fclose(file), 0);
    disk->boot(disk, id);
    disk->boot(disk, again);
    assert_memory_equal(id, again, sizeof(id));
    for (unsigned n = 0; n < sizeof(id); n++)
        len += (size_t)snprintf(expected + len, sizeof(expected) - len, "%02x%s", id[n],
                                n == 3 || n == 5 || n == 7 || n == 9 ? "-"
                                : n == 15                            ? "\n"
                                                                     : "");
    assert_string_equal(text, expected);
}

static void a_folder_that_is_none_is_refused(void **state)
{
    struct fixture *f = *state;
    struct folder other;
    char path[96];

    snprintf(path, sizeof(path), "%s/one", f->path);
    assert_int_equal(folder_open(&other, path), -ENOENT);
    assert_int_equal(f->disk->close(f->disk, make_file(f->disk, "one", "")), 0);
    assert_int_equal(folder_open(&other, path), -ENOTDIR);
    folder_close(&other);
}

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(what_is_written_is_read_also_from_another_handle),
        FOLDER_TEST(opening_says_what_it_expects_to_find),
        FOLDER_TEST(files_are_private_and_stay_out_of_other_programs),
        FOLDER_TEST(a_link_is_not_followed),
        FOLDER_TEST(an_interrupted_or_short_call_is_carried_on),
        FOLDER_TEST(allocating_takes_the_space_and_keeps_what_was_written),
        FOLDER_TEST(a_write_that_does_not_fit_says_so),
        FOLDER_TEST(renamed_and_removed_files_are_listed_so),
        FOLDER_TEST(the_boot_id_is_that_of_the_kernel_and_stays),
        FOLDER_TEST(a_folder_that_is_none_is_refused),
    };
    return cmocka_run_group_tests_name("folder", tests, NULL, NULL);
}
