-- SPDX-License-Identifier: BSD-2-Clause
--
-- Another process keeps the room than before. Either the room has moved, and nothing is lost: that is only noted. Or the server
-- may have lost its last moments: a new epoch begins, so that no number is given twice, and those whose tickets are missing get
-- their places back; and nobody is called for arrive_ttl, so that those inside are back before others take their slots.
--
-- ARGV     run id; the one that the room named when it was asked; whether that one is a primary still, so that the room has only
--          moved (0 or 1)
-- returns  {'OK'} · {'OTHER_PRIMARY', run id}: the room names yet another by now · {'ROOM_NOT_FOUND'}
-- keeps    places are in the order of their epochs. Whichever node comes first does it, for all

-- include number
-- include room
-- include ticket
-- include places
-- include epoch

figures_add('last')

local EPOCHS_MOST = 63 -- former ones that are remembered
local EPOCH_DISTANCE = 2 ^ 22 -- more tickets than a server could lose at once
local PAGE_COUNT = 126 -- of a room of plain C, where the first count begins a page

local function epoch_begin()
    local epochs, base = epochs_former(), room.last + EPOCH_DISTANCE
    local ending = {epoch = room.epoch, base = room.base, lost_from = room.last - room.base + 1}
    base = base + PAGE_COUNT - 1 - base % PAGE_COUNT
    if base >= UINT32_MAX then -- numbers come to their end: nobody comes back
        ending.lost_from, base = 0, room.last
    end
    if #epochs == EPOCHS_MOST then
        table.remove(epochs, 1)
        call('ZREMRANGEBYSCORE', HEALED, '-inf', epochs[1].base) -- whoever was lost then does not come back
    end
    epochs[#epochs + 1] = ending
    epochs_keep()
    room.epoch = epoch_after(room.epoch)
    room.base, room.last = base, base
end

local former, is_moved = ARGV[2], ARGV[3] == '1'
local refusal = room_load()
if not refusal then
    return {'OK'} -- another node has done it
end
if refusal[1] ~= 'OTHER_PRIMARY' or refusal[2] ~= former then
    return refusal
end
call('HSET', ROOM, 'primary', RUN_ID)
room_load()
if not is_moved then
    epoch_begin()
    room.calls_from_ms = room.clock_ms + settings.arrive_ttl_sec * 1000
    room_save()
end
return {'OK'}
