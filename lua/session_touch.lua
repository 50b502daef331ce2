-- SPDX-License-Identifier: BSD-2-Clause
--
-- A request at the gate: the first arrives, later ones renew.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant
-- returns  of each: {'OK'} · {'TOKEN_NOT_FOUND'}
-- keeps    no session lives longer than its longest time

-- include number
-- include room
-- include pace
-- include eta
-- include ticket
-- include moves
-- include session
-- include finish
-- include places
-- include heal
-- include standing
-- include joining
-- include requests
-- include returns
-- include each

local function has_slot_for(ticket)
    return ticket and ticket.state ~= WAITING and ticket.state ~= AWAY or settings.mode == 'open' or room_has_slot()
end

-- Its place again, or the one that its holder has instead. Without a slot they wait there, and are among the next.
local function lost_return(who)
    local ticket = ticket_meet(who)
    if not ticket or has_slot_for(ticket) then
        return ticket
    end
    standing_see(ticket)
    ticket_keep(ticket)
    return nil
end

-- The ticket that its holder has by now, or another.
local function former_return(who)
    local ticket = ticket_held_by(who.holder)
    if not has_slot_for(ticket) then
        return nil
    end
    if not ticket then
        local is_trusted, key_id, sec = string.match(who.issue, '^(%d+):(%d+):(%d+)$')
        ticket = ticket_join(who.holder, is_trusted, key_id or 0, sec or 0)
    end
    remember_return(who)
    ticket.has_alias = true
    return ticket
end

-- They are inside, as their pass says. Neither pace nor order is asked: both were when they were called.
local function ticket_come_back(ticket, grant)
    local key_id, sec = string.match(grant, '^(%d+):%d+:(%d+)$')
    if ticket.state == AWAY then
        ticket_return(ticket)
    end
    ticket.is_leaving = false
    if ticket.state == WAITING then
        room.slot_gone = room.slot_gone + 1
        ticket_move(ticket, CALLED)
    end
    ticket_enter(ticket, tonumber(sec), tonumber(key_id))
end

-- The session of a pass, made anew if a loss took it; nil if it did not.
local function session_return(who, ticket)
    -- A room that gives other passes by now would give one of those to whoever enters again.
    if tonumber(string.match(who.grant, '^%d+:(%d+)')) ~= settings.tier then
        return nil
    end
    if who.epoch < room.epoch and (ticket or may_heal(who, place_of(who.epoch, who.count))) then
        ticket = lost_return(who)
    elseif may_come_back(who) then
        ticket = former_return(who)
    else
        ticket = nil
    end
    if ticket and not ticket_is_inside(ticket) then
        ticket_come_back(ticket, who.grant)
    end
    return ticket
end

return each(5, function(...)
    local who = named(...)
    local ticket = ticket_find(who)
    if not ticket or not ticket_is_inside(ticket) then
        ticket = session_return(who, ticket)
    end
    if not ticket then
        return {'TOKEN_NOT_FOUND'}
    end
    if ticket.state == ENTERED then
        ticket_arrive(ticket)
    elseif settings.session_renew then
        ticket_set_deadline(ticket, session_renewed(ticket))
    end
    ticket_keep(ticket)
    lapse_if_empty()
    return {'OK'}
end)
