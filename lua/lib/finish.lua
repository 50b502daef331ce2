-- SPDX-License-Identifier: BSD-2-Clause
--
-- How a ticket's time ends.

figures_add('refunds', 'slot_gone', 'slot_ends')

-- The ticket is over: nothing of it is left. A turn that was not taken is given back.
local function ticket_finish(ticket)
    if ticket.state == WAITING then
        room.slot_gone = room.slot_gone + 1
    elseif ticket.state ~= AWAY then
        room.slot_ends = room.slot_ends + 1
    end
    if ticket.state == CALLED and ticket.is_paid then
        pace_refund()
        room.refunds = room.refunds + 1
    end
    ticket_move(ticket, nil)
    call('ZREM', DUE, ticket.holder)
    call('HDEL', TICKETS, ticket.holder)
end

-- Its time is over: who waited is away, all others are over.
local function ticket_expire(ticket)
    if ticket.state ~= WAITING or ticket.is_leaving then
        ticket_finish(ticket)
        return
    end
    ticket_move(ticket, AWAY)
    -- Whoever steps out may be called later than they were told, by their own doing.
    ticket.note_from, ticket.note_to = 0, 0
    room.slot_silent = room.slot_silent + 1
    ticket.deadline = room_later(settings.away_ttl_sec)
    call('ZADD', DUE, ticket.deadline, ticket.holder)
    ticket_keep(ticket)
end
