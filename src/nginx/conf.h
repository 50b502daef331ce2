/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_CONF_H
#define WEIR_NGINX_CONF_H

/*
 * What the configuration says, in nginx's three layers. Written while the configuration is read, read-only afterwards.
 * The function that reads a directive stands with the noun it is about: zone.c, secret.c, rooms.c, identity.c, cors.c,
 * gate_conf.c; what belongs nowhere else is here.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/span.h"
#include "room/settings.h"

#include <stdbool.h>

/* How many rooms there may be, if nothing is said, and at the most. */
#define CONF_ROOMS_DEFAULT 64
#define CONF_ROOMS_MOST    100000

struct keyring;
struct pass_cache;
struct operators;
struct local_zone;
struct journal;
struct journal_conf;
struct store_conf;

/* Something that was written, and where: for a sentence about it later. */
struct conf_mention {
    ngx_str_t what;
    ngx_str_t file;
    ngx_uint_t line;
};

struct pass_conf; /* pass_conf.c */

struct room_conf {
    ngx_str_t name;
    struct settings settings;
    struct texts texts;
};

struct main_conf {
    ngx_shm_zone_t *shm;      /* NULL: no weir_zone */
    struct store_conf *store; /* NULL: no weir_store */
    uint32_t rooms_max;
    struct local_zone *zone;
    struct journal_conf *journal_conf; /* NULL: no weir_journal */
    struct journal *journal;           /* in the zone's head; NULL: none, or nginx -t */
    bool rooms_are_pending;            /* the zone was not ready for them */
    struct keyring *keys;              /* NULL: no weir_secret_file */
    struct pass_conf *passes;          /* NULL: neither weir_pass nor weir_pass_key */
    struct pass_cache *verified;       /* passes found good, in each worker its own; NULL: none is EdDSA */
    struct operators *operators;       /* NULL: no weir_admin_token_file */
    ngx_array_t rooms;                 /* struct room_conf */
    bool has_rooms_rule;               /* weir_rooms was written */
    bool makes_rooms;
    struct settings made_settings;   /* of rooms made by their first join */
    struct texts made_texts;         /* likewise */
    struct gate_counts *gate_counts; /* NULL: no gate */
    ngx_str_t shop_key;              /* data NULL: no weir_shop_key_file */
    ngx_array_t gates;               /* of gate_conf.c: the rooms that gates name in so many words */
    ngx_array_t breakers;            /* struct breaker_conf * */
    ngx_int_t real_peer;             /* index of $realip_remote_addr, or NGX_ERROR without that module */
    struct conf_mention
        need; /* the first directive that cannot work without a keeper of rooms and a secret */
    struct conf_mention admin; /* the first weir_api admin */
};

struct breaker_conf; /* breaker.h */

struct srv_conf {
    struct breaker_conf *breaker; /* of an upstream; NULL: none */
    bool has_api;    /* some location of it: refusals from before a location was found use the envelope too */
    bool has_lobby;  /* some location of it: its paths have tickets in them */
    bool has_gate;   /* some location of it: nobody may tell its shop who passed, by a free path either */
    bool has_verify; /* some location of it */
};

/* The APIs of clients that a location answers (weir_api). FAMILY_ADMIN beside FAMILY_LOBBY: the lobby's operators. */
enum conf_family {
    FAMILY_QUEUE = 1,
    FAMILY_TIER2 = 2,
    FAMILY_LOBBY = 4,
    FAMILY_CONCERT = 8,
    FAMILY_ADMIN = 16
};

enum conf_idempotency { IDEMPOTENCY_OPTIONAL, IDEMPOTENCY_REQUIRED };

struct identity_conf; /* identity.c */
struct gate_conf;     /* gate.h */
struct gate_counts;   /* gate_count.h */
struct verify_conf;   /* verify.c */

/* What a gate does while the engine is away. */
enum conf_when_down {
    WHEN_DOWN_CLOSED, /* nobody is let by */
    WHEN_DOWN_SIGNED, /* whoever has a pass that we signed */
    WHEN_DOWN_OPEN,   /* everybody */
};

/* Which contract a waiting page speaks. */
enum conf_page {
    PAGE_QUEUE, /* the queue API; the path names the room */
    PAGE_LOBBY, /* the anonymous lobby; the path names the event */
    PAGE_TIER2, /* the queue of those who signed in; the event is the room */
};

struct loc_conf {
    struct identity_conf *identity; /* NULL: off */
    ngx_array_t *origins;           /* ngx_str_t; NULL: off */
    ngx_uint_t idempotency;         /* enum conf_idempotency */
    struct gate_conf *gate;         /* NULL: off */
    ngx_array_t *bypass;            /* ngx_http_complex_value_t: who is let by without a pass; NULL: nobody */
    ngx_uint_t when_down;           /* enum conf_when_down */
    ngx_str_t lobby;            /* of weir_lobby: what stands before the name of a lobby's page; empty: off */
    struct verify_conf *verify; /* of weir_verify in this very location */
    ngx_http_handler_pt handler; /* of weir_api, weir_page or weir_verify in this very location */
    bool is_api;
    ngx_uint_t families;    /* enum conf_family; 0: none of them */
    size_t prefix_len;      /* of their location's name; 0: it is no prefix */
    ngx_str_t concert_room; /* of weir_api concert */
    bool trusts_user_id;    /* of weir_api concert: whoever asks may say for whom */
    ngx_array_t *admins;    /* ngx_http_complex_value_t of weir_admin; NULL: nobody */
    ngx_uint_t page;        /* enum conf_page of weir_page */
    int jwks_tier;          /* of weir_api jwks; 0: both */
};

extern ngx_module_t ngx_http_weir_module;

void *conf_create_main(ngx_conf_t *cf);
void *conf_create_srv(ngx_conf_t *cf);
void *conf_create_loc(ngx_conf_t *cf);
char *conf_merge_loc(ngx_conf_t *cf, void *parent, void *child);

/* Once everything is read: what is needed is there, and gates name rooms that exist. */
ngx_int_t conf_check(ngx_conf_t *cf);

/* The directive being read needs a zone or a store, and a secret. */
void conf_note_need(ngx_conf_t *cf);

struct conf_mention conf_mention(ngx_conf_t *cf, ngx_str_t what);

/* The value behind `prefix` ("rooms=") if the parameter begins with it. */
bool conf_parameter(const ngx_str_t *argument, const char *prefix, ngx_str_t *value);

/* Reads a list of variables, any of which may be true, or `off`, into the member of `conf` at `offset`, which is `list`. */
char *conf_predicates(ngx_conf_t *cf, ngx_array_t **list, size_t offset, void *conf);

char *conf_idempotency_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);
char *conf_page_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* NGX_CONF_OK, or NGX_CONF_ERROR after having said that this directive needs a location whose name ends in a slash. */
char *conf_location_check(ngx_conf_t *cf, const char *directive);

/* A location with a prefix: not an exact one, a regex, an `if`, a named one. */
static inline bool conf_is_prefix(const ngx_http_core_loc_conf_t *core)
{
    return !core->exact_match && core->regex == NULL && !core->noname && !core->named;
}

static inline struct main_conf *conf_main(ngx_http_request_t *r)
{
    return ngx_http_get_module_main_conf(r, ngx_http_weir_module);
}

static inline struct loc_conf *conf_loc(ngx_http_request_t *r)
{
    return ngx_http_get_module_loc_conf(r, ngx_http_weir_module);
}

static inline struct span span_of_str(ngx_str_t str)
{
    return (struct span){(const char *)str.data, str.len};
}

#endif
