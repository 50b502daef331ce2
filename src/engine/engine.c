/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a call does to a room that lies in memory. It is the same whoever keeps the room, and whether an engine stands before
 * it: the simulator plays bare rooms with it.
 */

#include "engine/engine.h"

#include "base/must.h"

static enum error put(struct room *room, const struct engine_put *put);

enum error engine_run(struct room *room, struct engine_call *call)
{
    switch (call->op) {
    case ENGINE_JOIN:
        return room_join(room, &call->join, &call->standing, &call->retry_after_sec);
    case ENGINE_STATUS:
        return room_status(room, &call->place, &call->standing);
    case ENGINE_HEARTBEAT:
        return room_heartbeat(room, &call->place, &call->standing);
    case ENGINE_LOOK:
        return room_look(room, &call->place, &call->standing);
    case ENGINE_ENTER:
        return room_enter(room, &call->enter, &call->standing);
    case ENGINE_LEAVE:
        return room_leave(room, &call->place);
    case ENGINE_LEAVE_SOON:
        return room_leave_soon(room, &call->place);
    case ENGINE_SESSION_TOUCH:
        return room_session_touch(room, &call->place);
    case ENGINE_SESSION_END:
        return room_session_end(room, &call->place);
    case ENGINE_SESSION_EXTEND:
        return room_session_extend(room, &call->place, call->seconds);
    case ENGINE_SHOP:
        return room_shop(room, call->shop);
    case ENGINE_FIGURES:
        call->figures = room_figures(room);
        call->settings = *room_settings(room);
        if (call->texts != NULL)
            *call->texts = *room_texts(room);
        return ERROR_NONE;
    case ENGINE_SETTINGS:
        call->settings = *room_settings(room);
        return ERROR_NONE;
    case ENGINE_PUT:
        return put(room, &call->put);
    case ENGINE_ADVANCE:
        return room_advance(room, call->people, &call->people);
    case ENGINE_CLEAR:
        return room_clear(room, &call->people);
    case ENGINE_DELETE:
        room_dissolve(room);
        return ERROR_NONE;
    case ENGINE_ROOMS:
        break;
    }
    must(!"an operation on one room");
    return ERROR_INVALID_REQUEST;
}

static enum error put(struct room *room, const struct engine_put *put)
{
    if (put->version != room_figures(room).settings_version)
        return ERROR_CONFLICT;
    return room_set_settings(room, &put->settings, put->texts, put->is_from_api);
}
