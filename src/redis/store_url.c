/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The URL is cut at its separators first, and each part is decoded for itself after that, so that nothing that was encoded can
 * become a separator. An `@` anywhere but behind the password is refused: somebody forgot to encode a password, and any other
 * reading would send a part of it to the resolver or into the log.
 *
 * The options are a table: what may be said, where it goes, and when it makes no sense.
 */
#include "redis/store_url.h"

#include "base/ascii.h"
#include "base/decimal.h"
#include "base/must.h"

#include <stdarg.h>
#include <stdio.h>

#define PORT_OF_SERVER   6379
#define PORT_OF_SENTINEL 26379
#define IN_PARTS         "%@:/?#,&" /* encoded when they are printed; */
#define IN_OPTIONS       "%@#&"     /* paths stay readable */
#define COUNT(array)     (sizeof(array) / sizeof((array)[0]))

enum option_kind { OPTION_TEXT, OPTION_SECRET_FILE, OPTION_SECRET_ENV, OPTION_VERIFY };
enum option_need { NEEDS_NOTHING, NEEDS_TLS, NEEDS_SENTINEL };

struct option {
    struct span name;
    enum option_kind kind;
    enum option_need need;
    size_t offset; /* of a store_text, a store_login or of the enum */
};

#define AT(field) offsetof(struct store_url, field)
static const struct option options[] = {
    {SPAN("user"), OPTION_TEXT, NEEDS_NOTHING, AT(login.user)},
    {SPAN("password_file"), OPTION_SECRET_FILE, NEEDS_NOTHING, AT(login)},
    {SPAN("password_env"), OPTION_SECRET_ENV, NEEDS_NOTHING, AT(login)},
    {SPAN("sentinel_user"), OPTION_TEXT, NEEDS_SENTINEL, AT(sentinel_login.user)},
    {SPAN("sentinel_password_file"), OPTION_SECRET_FILE, NEEDS_SENTINEL, AT(sentinel_login)},
    {SPAN("sentinel_password_env"), OPTION_SECRET_ENV, NEEDS_SENTINEL, AT(sentinel_login)},
    {SPAN("ca"), OPTION_TEXT, NEEDS_TLS, AT(tls.ca)},
    {SPAN("cert"), OPTION_TEXT, NEEDS_TLS, AT(tls.cert)},
    {SPAN("key"), OPTION_TEXT, NEEDS_TLS, AT(tls.key)},
    {SPAN("name"), OPTION_TEXT, NEEDS_TLS, AT(tls.name)},
    {SPAN("verify"), OPTION_VERIFY, NEEDS_TLS, AT(tls.verify)},
};
#undef AT

static const struct span verify_words[] = {SPAN("full"), SPAN("ca"), SPAN("none")};

/* The URL cut at its separators; what is absent has data NULL. */
struct parts {
    struct span user, password, addresses, path, query;
    bool has_login;
};

/* Where the printed form is being written. */
struct printer {
    char *at;
    size_t left;
};

