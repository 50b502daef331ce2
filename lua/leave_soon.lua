-- SPDX-License-Identifier: BSD-2-Clause
--
-- Leaves after a grace of 10 s unless the ticket is seen again.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant
-- returns  of each: {'OK'} · {'TOKEN_NOT_FOUND'}
-- keeps    those inside stay: they unload the page because they go on to the shop

-- include number
-- include room
-- include pace
-- include ticket
-- include places
-- include each

local GRACE_SEC = 10

return each_ticket(ticket_find, function(ticket)
    local grace = room_later(GRACE_SEC)
    if ticket_is_inside(ticket) or ticket.is_leaving then
        return
    end
    -- Whose end comes sooner needs no other; the time of someone waiting ends in being away, which is not an end.
    if ticket.state ~= WAITING and ticket.deadline <= grace then
        return
    end
    ticket.is_leaving = true
    if ticket.state == CALLED then
        ticket.shown = ticket.deadline
    end
    ticket_set_deadline(ticket, grace)
    ticket_keep(ticket)
    lapse_if_empty()
end)
