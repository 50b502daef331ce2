-- SPDX-License-Identifier: BSD-2-Clause
--
-- The room: its keys, its figures and its settings. A script loads them, works on plain variables and saves at its end what
-- has become another. Redis runs a script as a whole, so nothing comes in between.

local ROOM, SETTINGS, LINE, TICKETS, DUE, REQUESTS, REQUEST_ORDER, MEASURED, HEALED, EPOCH, SHOP =
    unpack(KEYS)
local call = redis.call
local RUN_ID = ARGV[1] -- of the server process that runs this

-- What is loaded: these, and what the pieces that a script is made of name beside them. All are numbers.
local FIGURES = {
    'epoch', 'base', 'clock_ms', 'credit', 'wait_ms', 'rate_milli', 'advance', 'away', 'called', 'entered', 'active',
    'calls_from_ms', 'shop_until_ms',
}

local function figures_add(...)
    for i = 1, select('#', ...) do
        FIGURES[#FIGURES + 1] = (select(i, ...))
    end
end

-- What the scripts go by, but for `rate`, which only a change of settings asks for; the others are the nodes', and so are the
-- texts, a field of ROOM that only they read.
local SETTING_NAMES = {
    'mode', 'pace', 'smooth', 'session_renew', 'preset', 'max_active', 'burst', 'batch', 'interval_sec', 'max_called',
    'min_wait_sec', 'seen_ttl_sec', 'away_ttl_sec', 'claim_ttl_sec', 'arrive_ttl_sec', 'session_ttl_sec',
    'session_max_sec', 'max_waiting', 'max_eta_sec', 'eta_cap_sec', 'tier',
}
local FIRST_NUMBER = 6 -- of SETTING_NAMES

local room, settings = {}, {}
local room_before = {} -- in the order of FIGURES

-- From the written values, in the order of SETTING_NAMES. `rate_milli` is the pace in force and not part of them.
local function settings_read(values)
    local read = {
        mode = values[1],
        pace = values[2],
        preset = values[5],
        smooth = values[3] == 'true',
        session_renew = values[4] == 'true',
    }
    for i = FIRST_NUMBER, #SETTING_NAMES do
        read[SETTING_NAMES[i]] = tonumber(values[i])
    end
    if values[2] == 'auto' then
        read.batch = 0
    end
    return read
end

-- Nil, or what a script that cannot go on returns: there is no such room; or another process kept it last, which may have known
-- more of it, and the room must be renewed first (renew.lua).
local function room_load()
    local values = call('HMGET', ROOM, 'primary', unpack(FIGURES))
    if not values[2] then
        return {'ROOM_NOT_FOUND'}
    end
    if values[1] ~= RUN_ID then
        return {'OTHER_PRIMARY', values[1] or ''}
    end
    for i = 1, #FIGURES do
        local value = tonumber(values[i + 1]) or 0
        room[FIGURES[i]], room_before[i] = value, value
    end
    settings = settings_read(call('HMGET', SETTINGS, unpack(SETTING_NAMES)))
    settings.rate_milli = room.rate_milli
end

local function room_save()
    local changes = {}
    for i = 1, #FIGURES do
        local name = FIGURES[i]
        if room[name] ~= room_before[i] then
            changes[#changes + 1] = name
            changes[#changes + 1] = room[name]
        end
    end
    if #changes > 0 then
        call('HSET', ROOM, unpack(changes))
    end
end

-- Deciseconds of the room's clock. A time that begins now is counted from the one, rounded up; it is over when the other,
-- rounded down, has reached its end: so nobody's time is ever short.
local function room_now()
    return floor((room.clock_ms + 99) / 100)
end

local function room_past()
    return floor(room.clock_ms / 100)
end

local function room_later(seconds)
    local when = room_now() + seconds * 10
    return when < UINT32_MAX and when or UINT32_MAX - 1
end

local function room_standing()
    return call('ZCARD', LINE)
end

local function room_slots_used()
    return room.called + room.entered + room.active
end

local function room_has_slot()
    return settings.max_active == 0 or room_slots_used() < settings.max_active
end

-- For how long the pace calls nobody: after a loss, while a breaker leaves the shop alone, or while people wait in the hall.
local function room_frozen_ms()
    return math.max(room.calls_from_ms - room.clock_ms, room.shop_until_ms - room.clock_ms, 0)
end

local function wall_ms()
    local time = call('TIME')
    return tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
end