static const char *url_read(struct span text, struct store_url *out);
static bool scheme_take(struct span *text, struct store_url *out);
static const char *url_cut(struct span text, struct parts *parts);
static struct span until(struct span *text, const char *separators);
static bool holds(struct span text, char c);
static const char *login_read(const struct parts *parts, struct store_login *login);
static const char *addresses_read(struct span text, struct store_url *out);
static const char *path_read(struct span path, struct store_url *out);
static const char *database_read(struct span text, struct store_url *out);
static const char *options_read(struct span query, struct store_url *out);
static const struct option *option_find(struct span name);
static const char *option_set(const struct option *option, struct span raw, struct store_url *out);
static const char *secret_set(struct store_login *login, enum secret_source source, struct span raw);
static const char *verify_set(struct span raw, enum store_verify *verify);
static const char *whole_check(const struct store_url *url);
static bool text_decode(struct span raw, struct store_text *out);
static int hex_value(char c);
static void options_print(const struct store_url *url, struct printer *printer);
static const struct store_text *option_text(const struct option *option, const struct store_url *url);
static void text_print(const struct store_text *text, const char *encoded, struct printer *printer);
static void print(struct printer *printer, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *store_url_read(struct span text, struct store_url *out)
{
    memset(out, 0, sizeof(*out));
    const char *refusal = url_read(text, out);
    if (refusal != NULL)
        store_url_forget(out);
    return refusal;
}

static const char *url_read(struct span text, struct store_url *out)
{
    struct parts parts;
    const char *refusal;

    if (!ascii_all_visible(text))
        return "The store's URL holds a space or another character that must be percent-encoded.";
    if (!scheme_take(&text, out))
        return "The store's URL begins with none of redis://, rediss://, redis+sentinel:// and "
               "rediss+sentinel://.";
    if ((refusal = url_cut(text, &parts)) != NULL || (refusal = login_read(&parts, &out->login)) != NULL ||
        (refusal = addresses_read(parts.addresses, out)) != NULL ||
        (refusal = path_read(parts.path, out)) != NULL || (refusal = options_read(parts.query, out)) != NULL)
        return refusal;
    return whole_check(out);
}

static bool scheme_take(struct span *text, struct store_url *out)
{
    static const struct {
        struct span text;
        bool is_tls, is_sentinel;
    } schemes[] = {
        {SPAN("redis://"), false, false},
        {SPAN("rediss://"), true, false},
        {SPAN("redis+sentinel://"), false, true},
        {SPAN("rediss+sentinel://"), true, true},
    };
    for (size_t i = 0; i < COUNT(schemes); i++) {
        struct span scheme = schemes[i].text;
        if (text->len < scheme.len || memcmp(text->data, scheme.data, scheme.len) != 0)
            continue;
        *text = (struct span){text->data + scheme.len, text->len - scheme.len};
        out->tls.is_on = schemes[i].is_tls;
        out->is_sentinel = schemes[i].is_sentinel;
        return true;
    }
    return false;
}

static const char *url_cut(struct span text, struct parts *parts)
{
    *parts = (struct parts){.has_login = false};
    if (holds(text, '@')) {
        struct span login = until(&text, "@");
        text = (struct span){text.data + 1, text.len - 1};
        parts->has_login = true;
        parts->user = until(&login, ":");
        parts->password = login.len > 0 ? (struct span){login.data + 1, login.len - 1} : SPAN_NONE;
        if (holds(text, '@') || holds(parts->user, '/') || holds(parts->user, '?') ||
            holds(parts->password, '/') || holds(parts->password, '?') || holds(parts->password, ':'))
            return "An @, :, / or ? in the store's user, password, names or paths must be percent-encoded.";
    }
    if (holds(text, '#') || holds(parts->user, '#') || holds(parts->password, '#'))
        return "A # in the store's URL must be percent-encoded.";
    parts->addresses = until(&text, "/?");
    parts->path = until(&text, "?");
    parts->query = text;
    return NULL;
}

/* What comes before the first of the separators, which stays at the head of the text. */
static struct span until(struct span *text, const char *separators)
{
    size_t len = 0;
    while (len < text->len && strchr(separators, text->data[len]) == NULL)
        len++;
    struct span before = {text->data, len};
    *text = (struct span){text->data + len, text->len - len};
    return before;
}

static bool holds(struct span text, char c)
{
    return text.len > 0 && memchr(text.data, c, text.len) != NULL;
}

static const char *login_read(const struct parts *parts, struct store_login *login)
{
    if (!parts->has_login)
        return NULL;
    if (parts->password.len == 0)
        return "The store's URL has an @ but no :password before it (a user alone is written ?user=).";
    if (!text_decode(parts->user, &login->user))
        return "The store's user is longer than 1024 bytes or not properly percent-encoded.";
    return secret_set(login, SECRET_GIVEN, parts->password);
}

static const char *addresses_read(struct span text, struct store_url *out)
{
    uint16_t port = out->is_sentinel ? PORT_OF_SENTINEL : PORT_OF_SERVER;
    for (;;) {
        struct address *address = &out->addresses[out->address_count];
        if (out->address_count == STORE_ADDRESSES_MAX)
            return "The store's URL names more than 16 addresses.";
        if (!address_read(until(&text, ","), port, address))
            return "An address in the store's URL is not a host, host:port, [ipv6] or [ipv6]:port.";
        for (size_t i = 0; i < out->address_count; i++)
            if (address_equal(address, &out->addresses[i]))
                return "An address stands twice in the store's URL.";
        out->address_count++;
        if (text.len == 0)
            return NULL;
        text = (struct span){text.data + 1, text.len - 1};
    }
}

static const char *path_read(struct span path, struct store_url *out)
{
    if (path.len > 0)
        path = (struct span){path.data + 1, path.len - 1};
    if (out->is_sentinel) {
        struct span name = until(&path, "/");
        if (name.len == 0 || !text_decode(name, &out->master_name))
            return "The URL of sentinels needs the name of the master: redis+sentinel://host,host/name.";
        if (path.len == 0)
            return NULL;
        path = (struct span){path.data + 1, path.len - 1};
    }
    return path.len == 0 ? NULL : database_read(path, out);
}

static const char *database_read(struct span text, struct store_url *out)
{
    uint64_t number;
    if (!decimal_read(text, 0, &number) || number > STORE_DATABASE_MAX)
        return "The database in the store's URL is not a number from 0 to 65535.";
    out->database = (uint32_t)number;
    return NULL;
}

static const char *options_read(struct span query, struct store_url *out)
{
    uint32_t seen = 0;
    while (query.len > 0) {
        query = (struct span){query.data + 1, query.len - 1};
        struct span value = until(&query, "&"), name = until(&value, "=");
        const struct option *option = option_find(name);
        if (option == NULL)
            return "An option in the store's URL is none of user, password_file, password_env, "
                   "sentinel_user, "
                   "sentinel_password_file, sentinel_password_env, ca, cert, key, name and verify.";
        if (seen & 1U << (option - options))
            return "An option stands twice in the store's URL.";
        seen |= 1U << (option - options);
        if (value.len < 2)
            return "An option in the store's URL has no value.";
        const char *refusal = option_set(option, (struct span){value.data + 1, value.len - 1}, out);
        if (refusal != NULL)
            return refusal;
    }
    return NULL;
}

static const struct option *option_find(struct span name)
{
    for (size_t i = 0; i < COUNT(options); i++)
        if (span_equal(options[i].name, name))
            return &options[i];
    return NULL;
}

static const char *option_set(const struct option *option, struct span raw, struct store_url *out)
{
    void *at = (char *)out + option->offset;
    if (option->need == NEEDS_TLS && !out->tls.is_on)
        return "The options ca, cert, key, name and verify are for TLS: rediss:// or rediss+sentinel://.";
    if (option->need == NEEDS_SENTINEL && !out->is_sentinel)
        return "The options sentinel_user, sentinel_password_file and sentinel_password_env are for "
               "redis+sentinel://.";
    switch (option->kind) {
    case OPTION_SECRET_FILE:
        return secret_set(at, SECRET_FILE, raw);
    case OPTION_SECRET_ENV:
        return secret_set(at, SECRET_ENVIRONMENT, raw);
    case OPTION_VERIFY:
        return verify_set(raw, at);
    case OPTION_TEXT:
        break;
    }
    struct store_text *text = at;
    if (text->len > 0)
        return "The store's URL names two users.";
    return text_decode(raw, text)
               ? NULL
               : "An option in the store's URL is longer than 1024 bytes or badly percent-encoded.";
}

static const char *secret_set(struct store_login *login, enum secret_source source, struct span raw)
{
    if (login->source != SECRET_NONE)
        return "The store's URL names more than one password, file or variable for the same login.";
    login->source = source;
    return text_decode(raw, &login->secret)
               ? NULL
               : "The store's password, or the path or name it comes from, is longer than "
                 "1024 bytes or badly percent-encoded.";
}

static const char *verify_set(struct span raw, enum store_verify *verify)
{
    for (size_t i = 0; i < COUNT(verify_words); i++)
        if (span_equal(raw, verify_words[i])) {
            *verify = (enum store_verify)i;
            return NULL;
        }
    return "The option verify in the store's URL is none of full, ca and none.";
}

static const char *whole_check(const struct store_url *url)
{
    const struct store_tls *tls = &url->tls;
    if ((url->login.user.len > 0 && url->login.source == SECRET_NONE) ||
        (url->sentinel_login.user.len > 0 && url->sentinel_login.source == SECRET_NONE))
        return "A user in the store's URL needs a password, a password file or a variable.";
    if ((tls->cert.len > 0) != (tls->key.len > 0))
        return "The options cert and key in the store's URL go together.";
    if (tls->verify == STORE_VERIFY_NONE && tls->ca.len > 0)
        return "The option ca in the store's URL has no use with verify=none.";
    return NULL;
}

/* Nothing in it may be a NUL: paths and passwords go to functions that would stop there. */
static bool text_decode(struct span raw, struct store_text *out)
{
    size_t len = 0;
    for (size_t i = 0; i < raw.len; i++) {
        int byte = (unsigned char)raw.data[i];
        if (byte == '%') {
            if (raw.len - i < 3)
                return false;
            int high = hex_value(raw.data[i + 1]), low = hex_value(raw.data[i + 2]);
            byte = high < 0 || low < 0 ? 0 : high << 4 | low;
            i += 2;
        }
        if (byte == 0 || len == STORE_TEXT_MAX)
            return false;
        out->data[len++] = (char)byte;
    }
    out->data[len] = '\0';
    out->len = len;
    return true;
}

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    return at == NULL ? -1 : (int)(at - digits);
}

