/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_BASE_ROOM_ID_H
#define WEIR_BASE_ROOM_ID_H

/*
 * The name of a room: 1 to 64 of `A-Z a-z 0-9 _ . : -`, but not `.` or `..`, which no path can name. Safe as it is in a
 * path, a log line, JSON and a Redis key.
 */

#include "base/span.h"

#include <stdbool.h>

#define ROOM_ID_MAX 64

bool room_id_is_valid(struct span id);

/* What stands before an event's name in that of its lobby, where one waits before the event's own room. */
#define ROOM_LOBBY_PREFIX "lobby:"

/* The name of an event's lobby; data NULL: it would be too long. */
struct span room_id_lobby(struct span event, char memory[ROOM_ID_MAX]);

/* The event whose lobby this is; data NULL: it is none. */
struct span room_id_event(struct span id);

#endif
