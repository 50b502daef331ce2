-- SPDX-License-Identifier: BSD-2-Clause
--
-- The pace: a bucket of credit in parts of a call, as in src/room/pace.c. It goes by the rate in force (`rate_milli` of the
-- room): that of the settings, unless a node that follows the shop has set another.

local TICK_MS = 100

local function pace_is_in_one_go(set)
    return set.batch ~= 0 and not set.smooth
end

-- Parts of one call; parts that a millisecond adds; and the most that the bucket holds.
local function pace_measure(set)
    if pace_is_in_one_go(set) then
        return 1, 0, set.batch
    end
    local parts, per_ms = 1000000, set.rate_milli
    if set.batch ~= 0 then
        parts, per_ms = set.interval_sec * 1000, set.batch
    elseif set.burst ~= 0 then
        return parts, per_ms, set.burst * parts
    end
    local tick = per_ms * TICK_MS
    return parts, per_ms, tick > parts and 2 * tick or parts + tick
end

local function pace_add(parts)
    local _, _, most = pace_measure(settings)
    room.credit = room.credit + parts < most and room.credit + parts or most
end

-- Settings change, or the rate in force, and are these already.
local function pace_change(before, after)
    local old_parts, new_parts = (pace_measure(before)), (pace_measure(after))
    if pace_is_in_one_go(before) ~= pace_is_in_one_go(after) then
        -- Neither brings the other any credit: nothing is gained by switching to and fro.
        room.credit = 0
        room.wait_ms = pace_is_in_one_go(after) and after.interval_sec * 1000 or 0
    else
        room.credit = muldiv(room.credit, new_parts, old_parts)
    end
    pace_add(0)
    room.wait_ms = math.min(room.wait_ms, after.interval_sec * 1000)
end

local function pace_advance(elapsed_ms)
    local _, per_ms = pace_measure(settings)
    pace_add(per_ms * elapsed_ms)
    room.wait_ms = at_least(room.wait_ms - elapsed_ms, 0)
end

-- Somebody is waiting: a batch in one go begins if it is time.
local function pace_begin()
    if pace_is_in_one_go(settings) and room.wait_ms == 0 then
        room.credit = settings.batch
        room.wait_ms = settings.interval_sec * 1000
    end
end

local function pace_has_call()
    return room.credit >= (pace_measure(settings))
end

local function pace_spend()
    room.credit = room.credit - (pace_measure(settings))
end

-- A called person never came: the next may have their turn.
local function pace_refund()
    pace_add((pace_measure(settings)))
end

local function pace_is_full()
    local _, _, most = pace_measure(settings)
    if pace_is_in_one_go(settings) then
        return room.wait_ms == 0
    end
    return room.credit == most
end

-- Calls per 1000 s by the settings and the rate in force.
local function pace_milli(set)
    return set.batch == 0 and set.rate_milli or floor(set.batch * 1000 / set.interval_sec)
end

-- Nobody is left to be called: what remains is not kept for those who come later, not even until the next tick.
local function lapse_if_empty()
    if room_standing() > 0 then
        return
    end
    if pace_is_in_one_go(settings) then
        room.credit = 0
    end
    room.advance = 0
end
