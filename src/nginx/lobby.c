/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whoever has a place in the hall already needs nothing: joining again gives them that place. The others bring a pass of the lobby,
 * which is asked for exactly as a gate of tier 1 would: its own passes, then their sessions. Whose they are does not matter: a lobby is
 * for everybody, and its visitors sign in behind it. A room without a lobby, and a lobby itself, need none; a lobby in mode `open` lets
 * all by.
 *
 * A lobby's pass serves one person. To an anonymous visitor it says who they are: they hold their place in the hall as they held that in
 * the lobby. And it is entered once more, with a key that stands for the pass and a body that stands for
 * whoever comes with it: to the same person that is a repeat, to anybody else a conflict. When the key is forgotten, the
 * ticket still knows that it was spent. A pass that was found spent is over in its lobby too: with one that goes on there its bearer
 * would be sent to the lobby, and by the lobby back here, for as long as it lives.
 */
#include "nginx/lobby.h"

#include "base/room_id.h"
#include "engine/place.h"
#include "nginx/gate_state.h"
#include "nginx/idempotency.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/shop.h"
#include "nginx/text.h"

#define LATE_SEC 3 /* that a poll may come later than told */

/* True: it is judged. False: the next question is filled in. */
typedef bool lobby_step(ngx_http_request_t *r, struct lobby *lobby, enum error *verdict);

struct lobby {
    struct join join; /* what the call was */
    struct span room;
    struct gate gate;
    ngx_http_event_handler_pt then;
    lobby_step *step;
    char name[ROOM_ID_MAX];
};

static void lobby_go_on(ngx_http_request_t *r);
static lobby_step hall_looked, settings_told, pass_try, pass_touched, pass_bound, pass_ended;
static bool lobby_question(ngx_http_request_t *r, struct lobby *lobby, enum engine_op op, lobby_step *then);

char *lobby_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct loc_conf *conf = data;
    ngx_str_t *words = cf->args->elts;
    if (conf->lobby.data != NULL)
        return "is duplicate";
    conf->lobby = words[1];
    if (span_equal(span_of_str(words[1]), SPAN("off"))) {
        conf->lobby.len = 0;
        return NGX_CONF_OK;
    }
    if (!gate_page_is_safe(words[1]) || words[1].data[words[1].len - 1] != '/')
        return "needs what stands before the room's name in the address of its lobby's page, such as /vwr/, "
               "or off";
    return NGX_CONF_OK;
}

void lobby_ask(ngx_http_request_t *r, ngx_http_event_handler_pt then)
{
    static const struct gate_conf conf = {.tier = 1, .room_count = 1};
    struct request *request = request_of(r);
    struct lobby *lobby = ngx_pcalloc(r->pool, sizeof(*lobby));
    struct engine_call *call = &request->call.engine;
    call->error = lobby == NULL ? ERROR_ENGINE_UNAVAILABLE : ERROR_NONE;
    if (lobby == NULL || !lobby_stands_before(r, call->room)) {
        then(r);
        return;
    }
    lobby->gate.rooms[0] = room_id_lobby(call->room, lobby->name);
    lobby->gate.room_count = 1;
    lobby->join = call->join;
    lobby->room = call->room;
    lobby->then = then;
    lobby->gate.conf = &conf;
    lobby->gate.is_for_anybody = true;
    lobby->step = hall_looked;
    request->lobby = lobby;
    call->op = ENGINE_LOOK;
    call->place = (struct place){.holder = lobby->join.holder};
    if (call_submit(r, &request->call, lobby_go_on))
        lobby_go_on(r);
}

void lobby_note(ngx_http_request_t *r, struct span room, const struct standing *standing)
{
    char memory[ROOM_ID_MAX];
    if (standing->state == TICKET_WAITING && lobby_stands_before(r, room))
        shop_leave_alone(room_id_lobby(room, memory), (standing->next_poll_sec + LATE_SEC) * 1000);
}

bool lobby_stands_before(ngx_http_request_t *r, struct span room)
{
    char memory[ROOM_ID_MAX];
    return conf_loc(r)->lobby.len > 0 && room_id_event(room).data == NULL &&
           room_id_lobby(room, memory).data != NULL;
}

