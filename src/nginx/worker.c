/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every worker ticks, and the engine sees to it that time passes once: so a worker that hangs or dies stops nobody. The timer
 * is cancelable, or else a worker that is told to leave would wait for it for ever; until it has left it goes on ticking. While
 * somebody waits for an answer it is not: nothing else of such a request would keep the worker.
 */
#include "nginx/worker.h"

#include "engine/local.h"
#include "nginx/journal.h"
#include "nginx/shop.h"
#include "nginx/store.h"

static struct engine *engine;
static ngx_event_t tick_event;
static ngx_connection_t tick_connection; /* nginx's debug log asks an event for its descriptor */

static ngx_int_t engine_begin(struct main_conf *conf, ngx_cycle_t *cycle);
static void engine_end(void);
static void tick_on_timer(ngx_event_t *event);
static void watch_log(struct span room, const struct figures *figures);

ngx_int_t worker_init(ngx_cycle_t *cycle)
{
    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
        return NGX_OK;
    struct main_conf *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_weir_module);
    if (conf == NULL || (conf->zone == NULL && conf->store == NULL))
        return NGX_OK;
    if (engine_begin(conf, cycle) != NGX_OK)
        return NGX_ERROR;
    if (cycle->log->log_level & NGX_LOG_DEBUG_CORE)
        engine->watch = watch_log;
    tick_connection.fd = (ngx_socket_t)-1;
    tick_event.handler = tick_on_timer;
    tick_event.data = &tick_connection;
    tick_event.log = cycle->log;
    tick_event.cancelable = 1;
    ngx_add_timer(&tick_event, ROOM_TICK_MS);
    return NGX_OK;
}

static ngx_int_t engine_begin(struct main_conf *conf, ngx_cycle_t *cycle)
{
    engine = conf->store != NULL ? store_begin(conf, cycle) : local_engine_new(conf->zone);
    if (engine == NULL)
        return NGX_ERROR;
    return conf->journal != NULL ? journal_begin(engine, conf, cycle->log) : NGX_OK;
}

void worker_exit(ngx_cycle_t *cycle)
{
    if (engine == NULL)
        return;
    if (tick_event.timer_set)
        ngx_del_timer(&tick_event);
    engine_end();
    engine = NULL;
}

static void engine_end(void)
{
    if (store_is_begun()) {
        store_end();
        return;
    }
    bool is_asked = journal_is_busy(); /* by people who will not hear of it: nginx ends at once */
    journal_end();
    if (!is_asked)
        local_engine_free(engine);
}

struct engine *worker_engine(void)
{
    return engine;
}

bool worker_is_ready(void)
{
    return journal_is_ready();
}

void worker_note_call(void)
{
    journal_note_call();
    store_note_call();
}

const char *worker_trouble(void)
{
    const char *trouble = journal_trouble();
    return trouble != NULL ? trouble : engine->trouble(engine);
}

const char *worker_loss(void)
{
    return store_is_awaited() ? NULL : engine->trouble(engine);
}

bool worker_has_own_view(void)
{
    return store_is_begun();
}

void worker_stay(bool stays)
{
    tick_event.cancelable = !stays;
}

static void tick_on_timer(ngx_event_t *event)
{
    shop_report_all();
    if (worker_is_ready())
        engine->tick(engine, ngx_current_msec);
    journal_on_tick();
    store_note_call();
    ngx_add_timer(event, ROOM_TICK_MS);
}

/*
 * With `error_log … debug_core` the log has a line for everything that happens in a room. It is written under the room's lock,
 * so the lines stand in the order of effects whichever worker wrote them, and every limit can be checked from them.
 */
static void watch_log(struct span room, const struct figures *figures)
{
    const uint64_t *in = figures->in_state;
    ngx_str_t name = {room.len, (u_char *)room.data};

    ngx_log_debug(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                  "weir room \"%V\" at:%M clock:%uL settings:%uD issued:%uL waiting:%uL away:%uL called:%uL "
                  "entered:%uL active:%uL calls:%uL refunds:%uL",
                  &name, ngx_current_msec, figures->clock_ms, figures->settings_version, figures->issued,
                  in[TICKET_WAITING], in[TICKET_AWAY], in[TICKET_CALLED], in[TICKET_ENTERED],
                  in[TICKET_ACTIVE], figures->calls, figures->refunds);
}
