-- SPDX-License-Identifier: BSD-2-Clause
--
-- Tells each of these tickets where it stands. Being told counts as being seen, and begins the time to claim a call.
--
-- ARGV     holder, epoch and count of each; at most 128 tickets
-- returns  {'OK', standing, …} in the same order; an empty list for what is not a living ticket
-- keeps    who polls as told is never away

-- include number
-- include room
-- include pace
-- include eta
-- include ticket
-- include moves
-- include standing
-- include tickets

return each_ticket(function(ticket)
    local standing = standing_tell(ticket)
    ticket_keep(ticket)
    lapse_if_empty()
    return standing
end)
