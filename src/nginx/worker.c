/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every worker ticks, and the engine sees to it that time passes once: so a worker that hangs or dies stops nobody. The timer
 * is cancelable, or else a worker that is told to leave would wait for it for ever; until it has left it goes on ticking.
 */
#include "nginx/worker.h"

#include "engine/local.h"

#define TICK_MS 100

static struct engine *engine;
static ngx_event_t tick_event;
static ngx_connection_t tick_connection; /* nginx's debug log asks an event for its descriptor */

static void tick_on_timer(ngx_event_t *event);

ngx_int_t worker_init(ngx_cycle_t *cycle)
{
    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
        return NGX_OK;
    struct main_conf *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_weir_module);
    if (conf == NULL || conf->zone == NULL)
        return NGX_OK;
    engine = local_engine_new(conf->zone);
    if (engine == NULL)
        return NGX_ERROR;
    tick_connection.fd = (ngx_socket_t)-1;
    tick_event.handler = tick_on_timer;
    tick_event.data = &tick_connection;
    tick_event.log = cycle->log;
    tick_event.cancelable = 1;
    ngx_add_timer(&tick_event, TICK_MS);
    return NGX_OK;
}

void worker_exit(ngx_cycle_t *cycle)
{
    if (engine == NULL)
        return;
    if (tick_event.timer_set)
        ngx_del_timer(&tick_event);
    local_engine_free(engine);
    engine = NULL;
}

struct engine *worker_engine(void)
{
    return engine;
}

static void tick_on_timer(ngx_event_t *event)
{
    engine->tick(engine, ngx_current_msec);
    ngx_add_timer(event, TICK_MS);
}
