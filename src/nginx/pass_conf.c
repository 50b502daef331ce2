/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directives may stand before weir_secret_file, so they are kept as they are read and applied to the ring when all is
 * there. Where two lines are about the same key the more precise one counts, whichever comes first: each has a weight, and
 * they are applied from the lightest on. A given key is kept in the meantime, and wiped whether all went well or not.
 */
#include "nginx/pass_conf.h"

#include "nginx/private_file.h"
#include "token/keyring.h"
#include "token/pass_cache.h"

#include <openssl/crypto.h>

#define TIERS 2

_Static_assert(KEYRING_REASON_MAX <= PRIVATE_REASON_MAX, "the keyring's reasons fit");

/* Of which keys a line speaks; 0: of all. */
struct pass_scope {
    ngx_uint_t tier, id;
    struct conf_mention mention;
};

struct pass_rule {
    struct pass_scope scope;
    enum key_algorithm algorithm;
};

struct pass_given {
    struct pass_scope scope;
    size_t len;
    char key[KEYRING_GIVEN_MAX + 1]; /* one more: the ring is to see that it is too long */
};

struct pass_conf {
    ngx_array_t rules;  /* struct pass_rule */
    ngx_array_t givens; /* struct pass_given * */
};

static struct pass_conf *passes_of(ngx_conf_t *cf);
static char *scope_parameter(struct pass_scope *scope, const ngx_str_t *word);
static bool scope_equal(const struct pass_scope *a, const struct pass_scope *b);
static bool scope_covers(const struct pass_scope *scope, ngx_uint_t tier, ngx_uint_t id);
static unsigned scope_weight(const struct pass_scope *scope);
static char *rule_add(struct pass_conf *passes, const struct pass_rule *rule);
static char *given_add(ngx_conf_t *cf, struct pass_conf *passes, const struct pass_scope *scope,
                       ngx_str_t path);
static bool given_take(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX]);
static void given_wipe(void *given);
static ngx_int_t scopes_check(ngx_conf_t *cf, const struct main_conf *conf);
static ngx_int_t scope_check(ngx_conf_t *cf, const struct main_conf *conf, const struct pass_scope *scope);
static void rules_apply(const struct main_conf *conf);
static ngx_int_t givens_apply(ngx_conf_t *cf, const struct main_conf *conf);
static ngx_int_t given_apply(ngx_conf_t *cf, struct keyring *ring, const struct pass_given *given,
                             ngx_uint_t id);
static const struct pass_given *given_find(const struct pass_conf *passes, ngx_uint_t tier, ngx_uint_t id);
static ngx_int_t cache_make(ngx_conf_t *cf, struct main_conf *conf);
static bool has_eddsa(const struct keyring *ring);
static void cache_free(void *cache);

char *pass_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    static const char *const algorithms[] = {
#define ALGORITHM_WORD(name, word, alg) [KEY_##name] = (word),
        KEY_ALGORITHM_LIST(ALGORITHM_WORD)
#undef ALGORITHM_WORD
    };
    struct pass_conf *passes = passes_of(cf);
    ngx_str_t *words = cf->args->elts;
    struct pass_rule rule = {.scope.mention = conf_mention(cf, words[0]), .algorithm = KEY_ALGORITHM_COUNT};
    for (int i = 0; i < KEY_ALGORITHM_COUNT; i++)
        if (span_equal(span_of_str(words[1]), span_of(algorithms[i])))
            rule.algorithm = i;
    if (rule.algorithm == KEY_ALGORITHM_COUNT)
        return "must be hs256 or eddsa";
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        char *answer = scope_parameter(&rule.scope, &words[i]);
        if (answer != NGX_CONF_OK)
            return answer;
    }
    return passes != NULL ? rule_add(passes, &rule) : NGX_CONF_ERROR;
}

static struct pass_conf *passes_of(ngx_conf_t *cf)
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    if (conf->passes != NULL)
        return conf->passes;
    struct pass_conf *passes = ngx_pcalloc(cf->pool, sizeof(*passes));
    if (passes == NULL || ngx_array_init(&passes->rules, cf->pool, 4, sizeof(struct pass_rule)) != NGX_OK ||
        ngx_array_init(&passes->givens, cf->pool, 2, sizeof(struct pass_given *)) != NGX_OK)
        return NULL;
    return conf->passes = passes;
}

