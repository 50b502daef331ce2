/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens in a turn of the event loop, people who ask and servers that answer, is only noted. A posted event runs after all
 * of it, and does what follows at once: what was asked goes out in one write for each server.
 *
 * Nothing of it keeps a worker that is told to leave: the timer is cancelable, and the connections are no clients. Somebody who
 * waits for an answer does (worker_stay).
 */
#include "nginx/store.h"

#include "base/ascii.h"
#include "base/must.h"
#include "nginx/store_news.h"
#include "nginx/store_probe.h"
#include "nginx/store_secret.h"
#include "nginx/store_wire.h"
#include "nginx/worker.h"
#include "redis/courier.h"
#include "redis/redis_engine.h"

#include <openssl/rand.h>

#define NEVER         UINT64_MAX
#define IN_FLIGHT_MAX 4096
#define OUT_BYTES_MAX (2 << 20)
#define WAITING_MAX   8192
#define HOST_SHOWN    40 /* characters of the host's name in CLIENT LIST */

_Static_assert(HOST_SHOWN + sizeof("weir:") + 12 <= LINK_NAME_MAX, "the name of a connection fits");

/* What this worker has of it; `store` NULL: nothing. */
static struct {
    struct store_options options;
    struct wire_common wires;
    struct store *store;
    struct transport *courier;
    struct engine *engine;
    struct redis_room_conf *rooms;
    ngx_event_t turn, timer;
    ngx_connection_t nobody; /* nginx's debug log asks an event for its descriptor */
    uint64_t timer_ms;       /* when it goes off */
    char name[LINK_NAME_MAX + 1];
} own;

static void name_make(const ngx_cycle_t *cycle);
static ngx_resolver_t *resolver_of(ngx_cycle_t *cycle);
static bool store_make(const struct store_conf *conf);
static bool engine_make(struct main_conf *conf);
static bool rooms_take(const struct main_conf *conf);
static void events_begin(ngx_log_t *log);
static const char *trouble(void *context);
static uint64_t now_ms(void);
static void turn_on_end(ngx_event_t *event);
static void lines_serve(void);
static void timer_set(void);
static void timer_on_end(ngx_event_t *event);
static void all_free(void);

struct engine *store_begin(struct main_conf *conf, ngx_cycle_t *cycle)
{
    must(own.store == NULL);
    name_make(cycle);
    own.wires = (struct wire_common){conf->store, resolver_of(cycle), store_note_call, false};
    if (!store_make(conf->store) || !engine_make(conf)) {
        all_free();
        return NULL;
    }
    events_begin(cycle->log);
    store_news_begin(conf->store);
    store_note_call();
    return own.engine;
}

/* Who looks at CLIENT LIST sees which worker of which machine this is. */
static void name_make(const ngx_cycle_t *cycle)
{
    struct span host = span_of_str(cycle->hostname);
    host.len = ngx_min(host.len, HOST_SHOWN);
    if (!ascii_all_visible(host))
        host.len = 0;
    *ngx_snprintf((u_char *)own.name, LINK_NAME_MAX, "weir:%*s:%P", host.len, host.data, ngx_pid) = '\0';
}

static ngx_resolver_t *resolver_of(ngx_cycle_t *cycle)
{
    const ngx_http_conf_ctx_t *http =
        (const ngx_http_conf_ctx_t *)ngx_get_conf(cycle->conf_ctx, ngx_http_module);
    return store_conf_resolver(http->loc_conf[ngx_http_core_module.ctx_index]);
}

static bool store_make(const struct store_conf *conf)
{
    uint64_t seed;
    if (RAND_bytes((unsigned char *)&seed, sizeof(seed)) != 1)
        return false;
    own.options = (struct store_options){
        .url = &conf->url,
        .password = store_secret_read,
        .name = own.name,
        .dial_ms = conf->timeout_ms,
        .silence_ms = 2 * conf->timeout_ms, /* while replicas confirm, a server is silent up to the timeout */
        .in_flight_max = IN_FLIGHT_MAX,
        .out_bytes_max = OUT_BYTES_MAX,
        .waiting_max = WAITING_MAX,
    };
    own.store = store_new(&own.options, seed, ngx_current_msec);
    return own.store != NULL;
}

