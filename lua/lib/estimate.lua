-- SPDX-License-Identifier: BSD-2-Clause
--
-- What is measured, in slots of 5 s over the last 300 s, and what follows from it: src/room/estimate.c. The slot under way is
-- part of the room's figures; the 59 before it are a list, newest first, and their sums over each window are kept with the
-- room, so that a tick need not read the list.

figures_add('slot_ms', 'slot_waited_ms', 'slot_inside_ms', 'slot_busy_ms', 'slot_joins', 'joined_milli', 'called_milli',
    'is_settled')

local SLOT_MS = 5000
local PAST_SLOTS = 59
local PRIOR_MS = 2000
local SETTLED_MS = 60000
local LONGEST_VISIT_SEC = 3600

-- Former slots in each window, and its weight; the slot under way belongs to all of them.
local WINDOWS = {{2, 1}, {12, 2}, {PAST_SLOTS, 2}}
local MINUTE, LONGEST = 2, 3

local SLOT_FIGURES = {
    'waited_ms', 'inside_ms', 'busy_ms', 'joins', 'calls', 'turns', 'ends', 'gone', 'silent',
}
local SLOT_FORMAT = '<' .. string.rep('d', #SLOT_FIGURES)

local function slot_pack(slot)
    local values = {}
    for i = 1, #SLOT_FIGURES do
        values[i] = slot[SLOT_FIGURES[i]]
    end
    return struct.pack(SLOT_FORMAT, unpack(values))
end

-- Adds the slot that lies packed at `from` to `sum`.
local function slot_add(sum, packed, from)
    local values = {struct.unpack(SLOT_FORMAT, packed, from)}
    for i = 1, #SLOT_FIGURES do
        local name = SLOT_FIGURES[i]
        sum[name] = (sum[name] or 0) + values[i]
    end
end

-- What former slots add to each window, as one string.
local function past_of(packed_slots)
    local past = ''
    for _, window in ipairs(WINDOWS) do
        local sum = {}
        slot_add(sum, string.rep('\0', 8 * #SLOT_FIGURES), 1)
        for i = 1, math.min(window[1], #packed_slots) do
            slot_add(sum, packed_slots[i], 1)
        end
        past = past .. slot_pack(sum)
    end
    return past
end

local function slot_under_way()
    local slot = {}
    for i = 1, #SLOT_FIGURES do
        slot[SLOT_FIGURES[i]] = room['slot_' .. SLOT_FIGURES[i]]
    end
    return slot
end

local function slot_begin()
    for i = 1, #SLOT_FIGURES do
        room['slot_' .. SLOT_FIGURES[i]] = 0
    end
end

-- What the configured pace weighs beside a window: less and less, and nothing once there is a minute of data.
local function prior_ms(seen)
    return seen.busy_ms >= SETTLED_MS and 0 or PRIOR_MS - floor(PRIOR_MS * seen.busy_ms / SETTLED_MS)
end

-- Calls per 1000 s while people waited.
local function called_rate(seen, rate, prior)
    local ms = seen.busy_ms + prior
    return ms == 0 and rate or floor((seen.turns * 1000000 + rate * prior) / ms)
end

-- Calls per 1000 s that the slots allow once all are taken: as many as become free.
local function slots_rate(seen, rate, prior, set)
    local slots = set.max_active
    local longest_sec = set.session_max_sec == 0 and LONGEST_VISIT_SEC or set.session_max_sec
    local inside_ms = seen.inside_ms + slots * prior
    if slots == 0 or inside_ms == 0 then
        return math.huge
    end
    local allowed = muldiv(seen.ends * 1000000 + rate * prior, slots, inside_ms)
    return at_least(allowed, floor(slots * 1000 / longest_sec))
end

local function derive_rate(seen, set)
    local rate, prior = configured_rate(set), prior_ms(seen[LONGEST])
    local called, weights = 0, 0
    for i, window in ipairs(WINDOWS) do
        called = called + window[2] * called_rate(seen[i], rate, prior)
        weights = weights + window[2]
    end
    called = floor(called / weights)
    local slots = floor(slots_rate(seen[MINUTE], rate, prior, set) / 2)
        + floor(slots_rate(seen[LONGEST], rate, prior, set) / 2)
    room.is_short_of_slots = as_flag(slots < called)
    room.calls_per_ks = at_least(slots < called and slots or called, 1)
end

local function share(people, waited_ms)
    return muldiv(people, 1000000000000, waited_ms + 1000)
end

local function derive_leavers(longest)
    room.silent_per_gs = share(at_least(longest.silent, 0), longest.waited_ms)
    room.gone_per_gs = room.silent_per_gs + share(longest.gone, longest.waited_ms)
end

-- A minute of people waiting; and, where slots decide, half of them must have become free.
local function is_enough(longest, set)
    return longest.busy_ms >= SETTLED_MS
        and (room.is_short_of_slots == 0 or longest.ends >= floor(set.max_active / 2))
end

local function estimate_derive(past, set)
    local seen = {}
    for i = 1, #WINDOWS do
        seen[i] = slot_under_way()
        slot_add(seen[i], past, 1 + (i - 1) * 8 * #SLOT_FIGURES)
    end
    derive_rate(seen, set)
    derive_leavers(seen[LONGEST])
    local is_settled = is_enough(seen[LONGEST], set)
    local percent = 15 + floor(150 / (1 + root(seen[MINUTE].turns)))
    room.is_settled = as_flag(is_settled)
    room.margin_percent = (is_settled or percent > 50) and percent or 50
    local recent_ms = WINDOWS[1][1] * SLOT_MS + room.slot_ms
    room.joined_milli = floor(seen[1].joins * 1000000 / recent_ms)
    room.called_milli = floor(seen[1].calls * 1000000 / recent_ms)
end

-- Nothing was measured yet, or what was says nothing any more.
local function estimate_begin(set)
    call('DEL', MEASURED)
    slot_begin()
    room.slot_ms = 0
    local past = past_of({})
    call('HSET', ROOM, 'past', past)
    estimate_derive(past, set)
end

-- The slot under way is over: it becomes the newest of the former ones, and the oldest is forgotten.
local function slot_end()
    call('LPUSH', MEASURED, slot_pack(slot_under_way()))
    call('LTRIM', MEASURED, 0, PAST_SLOTS - 1)
    slot_begin()
    local past = past_of(call('LRANGE', MEASURED, 0, PAST_SLOTS - 1))
    call('HSET', ROOM, 'past', past)
    return past
end

local function estimate_advance(elapsed_ms)
    local standing = room_standing()
    room.slot_waited_ms = room.slot_waited_ms + standing * elapsed_ms
    room.slot_inside_ms = room.slot_inside_ms + room_slots_used() * elapsed_ms
    -- While the room is held or frozen nobody is called: that says nothing about the time after.
    local is_left_alone = room.shop_until_ms > room.clock_ms - elapsed_ms -- when this time began
    if standing > 0 and settings.mode == 'queue' and room_frozen_ms() == 0 and not is_left_alone then
        room.slot_busy_ms = room.slot_busy_ms + elapsed_ms
    end
    room.slot_ms = room.slot_ms + elapsed_ms
    local past
    if room.slot_ms >= SLOT_MS then
        room.slot_ms = room.slot_ms - SLOT_MS
        past = slot_end()
    else
        past = call('HGET', ROOM, 'past')
    end
    estimate_derive(past, settings)
end
