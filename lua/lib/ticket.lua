-- SPDX-License-Identifier: BSD-2-Clause
--
-- Tickets: one string each, in a hash by holder, which holds the living ones and no others. Times are deciseconds of the room's
-- clock unless the name says otherwise.
--
-- DUE holds for each a moment before which nobody need look at it: at most its deadline. Whoever is seen gets a later deadline
-- in their ticket alone; only an earlier one changes DUE. So a poll writes one string, and the sweep finds out the rest.

local WAITING, AWAY, CALLED, ENTERED, ACTIVE = 1, 2, 3, 4, 5
local NEVER = UINT32_MAX

local TICKET_FORMAT = '<BBBBI4I4I4I4I4'
local INSIDE_FORMAT, NOTE_FORMAT = '<I4B', '<I4I4'
local TICKET_BYTES = 24
local NOTE_EVERY, NOTE_ROUND = 32, 126 -- of each 126 places every 32nd has a note

local FLAGS = {'is_told', 'is_leaving', 'is_trusted', 'is_paid', 'is_extended', 'has_alias'}
local FLAG_BITS = {1, 2, 4, 8, 16, 32}

local function flags_pack(ticket)
    local sum = 0
    for i = 1, #FLAGS do
        if ticket[FLAGS[i]] then
            sum = sum + FLAG_BITS[i]
        end
    end
    return sum
end

local function flags_unpack(ticket, sum)
    for i = 1, #FLAGS do
        if bit.band(sum, FLAG_BITS[i]) ~= 0 then
            ticket[FLAGS[i]] = true
        end
    end
end

local function ticket_is_inside(ticket)
    return ticket.state == ENTERED or ticket.state == ACTIVE
end

-- Who is inside has a pass, who is not a position: they take the same bytes.
local function ticket_keep(ticket)
    local is_inside = ticket_is_inside(ticket)
    local packed = struct.pack(TICKET_FORMAT, ticket.state, flags_pack(ticket), ticket.key_id,
        is_inside and ticket.pass_key_id or ticket.poll_sec, ticket.place, ticket.issued_sec, ticket.deadline,
        is_inside and ticket.iat_sec or ticket.joined, is_inside and ticket.entered or ticket.shown)
    if is_inside then
        packed = packed .. struct.pack(INSIDE_FORMAT, ticket.session_max_sec, ticket.tier)
    elseif ticket.note_to ~= 0 then
        packed = packed .. struct.pack(NOTE_FORMAT, ticket.note_from, ticket.note_to)
    end
    call('HSET', TICKETS, ticket.holder, packed)
end

-- A table that is made with its fields costs a third of one that grows by them.
local function ticket_unpack(holder, packed)
    local state, flags, key_id, poll, place, issued_sec, deadline, time, number = struct.unpack(TICKET_FORMAT, packed)
    local ticket
    if state == ENTERED or state == ACTIVE then
        local session_max_sec, tier = struct.unpack(INSIDE_FORMAT, packed, TICKET_BYTES + 1)
        ticket = {
            holder = holder, state = state, key_id = key_id, place = place, issued_sec = issued_sec, deadline = deadline,
            pass_key_id = poll, iat_sec = time, entered = number, session_max_sec = session_max_sec, tier = tier,
        }
    else
        ticket = {
            holder = holder, state = state, key_id = key_id, place = place, issued_sec = issued_sec, deadline = deadline,
            poll_sec = poll, joined = time, shown = number, note_from = 0, note_to = 0,
        }
        if #packed > TICKET_BYTES then
            ticket.note_from, ticket.note_to = struct.unpack(NOTE_FORMAT, packed, TICKET_BYTES + 1)
        end
    end
    if flags ~= 0 then
        flags_unpack(ticket, flags)
    end
    return ticket
end

-- The living ticket of this holder, or nil.
local function ticket_held_by(holder)
    local packed = call('HGET', TICKETS, holder)
    return packed and ticket_unpack(holder, packed) or nil
end

-- The caller keeps the ticket.
local function ticket_set_deadline(ticket, deadline)
    if deadline < ticket.deadline then
        call('ZADD', DUE, 'LT', deadline, ticket.holder)
    end
    ticket.deadline = deadline
end

-- After something that this ticket did: while it stands in line, there is somebody to be called.
local function lapse_unless_waiting(ticket)
    if ticket.state ~= WAITING then
        lapse_if_empty()
    end
end

-- Whether what this person is told at join is noted, to learn later whether it came true.
local function ticket_has_note(ticket)
    return ticket.place % NOTE_ROUND % NOTE_EVERY == 0
end