/* ---- what people may see ---- */

size_t store_url_print(const struct store_url *url, char out[STORE_PRINTED_MAX])
{
    struct printer printer = {out, STORE_PRINTED_MAX};
    char text[ADDRESS_TEXT_MAX];

    out[0] = '\0';
    print(&printer, "redis%s%s://", url->tls.is_on ? "s" : "", url->is_sentinel ? "+sentinel" : "");
    if (url->login.source == SECRET_GIVEN) {
        text_print(&url->login.user, IN_PARTS, &printer);
        print(&printer, ":***@");
    }
    for (size_t i = 0; i < url->address_count; i++) {
        address_write(&url->addresses[i], text);
        print(&printer, "%s%s", i > 0 ? "," : "", text);
    }
    if (url->is_sentinel) {
        print(&printer, "/");
        text_print(&url->master_name, IN_PARTS, &printer);
    }
    print(&printer, "/%u", url->database);
    options_print(url, &printer);
    return STORE_PRINTED_MAX - printer.left;
}

static void options_print(const struct store_url *url, struct printer *printer)
{
    char separator = '?';
    for (size_t i = 0; i < COUNT(options); i++) {
        const struct option *option = &options[i];
        const struct store_text *text = option_text(option, url);
        if (text == NULL || text->len == 0)
            continue;
        print(printer, "%c%.*s=", separator, (int)option->name.len, option->name.data);
        text_print(text, IN_OPTIONS, printer);
        separator = '&';
    }
    if (url->tls.verify != STORE_VERIFY_FULL)
        print(printer, "%cverify=%s", separator, verify_words[url->tls.verify].data);
}

