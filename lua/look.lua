-- SPDX-License-Identifier: BSD-2-Clause
--
-- What status would say of each of these tickets, without its being noticed.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant
-- returns  of each: standing · {'TOKEN_NOT_FOUND'}
-- keeps    everything: writes nothing

-- include number
-- include room
-- include pace
-- include eta
-- include ticket
-- include places
-- include standing
-- include each

return each_ticket(ticket_find, function(ticket)
    return standing_pack(standing_look(ticket))
end)
