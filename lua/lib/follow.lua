-- SPDX-License-Identifier: BSD-2-Clause
--
-- A pace that follows the shop. What comes next is worked out by a node (src/redis/follower.c, with src/room/follow.c): the room
-- keeps what is known so far, in `follow`, and what was seen of the shop since, in SHOP. Scripts only begin it anew.

figures_add('follow_version', 'calls')

local FOLLOW_LAYOUT = 1
local FOLLOW_FIELDS = {
    'layout', 'clock_ms', 'calls_from', 'reason', 'window_ms', 'time_ms', 'failed_permille', 'floor_us', 'age_ms',
    'older_ms', 'answers_milli', 'calls_milli', 'hold_ms', 'trouble_milli', 'is_draining', 'before_milli', 'can_milli',
}
local FOLLOW_FORMAT = '<' .. string.rep('I4', #FOLLOW_FIELDS)
local FOLLOW_FIXED, FOLLOW_BEGIN = 0, 1 -- of FOLLOW_REASON_LIST
local SHOP_SETTINGS = {'rate_min', 'rate_max', 'shop_target_ms'}

-- What cannot be read is of another version: it is begun anew.
local function follow_load()
    local packed = call('HGET', ROOM, 'follow')
    local values = packed and #packed == 4 * #FOLLOW_FIELDS and {struct.unpack(FOLLOW_FORMAT, packed)} or {}
    local follow = {}
    for i, name in ipairs(FOLLOW_FIELDS) do
        follow[name] = values[1] == FOLLOW_LAYOUT and values[i] or 0
    end
    return follow
end

local function follow_keep(follow)
    local values = {}
    follow.layout = FOLLOW_LAYOUT
    for i, name in ipairs(FOLLOW_FIELDS) do
        values[i] = follow[name] % 4294967296
    end
    call('HSET', ROOM, 'follow', struct.pack(FOLLOW_FORMAT, unpack(values)))
    room.follow_version = room.follow_version + 1
end

-- As follow_change of src/room/follow.c; the rate in force is the caller's. What a node has worked out meanwhile does not count.
local function follow_change(before, after)
    local follow = follow_load()
    if before.pace ~= after.pace then
        follow.window_ms, follow.clock_ms, follow.calls_from = 0, room.clock_ms, room.calls
        room.shop_until_ms = 0
        call('DEL', SHOP)
    end
    if before.pace ~= after.pace or before.rate ~= after.rate then
        follow.reason = after.pace == 'auto' and FOLLOW_BEGIN or FOLLOW_FIXED
        follow.trouble_milli, follow.hold_ms, follow.is_draining = 0, 0, 0
    end
    follow_keep(follow)
end

-- What a node needs to work out what comes next: nothing where the pace is fixed. `calls` is what they were before this tick's.
local function follow_ask(calls)
    if settings.pace ~= 'auto' then
        return {}
    end
    local values = call('HMGET', SETTINGS, unpack(SHOP_SETTINGS))
    return {
        room.follow_version, room.clock_ms, calls, room.shop_until_ms, room.rate_milli, as_milli(values[1]),
        as_milli(values[2]), tonumber(values[3]), call('HGET', ROOM, 'follow') or '', call('HGETALL', SHOP),
    }
end
