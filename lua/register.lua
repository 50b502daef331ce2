-- SPDX-License-Identifier: BSD-2-Clause
--
-- There is such a room, or soon will be.
--
-- KEYS     the registry: rooms have the score 0, what was one the millisecond at which it was unregistered
-- ARGV     run id; the room; how many there may be; since when it should be one, in milliseconds
-- returns  {'OK'} · {'QUEUE_FULL'}: there are so many · {'ROOM_NOT_FOUND'}: it was unregistered since then
-- keeps    never more rooms than that

local ROOMS, call = KEYS[1], redis.call
local name, most, since_ms = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local score = call('ZSCORE', ROOMS, name)
if score == '0' then
    return {'OK'}
end
if score and tonumber(score) >= since_ms then
    return {'ROOM_NOT_FOUND'}
end
if call('ZCOUNT', ROOMS, 0, 0) >= most then
    return {'QUEUE_FULL'}
end
call('ZADD', ROOMS, 0, name)
return {'OK'}
