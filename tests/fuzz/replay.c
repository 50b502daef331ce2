/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Feeds files to a fuzz target without the fuzzer, so that every input ever found is tried again by the
 * ordinary tests, with any compiler. Arguments are files, or directories, which are walked.
 */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

static void replay(const char *path);
static void replay_directory(const char *path);
static void replay_file(const char *path, size_t size);
static _Noreturn void fail(const char *path);

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%u inputs replayed\n", replayed);
    return replayed > 0 ? 0 : 1;
}

static void replay(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        fail(path);
    if (S_ISDIR(info.st_mode))
        replay_directory(path);
    else
        replay_file(path, (size_t)info.st_size);
}

static void replay_directory(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    if (directory == NULL)
        fail(path);
    while ((entry = readdir(directory)) != NULL) {
        char child[PATH_MAX];
        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(child, sizeof(child), "%s/%s", path, entry->d_name) >= (int)sizeof(child))
            fail(path);
        replay(child);
    }
    closedir(directory);
}

/* The buffer is exactly as long as the file, so that a sanitizer sees a read past its end. */
static void replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (file == NULL || data == NULL || fread(data, 1, size, file) != size)
        fail(path);
    LLVMFuzzerTestOneInput(data, size);
    replayed++;
    free(data);
    fclose(file);
}

static _Noreturn void fail(const char *path)
{
    perror(path);
    exit(1);
}
