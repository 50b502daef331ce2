/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A zone of its own, since the engine's block is the engine's; one page of it is used. What decides whether the engine is away is
 * the engine's own word, never that of a client. Whichever worker sees the change first says so.
 *
 * Where each worker has connections of its own, one may have its engine again seconds before another. So at the gate a worker speaks
 * only of what has changed for itself: else the two would contradict each other with every request, in the log too.
 */
#include "nginx/gate_count.h"

#include "nginx/worker.h"

#define ZONE_BYTES (8 * ngx_pagesize) /* what nginx's slab wants for itself, and a page */
#define ZONE_TAG   ((void *)&ngx_http_core_module)

static ngx_int_t counts_init(ngx_shm_zone_t *shm, void *old_data);
static void view_tell(ngx_http_request_t *r, const char *trouble);
static void change_say(const char *trouble, ngx_log_t *log);

ngx_int_t gate_counts_need(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("weir gate");
    struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    ngx_shm_zone_t *shm = ngx_shared_memory_add(cf, &name, ZONE_BYTES, ZONE_TAG);
    if (shm == NULL)
        return NGX_ERROR;
    shm->init = counts_init;
    shm->data = conf;
    return NGX_OK;
}

static ngx_int_t counts_init(ngx_shm_zone_t *shm, void *old_data)
{
    struct main_conf *conf = shm->data;
    ngx_slab_pool_t *slab = (ngx_slab_pool_t *)shm->shm.addr;
    if (old_data == NULL)
        slab->data = ngx_slab_calloc(slab, ngx_pagesize);
    conf->gate_counts = slab->data;
    if (conf->gate_counts == NULL)
        return NGX_ERROR;
    /* Another version of the module may have counted other things. */
    if (conf->gate_counts->outcomes != GATE_OUTCOME_COUNT)
        ngx_memzero(conf->gate_counts, sizeof(struct gate_counts));
    conf->gate_counts->outcomes = GATE_OUTCOME_COUNT;
    return NGX_OK;
}

void gate_count(ngx_http_request_t *r, enum gate_outcome outcome)
{
    ngx_atomic_fetch_add(&conf_main(r)->gate_counts->of[outcome], 1);
}

void gate_counts_watch(ngx_http_request_t *r)
{
    static enum { VIEW_NONE, VIEW_THERE, VIEW_AWAY } seen;
    const char *trouble = worker_loss();
    if (worker_has_own_view() && seen == (trouble == NULL ? VIEW_THERE : VIEW_AWAY))
        return;
    seen = trouble == NULL ? VIEW_THERE : VIEW_AWAY;
    view_tell(r, trouble);
}

void gate_counts_look(ngx_http_request_t *r)
{
    view_tell(r, worker_loss());
}

static void view_tell(ngx_http_request_t *r, const char *trouble)
{
    struct gate_counts *counts = conf_main(r)->gate_counts;
    bool is_away = trouble != NULL;
    if (is_away == (bool)counts->is_away || !ngx_atomic_cmp_set(&counts->is_away, !is_away, is_away))
        return;
    ngx_atomic_fetch_add(is_away ? &counts->went_away : &counts->came_back, 1);
    change_say(trouble, r->connection->log);
}

static void change_say(const char *trouble, ngx_log_t *log)
{
    if (trouble == NULL) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0, "weir: the gate has its engine again");
        return;
    }
    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "weir: the gate goes on without its engine, as weir_when_down says: %s", trouble);
}
