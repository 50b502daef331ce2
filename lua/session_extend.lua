-- SPDX-License-Identifier: BSD-2-Clause
--
-- The shop gives a session so many seconds from now at least, seen or not.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant, seconds
-- returns  of each: {'OK'} · {'TOKEN_NOT_FOUND'}
-- keeps    no session lives longer than its longest time

-- include number
-- include room
-- include pace
-- include ticket
-- include session
-- include places
-- include each

return each(6, function(holder, epoch, count, issue, grant, seconds)
    local ticket = ticket_find(named(holder, epoch, count, issue, grant))
    if not ticket or not ticket_is_inside(ticket) then
        return {'TOKEN_NOT_FOUND'}
    end
    local deadline = session_deadline(ticket, tonumber(seconds))
    if deadline > ticket.deadline then
        ticket.is_extended = true
        ticket_set_deadline(ticket, deadline)
        ticket_keep(ticket)
        lapse_if_empty()
    end
    return {'OK'}
end)
