-- SPDX-License-Identifier: BSD-2-Clause
--
-- Each of these tickets was seen, and is told nothing about its turn.
--
-- ARGV     holder, epoch and count of each; at most 128 tickets
-- returns  {'OK', standing, …} in the same order; an empty list for what is not a living ticket
-- keeps    the time to claim a call does not begin

-- include number
-- include room
-- include pace
-- include eta
-- include ticket
-- include moves
-- include standing
-- include tickets

return each_ticket(function(ticket)
    local standing = standing_see(ticket)
    ticket_keep(ticket)
    lapse_if_empty()
    return standing
end)