static void lobby_go_on(ngx_http_request_t *r)
{
    struct request *request = request_of(r);
    struct lobby *lobby = request->lobby;
    struct engine_call *call = &request->call.engine;
    enum error verdict;
    while (!lobby->step(r, lobby, &verdict))
        if (!call_submit(r, &request->call, lobby_go_on))
            return;
    call->op = ENGINE_JOIN;
    call->room = lobby->room;
    call->join = lobby->join;
    call->error = verdict;
    lobby->then(r);
}

static bool hall_looked(ngx_http_request_t *r, struct lobby *lobby, enum error *verdict)
{
    *verdict = request_of(r)->call.engine.error;
    if (*verdict == ERROR_NONE || *verdict == ERROR_ENGINE_UNAVAILABLE)
        return true;
    return lobby_question(r, lobby, ENGINE_SETTINGS, settings_told);
}

static bool settings_told(ngx_http_request_t *r, struct lobby *lobby, enum error *verdict)
{
    const struct engine_call *call = &request_of(r)->call.engine;
    *verdict = call->error == ERROR_ENGINE_UNAVAILABLE ? call->error : ERROR_NONE;
    if (call->error != ERROR_NONE || call->settings.mode == MODE_OPEN)
        return true;
    gate_passes_find(r, &lobby->gate);
    return pass_try(r, lobby, verdict);
}

static bool pass_try(ngx_http_request_t *r, struct lobby *lobby, enum error *verdict)
{
    const struct gate_passes *passes = &lobby->gate.passes;
    struct engine_call *call = &request_of(r)->call.engine;
    *verdict = ERROR_ADMISSION_REQUIRED;
    if (lobby->gate.at == passes->count)
        return true;
    const struct pass_claims *pass = &passes->of[lobby->gate.at];
    call->place = place_of_pass(pass);
    call->place.issue.is_trusted = !identity_is_anonymous(pass);
    return lobby_question(r, lobby, ENGINE_SESSION_TOUCH, pass_touched);
}

static bool pass_touched(ngx_http_request_t *r, struct lobby *lobby, enum error *verdict)
{
    struct engine_call *call = &request_of(r)->call.engine;
    const struct pass_claims *pass = &lobby->gate.passes.of[lobby->gate.at];
    if (call->error != ERROR_NONE)
        return pass_bound(r, lobby, verdict);
    if (!lobby->join.is_trusted && identity_is_anonymous(pass))
        lobby->join.holder = pass->holder;
    call->enter =
        (struct enter){.place = {.epoch = pass->epoch, .count = pass->count, .holder = pass->holder},
                       .key_id = pass->key_id,
                       .wall_sec = (uint32_t)ngx_time(),
                       .spends = true};
    idempotency_of_pass(r, pass, &lobby->join.holder, &call->enter.request);
    return lobby_question(r, lobby, ENGINE_ENTER, pass_bound);
}

static bool pass_bound(ngx_http_request_t *r, struct lobby *lobby, enum error *verdict)
{
    struct engine_call *call = &request_of(r)->call.engine;
    *verdict = call->error;
    if (*verdict == ERROR_NONE || *verdict == ERROR_ENGINE_UNAVAILABLE)
        return true;
    if (*verdict != ERROR_IDEMPOTENCY_CONFLICT)
        return pass_ended(r, lobby, verdict);
    call->place = place_of_pass(&lobby->gate.passes.of[lobby->gate.at]);
    return lobby_question(r, lobby, ENGINE_LEAVE, pass_ended);
}

/* Whatever became of it, it is of no use here. */
static bool pass_ended(ngx_http_request_t *r, struct lobby *lobby, enum error *verdict)
{
    lobby->gate.at++;
    return pass_try(r, lobby, verdict);
}

static bool lobby_question(ngx_http_request_t *r, struct lobby *lobby, enum engine_op op, lobby_step *then)
{
    struct engine_call *call = &request_of(r)->call.engine;
    call->op = op;
    call->room = lobby->gate.rooms[0];
    lobby->step = then;
    return false;
}

struct span lobby_page(ngx_http_request_t *r, struct span room)
{
    struct span page = span_of_str(conf_loc(r)->lobby);
    ngx_buf_t *text = reply_buffer(r, page.len + room.len);
    if (text == NULL)
        return SPAN_NONE;
    text_add(text, page);
    text_add(text, room);
    return (struct span){(const char *)text->pos, (size_t)(text->last - text->pos)};
}
