/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weir pass …`: passes without a server, from the secret file. `mint` makes one for a test of a service; `verify` says what is
 * in a pass, or the one reason why it is refused. Which algorithm counts is said on the command line, as it is in nginx.conf,
 * and not by the pass.
 */
#include "token/pass.h"
#include "base/room_id.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/number.h"
#include "cli/say.h"
#include "cli/secret_text.h"
#include "cli/token_word.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TTL_SEC     3600
#define TTL_MAX_SEC 31536000

/* What both of them are told. */
struct pass_question {
    struct keyring *ring;
    enum key_algorithm algorithm;
    int tier; /* 0: not said */
};

static int pass_mint(const struct args *args, const struct pass_question *question);
static int pass_check(const struct args *args, const struct pass_question *question);
static int question_read(const struct args *args, struct pass_question *question);
static int given_key_read(const struct args *args, const struct pass_question *question);

int pass_run(const struct args *args)
{
    struct pass_question question = {.ring = NULL};
    bool is_mint = args->count == 3 && strcmp(args->words[1], "mint") == 0;
    bool is_check = args->count == 4 && strcmp(args->words[1], "verify") == 0;
    char reason[256];
    int exit_code;

    if (!is_mint && !is_check)
        return say_usage(
            "pass is used as: weir pass mint FILE, or weir pass verify FILE TOKEN (weir pass --help)");
    if (!args_suit_verb(args, is_mint ? FOR_MINT : FOR_CHECK, reason, sizeof(reason)))
        return say_usage("%s (weir pass --help)", reason);
    exit_code = question_read(args, &question);
    if (exit_code == 0)
        exit_code = is_mint ? pass_mint(args, &question) : pass_check(args, &question);
    keyring_free(question.ring);
    return exit_code;
}

static int question_read(const struct args *args, struct pass_question *question)
{
    int exit_code = secret_algorithm_read(args, &question->algorithm);

    if (exit_code == 0)
        exit_code = secret_tier_read(args, &question->tier);
    if (exit_code == 0)
        exit_code = secret_keyring_read(args->words[2], question->algorithm, &question->ring);
    if (exit_code == 0 && args_has(args, OPTION_KEY_FILE))
        exit_code = given_key_read(args, question);
    return exit_code;
}

/* The file of weir_pass_key, for every id: its bytes but for one line end. */
static int given_key_read(const struct args *args, const struct pass_question *question)
{
    const char *path = args->values[OPTION_KEY_FILE];
    char reason[KEYRING_REASON_MAX];
    struct secret_text text;
    int exit_code;
    uint8_t id;

    if (question->tier == 0)
        return say_usage("--key-file needs --tier: which passes the key is for");
    exit_code = secret_text_read(path, &text);
    if (exit_code != 0)
        return exit_code;
    if (text.len > 0 && text.bytes[text.len - 1] == '\n')
        text.len -= text.len > 1 && text.bytes[text.len - 2] == '\r' ? 2 : 1;
    for (size_t i = 0; exit_code == 0 && (id = keyring_id_at(question->ring, i)) != 0; i++)
        if (!keyring_give(question->ring, question->tier, id, secret_text_span(&text), reason))
            exit_code = say_refused("%s is refused: %s", path, reason);
    secret_text_wipe(&text);
    return exit_code;
}

/* --- mint --------------------------------------------------------------------------------------------------------- */

static int claims_read(const struct args *args, const struct pass_question *question,
                       struct pass_claims *claims, char *anonymous);
static int minted_print(const struct pass_claims *claims, const char *token, bool as_json);

static int pass_mint(const struct args *args, const struct pass_question *question)
{
    struct pass_claims claims = {0};
    char token[PASS_TOKEN_MAX + 1], anonymous[32];
    int exit_code = claims_read(args, question, &claims, anonymous);
    size_t len;

    if (exit_code != 0)
        return exit_code;
    len = pass_sign(question->ring, &claims, token, PASS_TOKEN_MAX);
    if (len == 0)
        return say_usage("--uid must be UTF-8 of at most %d bytes", PASS_UID_MAX);
    token[len] = '\0';
    return minted_print(&claims, token, args_has(args, OPTION_JSON));
}

/* Without --uid it is somebody that nobody vouches for, written as the server writes those. */
static int claims_read(const struct args *args, const struct pass_question *question,
                       struct pass_claims *claims, char *anonymous)
{
    const char *room = args->values[OPTION_ROOM], *uid = args->values[OPTION_UID],
               *ttl = args->values[OPTION_TTL];
    uint64_t ttl_sec = TTL_SEC;
    int exit_code = secret_id_read(args, question->ring, &claims->key_id);

    if (exit_code != 0)
        return exit_code;
    if (room == NULL || !room_id_is_valid(span_of(room)))
        return say_usage("pass mint needs --room: 1 to 64 of A-Z a-z 0-9 _ . : -");
    if (ttl != NULL && (!number_read_whole(ttl, &ttl_sec) || ttl_sec < 1 || ttl_sec > TTL_MAX_SEC))
        return say_usage("--ttl must be whole seconds from 1 to %d", TTL_MAX_SEC);
    if (RAND_bytes(claims->holder.id, sizeof(claims->holder.id)) != 1)
        return say_refused("there is no source of chance");
    memcpy(anonymous, "v-", 2);
    anonymous[2 + base64url_encode(claims->holder.id, sizeof(claims->holder.id), anonymous + 2, 24)] = '\0';
    claims->key_id = claims->key_id != 0 ? claims->key_id : keyring_signing_id(question->ring);
    claims->tier = question->tier != 0 ? question->tier : 2;
    claims->iat_sec = (uint64_t)time(NULL);
    claims->exp_sec = claims->iat_sec + ttl_sec;
    claims->room = span_of(room);
    claims->uid = span_of(uid != NULL ? uid : anonymous);
    return 0;
}

static int minted_print(const struct pass_claims *claims, const char *token, bool as_json)
{
    if (!as_json) {
        puts(token);
        return 0;
    }
    return api_print_json(say_no_memory_if_null(
        json_pack("{s:s,s:I}", "token", token, "expires_at", (json_int_t)claims->exp_sec)));
}

/* --- verify ------------------------------------------------------------------------------------------------------- */

static enum pass_fault judge(const struct pass_question *question, struct span token,
                             struct pass_claims *claims, char *scratch);
static int fault_say(enum pass_fault fault, const struct pass_question *question,
                     const struct pass_claims *claims);
static int wrong_say(const struct args *args, const struct pass_claims *claims);
static json_t *claims_json(const struct pass_claims *claims, enum key_algorithm algorithm);

static int pass_check(const struct args *args, const struct pass_question *question)
{
    static const struct field fields[] = {
        {"room", "room", FIELD_WORD},
        {"tier", "tier", FIELD_COUNT},
        {"uid", "uid", FIELD_WORD},
        {"session", "session (jti)", FIELD_WORD},
        {"issued_at", "issued", FIELD_MOMENT},
        {"expires_at", "expires", FIELD_MOMENT},
        {"kid", "key (kid)", FIELD_WORD},
        {"alg", "algorithm", FIELD_WORD},
    };
    char token[TOKEN_WORD_MAX], scratch[PASS_SCRATCH_MAX];
    struct pass_claims claims = {0};
    int exit_code = token_word_read(args->words[3], token);
    enum pass_fault fault;
    json_t *said;

    if (exit_code != 0)
        return exit_code;
    fault = judge(question, span_of(token), &claims, scratch);
    if (fault != PASS_FAULT_NONE)
        return fault_say(fault, question, &claims);
    exit_code = wrong_say(args, &claims);
    if (exit_code != 0)
        return exit_code;
    said = claims_json(&claims, question->algorithm);
    if (args_has(args, OPTION_JSON))
        return api_print_json(said);
    field_list_print(said, fields, sizeof(fields) / sizeof(fields[0]));
    json_decref(said);
    return 0;
}

/* Of either tier, where none was named. */
static enum pass_fault judge(const struct pass_question *question, struct span token,
                             struct pass_claims *claims, char *scratch)
{
    int tier = question->tier != 0 ? question->tier : 2;
    uint64_t now_sec = (uint64_t)time(NULL);
    enum pass_fault fault =
        pass_judge(question->ring, NULL, tier, token, now_sec, claims, scratch, PASS_SCRATCH_MAX);

    if (fault == PASS_FAULT_TIER && question->tier == 0)
        fault = pass_judge(question->ring, NULL, 1, token, now_sec, claims, scratch, PASS_SCRATCH_MAX);
    return fault;
}

static int fault_say(enum pass_fault fault, const struct pass_question *question,
                     const struct pass_claims *claims)
{
    char when[FIELD_TEXT_MAX];
    json_t *times;

    if (fault == PASS_FAULT_ALGORITHM)
        return say_refused(
            "the pass is refused: it is not signed with %s, which is what was asked for (--alg)",
            question->algorithm == KEY_EDDSA ? "EdDSA" : "HS256");
    if (fault == PASS_FAULT_KEY)
        return say_refused("the pass is refused: there is no key %d in the secret file", claims->key_id);
    if (fault != PASS_FAULT_EXPIRED)
        return say_refused("the pass is refused: %s", pass_fault_text(fault));
    times = say_no_memory_if_null(json_pack("{s:I}", "exp", (json_int_t)claims->exp_sec));
    field_text(times, &(struct field){"exp", "", FIELD_MOMENT}, when);
    json_decref(times);
    return say_refused("the pass is refused: it expired at %s", when);
}

/* Whether it is for whom and where it should be, where that was said. */
static int wrong_say(const struct args *args, const struct pass_claims *claims)
{
    const char *room = args->values[OPTION_ROOM], *uid = args->values[OPTION_UID];

    if (room != NULL && !span_equal(span_of(room), claims->room))
        return say_refused("the pass is refused: it is for the room %.*s", (int)claims->room.len,
                           claims->room.data);
    if (uid != NULL && !span_equal(span_of(uid), claims->uid))
        return say_refused("the pass is refused: it is somebody else's");
    return 0;
}

static json_t *claims_json(const struct pass_claims *claims, enum key_algorithm algorithm)
{
    char session[PASS_ID_LEN], kid[16];

    pass_id_write(claims, session);
    snprintf(kid, sizeof(kid), "%d.%d", claims->tier, claims->key_id);
    return say_no_memory_if_null(
        json_pack("{s:s%,s:i,s:s%,s:s%,s:I,s:I,s:s,s:s}", "room", claims->room.data, claims->room.len, "tier",
                  claims->tier, "uid", claims->uid.data, claims->uid.len, "session", session, sizeof(session),
                  "issued_at", (json_int_t)claims->iat_sec, "expires_at", (json_int_t)claims->exp_sec, "kid",
                  kid, "alg", algorithm == KEY_EDDSA ? "EdDSA" : "HS256"));
}
