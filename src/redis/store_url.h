/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_STORE_URL_H
#define WEIR_REDIS_STORE_URL_H

/*
 * Where the rooms are kept, as the operator writes it:
 *
 *     redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE][?OPTION=VALUE&…]
 *     redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT][,…]/MASTER-NAME[/DATABASE][?…]
 *     rediss://…  rediss+sentinel://…                                             the same over TLS
 *
 * Ports are 6379, of sentinels 26379, unless it says others. Several addresses are several ways to the same servers. Whether they
 * are a cluster is asked of them and stands nowhere here. User, password, master name and values may be percent-encoded, and
 * must be where they hold one of `% @ : / ? # & ,` or a character that is not visible ASCII (the value of an option may hold all
 * of these but `% @ # &`).
 *
 *     user=NAME             who logs in when the password comes from elsewhere (else the user is "default")
 *     password_file=PATH    the password is the content of this file, which is read anew for each new connection
 *     password_env=NAME     the password is the value of this environment variable
 *     sentinel_user=, sentinel_password_file=, sentinel_password_env=   the same for the sentinels, which have accounts of their own
 *     ca=PATH               whom to trust (else what the system trusts)
 *     cert=PATH key=PATH    the client's own certificate, both or none
 *     name=HOST             the name to ask for and to expect in the certificate (else the host that is connected to)
 *     verify=full|ca|none   check the certificate and its name; only that a trusted authority signed it; nothing at all
 *
 * A refusal is one constant sentence. It holds no part of the URL: what stands in the wrong place may be half of a password.
 */

#include "redis/address.h"

#define STORE_ADDRESSES_MAX 16
#define STORE_TEXT_MAX      1024 /* bytes of a user, password, name or path */
#define STORE_DATABASE_MAX  65535
#define STORE_PRINTED_MAX   (64 + STORE_ADDRESSES_MAX * (ADDRESS_TEXT_MAX + 1) + 12 * (3 * STORE_TEXT_MAX + 32))

struct store_text {
    char data[STORE_TEXT_MAX + 1]; /* NUL-terminated, holds no other NUL; empty: there is none */
    size_t len;
};

enum secret_source { SECRET_NONE, SECRET_GIVEN, SECRET_FILE, SECRET_ENVIRONMENT };

/* Whom we say we are. Without a password nobody logs in. */
struct store_login {
    struct store_text user; /* empty: the default user */
    enum secret_source source;
    struct store_text secret; /* the password itself, the path, or the name of the variable */
};

enum store_verify { STORE_VERIFY_FULL, STORE_VERIFY_CA, STORE_VERIFY_NONE };

struct store_tls {
    bool is_on;
    enum store_verify verify;
    struct store_text ca, cert, key;
    struct store_text name;
};

struct store_url {
    bool is_sentinel; /* the addresses are those of sentinels */
    struct address addresses[STORE_ADDRESSES_MAX];
    size_t address_count; /* at least 1, all different */
    struct store_text master_name;
    uint32_t database;
    struct store_login login, sentinel_login;
    struct store_tls tls;
};

/* NULL, or why not; `out` is then empty and holds no secret. */
const char *store_url_read(struct span text, struct store_url *out);

/* As the operator wrote it, in one order and with all ports, but with `***` for the password. NUL-terminated; returns the length. */
size_t store_url_print(const struct store_url *url, char out[STORE_PRINTED_MAX]);

/*
 * The password that a file or a variable holds: one line, whose end does not count. NULL, or why it is none; `out` is then empty.
 * A variable never changes while a process lives; a file may, and is how a password is changed without a restart.
 */
const char *store_password_read(struct span text, struct store_text *out);

/*
 * Why the file is not one to take a password from: a constant sentence, or NULL. Its group may read it, unlike other private files
 * here: a worker is seldom its owner, and reads it anew for each connection. `mode` is as chmod writes it.
 */
#define STORE_PASSWORD_FILE_MAX (STORE_TEXT_MAX + 2) /* and a line end */
const char *store_password_file_refusal(bool is_regular, uint32_t mode, uint64_t bytes);

/* Overwrites every secret, for good. */
void store_url_forget(struct store_url *url);

#endif
