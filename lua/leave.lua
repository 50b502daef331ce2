-- SPDX-License-Identifier: BSD-2-Clause
--
-- Leaves, in line or inside: at once and for good.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant
-- returns  of each: {'OK'} · {'TOKEN_NOT_FOUND'}
-- keeps    a turn that was not taken is given back

-- include number
-- include room
-- include pace
-- include ticket
-- include moves
-- include finish
-- include places
-- include heal
-- include requests
-- include returns
-- include each

return each(5, function(...)
    local who = named(...)
    -- Also one that was lost: or it would come back although it was left.
    local ticket = ticket_meet(who)
    if ticket then
        ticket_finish(ticket)
    elseif may_come_back(who) then
        remember_return(who)
    else
        return {'TOKEN_NOT_FOUND'}
    end
    lapse_if_empty()
    return {'OK'}
end)
