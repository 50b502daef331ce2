-- SPDX-License-Identifier: BSD-2-Clause
--
-- Idempotency keys: what a request with this key did, as in src/room/keys.c. A hash by scope, and a list of the scopes in the
-- order they came, which bounds it: at most REQUESTS_MOST, each for 300 s of the room's clock.

figures_add('keys_dropped')

local REQUESTS_MOST = 130944
local REQUEST_TTL = 300 * 10
local REQUEST_FORMAT = '<I4I4I4BBc8c16'

local function request_find(scope)
    local packed = call('HGET', REQUESTS, scope)
    if not packed then
        return nil
    end
    local request = {}
    request.at, request.place, request.position, request.poll_sec, request.is_ready, request.body, request.holder =
        struct.unpack(REQUEST_FORMAT, packed)
    return request
end

local function request_is_over(request, past)
    return past >= request.at + REQUEST_TTL
end

-- Forgets the oldest, at most so many, whose time is over or that are too many.
local function requests_forget(most)
    local past = room_past()
    for _ = 1, most do
        local scope = call('LINDEX', REQUEST_ORDER, 0)
        local is_over = scope and request_is_over(request_find(scope), past)
        if not scope or not is_over and call('LLEN', REQUEST_ORDER) < REQUESTS_MOST then
            return
        end
        if not is_over then
            room.keys_dropped = room.keys_dropped + 1
        end
        call('LPOP', REQUEST_ORDER)
        call('HDEL', REQUESTS, scope)
    end
end

-- What the key of this request stands for, and the ticket; nil if it is new or what it stood for is over.
local function request_remembered(scope)
    local request = scope ~= '' and request_find(scope)
    if not request or request_is_over(request, room_past()) then
        return nil
    end
    local ticket = ticket_held_by(request.holder)
    if not ticket or ticket.place ~= request.place then
        return nil
    end
    return request, ticket
end

local function request_keep(scope, body, ticket, standing)
    if scope == '' then
        return
    end
    local packed = struct.pack(REQUEST_FORMAT, room_now(), ticket.place, standing.position or 0,
        standing.next_poll_sec, as_flag(standing.is_ready), body, ticket.holder)
    if call('HSET', REQUESTS, scope, packed) == 1 then
        call('RPUSH', REQUEST_ORDER, scope)
    end
end
