-- SPDX-License-Identifier: BSD-2-Clause
--
-- How long until somebody is called, from what the last tick derived (estimate.lua). The arithmetic and its reasons are those
-- of src/room/estimate.c. 10^12 / 1024 is a whole number: so products stay small.

figures_add('calls_per_ks', 'gone_per_gs', 'silent_per_gs', 'margin_percent', 'is_short_of_slots')

local POLL_MAX_SEC = 60
local GHOSTS_MOST_1024 = 512

-- ln(1 + x) / x in 65536ths, with straight lines between these.
local KNOTS_1024 = {0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}
local KNOTS_65536 = {65536, 58496, 53146, 45426, 35999, 26369, 18000, 11605, 7161, 4275, 2488}

local function leavers_save(x_1024)
    local i, last = 1, #KNOTS_1024
    if x_1024 >= KNOTS_1024[last] then
        return KNOTS_65536[last]
    end
    while x_1024 >= KNOTS_1024[i + 1] do
        i = i + 1
    end
    local width = KNOTS_1024[i + 1] - KNOTS_1024[i]
    local fall = KNOTS_65536[i] - KNOTS_65536[i + 1]
    return KNOTS_65536[i] - floor(fall * (x_1024 - KNOTS_1024[i]) / width)
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

local function eta_by_pace(position)
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

-- For the person at `position` (1 = next): seconds, at the least, at the most. The line moves on when a freeze is over; but
-- min_wait_sec is over when it is, wherever one stands.
local function eta_at(position, waited_sec)
    local frozen_sec = floor((room_frozen_ms() + 999) / 1000)
    local least_sec = at_least(settings.min_wait_sec - waited_sec, 0)
    local eta, low, high = eta_by_pace(position)
    return clamp(frozen_sec + eta, least_sec, UINT32_MAX), clamp(frozen_sec + low, least_sec, UINT32_MAX),
        clamp(frozen_sec + high, least_sec, UINT32_MAX)
end
