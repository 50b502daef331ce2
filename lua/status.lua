-- SPDX-License-Identifier: BSD-2-Clause
--
-- Tells each of these tickets where it stands. Being told counts as being seen, and begins the time to claim a call.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant
-- returns  of each: standing · {'TOKEN_NOT_FOUND'}
-- keeps    who polls as told is never away

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
    local standing = standing_tell(ticket)
    ticket_keep(ticket)
    lapse_unless_waiting(ticket)
    return standing_pack(standing)
end)
