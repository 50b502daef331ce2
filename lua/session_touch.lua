-- SPDX-License-Identifier: BSD-2-Clause
--
-- A request at the gate: the first arrives, later ones renew.
--
-- ARGV     of each: holder, epoch, count
-- returns  of each: {'OK'} · {'TOKEN_NOT_FOUND'}
-- keeps    no session lives longer than its longest time

-- include number
-- include room
-- include pace
-- include ticket
-- include moves
-- include session
-- include each

return each_ticket(3, function(ticket)
    if not ticket_is_inside(ticket) then
        return {'TOKEN_NOT_FOUND'}
    end
    if ticket.state == ENTERED then
        ticket_arrive(ticket)
    elseif settings.session_renew then
        ticket_set_deadline(ticket, session_renewed(ticket))
    end
    ticket_keep(ticket)
    lapse_if_empty()
end)
