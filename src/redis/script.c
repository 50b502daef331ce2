/* SPDX-License-Identifier: BSD-2-Clause */

/* The texts are put together by scripts/compose-lua and come into the program as pages do, by scripts/embed. */

#include "redis/script.h"

#include "base/must.h"

#include <openssl/evp.h>

#define SCRIPT_EXTERN(name, file)               \
    extern const unsigned char script_##file[]; \
    extern const size_t script_##file##_len;
SCRIPT_LIST(SCRIPT_EXTERN)

static const struct {
    const char *file;
    const unsigned char *text;
    const size_t *len;
} scripts[] = {
#define SCRIPT_ROW(name, file) {#file, script_##file, &script_##file##_len},
    SCRIPT_LIST(SCRIPT_ROW)};

const char *script_file(enum script script)
{
    must(script < SCRIPT_COUNT);
    return scripts[script].file;
}

struct span script_text(enum script script)
{
    must(script < SCRIPT_COUNT);
    return (struct span){(const char *)scripts[script].text, *scripts[script].len};
}

static void name_script(struct span text, char sha[SCRIPT_SHA_LEN])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    must(EVP_Digest(text.data, text.len, hash, &len, EVP_sha1(), NULL) == 1 && len * 2 == SCRIPT_SHA_LEN);
    for (unsigned i = 0; i < len; i++) {
        sha[2 * i] = digits[hash[i] >> 4];
        sha[2 * i + 1] = digits[hash[i] & 15];
    }
}

void script_names_init(struct script_names *names)
{
    for (int i = 0; i < SCRIPT_COUNT; i++)
        name_script(script_text((enum script)i), names->sha[i]);
}
