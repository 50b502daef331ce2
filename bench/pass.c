/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Passes by themselves, without nginx: what it costs to verify one, of either algorithm, the first time and from the cache of
 * verified passes; to refuse a forged one; and to sign one. Ten thousand passes in random order, as a gate sees them.
 */

#include "token/pass.h"
#include "base/must.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 7
#define PASSES 10000
#define NOW    1700000100

struct pass {
    char text[512];
    size_t len;
};

/* The passes of one algorithm, and where those are kept that were verified; NULL: nowhere. */
struct bench {
    struct keyring *ring;
    struct pass_cache *cache;
    struct pass passes[PASSES];
};

static struct pass_claims claims_of(uint32_t count)
{
    struct pass_claims claims = {.key_id = 1,
                                 .tier = 2,
                                 .epoch = 1,
                                 .count = count,
                                 .iat_sec = NOW - 100,
                                 .exp_sec = NOW + 43200,
                                 .room = SPAN("concert-2026"),
                                 .uid = SPAN("v-0123456789abcdef")};
    uint64_t random[2] = {random_next(), random_next()};

    memcpy(claims.holder.id, random, sizeof(claims.holder.id));
    return claims;
}

static void bench_init(struct bench *bench, enum key_algorithm algorithm)
{
    char reason[KEYRING_REASON_MAX];

    bench->ring = keyring_new(SPAN("1 0123456789abcdef0123456789abcdef"), reason);
    must(bench->ring != NULL && keyring_set_algorithm(bench->ring, 2, 1, algorithm));
    for (uint32_t i = 0; i < PASSES; i++) {
        struct pass_claims claims = claims_of(i + 1);
        bench->passes[i].len =
            pass_sign(bench->ring, &claims, bench->passes[i].text, sizeof(bench->passes[i].text));
        must(bench->passes[i].len > 0);
    }
}

static void bench_fini(struct bench *bench)
{
    pass_cache_free(bench->cache);
    keyring_free(bench->ring);
}

/* ---- what is measured: each does `probes` operations ---- */

static uint64_t sink;

static bool verify(struct bench *bench, struct span token)
{
    struct pass_claims claims;
    char scratch[PASS_SCRATCH_MAX];
    bool is_valid =
        pass_verify_cached(bench->ring, bench->cache, 2, token, NOW, &claims, scratch, sizeof(scratch));

    sink += is_valid ? claims.count : 0;
    return is_valid;
}

static void probe_verify(struct bench *bench, uint32_t probes)
{
    for (uint32_t i = 0; i < probes; i++) {
        const struct pass *pass = &bench->passes[random_next() % PASSES];
        must(verify(bench, (struct span){pass->text, pass->len}));
    }
}

/* One letter of the payload is another: what a forger has who has seen a pass. */
static void probe_refuse(struct bench *bench, uint32_t probes)
{
    for (uint32_t i = 0; i < probes; i++) {
        struct pass forged = bench->passes[random_next() % PASSES];
        forged.text[80] = forged.text[80] == 'A' ? 'B' : 'A';
        must(!verify(bench, (struct span){forged.text, forged.len}));
    }
}

static void probe_sign(struct bench *bench, uint32_t probes)
{
    char token[PASS_TOKEN_MAX];

    for (uint32_t i = 0; i < probes; i++) {
        struct pass_claims claims = claims_of(i);
        sink += pass_sign(bench->ring, &claims, token, sizeof(token));
    }
}

static int compare(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return difference < 0 ? -1 : difference > 0;
}

static void measure(const char *name, struct bench *bench, void (*probe)(struct bench *, uint32_t),
                    uint32_t probes)
{
    double times[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        probe(bench, probes);
        times[round] = (now_ns() - start) / probes;
    }
    qsort(times, ROUNDS, sizeof(times[0]), compare);
    printf("%s: %.0f ns (no bar)\n", name, times[ROUNDS / 2]);
    fflush(stdout);
}

static struct bench hs256, eddsa;

int main(void)
{
    bench_init(&hs256, KEY_HS256);
    measure("verify a pass, HS256", &hs256, probe_verify, 200000);
    measure("refuse a forged pass, HS256", &hs256, probe_refuse, 200000);
    measure("sign a pass, HS256", &hs256, probe_sign, 200000);
    bench_fini(&hs256);

    bench_init(&eddsa, KEY_EDDSA);
    measure("verify a pass, Ed25519, the first time", &eddsa, probe_verify, 2000);
    measure("refuse a forged pass, Ed25519", &eddsa, probe_refuse, 2000);
    measure("sign a pass, Ed25519", &eddsa, probe_sign, 2000);
    eddsa.cache = pass_cache_new(PASS_CACHE_ENTRIES);
    must(eddsa.cache != NULL);
    for (uint32_t i = 0; i < PASSES; i++)
        must(verify(&eddsa, (struct span){eddsa.passes[i].text, eddsa.passes[i].len}));
    measure("verify a pass, Ed25519, from the cache", &eddsa, probe_verify, 200000);
    bench_fini(&eddsa);
    return sink == 0;
}
