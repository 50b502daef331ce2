-- SPDX-License-Identifier: BSD-2-Clause
--
-- Being called: who may be, on what ground, and what it does. The callers keep the ticket.

figures_add('calls', 'last_called', 'eta_checked', 'eta_kept', 'slot_calls')

local UNTOLD_CALL_SEC = 120

-- Whether what this person was told at join came true.
local function check_note(ticket)
    if ticket.note_to == 0 then
        return
    end
    local now = room_now()
    room.eta_checked = room.eta_checked + 1
    if ticket.note_from <= now and now <= ticket.note_to then
        room.eta_kept = room.eta_kept + 1
    end
    ticket.note_from, ticket.note_to = 0, 0
end

local BY_PACE, BY_ORDER, BY_OPEN = 1, 2, 3

local function pace_allows(joined)
    return room_frozen_ms() == 0
        and (settings.max_called == 0 or room.called < settings.max_called)
        and pace_has_call()
        and (settings.min_wait_sec == 0 or room_past() >= joined + settings.min_wait_sec * 10)
end

-- On what ground the first in line, who joined then, may be called now; nil if they may not.
local function call_ground(joined)
    if settings.mode == 'open' then
        return BY_OPEN
    end
    if settings.mode == 'closed' or not room_has_slot() then
        return nil
    end
    if room.advance > 0 then
        return BY_ORDER
    end
    return settings.mode == 'queue' and pace_allows(joined) and BY_PACE or nil
end

local function ticket_call(ticket, ground)
    local stands_sec = math.max(settings.claim_ttl_sec, 2 * ticket.poll_sec, UNTOLD_CALL_SEC)
    ticket.is_told = false
    ticket_move(ticket, CALLED)
    if ground == BY_PACE then
        ticket.is_paid = true
        pace_spend()
    elseif ground == BY_ORDER then
        room.advance = room.advance - 1
    end
    check_note(ticket)
    room.slot_calls = room.slot_calls + 1
    room.calls = room.calls + 1
    room.last_called = at_least(room.last_called, ticket.place)
    -- Being called is not coming back: for someone who said goodbye the grace goes on.
    if ticket.is_leaving then
        ticket.shown = room_later(stands_sec)
    else
        ticket_set_deadline(ticket, room_later(stands_sec))
    end
end
