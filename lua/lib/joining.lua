-- SPDX-License-Identifier: BSD-2-Clause

figures_add('last', 'issued', 'slot_joins')

-- The next place. The caller keeps the ticket.
local function ticket_join(holder, is_trusted, key_id, wall_sec)
    room.last = room.last + 1
    local ticket = {
        holder = holder, place = room.last, issued_sec = tonumber(wall_sec), key_id = tonumber(key_id),
        joined = room_now(), is_trusted = is_trusted == '1', shown = 0, poll_sec = 0, deadline = NEVER,
        note_from = 0, note_to = 0,
    }
    ticket_move(ticket, WAITING)
    room.issued = room.issued + 1
    room.slot_joins = room.slot_joins + 1
    return ticket
end
