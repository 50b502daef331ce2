-- SPDX-License-Identifier: BSD-2-Clause
--
-- How long until somebody is called, from what the last tick derived (estimate.lua). The arithmetic and its reasons are those
-- of src/room/estimate.c. 10^12 / 1024 is a whole number: so products stay small.

local POLL_MAX_SEC = 60
local GHOSTS_MOST_1024 = 512

local KNOTS = {
    {0, 65536}, {256, 58496}, {512, 53146}, {1024, 45426}, {2048, 35999}, {4096, 26369},
    {8192, 18000}, {16384, 11605}, {32768, 7161}, {65536, 4275}, {131072, 2488},
}

local function leavers_save(x_1024)
    local i = 1
    if x_1024 >= KNOTS[#KNOTS][1] then
        return KNOTS[#KNOTS][2]
    end
    while x_1024 >= KNOTS[i + 1][1] do
        i = i + 1
    end
    local from, to = KNOTS[i], KNOTS[i + 1]
    return from[2] - floor((from[2] - to[2]) * (x_1024 - from[1]) / (to[1] - from[1]))
end

-- The share of those ahead who have left without a word and are not missed yet.
local function ghosts_1024(position)
    if room.is_short_of_slots == 1 then
        return 0
    end
    local plain_ms = floor(position * 1000000 / room.calls_per_ks)
    local poll_ms = floor(plain_ms / 10)
    if poll_ms > POLL_MAX_SEC * 1000 then
        poll_ms = POLL_MAX_SEC * 1000
    end
    local ghosts = muldiv(room.silent_per_gs, poll_ms, 488281250)
    return ghosts < GHOSTS_MOST_1024 and ghosts or GHOSTS_MOST_1024
end

-- Of the people up to this position, how many calls it takes until the last of them is called.
local function calls_needed_1024(position)
    local people_1024 = position * (1024 - ghosts_1024(position))
    local plain_ms = div(muldiv(people_1024, 15625, 16), room.calls_per_ks)
    local x_1024 = muldiv(room.gone_per_gs, plain_ms, 976562500)
    return muldiv(people_1024, leavers_save(x_1024), 65536)
end

local function configured_rate(set)
    return at_least(pace_milli(set), 1)
end

local function whole_sec(ms)
    local seconds = floor((ms + 999) / 1000)
    return seconds < UINT32_MAX and seconds or UINT32_MAX
end

local function capped(seconds)
    local cap = settings.eta_cap_sec
    return cap ~= 0 and seconds > cap and cap or seconds
end

-- For the person at `position` (1 = next): seconds, at the least, at the most.
local function eta_at(position)
    local calls_1024 = calls_needed_1024(position)
    local ms = div(muldiv(calls_1024, 15625, 16), room.calls_per_ks)
    if pace_is_in_one_go(settings) and room.calls_per_ks * 10 >= configured_rate(settings) * 9 then
        local calls = floor((calls_1024 + 1023) / 1024)
        ms = room.wait_ms + div(at_least(calls - 1, 0), settings.batch) * settings.interval_sec * 1000
    end
    local margin_ms = floor(ms / 100) * room.margin_percent
    local low_ms = at_least(ms - margin_ms - 1000, 0)
    return capped(whole_sec(ms)), capped(clamp(floor(low_ms / 1000), 0, UINT32_MAX)),
        capped(whole_sec(ms + margin_ms + 2000))
end

local function eta_of_newcomer()
    return (eta_at(room_standing() + 1))
end
