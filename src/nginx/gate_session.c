/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answer does not wait for the engine: the visitor has nothing to learn from it. So the call stands for itself, outlives the
 * request, and is freed when it is answered. If the engine cannot take it, the session ends when its time is over.
 */
#include "nginx/gate_session.h"

#include "base/decimal.h"
#include "engine/place.h"
#include "nginx/gate_recent.h"
#include "nginx/worker.h"

#define EXTEND_MOST_SEC 604800 /* as session_ttl_sec */

struct order {
    struct engine_call call;
    char room[ROOM_ID_MAX];
};

static bool extension_read(struct span word, uint64_t *seconds);
static void order_send(const struct pass_claims *pass, enum engine_op op, uint32_t seconds);
static void order_done(struct engine_call *call);

void gate_session_obey(ngx_http_request_t *r, const struct pass_claims *pass, struct span word)
{
    uint64_t seconds;
    if (span_equal(word, SPAN("end"))) {
        recent_forget(pass);
        order_send(pass, ENGINE_SESSION_END, 0);
        return;
    }
    if (extension_read(word, &seconds)) {
        order_send(pass, ENGINE_SESSION_EXTEND, (uint32_t)seconds);
        return;
    }
    ngx_str_t said = {word.len, (u_char *)word.data};
    ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                  "weir: the shop said \"Weir-Session: %V\", which is neither \"end\" nor \"extend=SECONDS\"",
                  &said);
}

static bool extension_read(struct span word, uint64_t *seconds)
{
    const struct span name = SPAN("extend=");
    if (word.len <= name.len || memcmp(word.data, name.data, name.len) != 0)
        return false;
    struct span number = {word.data + name.len, word.len - name.len};
    return decimal_read(number, 0, seconds) && *seconds > 0 && *seconds <= EXTEND_MOST_SEC;
}

static void order_send(const struct pass_claims *pass, enum engine_op op, uint32_t seconds)
{
    struct order *order = worker_is_ready() ? ngx_calloc(sizeof(*order), ngx_cycle->log) : NULL;
    if (order == NULL)
        return;
    memcpy(order->room, pass->room.data, pass->room.len);
    order->call.op = op;
    order->call.seconds = seconds;
    order->call.room = (struct span){order->room, pass->room.len};
    order->call.place = place_of_pass(pass);
    order->call.done = order_done;
    order->call.context = order;
    engine_submit(worker_engine(), &order->call);
    worker_note_call();
}

static void order_done(struct engine_call *call)
{
    ngx_free(call->context);
}
