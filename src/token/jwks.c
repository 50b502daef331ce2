/* SPDX-License-Identifier: BSD-2-Clause */
/* It is written from what keyring_public gives, which has nothing to give of an HS256 key: what cannot be read cannot leak. */
#include "token/jwks.h"

#include "base/base64url.h"
#include "base/must.h"

#include <stdio.h>

#define JWK_MAX 160 /* one key and a comma */

_Static_assert(2 * SECRET_KEYS_MAX * JWK_MAX + sizeof("{\"keys\":[]}") <= JWKS_MAX, "the longest set fits");

static size_t jwk_write(const struct keyring *ring, int tier, uint8_t id, char out[JWK_MAX]);

size_t jwks_write(const struct keyring *ring, int tier, char out[JWKS_MAX])
{
    size_t len = (size_t)sprintf(out, "{\"keys\":["), empty = len;
    uint8_t id;
    for (int of = 1; of <= 2; of++)
        for (size_t i = 0; (id = keyring_id_at(ring, i)) != 0; i++) {
            char jwk[JWK_MAX];
            size_t jwk_len = tier == 0 || tier == of ? jwk_write(ring, of, id, jwk) : 0;
            if (jwk_len == 0)
                continue;
            if (len > empty)
                out[len++] = ',';
            memcpy(out + len, jwk, jwk_len);
            len += jwk_len;
        }
    return len + (size_t)sprintf(out + len, "]}");
}

/* 0: there is no public key. */
static size_t jwk_write(const struct keyring *ring, int tier, uint8_t id, char out[JWK_MAX])
{
    uint8_t key[KEYRING_KEY_SIZE];
    char x[BASE64URL_LEN(sizeof(key))];
    if (!keyring_public(ring, tier, id, key))
        return 0;
    base64url_encode(key, sizeof(key), x, sizeof(x));
    int len =
        snprintf(out, JWK_MAX,
                 "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"use\":\"sig\",\"alg\":\"EdDSA\",\"kid\":\"%d.%u\","
                 "\"x\":\"%.*s\"}",
                 tier, id, (int)sizeof(x), x);
    must(len > 0 && len < JWK_MAX - 1);
    return (size_t)len;
}