/* What stands behind the option's name; NULL if it was not given as an option, or is not a text. */
static const struct store_text *option_text(const struct option *option, const struct store_url *url)
{
    const void *at = (const char *)url + option->offset;
    const struct store_login *login = at;
    switch (option->kind) {
    case OPTION_SECRET_FILE:
        return login->source == SECRET_FILE ? &login->secret : NULL;
    case OPTION_SECRET_ENV:
        return login->source == SECRET_ENVIRONMENT ? &login->secret : NULL;
    case OPTION_VERIFY:
        return NULL;
    case OPTION_TEXT:
        break;
    }
    return at == &url->login.user && url->login.source == SECRET_GIVEN ? NULL : at;
}

static void text_print(const struct store_text *text, const char *encoded, struct printer *printer)
{
    for (size_t i = 0; i < text->len; i++) {
        char c = text->data[i];
        if (!ascii_is_visible(c) || strchr(encoded, c) != NULL)
            print(printer, "%%%02X", (unsigned char)c);
        else
            print(printer, "%c", c);
    }
}

static void print(struct printer *printer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(printer->at, printer->left, format, arguments);
    va_end(arguments);
    must(len >= 0 && (size_t)len < printer->left);
    printer->at += len;
    printer->left -= (size_t)len;
}

/* ---- secrets ---- */

const char *store_password_read(struct span text, struct store_text *out)
{
    memset(out, 0, sizeof(*out));
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    if (text.len > 0 && text.data[text.len - 1] == '\r')
        text.len--;
    if (text.len == 0)
        return "The store's password is empty.";
    if (text.len > STORE_TEXT_MAX)
        return "The store's password is longer than 1024 bytes.";
    if (holds(text, '\0') || holds(text, '\n'))
        return "The store's password is more than one line of text.";
    memcpy(out->data, text.data, text.len);
    out->len = text.len;
    return NULL;
}

const char *store_password_file_refusal(bool is_regular, uint32_t mode, uint64_t bytes)
{
    if (!is_regular)
        return "The store's password file is not a regular file.";
    if ((mode & 0027) != 0)
        return "The store's password file can be read by everybody, or written by others than its owner: "
               "chmod 640 it.";
    return bytes > STORE_PASSWORD_FILE_MAX ? "The store's password file is longer than a password can be."
                                           : NULL;
}

void store_url_forget(struct store_url *url)
{
    explicit_bzero(url, sizeof(*url));
}
