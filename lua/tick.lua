-- SPDX-License-Identifier: BSD-2-Clause
--
-- Time passes: ends what is over, and calls whom the pace allows. Any node may run it, and any number of them: while the one that
-- did it last goes on, the others are told for how long they need not ask.
--
-- ARGV     run id; the node
-- returns  {'OK', wait_ms, clock_ms, people called, is_behind, is_at_rest, is_empty, what is to be kept in mind of
--          the room, what it takes to follow the shop (lib/follow.lua)} · {'ROOM_NOT_FOUND'}
-- keeps    the room's clock goes on by the time that has passed since the last tick, by one second at most, and never back; so
--          do pace and estimate. What is left over is done by the next tick

-- include number
-- include room
-- include pace
-- include follow
-- include eta
-- include estimate
-- include ticket
-- include moves
-- include call
-- include finish
-- include calling
-- include requests
-- include rest
-- include places
-- include epoch
-- include loss

figures_add('ticked_ms', 'lease_ms')

local TICK_LEAST_MS, TICK_MOST_MS = 50, 1000
local CLOCK_JUMP_MS = 1000
local LEASE_MS = 1000
local SWEEP_MOST = 1000
local FORGET_MOST = 256

-- The server's clock may jump, and so may that of the server that takes over: what is far ahead is gone on with from here.
local function elapsed_ms(now)
    if room.ticked_ms > now + CLOCK_JUMP_MS then
        room.ticked_ms = now
    end
    return clamp(now - room.ticked_ms, 0, TICK_MOST_MS), at_least(now, room.ticked_ms)
end

-- For how long another node has it. Nobody waits for a time that is farther than it can be: the clock has jumped.
local function wait_ms(now, node)
    local left = room.lease_ms - now
    if left <= 0 or left > LEASE_MS or call('HGET', ROOM, 'lease_node') == node then
        return 0
    end
    return left
end

local function lease_take(now, node)
    room.lease_ms = now + LEASE_MS
    call('HSET', ROOM, 'lease_node', node)
end

-- Everybody overdue: whether there may be more of them.
local function sweep()
    local past = room_past()
    local holders = call('ZRANGEBYSCORE', DUE, '-inf', past, 'LIMIT', 0, SWEEP_MOST)
    for _, holder in ipairs(holders) do
        local ticket = ticket_held_by(holder)
        if ticket.deadline <= past then
            ticket_expire(ticket)
        else
            call('ZADD', DUE, ticket.deadline, holder)
        end
    end
    return #holders == SWEEP_MOST
end

local function tick(elapsed)
    room.clock_ms = room.clock_ms + elapsed
    pace_advance(elapsed)
    estimate_advance(elapsed)
    local has_overdue = sweep()
    if settings.mode == 'queue' and room_standing() > 0 then
        pace_begin()
    end
    local called, has_callable = call_people()
    requests_forget(FORGET_MOST)
    room.is_behind = as_flag(has_overdue or has_callable)
    return called
end

local refusal = room_load()
if refusal then
    return refusal
end
local now, node = wall_ms(), ARGV[2]
local called, wait, shop = 0, wait_ms(now, node), {}
local calls_before = room.calls
if wait == 0 then
    lease_take(now, node)
    local elapsed, ticked_ms = elapsed_ms(now)
    -- However many nodes there are, the work is done once.
    if elapsed >= TICK_LEAST_MS or room.is_behind == 1 then
        room.ticked_ms = ticked_ms
        called = tick(elapsed)
        shop = follow_ask(calls_before)
    end
end
local is_at_rest = room_is_at_rest()
if is_at_rest then
    room.lease_ms = 0 -- whoever is asked for it next need not wait
end
room_save()
return {'OK', wait, room.clock_ms, called, room.is_behind, as_flag(is_at_rest), as_flag(room_is_empty()),
    recall_pack(), shop}
