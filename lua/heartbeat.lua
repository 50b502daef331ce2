-- SPDX-License-Identifier: BSD-2-Clause
--
-- Each of these tickets was seen, and is told nothing about its turn.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant
-- returns  of each: standing · {'TOKEN_NOT_FOUND'}
-- keeps    the time to claim a call does not begin

-- include number
-- include room
-- include pace
-- include eta
-- include ticket
-- include moves
-- include finish
-- include places
-- include heal
-- include standing
-- include each

return each_ticket(ticket_meet, function(ticket)
    local standing = standing_see(ticket)
    ticket_keep(ticket)
    lapse_unless_waiting(ticket)
    return standing_pack(standing)
end)
