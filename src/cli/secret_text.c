/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same rules as the server's, so that a file that is fine here is fine there: a regular file, of its owner alone, and not
 * long. Whoever may read it by a group will not learn it from us either.
 */
#include "cli/secret_text.h"

#include "cli/number.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *text_take(int fd, struct secret_text *out);

int secret_text_read(const char *path, struct secret_text *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *problem;

    out->len = 0;
    if (fd == -1)
        return say_refused("cannot read %s: %s", path, strerror(errno));
    problem = text_take(fd, out);
    close(fd);
    return problem == NULL ? 0 : say_refused("%s %s", path, problem);
}

static const char *text_take(int fd, struct secret_text *out)
{
    struct stat info;
    ssize_t taken;

    if (fstat(fd, &info) != 0)
        return "cannot be read";
    if (!S_ISREG(info.st_mode))
        return "is not a regular file";
    if ((info.st_mode & 0077) != 0)
        return "can be read or written by others than its owner: chmod 600 it";
    if (info.st_size > SECRET_TEXT_MAX)
        return "is longer than 16384 bytes";
    while (out->len < sizeof(out->bytes) &&
           (taken = read(fd, out->bytes + out->len, sizeof(out->bytes) - out->len)) != 0) {
        if (taken < 0)
            return "cannot be read";
        out->len += (size_t)taken;
    }
    return NULL;
}

void secret_text_wipe(struct secret_text *text)
{
    explicit_bzero(text, sizeof(*text));
}

int secret_keyring_read(const char *path, enum key_algorithm algorithm, struct keyring **out)
{
    char reason[KEYRING_REASON_MAX];
    struct secret_text text;
    int exit_code = secret_text_read(path, &text);

    *out = exit_code == 0 ? keyring_new(secret_text_span(&text), reason) : NULL;
    secret_text_wipe(&text);
    if (exit_code == 0 && *out == NULL)
        exit_code = say_refused("%s is no secret file: %s", path, reason);
    if (*out != NULL)
        secret_algorithm_set(*out, algorithm);
    return exit_code;
}

void secret_algorithm_set(struct keyring *ring, enum key_algorithm algorithm)
{
    uint8_t id;

    for (size_t i = 0; (id = keyring_id_at(ring, i)) != 0; i++)
        for (int tier = 1; tier <= 2; tier++)
            keyring_set_algorithm(ring, tier, id, algorithm);
}

int secret_algorithm_read(const struct args *args, enum key_algorithm *out)
{
    static const char *const words[KEY_ALGORITHM_COUNT] = {
#define ALGORITHM_WORD(name, word, alg) [KEY_##name] = (word),
        KEY_ALGORITHM_LIST(ALGORITHM_WORD)
#undef ALGORITHM_WORD
    };
    const char *given = args->values[OPTION_ALG];

    *out = KEY_HS256;
    if (given == NULL)
        return 0;
    for (int i = 0; i < KEY_ALGORITHM_COUNT; i++)
        if (strcmp(given, words[i]) == 0) {
            *out = (enum key_algorithm)i;
            return 0;
        }
    return say_usage("--alg must be hs256 or eddsa");
}

int secret_tier_read(const struct args *args, int *out)
{
    const char *given = args->values[OPTION_TIER];
    uint64_t number = 0;

    if (given != NULL && (!number_read_whole(given, &number) || number < 1 || number > 2))
        return say_usage("--tier must be 1 or 2");
    *out = (int)number;
    return 0;
}

int secret_id_read(const struct args *args, const struct keyring *ring, uint8_t *out)
{
    const char *given = args->values[OPTION_ID];
    uint64_t number = 0;

    *out = 0;
    if (given == NULL)
        return 0;
    if (!number_read_whole(given, &number) || number < 1 || number > 255)
        return say_usage("--id must be a number from 1 to 255");
    if (!keyring_has(ring, (uint8_t)number))
        return say_refused("there is no key %d in the secret file", (int)number);
    *out = (uint8_t)number;
    return 0;
}
