-- SPDX-License-Identifier: BSD-2-Clause
--
-- Somebody joins: one ticket per holder, and what a key did once it did for good.
--
-- ARGV     run id; of each: holder, is_trusted (0 or 1), key id, wall clock in seconds; scope and body of the request's key, or two
--          empty ones
-- returns  of each: standing · {'IDEMPOTENCY_CONFLICT'} ·
--          {'QUEUE_FULL' | 'WAIT_TOO_LONG' | 'ROOM_CLOSED', retry_after_sec}
-- keeps    a place is given once, to the next count; the ticket, its place in line, its holder and its key come together

-- include number
-- include room
-- include pace
-- include eta
-- include ticket
-- include moves
-- include call
-- include places
-- include standing
-- include joining
-- include requests
-- include each

figures_add('is_settled')

local RETRY_MIN_SEC, RETRY_MAX_SEC, RETRY_CLOSED_SEC = 5, 3600, 30

local function would_wait_too_long(standing)
    return settings.max_eta_sec ~= 0 and (eta_at(standing + 1, 0)) > settings.max_eta_sec
end

-- Why they cannot join now, or nil; and how many would stand before somebody who comes next.
local function refusal(standing)
    if settings.mode == 'closed' then
        return 'ROOM_CLOSED', standing
    end
    if settings.max_waiting ~= 0 and standing + room.away >= settings.max_waiting or room.last >= UINT32_MAX - 1 then
        return 'QUEUE_FULL', standing
    end
    if not would_wait_too_long(standing) then
        return nil
    end
    -- Where there is room nobody waits, whatever the estimate says of those who would.
    if standing > 0 then
        return 'WAIT_TOO_LONG', standing
    end
    return not call_ground(room_now()) and 'WAIT_TOO_LONG' or nil, 1
end

local function retry_after(why, ahead)
    local eta_sec = eta_at(ahead + 1, 0)
    if why == 'WAIT_TOO_LONG' then -- when the line has become short enough, if nobody else joins
        return clamp(eta_sec - settings.max_eta_sec, RETRY_MIN_SEC, RETRY_MAX_SEC)
    elseif why == 'QUEUE_FULL' then -- about when a hundredth of the line has been called
        return clamp(floor(eta_sec / 100), RETRY_MIN_SEC, RETRY_MAX_SEC)
    end
    return RETRY_CLOSED_SEC
end

-- Notes what a newcomer is told, to learn later whether it came true.
local function note_eta(ticket, standing)
    if standing.state == WAITING and room.is_settled == 1 and ticket_has_note(ticket) then
        ticket.note_from, ticket.note_to = room_later(standing.eta_low_sec), room_later(standing.eta_high_sec)
    end
end

local function join_anew(people, ...)
    local ticket = ticket_join(...)
    ticket.rank = people + 1 -- whoever comes last stands last
    -- Where there is room nobody waits for a tick.
    local ground = people == 0 and call_ground(ticket.joined)
    if ground then
        ticket_call(ticket, ground)
    end
    local standing = standing_tell(ticket)
    note_eta(ticket, standing)
    return ticket, standing
end

local function join_once(holder, is_trusted, key_id, wall_sec, scope, body)
    local ticket, standing = ticket_held_by(holder), nil
    if ticket then
        standing = standing_tell(ticket)
        standing.is_repeat = true
    else
        local people = room_standing()
        local why, ahead = refusal(people)
        if why then
            return {why, retry_after(why, ahead)}
        end
        ticket, standing = join_anew(people, holder, is_trusted, key_id, wall_sec)
    end
    ticket_keep(ticket)
    request_keep(scope, body, ticket, standing)
    lapse_unless_waiting(ticket)
    return standing_pack(standing)
end

-- The first answer may have said "not yet": repeating it tells nobody that their turn has come meanwhile.
local function join_again(request, ticket)
    local standing = (request.is_ready == 1 and standing_tell or standing_see)(ticket)
    standing.is_repeat = true
    standing.position, standing.is_ready = request.position, request.is_ready == 1
    standing.next_poll_sec = request.poll_sec
    if ticket.state == WAITING then
        standing_expect(ticket, request.poll_sec)
    end
    ticket_keep(ticket)
    lapse_unless_waiting(ticket)
    return standing_pack(standing)
end

return each(6, function(holder, is_trusted, key_id, wall_sec, scope, body)
    if scope ~= '' then
        requests_forget(2)
    end
    local request, ticket = request_remembered(scope)
    if not request then
        return join_once(holder, is_trusted, key_id, wall_sec, scope, body)
    end
    return request.body == body and join_again(request, ticket) or {'IDEMPOTENCY_CONFLICT'}
end)