static char *scope_parameter(struct pass_scope *scope, const ngx_str_t *word)
{
    ngx_str_t value;
    bool is_tier = conf_parameter(word, "tier=", &value);
    if (!is_tier && !conf_parameter(word, "id=", &value))
        return "knows tier=1, tier=2 and id=K, the id of a key in the secret file";
    ngx_int_t number = ngx_atoi(value.data, value.len);
    if (number < 1 || number > (is_tier ? TIERS : 255))
        return is_tier ? "takes tier=1 or tier=2" : "takes as id=K a number from 1 to 255";
    ngx_uint_t *place = is_tier ? &scope->tier : &scope->id;
    if (*place != 0)
        return "names the same twice";
    *place = (ngx_uint_t)number;
    return NGX_CONF_OK;
}

static char *rule_add(struct pass_conf *passes, const struct pass_rule *rule)
{
    struct pass_rule *rules = passes->rules.elts;
    for (ngx_uint_t i = 0; i < passes->rules.nelts; i++)
        if (scope_equal(&rules[i].scope, &rule->scope))
            return "is duplicate: an earlier line is about the same keys";
    rules = ngx_array_push(&passes->rules);
    if (rules == NULL)
        return NGX_CONF_ERROR;
    *rules = *rule;
    return NGX_CONF_OK;
}

static bool scope_equal(const struct pass_scope *a, const struct pass_scope *b)
{
    return a->tier == b->tier && a->id == b->id;
}

char *pass_key_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct pass_conf *passes = passes_of(cf);
    ngx_str_t *words = cf->args->elts, path = ngx_null_string;
    struct pass_scope scope = {.mention = conf_mention(cf, words[0])};
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        if (path.data == NULL && conf_parameter(&words[i], "file=", &path))
            continue;
        char *answer = scope_parameter(&scope, &words[i]);
        if (answer != NGX_CONF_OK)
            return answer;
    }
    if (scope.tier == 0 || path.len == 0)
        return "needs tier=N and file=PATH";
    return passes != NULL ? given_add(cf, passes, &scope, path) : NGX_CONF_ERROR;
}

static char *given_add(ngx_conf_t *cf, struct pass_conf *passes, const struct pass_scope *scope,
                       ngx_str_t path)
{
    static const struct private_file file = {"pass key file", given_take};
    struct pass_given **givens = passes->givens.elts;
    for (ngx_uint_t i = 0; i < passes->givens.nelts; i++)
        if (scope_equal(&givens[i]->scope, scope))
            return "is duplicate: an earlier line is about the same keys";
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, sizeof(struct pass_given));
    givens = ngx_array_push(&passes->givens);
    if (cleanup == NULL || givens == NULL)
        return NGX_CONF_ERROR;
    cleanup->handler = given_wipe;
    ngx_memzero(cleanup->data, sizeof(struct pass_given));
    *givens = cleanup->data;
    (*givens)->scope = *scope;
    return private_file_read(cf, &file, path);
}

/* Into the one that was added last. An editor ends a file with a line end; a service that read its key has none. */
static bool given_take(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX])
{
    struct pass_conf *passes = passes_of(cf);
    struct pass_given **givens = passes->givens.elts, *given = givens[passes->givens.nelts - 1];
    bool has_end = text.len > 0 && text.data[text.len - 1] == '\n';
    text.len -= has_end ? 1 : 0;
    if (has_end && text.len > 0 && text.data[text.len - 1] == '\r')
        text.len--;
    given->len = text.len < sizeof(given->key) ? text.len : sizeof(given->key);
    ngx_memcpy(given->key, text.data, given->len);
    return true;
}

static void given_wipe(void *given)
{
    OPENSSL_cleanse(given, sizeof(struct pass_given));
}

/* ---- when all is read ---- */

ngx_int_t pass_conf_finish(ngx_conf_t *cf)
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    if (conf->passes == NULL)
        return NGX_OK;
    if (scopes_check(cf, conf) != NGX_OK)
        return NGX_ERROR;
    rules_apply(conf);
    if (givens_apply(cf, conf) != NGX_OK)
        return NGX_ERROR;
    return has_eddsa(conf->keys) ? cache_make(cf, conf) : NGX_OK;
}

static ngx_int_t scopes_check(ngx_conf_t *cf, const struct main_conf *conf)
{
    struct pass_rule *rules = conf->passes->rules.elts;
    struct pass_given **givens = conf->passes->givens.elts;
    for (ngx_uint_t i = 0; i < conf->passes->rules.nelts; i++)
        if (scope_check(cf, conf, &rules[i].scope) != NGX_OK)
            return NGX_ERROR;
    for (ngx_uint_t i = 0; i < conf->passes->givens.nelts; i++)
        if (scope_check(cf, conf, &givens[i]->scope) != NGX_OK)
            return NGX_ERROR;
    return NGX_OK;
}

