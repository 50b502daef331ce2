/* SPDX-License-Identifier: BSD-2-Clause */
/* The alphabet is spelled out: isalnum() would follow the locale of whoever started the process. */
#include "base/room_id.h"

static bool is_allowed(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '-';
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
