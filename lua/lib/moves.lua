-- SPDX-License-Identifier: BSD-2-Clause
--
-- The moves of a ticket from state to state, as in src/room/moves.c. ticket_move is the only place that changes a state; it
-- keeps the counts and the line in step. The callers keep the ticket.

figures_add('slot_silent')

local COUNTS = {[AWAY] = 'away', [CALLED] = 'called', [ENTERED] = 'entered', [ACTIVE] = 'active'}

local function ticket_move(ticket, to)
    local from = ticket.state
    if COUNTS[from] then
        room[COUNTS[from]] = room[COUNTS[from]] - 1
    end
    if COUNTS[to] then
        room[COUNTS[to]] = room[COUNTS[to]] + 1
    end
    if from == WAITING then
        call('ZREM', LINE, ticket.holder)
    end
    if to == WAITING then
        call('ZADD', LINE, ticket.place, ticket.holder)
    end
    ticket.state = to
end

-- Somebody away is there again.
local function ticket_return(ticket)
    ticket_move(ticket, WAITING)
    room.slot_silent = room.slot_silent - 1
end
