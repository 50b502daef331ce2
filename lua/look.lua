-- SPDX-License-Identifier: BSD-2-Clause
--
-- What status would say of each of these tickets, without its being noticed.
--
-- ARGV     holder, epoch and count of each; at most 128 tickets
-- returns  {'OK', standing, …} in the same order; an empty list for what is not a living ticket
-- keeps    everything: writes nothing

-- include number
-- include room
-- include pace
-- include eta
-- include ticket
-- include moves
-- include standing
-- include tickets

return each_ticket(standing_look)
