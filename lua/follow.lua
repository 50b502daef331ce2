-- SPDX-License-Identifier: BSD-2-Clause
--
-- What a node has worked out of what a tick told it about the shop.
--
-- ARGV     run id; the version that it began with; what is known now; the rate in force; then what was seen of the shop and is
--          part of that: what and how often, as in shop.lua
-- returns  {'OK'} · {'CONFLICT'}: it does not count, for something else has come in between · {'ROOM_NOT_FOUND'}
-- keeps    what was seen is taken away when it has had its effect, and not before; what was seen since stays

-- include number
-- include room
-- include pace

figures_add('follow_version')

local function rate_change(rate_milli)
    local before, after = settings, {}
    for name, value in pairs(settings) do
        after[name] = value
    end
    after.rate_milli, room.rate_milli = rate_milli, rate_milli
    settings = after
    pace_change(before, after)
end

local refusal = room_load()
if refusal then
    return refusal
end
if room.follow_version ~= tonumber(ARGV[2]) then
    return {'CONFLICT'}
end
call('HSET', ROOM, 'follow', ARGV[3])
room.follow_version = room.follow_version + 1
if room.rate_milli ~= tonumber(ARGV[4]) then
    rate_change(tonumber(ARGV[4]))
end
for i = 5, #ARGV, 2 do
    if call('HINCRBY', SHOP, ARGV[i], -tonumber(ARGV[i + 1])) <= 0 then
        call('HDEL', SHOP, ARGV[i])
    end
end
room_save()
return {'OK'}
