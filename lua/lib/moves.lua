-- SPDX-License-Identifier: BSD-2-Clause
--
-- The moves of a ticket from state to state, as in src/room/moves.c. ticket_move is the only place that changes a state; it
-- keeps the counts and the line in step. The callers keep the ticket.

local UNTOLD_CALL_SEC = 120
local COUNTS = {[AWAY] = 'away', [CALLED] = 'called', [ENTERED] = 'entered', [ACTIVE] = 'active'}

local function ticket_move(ticket, to)
    local from = ticket.state
    if COUNTS[from] then
        room[COUNTS[from]] = room[COUNTS[from]] - 1
    end
    if COUNTS[to] then
        room[COUNTS[to]] = room[COUNTS[to]] + 1
    end
    if from == WAITING then
        call('ZREM', LINE, ticket.holder)
    end
    if to == WAITING then
        call('ZADD', LINE, ticket.place, ticket.holder)
    end
    ticket.state = to
end

-- Somebody away is there again.
local function ticket_return(ticket)
    ticket_move(ticket, WAITING)
    room.slot_silent = room.slot_silent - 1
end

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
    return room.clock_ms >= room.calls_from_ms
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

-- When a session of so many seconds that begins now ends; never beyond its longest time.
local function session_deadline(ticket, ttl_sec)
    local deadline, max_sec = room_later(ttl_sec), ticket.session_max_sec
    if max_sec == 0 or ticket.entered + max_sec * 10 >= deadline then
        return deadline
    end
    return ticket.entered + max_sec * 10
end

-- The same of one that was just seen: it keeps what the shop gave it.
local function session_renewed(ticket)
    local deadline = session_deadline(ticket, settings.session_ttl_sec)
    return ticket.is_extended and ticket.deadline > deadline and ticket.deadline or deadline
end

-- What was promised with the pass is kept with the ticket: the settings may change, the pass does not.
local function ticket_enter(ticket, wall_sec, key_id)
    ticket_move(ticket, ENTERED)
    ticket.iat_sec, ticket.pass_key_id, ticket.entered = wall_sec, key_id, room_now()
    ticket.session_max_sec, ticket.tier = settings.session_max_sec, settings.tier
    ticket_set_deadline(ticket, session_deadline(ticket, settings.arrive_ttl_sec))
end

local function ticket_arrive(ticket)
    ticket_move(ticket, ACTIVE)
    ticket_set_deadline(ticket, session_renewed(ticket))
end

-- The ticket is over: nothing of it is left. A turn that was not taken is given back.
local function ticket_finish(ticket)
    if ticket.state == WAITING then
        room.slot_gone = room.slot_gone + 1
    elseif ticket.state ~= AWAY then
        room.slot_ends = room.slot_ends + 1
    end
    if ticket.state == CALLED and ticket.is_paid then
        pace_refund()
        room.refunds = room.refunds + 1
    end
    ticket_move(ticket, nil)
    call('ZREM', DUE, ticket.holder)
    call('HDEL', TICKETS, ticket.holder)
end

-- Its time is over: who waited is away, all others are over.
local function ticket_expire(ticket)
    if ticket.state ~= WAITING or ticket.is_leaving then
        ticket_finish(ticket)
        return
    end
    ticket_move(ticket, AWAY)
    -- Whoever steps out may be called later than they were told, by their own doing.
    ticket.note_from, ticket.note_to = 0, 0
    room.slot_silent = room.slot_silent + 1
    ticket.deadline = room_later(settings.away_ttl_sec)
    call('ZADD', DUE, ticket.deadline, ticket.holder)
    ticket_keep(ticket)
end
