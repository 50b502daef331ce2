/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token is kept and compared as its SHA-256: of equal length for all, so that neither the length nor the first wrong
 * character of a guess can be told from the time that the answer takes; and the list is always walked to its end. A plain
 * hash will do because a token of 32 characters is not one that is guessed.
 */
#include "token/operators.h"

#include "base/ascii.h"
#include "base/must.h"
#include "base/words.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>

static const char *row_read(struct operators_row *row, struct span line);
static const char *name_problem(struct span name);
static const char *token_problem(struct span token);
static const char *operators_add(struct operators *operators, const struct operators_row *row);
static void digest_make(struct span token, uint8_t digest[OPERATORS_DIGEST_BYTES]);

bool operators_read(struct operators *operators, struct span text, char reason[OPERATORS_REASON_MAX])
{
    operators->count = 0;
    struct span line;
    unsigned number = 0;
    while (words_next_line(&text, &number, &line)) {
        struct operators_row row;
        const char *problem = row_read(&row, line);
        if (problem == NULL)
            problem = operators_add(operators, &row);
        if (problem != NULL) {
            snprintf(reason, OPERATORS_REASON_MAX, "line %u: %s", number, problem);
            return false;
        }
    }
    if (operators->count == 0)
        snprintf(reason, OPERATORS_REASON_MAX,
                 "there is no token: write a line with a name, a space and a token");
    return operators->count > 0;
}

/* NULL, or what is wrong with the line. */
static const char *row_read(struct operators_row *row, struct span line)
{
    struct span name = words_take(&line), token = words_take(&line);
    const char *problem = name_problem(name);
    if (problem == NULL && words_take(&line).len != 0)
        problem = "a line is a name and a token, and nothing else";
    if (problem == NULL)
        problem = token_problem(token);
    if (problem != NULL)
        return problem;
    memcpy(row->name, name.data, name.len);
    row->name_len = name.len;
    digest_make(token, row->digest);
    return NULL;
}

static const char *name_problem(struct span name)
{
    static const char *const problem = "a line begins with a name of 1 to 32 characters of A-Z a-z 0-9 _ . -";
    if (name.len > OPERATORS_NAME_MAX)
        return problem;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!ascii_is_alnum(c) && c != '_' && c != '.' && c != '-')
            return problem;
    }
    return NULL;
}

static const char *token_problem(struct span token)
{
    if (token.len < OPERATORS_TOKEN_MIN)
        return "the token is too short: it needs at least 32 characters";
    if (token.len > OPERATORS_TOKEN_MAX)
        return "the token is too long: it may have 256 characters";
    return ascii_all_visible(token) ? NULL : "the token has a character that is not printable ASCII";
}

static const char *operators_add(struct operators *operators, const struct operators_row *row)
{
    struct span name = {row->name, row->name_len};
    for (size_t i = 0; i < operators->count; i++) {
        const struct operators_row *other = &operators->list[i];
        if (span_equal((struct span){other->name, other->name_len}, name))
            return "the name is taken by an earlier line";
        if (memcmp(other->digest, row->digest, sizeof(other->digest)) == 0)
            return "the token is that of an earlier line";
    }
    if (operators->count == OPERATORS_MAX)
        return "there are more than 16 tokens";
    operators->list[operators->count++] = *row;
    return NULL;
}

struct span operators_find(const struct operators *operators, struct span token)
{
    uint8_t digest[OPERATORS_DIGEST_BYTES];
    const struct operators_row *found = NULL;
    digest_make(token, digest);
    for (size_t i = 0; i < operators->count; i++)
        if (CRYPTO_memcmp(operators->list[i].digest, digest, sizeof(digest)) == 0)
            found = &operators->list[i];
    return found != NULL ? (struct span){found->name, found->name_len} : SPAN_NONE;
}

/* Fails only where a hundred bytes cannot be had; and what is not a digest must never be compared. */
static void digest_make(struct span token, uint8_t digest[OPERATORS_DIGEST_BYTES])
{
    unsigned size = 0;
    must(EVP_Digest(token.data, token.len, digest, &size, EVP_sha256(), NULL) == 1);
    must(size == OPERATORS_DIGEST_BYTES);
}
