/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A main() for a fuzz target without a fuzzer: feeds it each file named on the command line, folders walked. So that
 * every input once found worth keeping is tried again by every `make test`, with any compiler.
 *
 * An input is copied into a block of exactly its size: a sanitizer then sees the first byte read past its end.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OPEN_FOLDERS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int visit(const char *path, const struct stat *info, int kind, struct FTW *where);
static void feed(const char *path, size_t size);
static void give_up(const char *path);

static unsigned fed_count;

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (nftw(argv[i], visit, OPEN_FOLDERS_MAX, FTW_PHYS) != 0)
            give_up(argv[i]);
    }
    printf("%u inputs\n", fed_count);
    return fed_count > 0 ? 0 : 1;
}

static int visit(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)where;
    if (kind == FTW_F)
        feed(path, (size_t)info->st_size);
    return 0;
}

static void feed(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size);

    if (file == NULL || (size > 0 && (data == NULL || fread(data, 1, size, file) != size)))
        give_up(path);
    fclose(file);
    /* So that the name of a culprit is seen before it strikes. */
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    fed_count++;
}

static void give_up(const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    exit(1);
}
