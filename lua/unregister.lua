-- SPDX-License-Identifier: BSD-2-Clause
--
-- It is no room any more. That is remembered, so that a node can tell a room that was deleted from one that its server forgot.
--
-- KEYS     the registry (register.lua)
-- ARGV     run id; the room
-- returns  {'OK'}
-- keeps    what is remembered is bounded: the newest

local ROOMS, call = KEYS[1], redis.call
local REMEMBERED_MOST = 1000

local time = call('TIME')
call('ZADD', ROOMS, time[1] * 1000 + math.floor(time[2] / 1000), ARGV[2])
call('ZREMRANGEBYRANK', ROOMS, call('ZCOUNT', ROOMS, 0, 0), -REMEMBERED_MOST - 1)
return {'OK'}
