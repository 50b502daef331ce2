/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir key …`: the secret file, without showing a secret. What `show` prints can be pasted into a ticket: ids, and a
 * fingerprint that is made of a public key alone. `export` gives services what they verify with; of EdDSA that is public, of
 * HS256 it is not, and has to be asked for by name.
 */
#include "base/base64url.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/key_rotate.h"
#include "cli/say.h"
#include "cli/secret_text.h"
#include "cli/table.h"
#include "cli/text.h"
#include "token/jwks.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

/* A secret file as it stands, and as keys. */
struct source {
    struct secret_text text;
    struct secret_file file;
    struct keyring *ring;
};

static int key_show(const struct args *args, const char *path);
static int key_export(const struct args *args, const char *path);
static int source_read(const char *path, struct source *source);
static void source_end(struct source *source);

int key_run(const struct args *args)
{
    static const struct {
        const char *word;
        unsigned options;
        int (*run)(const struct args *args, const char *path);
    } verbs[] = {
        {"show", FOR_SHOW, key_show}, {"export", FOR_EXPORT, key_export}, {"rotate", FOR_ROTATE, key_rotate}};
    char reason[256];

    for (size_t i = 0; args->count == 3 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(args->words[1], verbs[i].word) == 0)
            return args_suit_verb(args, verbs[i].options, reason, sizeof(reason))
                       ? verbs[i].run(args, args->words[2])
                       : say_usage("%s (weir key --help)", reason);
    return say_usage(
        "key is used as: weir key show, export or rotate, and the secret file (weir key --help)");
}

/* All of its passes as EdDSA: the public keys are what can be shown. source_end() it in either case. */
static int source_read(const char *path, struct source *source)
{
    char reason[KEYRING_REASON_MAX];
    int exit_code = secret_text_read(path, &source->text);

    source->ring = NULL;
    if (exit_code != 0)
        return exit_code;
    if (!secret_file_read(secret_text_span(&source->text), &source->file, reason) ||
        (source->ring = keyring_new(secret_text_span(&source->text), reason)) == NULL)
        return say_refused("%s is no secret file: %s", path, reason);
    secret_algorithm_set(source->ring, KEY_EDDSA);
    return 0;
}

static void source_end(struct source *source)
{
    secret_text_wipe(&source->text);
    keyring_free(source->ring);
}

/* --- show --------------------------------------------------------------------------------------------------------- */

#define FINGERPRINT_BYTES 8

static void rows_print(const struct secret_file *file, const struct keyring *ring);
static json_t *rows_json(const struct secret_file *file, const struct keyring *ring);
static const char *role_of(const struct secret_file *file, const struct secret_line *line);
static const char *fingerprint_of(const struct keyring *ring, uint8_t id,
                                  char out[2 * FINGERPRINT_BYTES + 1]);
static json_t *purposes_json(const struct secret_file *file, const struct secret_line *line);
static void purposes_write(const struct secret_file *file, const struct secret_line *line, char *out,
                           size_t size);

static const char *const purposes[] = {"ticket", "pass 1", "pass 2", "visitor"};

#define PURPOSES (sizeof(purposes) / sizeof(purposes[0]))

static int key_show(const struct args *args, const char *path)
{
    struct source source;
    int exit_code = source_read(path, &source);

    if (exit_code == 0 && args_has(args, OPTION_JSON))
        api_print_json(rows_json(&source.file, source.ring));
    else if (exit_code == 0)
        rows_print(&source.file, source.ring);
    source_end(&source);
    return exit_code;
}

static void rows_print(const struct secret_file *file, const struct keyring *ring)
{
    static const struct column columns[] = {
        {"ID", false}, {"ROLE", false}, {"PURPOSES", false}, {"FINGERPRINT", false}};
    struct table *table = table_new(columns, 4);
    char id[8], list[128], fingerprint[2 * FINGERPRINT_BYTES + 1];

    for (size_t i = 0; i < file->count; i++) {
        const struct secret_line *line = &file->list[i];
        snprintf(id, sizeof(id), "%d", line->id);
        purposes_write(file, line, list, sizeof(list));
        table_add(table, line->id == SECRET_HOLDER_ID ? "-" : id);
        table_add(table, role_of(file, line));
        table_add(table, list);
        table_add(table, fingerprint_of(ring, line->id, fingerprint));
    }
    table_print(table, stdout, text_may_colour(stdout));
    table_free(table);
}

static json_t *rows_json(const struct secret_file *file, const struct keyring *ring)
{
    json_t *keys = say_no_memory_if_null(json_array());
    char fingerprint[2 * FINGERPRINT_BYTES + 1];

    for (size_t i = 0; i < file->count; i++) {
        const struct secret_line *line = &file->list[i];
        bool is_key = line->id != SECRET_HOLDER_ID;
        json_t *row =
            json_pack("{s:s,s:o}", "role", role_of(file, line), "purposes", purposes_json(file, line));
        say_no_memory_if_null(row);
        if (is_key) {
            json_object_set_new(row, "id", json_integer(line->id));
            json_object_set_new(row, "fingerprint", json_string(fingerprint_of(ring, line->id, fingerprint)));
        }
        json_array_append_new(keys, row);
    }
    return say_no_memory_if_null(json_pack("{s:o}", "keys", keys));
}

static const char *role_of(const struct secret_file *file, const struct secret_line *line)
{
    if (line->id == SECRET_HOLDER_ID)
        return "holder";
    if (line->is_next)
        return "next";
    return line == secret_file_signing(file) ? "signs" : "verifies";
}

static json_t *purposes_json(const struct secret_file *file, const struct secret_line *line)
{
    json_t *list = say_no_memory_if_null(json_array());

    for (size_t i = 0; i < PURPOSES && line->id != SECRET_HOLDER_ID; i++)
        json_array_append_new(list, json_string(purposes[i]));
    if (line == secret_file_holder(file))
        json_array_append_new(list, json_string("holder"));
    return list;
}

static void purposes_write(const struct secret_file *file, const struct secret_line *line, char *out,
                           size_t size)
{
    json_t *list = purposes_json(file, line), *purpose;
    size_t len = 0, index;

    out[0] = '\0';
    json_array_foreach (list, index, purpose)
        len += (size_t)snprintf(out + len, size - len, "%s%s", index > 0 ? ", " : "",
                                json_string_value(purpose));
    json_decref(list);
}

/* Tells two keys apart, and says that two servers have the same one: the hash of a public key that comes of the secret. */
static const char *fingerprint_of(const struct keyring *ring, uint8_t id, char out[2 * FINGERPRINT_BYTES + 1])
{
    uint8_t key[KEYRING_KEY_SIZE], digest[EVP_MAX_MD_SIZE];

    if (id == SECRET_HOLDER_ID || !keyring_public(ring, 2, id, key) ||
        EVP_Digest(key, sizeof(key), digest, NULL, EVP_sha256(), NULL) != 1)
        return "-";
    for (size_t i = 0; i < FINGERPRINT_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return out;
}

/* --- export ------------------------------------------------------------------------------------------------------- */

/* What is to be given away. */
struct wanted {
    enum key_algorithm algorithm;
    int tier;   /* 0: of both */
    uint8_t id; /* 0: of all */
};

static int wanted_read(const struct args *args, struct wanted *wanted);
static json_t *public_keys(const struct keyring *ring, const struct wanted *wanted);
static json_t *secret_keys(const struct secret_file *file, const struct wanted *wanted);
static json_t *secret_jwk(int tier, const struct secret_line *line);
static void keys_print(const json_t *set);
static bool is_wanted(const struct wanted *wanted, const char *kid);

static int key_export(const struct args *args, const char *path)
{
    struct wanted wanted;
    struct source source = {.ring = NULL};
    int exit_code = wanted_read(args, &wanted);
    json_t *set = NULL;

    if (exit_code == 0)
        exit_code = source_read(path, &source);
    if (exit_code == 0)
        exit_code = secret_id_read(args, source.ring, &wanted.id);
    if (exit_code == 0)
        set = wanted.algorithm == KEY_EDDSA ? public_keys(source.ring, &wanted)
                                            : secret_keys(&source.file, &wanted);
    if (exit_code == 0 && args_has(args, OPTION_JSON))
        api_print_json(json_incref(set));
    else if (exit_code == 0)
        keys_print(set);
    json_decref(set);
    source_end(&source);
    return exit_code;
}

static int wanted_read(const struct args *args, struct wanted *wanted)
{
    int exit_code = secret_algorithm_read(args, &wanted->algorithm);

    if (exit_code == 0)
        exit_code = secret_tier_read(args, &wanted->tier);
    if (exit_code == 0 && wanted->algorithm == KEY_HS256 && wanted->tier == 0)
        exit_code = say_usage("key export needs --tier: each tier has a key of its own");
    if (exit_code == 0 && wanted->algorithm == KEY_HS256 && !args_has(args, OPTION_SECRET))
        exit_code = say_usage(
            "an HS256 key is a secret, and whoever has it can make passes: say --secret to get it, or "
            "--alg eddsa for the public keys");
    if (exit_code == 0 && wanted->algorithm == KEY_EDDSA && args_has(args, OPTION_SECRET))
        exit_code =
            say_usage("--secret is for --alg hs256: of an Ed25519 key only the public half is given away");
    return exit_code;
}

static json_t *public_keys(const struct keyring *ring, const struct wanted *wanted)
{
    char text[JWKS_MAX];
    json_t *set = say_no_memory_if_null(json_loadb(text, jwks_write(ring, wanted->tier, text), 0, NULL));
    json_t *keys = json_object_get(set, "keys");

    for (size_t i = json_array_size(keys); i-- > 0;)
        if (!is_wanted(wanted, json_string_value(json_object_get(json_array_get(keys, i), "kid"))))
            json_array_remove(keys, i);
    return set;
}

static bool is_wanted(const struct wanted *wanted, const char *kid)
{
    char id[8];

    snprintf(id, sizeof(id), "%d", wanted->id);
    return wanted->id == 0 || strcmp(strchr(kid, '.') + 1, id) == 0;
}

static json_t *secret_keys(const struct secret_file *file, const struct wanted *wanted)
{
    json_t *keys = say_no_memory_if_null(json_array());

    for (size_t i = 0; i < file->count; i++) {
        const struct secret_line *line = &file->list[i];
        if (line->id != SECRET_HOLDER_ID && (wanted->id == 0 || wanted->id == line->id))
            json_array_append_new(keys, secret_jwk(wanted->tier, line));
    }
    return say_no_memory_if_null(json_pack("{s:o}", "keys", keys));
}

static json_t *secret_jwk(int tier, const struct secret_line *line)
{
    uint8_t key[KEYRING_KEY_SIZE];
    char kid[16], k[BASE64URL_LEN(KEYRING_KEY_SIZE) + 1];
    json_t *jwk = NULL;

    snprintf(kid, sizeof(kid), "%d.%d", tier, line->id);
    if (keyring_derive(line->secret, tier, key)) {
        k[base64url_encode(key, sizeof(key), k, sizeof(k) - 1)] = '\0';
        jwk = json_pack("{s:s,s:s,s:s,s:s,s:s}", "kty", "oct", "use", "sig", "alg", "HS256", "kid", kid, "k",
                        k);
    }
    explicit_bzero(key, sizeof(key));
    explicit_bzero(k, sizeof(k));
    return say_no_memory_if_null(jwk);
}

/* `KID KEY`, the key in plain base64: what a variable of a service, `base64 -d` or Java takes. */
static void keys_print(const json_t *set)
{
    size_t index;
    json_t *key;

    json_array_foreach (json_object_get(set, "keys"), index, key) {
        const char *k = json_string_value(json_object_get(key, "k"));
        uint8_t bytes[KEYRING_KEY_SIZE], plain[4 * KEYRING_KEY_SIZE / 3 + 8];
        size_t len = 0;
        if (base64url_decode(span_of(k != NULL ? k : json_string_value(json_object_get(key, "x"))), bytes,
                             sizeof(bytes), &len))
            EVP_EncodeBlock(plain, bytes, (int)len);
        printf("%s %s\n", json_string_value(json_object_get(key, "kid")), (const char *)plain);
    }
}