static ngx_int_t scope_check(ngx_conf_t *cf, const struct main_conf *conf, const struct pass_scope *scope)
{
    const struct conf_mention *mention = &scope->mention;
    if (conf->keys == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%V\" in %V:%ui needs a \"weir_secret_file\" in the http block", &mention->what,
                      &mention->file, mention->line);
        return NGX_ERROR;
    }
    if (scope->id == 0 || keyring_has(conf->keys, (uint8_t)scope->id))
        return NGX_OK;
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "\"%V\" in %V:%ui: there is no key %ui in the secret file",
                  &mention->what, &mention->file, mention->line, scope->id);
    return NGX_ERROR;
}

static void rules_apply(const struct main_conf *conf)
{
    struct pass_rule *rules = conf->passes->rules.elts;
    ngx_uint_t id;
    for (unsigned weight = 0; weight <= 3; weight++)
        for (ngx_uint_t i = 0; i < conf->passes->rules.nelts; i++)
            for (size_t at = 0; (id = keyring_id_at(conf->keys, at)) != 0; at++)
                for (ngx_uint_t tier = 1; tier <= TIERS; tier++)
                    if (scope_weight(&rules[i].scope) == weight && scope_covers(&rules[i].scope, tier, id))
                        keyring_set_algorithm(conf->keys, (int)tier, (uint8_t)id, rules[i].algorithm);
}

/* A key is more precise than a tier, which has many. */
static unsigned scope_weight(const struct pass_scope *scope)
{
    return (scope->tier != 0 ? 1u : 0u) + (scope->id != 0 ? 2u : 0u);
}

static bool scope_covers(const struct pass_scope *scope, ngx_uint_t tier, ngx_uint_t id)
{
    return (scope->tier == 0 || scope->tier == tier) && (scope->id == 0 || scope->id == id);
}

static ngx_int_t givens_apply(ngx_conf_t *cf, const struct main_conf *conf)
{
    struct pass_given **givens = conf->passes->givens.elts;
    ngx_int_t rc = NGX_OK;
    ngx_uint_t id;
    for (ngx_uint_t tier = 1; tier <= TIERS; tier++)
        for (size_t at = 0; rc == NGX_OK && (id = keyring_id_at(conf->keys, at)) != 0; at++) {
            const struct pass_given *given = given_find(conf->passes, tier, id);
            if (given != NULL)
                rc = given_apply(cf, conf->keys, given, id);
        }
    for (ngx_uint_t i = 0; i < conf->passes->givens.nelts; i++)
        OPENSSL_cleanse(givens[i]->key, sizeof(givens[i]->key));
    return rc;
}

/* The one for this id, else the one for all. */
static const struct pass_given *given_find(const struct pass_conf *passes, ngx_uint_t tier, ngx_uint_t id)
{
    struct pass_given **givens = passes->givens.elts, *found = NULL;
    for (ngx_uint_t i = 0; i < passes->givens.nelts; i++)
        if (scope_covers(&givens[i]->scope, tier, id) && (found == NULL || givens[i]->scope.id == id))
            found = givens[i];
    return found;
}

static ngx_int_t given_apply(ngx_conf_t *cf, struct keyring *ring, const struct pass_given *given,
                             ngx_uint_t id)
{
    const struct conf_mention *mention = &given->scope.mention;
    char reason[KEYRING_REASON_MAX];
    struct span key = {given->key, given->len};
    if (keyring_give(ring, (int)given->scope.tier, (uint8_t)id, key, reason))
        return NGX_OK;
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "\"%V\" in %V:%ui is refused for key %ui: %s", &mention->what,
                  &mention->file, mention->line, id, reason);
    return NGX_ERROR;
}

static bool has_eddsa(const struct keyring *ring)
{
    uint8_t id;
    for (int tier = 1; tier <= TIERS; tier++)
        for (size_t at = 0; (id = keyring_id_at(ring, at)) != 0; at++)
            if (keyring_algorithm(ring, tier, id) == KEY_EDDSA)
                return true;
    return false;
}

/* Made by the master and empty then: each worker that is forked has one of its own. */
static ngx_int_t cache_make(ngx_conf_t *cf, struct main_conf *conf)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    conf->verified = cleanup != NULL ? pass_cache_new(PASS_CACHE_ENTRIES) : NULL;
    if (conf->verified == NULL)
        return NGX_ERROR;
    cleanup->handler = cache_free;
    cleanup->data = conf->verified;
    return NGX_OK;
}

static void cache_free(void *cache)
{
    pass_cache_free(cache);
}
