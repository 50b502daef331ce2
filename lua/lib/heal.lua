-- SPDX-License-Identifier: BSD-2-Clause
--
-- Giving lost places back. HEALED holds the places of former epochs that were given back, whatever became of them: each is once.

figures_add('last', 'issued')

local HEAL_REACH = 2 ^ 28 -- nobody comes back to a place that the line has left so far behind

-- Whether this is a ticket that a loss took away: its place is free, and never was given back.
local function may_heal(named, place)
    return place ~= nil and named.issue ~= '' and is_lost_place(place) and room.last - place <= HEAL_REACH
        and not call('ZSCORE', HEALED, place)
end

local function heal(named, place)
    local is_trusted, key_id, sec = string.match(named.issue, '^(%d+):(%d+):(%d+)$')
    local ticket = {
        holder = named.holder, place = place, issued_sec = tonumber(sec), key_id = tonumber(key_id),
        joined = room_now(), is_trusted = is_trusted == '1', shown = 0, poll_sec = 0, deadline = NEVER,
        note_from = 0, note_to = 0,
    }
    ticket_move(ticket, WAITING)
    room.issued = room.issued + 1
    call('ZADD', DUE, NEVER, ticket.holder)
    return ticket
end

-- Gives the place back, or the one that its holder has instead: the older place wins, and so does a turn that has come.
local function bring_back(named, place)
    local has = ticket_held_by(named.holder)
    call('ZADD', HEALED, place, place)
    if has and (has.place < place or has.state ~= WAITING and has.state ~= AWAY) then
        has.has_alias = true
        ticket_keep(has)
        return has
    end
    if has then
        ticket_finish(has)
    end
    local ticket = heal(named, place)
    ticket.has_alias = has ~= nil
    ticket_keep(ticket)
    return ticket
end

-- The living ticket that somebody means; one that was lost is given back. Nil if there is none.
local function ticket_meet(named)
    local is_of_former = named.epoch ~= room.epoch and named.epoch ~= 0
    local place = is_of_former and place_of(named.epoch, named.count) or nil
    if may_heal(named, place) then
        return bring_back(named, place)
    end
    return ticket_find(named)
end
