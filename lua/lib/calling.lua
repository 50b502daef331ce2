-- SPDX-License-Identifier: BSD-2-Clause
--
-- Calling those whose turn it is, lowest place first.

figures_add('slot_turns', 'is_behind')

local CALLS_MOST = 1000 -- in one script, with those found absent: what is left over is done by the next tick

local function line_first()
    local holder = call('ZRANGE', LINE, 0, 0)[1]
    return holder and ticket_held_by(holder) or nil
end

-- How many were called, and whether somebody is left who could be.
local function call_people()
    local called = 0
    local past = room_past()
    for _ = 1, CALLS_MOST do
        local ticket = line_first()
        local ground = ticket and call_ground(ticket.joined)
        if not ground then
            lapse_if_empty()
            return called, false
        end
        -- Absent, and only not noticed yet: a call goes to someone who is there.
        if ticket.deadline <= past then
            ticket_expire(ticket)
        else
            ticket_call(ticket, ground)
            ticket_keep(ticket)
            room.slot_turns = room.slot_turns + 1
            called = called + 1
        end
    end
    lapse_if_empty()
    local ticket = line_first()
    return called, ticket ~= nil and call_ground(ticket.joined) ~= nil
end
