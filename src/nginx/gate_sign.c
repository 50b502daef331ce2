/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key is one that the shop has too, so it is none of those that come from the master secret. Names of rooms, tiers and
 * session ids hold no line feed, and the user, who may hold anything, comes last: a text means one thing only.
 */
#include "nginx/gate_sign.h"

#include "base/ascii.h"
#include "nginx/private_file.h"
#include "nginx/text.h"

#include <openssl/hmac.h>

#define KEY_MIN       32
#define KEY_MAX       256
#define SIGNATURE_MAX 96

static bool key_take(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX]);
static void key_wipe(void *data);

char *gate_sign_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    static const struct private_file file = {"shop key file", key_take};
    const struct main_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    return conf->shop_key.data != NULL ? "is duplicate" : private_file_read(cf, &file, words[1]);
}

static bool key_take(ngx_conf_t *cf, struct span text, char reason[PRIVATE_REASON_MAX])
{
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    if (text.len < KEY_MIN || text.len > KEY_MAX || !ascii_all_visible(text)) {
        ngx_snprintf((u_char *)reason, PRIVATE_REASON_MAX,
                     "it must be one line of %d to %d printable characters without a space%Z", KEY_MIN,
                     KEY_MAX);
        return false;
    }
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    u_char *key = ngx_pnalloc(cf->pool, text.len);
    if (cleanup == NULL || key == NULL)
        return false;
    ngx_memcpy(key, text.data, text.len);
    conf->shop_key = (ngx_str_t){text.len, key};
    cleanup->handler = key_wipe;
    cleanup->data = &conf->shop_key;
    return true;
}

static void key_wipe(void *data)
{
    ngx_str_t *key = data;
    ngx_explicit_memzero(key->data, key->len);
}

struct span gate_sign(ngx_http_request_t *r, const struct gate_said *said)
{
    const ngx_str_t *key = &conf_main(r)->shop_key;
    u_char mac[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (key->data == NULL)
        return SPAN_NONE;
    size_t len = NGX_TIME_T_LEN + 4 + said->room.len + said->tier.len + said->session.len + said->user.len;
    ngx_buf_t *text = ngx_create_temp_buf(r->pool, len);
    u_char *out = ngx_pnalloc(r->pool, SIGNATURE_MAX);
    if (text == NULL || out == NULL)
        return SPAN_NONE;
    text_add_number(text, (uint64_t)ngx_time());
    const struct span parts[] = {said->room, said->tier, said->session, said->user};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        TEXT_ADD(text, "\n");
        if (parts[i].len > 0)
            text_add(text, parts[i]);
    }
    if (HMAC(EVP_sha256(), key->data, (int)key->len, text->pos, (size_t)(text->last - text->pos), mac,
             &size) == NULL)
        return SPAN_NONE;
    u_char *end = ngx_hex_dump(ngx_sprintf(out, "t=%T,v1=", ngx_time()), mac, size);
    return (struct span){(const char *)out, (size_t)(end - out)};
}
