/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each breaker has a small zone of its own, named after its upstream: nginx then keeps it over a reload, and neither another
 * number of upstreams nor another order of them touches it. The size of what lies in it is part of the name, so that a module
 * with another idea of it begins a zone of its own beside that of the workers who leave.
 *
 * The lock is robust: when a worker died holding it, the next one mends what it left. Nothing waits under it.
 */
#include "base/lock.h"
#include "nginx/breaker.h"

#define ZONE_BYTES (8 * ngx_pagesize) /* what nginx's slab wants for itself, and a page */
#define ZONE_TAG   ((void *)&ngx_http_core_module)

struct breaker_shared {
    pthread_mutex_t lock;
    struct breaker breaker;
};

static ngx_int_t zone_init(ngx_shm_zone_t *shm, void *old_data);
static struct breaker *breaker_lock(const struct breaker_conf *conf);
static void breaker_unlock(const struct breaker_conf *conf, enum breaker_state before);
static void change_say(const struct breaker_conf *conf, enum breaker_state before,
                       const struct breaker *breaker);
static void opening_say(const struct breaker_conf *conf, bool is_again, const struct breaker *breaker);

ngx_int_t breaker_zone_add(ngx_conf_t *cf, struct breaker_conf *conf)
{
    static const char prefix[] = "weir breaker ";
    ngx_str_t name = {0, ngx_pnalloc(cf->pool, sizeof(prefix) + NGX_SIZE_T_LEN + 1 + conf->upstream.len)};
    if (name.data == NULL)
        return NGX_ERROR;
    name.len =
        (size_t)(ngx_sprintf(name.data, "%s%uz %V", prefix, sizeof(struct breaker_shared), &conf->upstream) -
                 name.data);
    ngx_shm_zone_t *shm = ngx_shared_memory_add(cf, &name, ZONE_BYTES, ZONE_TAG);
    if (shm == NULL)
        return NGX_ERROR;
    shm->init = zone_init;
    shm->data = conf;
    return NGX_OK;
}

static ngx_int_t zone_init(ngx_shm_zone_t *shm, void *old_data)
{
    struct breaker_conf *conf = shm->data;
    ngx_slab_pool_t *slab = (ngx_slab_pool_t *)shm->shm.addr;
    if (old_data == NULL) {
        struct breaker_shared *shared = slab->data = ngx_slab_calloc(slab, sizeof(*shared));
        if (shared == NULL)
            return NGX_ERROR;
        lock_init(&shared->lock);
        breaker_init(&shared->breaker, &conf->options, ngx_current_msec);
    }
    conf->shared = slab->data;
    return NGX_OK;
}

void breaker_zone_settle(const struct main_conf *conf)
{
    struct breaker_conf **breakers = conf->breakers.elts;
    for (ngx_uint_t i = 0; i < conf->breakers.nelts; i++) {
        struct breaker *breaker = breaker_lock(breakers[i]);
        enum breaker_state before = breaker->state;
        breaker_change(breaker, &breakers[i]->options, ngx_current_msec);
        breaker_unlock(breakers[i], before);
    }
}

bool breaker_zone_begin(const struct breaker_conf *conf, bool is_retry, struct breaker_call *call,
                        uint32_t *wait_sec)
{
    struct breaker *breaker = breaker_lock(conf);
    enum breaker_state before = breaker->state;
    bool goes_by = breaker_begin(breaker, ngx_current_msec, is_retry, call);
    *wait_sec = (breaker_wait_ms(breaker, ngx_current_msec) + 999) / 1000;
    breaker_unlock(conf, before);
    return goes_by;
}

void breaker_zone_end(const struct breaker_conf *conf, const struct breaker_call *call,
                      enum breaker_outcome outcome)
{
    struct breaker *breaker = breaker_lock(conf);
    enum breaker_state before = breaker->state;
    breaker_end(breaker, ngx_current_msec, call, outcome);
    breaker_unlock(conf, before);
}

void breaker_zone_take_back(const struct breaker_conf *conf, const struct breaker_call *call)
{
    struct breaker *breaker = breaker_lock(conf);
    enum breaker_state before = breaker->state;
    breaker_take_back(breaker, ngx_current_msec, call);
    breaker_unlock(conf, before);
}

bool breaker_zone_grant_retry(const struct breaker_conf *conf)
{
    struct breaker *breaker = breaker_lock(conf);
    enum breaker_state before = breaker->state;
    bool is_granted = breaker_grant_retry(breaker, ngx_current_msec);
    breaker_unlock(conf, before);
    return is_granted;
}

struct breaker breaker_zone_look(const struct breaker_conf *conf)
{
    struct breaker *breaker = breaker_lock(conf);
    struct breaker copy = *breaker;
    breaker_unlock(conf, breaker->state);
    return copy;
}

static struct breaker *breaker_lock(const struct breaker_conf *conf)
{
    if (lock_take(&conf->shared->lock))
        breaker_mend(&conf->shared->breaker);
    return &conf->shared->breaker;
}

/* The log is written when others can go on. */
static void breaker_unlock(const struct breaker_conf *conf, enum breaker_state before)
{
    struct breaker copy;
    bool has_changed = conf->shared->breaker.state != before;
    if (has_changed)
        copy = conf->shared->breaker;
    lock_release(&conf->shared->lock);
    if (has_changed)
        change_say(conf, before, &copy);
}

/* In nginx's own log, and not in the request's: it is about everybody's. */
static void change_say(const struct breaker_conf *conf, enum breaker_state before,
                       const struct breaker *breaker)
{
    switch ((enum breaker_state)breaker->state) {
    case BREAKER_OPEN:
        opening_say(conf, before == BREAKER_HALF_OPEN, breaker);
        break;
    case BREAKER_HALF_OPEN:
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "weir: the breaker of \"%V\" is half open: %uD trials", &conf->upstream,
                      breaker->options.trials);
        break;
    case BREAKER_CLOSED:
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "weir: the breaker of \"%V\" closed: %uD trials succeeded", &conf->upstream,
                      breaker->options.trials);
        break;
    }
}

static void opening_say(const struct breaker_conf *conf, bool is_again, const struct breaker *breaker)
{
    if (is_again) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "weir: the breaker of \"%V\" opened again for %uD ms: a trial failed", &conf->upstream,
                      breaker->options.open_ms);
        return;
    }
    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "weir: the breaker of \"%V\" opened for %uD ms: %uD of %uD requests failed",
                  &conf->upstream, breaker->options.open_ms, breaker->cause.failed, breaker->cause.requests);
}
