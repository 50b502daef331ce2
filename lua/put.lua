-- SPDX-License-Identifier: BSD-2-Clause
--
-- Makes the room, or changes its settings.
--
-- ARGV     run id; version that the settings must still have, 0 = the room must be new; is_from_api (0 or 1); what a node has in mind
--          of the room (tick.lua), or nothing; the texts, in lines `name=value`, or nothing: they stay; then name and value of each
--          number among the settings, in their written form
-- returns  {'OK'} · {'CONFLICT'} · {'ROOM_NOT_FOUND'}
-- keeps    all settings change or none; the credit of the pace stays the same number of calls, but for what is beyond the new
--          burst. A line that stands when the room is opened is called. A room that was forgotten gives no number again

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
-- include places
-- include epoch
-- include loss

figures_add('former_sec', 'returns_until_ms', 'last', 'issued', 'ticked_ms', 'settings_version', 'is_settings_from_api')

local RETURN_SEC = 300

local version, is_from_api, recalled, texts = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local written = {}
for i = 6, #ARGV do
    written[i - 5] = ARGV[i]
end

local function settings_given()
    local values, by_name = {}, {}
    for i = 1, #written, 2 do
        by_name[written[i]] = written[i + 1]
    end
    for i, name in ipairs(SETTING_NAMES) do
        values[i] = by_name[name]
    end
    local given = settings_read(values)
    given.rate, given.rate_milli = tonumber(by_name.rate), as_milli(by_name.rate)
    given.rate_min_milli, given.rate_max_milli = as_milli(by_name.rate_min), as_milli(by_name.rate_max)
    return given
end

-- A pace that follows the shop begins anew where `pace` or `rate` is another, and keeps to the new bounds.
local function rate_in_force(before, given)
    local rate_milli = given.rate_milli
    if given.pace ~= 'auto' then
        return rate_milli
    end
    if before.pace == given.pace and before.rate == given.rate then
        rate_milli = room.rate_milli
    end
    return math.max(math.min(rate_milli, given.rate_max_milli), given.rate_min_milli)
end

local function room_make(given)
    local now = wall_ms()
    for i = 1, #FIGURES do
        room[FIGURES[i]] = 0
    end
    local deleted = tonumber(call('GET', EPOCH))
    if not recall(recalled, deleted or 0, given) then
        room.epoch = deleted and math.max(epoch_of(floor(now / 1000)), deleted + 1) or epoch_after(0)
    end
    if not deleted then -- there may have been one that was lost: its passes are believed for a while
        room.former_sec = floor(now / 1000)
        room.returns_until_ms = math.min(given.session_ttl_sec, RETURN_SEC) * 1000
    end
    room.ticked_ms = now
    room.rate_milli = given.rate_milli
    local _, _, most = pace_measure(given)
    room.credit = pace_is_in_one_go(given) and 0 or most
    estimate_begin(given)
    follow_change({}, given)
    call('HSET', ROOM, 'primary', RUN_ID)
    call('DEL', EPOCH)
end

-- Whether what was measured before says nothing any more.
local function is_other_pace(a, b)
    return a.rate_milli ~= b.rate_milli or a.batch ~= b.batch or a.interval_sec ~= b.interval_sec
        or a.max_active ~= b.max_active
end

local function settings_change(before, after)
    settings = after
    room.rate_milli = after.rate_milli
    follow_change(before, after)
    pace_change(before, after)
    if is_other_pace(before, after) then
        estimate_begin(after)
    end
    room.settings_version = room.settings_version + 1
    room.is_settings_from_api = is_from_api
    call('DEL', SETTINGS)
    call('HSET', SETTINGS, unpack(written))
    if texts ~= '' then
        call('HSET', ROOM, 'texts', texts)
    end
    lapse_if_empty()
    -- In an open room whoever joins is called at once: so those who stood in line before them must be.
    if after.mode == 'open' then
        local _, has_more = call_people()
        room.is_behind = as_flag(has_more)
    end
end

local given = settings_given()
local refusal = room_load()
if refusal then
    if refusal[1] ~= 'ROOM_NOT_FOUND' or version ~= 0 then
        return refusal
    end
    given.rate_milli = rate_in_force({}, given)
    room_make(given)
    settings = given
end
if version ~= room.settings_version then
    return {'CONFLICT'}
end
settings.rate = settings.rate or tonumber(call('HGET', SETTINGS, 'rate'))
given.rate_milli = rate_in_force(settings, given)
settings_change(settings, given)
room_save()
return {'OK'}
