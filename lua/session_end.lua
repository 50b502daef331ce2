-- SPDX-License-Identifier: BSD-2-Clause
--
-- The shop ends a session: its slot is free.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant
-- returns  of each: {'OK'} · {'TOKEN_NOT_FOUND'}
-- keeps    nobody who is not inside is touched

-- include number
-- include room
-- include pace
-- include ticket
-- include moves
-- include finish
-- include places
-- include each

return each_ticket(ticket_find, function(ticket)
    if not ticket_is_inside(ticket) then
        return {'TOKEN_NOT_FOUND'}
    end
    ticket_finish(ticket)
    lapse_if_empty()
end)
