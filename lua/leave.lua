-- SPDX-License-Identifier: BSD-2-Clause
--
-- Leaves, in line or inside: at once and for good.
--
-- ARGV     of each: holder, epoch, count
-- returns  of each: {'OK'} · {'TOKEN_NOT_FOUND'}
-- keeps    a turn that was not taken is given back

-- include number
-- include room
-- include pace
-- include ticket
-- include moves
-- include finish
-- include each

return each_ticket(3, function(ticket)
    ticket_finish(ticket)
    lapse_if_empty()
end)
