-- SPDX-License-Identifier: BSD-2-Clause
--
-- Being inside. The callers keep the ticket.

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