static bool engine_make(struct main_conf *conf)
{
    struct courier_options courier = {
        .store = own.store,
        .now_ms = now_ms,
        .timeout_ms = conf->store->timeout_ms,
        .replicas = conf->store->replicas,
    };
    struct redis_engine_options engine = {
        .trouble = trouble,
        .since_ms = conf->store->since_ms,
        .rooms_max = conf->rooms_max,
        .makes_rooms = conf->makes_rooms,
        .made_settings = conf->made_settings,
        .made_texts = &conf->made_texts,
        .room_count = conf->rooms.nelts,
    };
    own.courier = courier_new(&courier);
    if (own.courier == NULL || !rooms_take(conf) ||
        RAND_bytes((unsigned char *)&engine.node, sizeof(engine.node)) != 1)
        return false;
    engine.transport = own.courier;
    engine.rooms = own.rooms;
    own.engine = redis_engine_new(&engine);
    return own.engine != NULL;
}

static bool rooms_take(const struct main_conf *conf)
{
    const struct room_conf *rooms = conf->rooms.elts;
    own.rooms = ngx_alloc((conf->rooms.nelts + 1) * sizeof(*own.rooms), ngx_cycle->log);
    if (own.rooms == NULL)
        return false;
    for (ngx_uint_t i = 0; i < conf->rooms.nelts; i++)
        own.rooms[i] =
            (struct redis_room_conf){span_of_str(rooms[i].name), rooms[i].settings, &rooms[i].texts};
    return true;
}

static void events_begin(ngx_log_t *log)
{
    own.nobody.fd = (ngx_socket_t)-1;
    own.turn = (ngx_event_t){.handler = turn_on_end, .data = &own.nobody, .log = log};
    own.timer = (ngx_event_t){.handler = timer_on_end, .data = &own.nobody, .log = log, .cancelable = 1};
}

void store_end(void)
{
    if (own.store == NULL)
        return;
    if (own.turn.posted) {
        ngx_delete_posted_event(&own.turn);
    }
    if (own.timer.timer_set)
        ngx_del_timer(&own.timer);
    bool is_asked =
        redis_engine_waiting(own.engine) > 0; /* by people who will not hear of it: nginx ends at once */
    for (size_t i = 0; i < store_lines(own.store); i++) {
        struct store_line *line = store_line(own.store, i);
        if (is_asked)
            wire_drop(line);
        else if (line->connection != NULL)
            wire_hang_up(line);
    }
    if (!is_asked)
        all_free();
}

static void all_free(void)
{
    if (own.courier != NULL)
        courier_free(own.courier);
    if (own.engine != NULL)
        redis_engine_free(own.engine);
    store_free(own.store);
    if (own.rooms != NULL)
        ngx_free(own.rooms);
    own.courier = NULL;
    own.engine = NULL;
    own.store = NULL;
    own.rooms = NULL;
}

bool store_is_begun(void)
{
    return own.store != NULL;
}

bool store_is_awaited(void)
{
    return own.store != NULL && !store_news_are_told();
}

void store_note_call(void)
{
    if (own.store != NULL) {
        ngx_post_event(&own.turn, &ngx_posted_events);
    }
}

static const char *trouble(void *context)
{
    return store_trouble(own.store);
}

static uint64_t now_ms(void)
{
    return ngx_current_msec;
}

/* ---- turns ---- */

static void turn_on_end(ngx_event_t *event)
{
    redis_engine_flush(own.engine);
    store_turn(own.store, ngx_current_msec);
    if (own.wires.is_over)
        store_drop_orders(own.store);
    courier_turn(own.courier);
    if (ngx_worker == 0)
        store_probe_look(own.store, own.wires.conf, ngx_current_msec);
    lines_serve();
    store_news_tell(own.store, ngx_current_msec);
    store_news_tell_refusal(courier_take_refusal(own.courier), ngx_current_msec);
    timer_set();
    worker_stay(redis_engine_waiting(own.engine) > 0);
}

/* There may come to be more of them meanwhile. */
static void lines_serve(void)
{
    for (size_t i = 0; i < store_lines(own.store); i++) {
        struct store_line *line = store_line(own.store, i);
        enum link_wish wish = store_wish(line, ngx_current_msec);
        if (wish == LINK_DIAL && !own.wires.is_over)
            wire_dial(&own.wires, line);
        else if (wish == LINK_HANG_UP)
            wire_hang_up(line);
        wire_write(line);
    }
}

/* nginx leaves a timer as it is when the new time is less than 0.3 s from the old one: so it is taken out first. */
static void timer_set(void)
{
    uint64_t due_ms = ngx_min(store_due_ms(own.store), courier_due_ms(own.courier));
    if (own.timer.timer_set && own.timer_ms == due_ms)
        return;
    if (own.timer.timer_set)
        ngx_del_timer(&own.timer);
    own.timer_ms = due_ms;
    if (due_ms != NEVER)
        ngx_add_timer(&own.timer, due_ms > ngx_current_msec ? due_ms - ngx_current_msec : 1);
}

static void timer_on_end(ngx_event_t *event)
{
    store_note_call();
}
