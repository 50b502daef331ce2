-- SPDX-License-Identifier: BSD-2-Clause
--
-- Takes the turn; once inside, says the same again.
--
-- ARGV     holder, epoch, count; key id and wall clock in seconds of the pass; scope and body of the request's key, or two
--          empty ones
-- returns  {'OK' | 'NOT_READY', standing} · {'TOKEN_NOT_FOUND'} · {'IDEMPOTENCY_CONFLICT'}
-- keeps    a ticket enters once, and keeps what its pass says

-- include number
-- include room
-- include pace
-- include eta
-- include ticket
-- include moves
-- include standing
-- include requests

local holder, epoch, count, key_id, wall_sec, scope, body = unpack(ARGV)

local function enter_once(ticket)
    local is_repeat = ticket_is_inside(ticket)
    if not is_repeat and ticket.state ~= CALLED then
        -- Too early; but whoever asks is there.
        local standing = standing_tell(ticket)
        ticket_keep(ticket)
        return {'NOT_READY', standing_list(standing)}
    end
    if not is_repeat then
        ticket_enter(ticket, tonumber(wall_sec), tonumber(key_id))
    end
    local standing = standing_tell(ticket)
    standing.is_repeat = is_repeat
    ticket_keep(ticket)
    request_keep(scope, body, ticket, standing)
    lapse_if_empty()
    return {'OK', standing_list(standing)}
end

local function enter()
    if scope ~= '' then
        requests_forget(2)
    end
    local request = request_remembered(scope)
    if request and request.body ~= body then
        return {'IDEMPOTENCY_CONFLICT'}
    end
    local ticket = ticket_find(holder, epoch, count)
    return ticket and enter_once(ticket) or {'TOKEN_NOT_FOUND'}
end

if not room_load() then
    return {'TOKEN_NOT_FOUND'}
end
local answer = enter()
room_save()
return answer
