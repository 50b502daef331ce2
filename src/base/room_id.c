/* SPDX-License-Identifier: BSD-2-Clause */
/* One small alphabet, so that a name needs no escaping wherever it is written. */
#include "base/room_id.h"

#include "base/ascii.h"

#include <string.h>

static const struct span prefix = SPAN(ROOM_LOBBY_PREFIX);

static bool is_allowed(char c)
{
    return ascii_is_alnum(c) || c == '_' || c == '.' || c == ':' || c == '-';
}

bool room_id_is_valid(struct span id)
{
    if (id.len < 1 || id.len > ROOM_ID_MAX)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!is_allowed(id.data[i]))
            return false;
    return !span_equal(id, SPAN(".")) && !span_equal(id, SPAN(".."));
}

struct span room_id_lobby(struct span event, char memory[ROOM_ID_MAX])
{
    if (event.len > ROOM_ID_MAX - prefix.len)
        return SPAN_NONE;
    memcpy(memory, prefix.data, prefix.len);
    memcpy(memory + prefix.len, event.data, event.len);
    return (struct span){memory, prefix.len + event.len};
}

struct span room_id_event(struct span id)
{
    if (id.len <= prefix.len || memcmp(id.data, prefix.data, prefix.len) != 0)
        return SPAN_NONE;
    return (struct span){id.data + prefix.len, id.len - prefix.len};
}
