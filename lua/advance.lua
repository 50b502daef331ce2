-- SPDX-License-Identifier: BSD-2-Clause
--
-- The operator calls the next people beyond the pace, never beyond max_active.
--
-- ARGV     run id; how many
-- returns  {'OK', people called} · {'ROOM_NOT_FOUND'}
-- keeps    nothing is kept for those who join later; more than one script's work follows with the next ticks

-- include number
-- include room
-- include pace
-- include ticket
-- include moves
-- include call
-- include finish
-- include calling

local refusal = room_load()
if refusal then
    return refusal
end
room.advance = math.min(tonumber(ARGV[2]), room_standing())
local called, has_more = call_people()
room.is_behind = as_flag(has_more)
if not has_more then
    room.advance = 0 -- what a full room holds back is not kept
end
room_save()
return {'OK', called}
