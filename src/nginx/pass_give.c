/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pass is signed from what the engine keeps (time, key, life), never from this request: so a retry, or five at once, are
 * given the same bytes.
 */
#include "nginx/pass_give.h"

#include "nginx/identity.h"

bool pass_give(ngx_http_request_t *r, struct span room, const struct standing *standing, struct span identity,
               struct pass_given *out)
{
    struct keyring *keys = conf_main(r)->keys;
    char *memory = ngx_pnalloc(r->pool, ANONYMOUS_LEN + PASS_TOKEN_MAX);
    if (memory == NULL)
        return false;
    out->life_sec = standing->pass_life_sec;
    out->claims = (struct pass_claims){
        .key_id = keyring_has(keys, standing->pass_key_id) ? standing->pass_key_id : keyring_signing_id(keys),
        .tier = standing->tier,
        .epoch = standing->place.epoch,
        .count = standing->place.count,
        .holder = standing->place.holder,
        .iat_sec = standing->iat_sec,
        .exp_sec = (uint64_t)standing->iat_sec + standing->pass_life_sec,
        .room = room,
        .uid = standing->is_trusted ? identity : identity_anonymous(&standing->place.holder, memory),
    };
    memory += ANONYMOUS_LEN;
    out->token = (struct span){memory, pass_sign(keys, &out->claims, memory, PASS_TOKEN_MAX)};
    return out->token.len > 0;
}
