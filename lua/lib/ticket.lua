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

-- One by one: every poll packs them, and a loop over their names costs more.
local function flags_pack(ticket)
    return (ticket.is_told and 1 or 0) + (ticket.is_leaving and 2 or 0) + (ticket.is_trusted and 4 or 0)
        + (ticket.is_paid and 8 or 0) + (ticket.is_extended and 16 or 0) + (ticket.has_alias and 32 or 0)
        + (ticket.is_spent and 64 or 0)
end

-- What is not so is not set: a table that grows costs more, too.
local function flags_unpack(ticket, flags)
    ticket.is_told = flags % 2 >= 1 or nil
    ticket.is_leaving = flags % 4 >= 2 or nil
    ticket.is_trusted = flags % 8 >= 4 or nil
    ticket.is_paid = flags % 16 >= 8 or nil
    ticket.is_extended = flags % 32 >= 16 or nil
    ticket.has_alias = flags % 64 >= 32 or nil
    ticket.is_spent = flags % 128 >= 64 or nil
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
