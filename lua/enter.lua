-- SPDX-License-Identifier: BSD-2-Clause
--
-- Takes the turn; once inside, says the same again.
--
-- ARGV     run id; of each: holder, epoch, count, issue, grant; key id and wall clock in seconds of the pass; scope and body of the
--          request's key, or two empty ones; whether the pass takes somebody further, who then is the one whom the body stands for
--          (0 or 1)
-- returns  of each: {'OK' | 'NOT_READY', standing} · {'TOKEN_NOT_FOUND'} · {'IDEMPOTENCY_CONFLICT'}
-- keeps    a ticket enters once, and keeps what its pass says; its pass takes one person further. Each that is inside is written,
--          also when nothing is new: a WAIT behind this script is for its last write

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
-- include requests
-- include each

-- Too early; but whoever asks is there.
local function enter_too_early(ticket)
    local standing = standing_tell(ticket)
    ticket_keep(ticket)
    return {'NOT_READY', standing_pack(standing)}
end

local function enter_once(ticket, key_id, wall_sec, scope, body, spends)
    local is_repeat = ticket_is_inside(ticket)
    if not is_repeat then
        ticket_enter(ticket, tonumber(wall_sec), tonumber(key_id))
    end
    ticket.is_spent = ticket.is_spent or spends
    local standing = standing_tell(ticket)
    standing.is_repeat = is_repeat
    ticket_keep(ticket)
    request_keep(scope, body, ticket, standing)
    lapse_if_empty()
    return {'OK', standing_pack(standing)}
end

return each(10, function(holder, epoch, count, issue, grant, key_id, wall_sec, scope, body, spends)
    if scope ~= '' then
        requests_forget(2)
    end
    local request = request_remembered(scope)
    if request and request.body ~= body then
        return {'IDEMPOTENCY_CONFLICT'}
    end
    local ticket = ticket_meet(named(holder, epoch, count, issue, grant))
    if not ticket then
        return {'TOKEN_NOT_FOUND'}
    end
    -- Who it was is known no more.
    if spends == '1' and ticket.is_spent and not request then
        return {'IDEMPOTENCY_CONFLICT'}
    end
    if ticket.state == CALLED or ticket_is_inside(ticket) then
        return enter_once(ticket, key_id, wall_sec, scope, body, spends == '1')
    end
    return enter_too_early(ticket)
end)
