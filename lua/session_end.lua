-- SPDX-License-Identifier: BSD-2-Clause
--
-- The shop ends a session: its slot is free.
--
-- ARGV     holder, epoch, count
-- returns  {'OK'} · {'TOKEN_NOT_FOUND'}
-- keeps    nobody who is not inside is touched

-- include number
-- include room
-- include pace
-- include ticket
-- include moves
-- include tickets

return one_ticket(function(ticket)
    if not ticket_is_inside(ticket) then
        return 'TOKEN_NOT_FOUND'
    end
    ticket_finish(ticket)
    lapse_if_empty()
end)
