-- SPDX-License-Identifier: BSD-2-Clause
--
-- The server may have lost its last moments: another is the primary now, or it was started anew. A new epoch begins, so that no
-- number is given twice, and those whose tickets are missing get their places back; and nobody is called for arrive_ttl, so that
-- those inside are back before others take their slots.
--
-- ARGV     id of the primary: whichever node comes first with a new one does it, for all
-- returns  {'OK', epoch} · {'ROOM_NOT_FOUND'}
-- keeps    places are in the order of their epochs

-- include number
-- include room
-- include ticket
-- include places
-- include epoch

figures_add('last')

local EPOCHS_MOST = 63 -- former ones that are remembered
local EPOCHS_SKIPPED = 1024 -- nobody knows which were begun and lost
local EPOCH_DISTANCE = 2 ^ 22 -- more tickets than a server could lose at once
local PAGE_COUNT = 126 -- of a room of plain C, where the first count begins a page

local function epoch_begin()
    local now_sec = floor(wall_ms() / 1000)
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
    room.epoch = math.max(epoch_of(now_sec), room.epoch + EPOCHS_SKIPPED)
    room.base, room.last = base, base
end

if not room_load() then
    return {'ROOM_NOT_FOUND'}
end
if call('HGET', ROOM, 'primary') ~= ARGV[1] then
    epoch_begin()
    room.calls_from_ms = room.clock_ms + settings.arrive_ttl_sec * 1000
    call('HSET', ROOM, 'primary', ARGV[1])
    room_save()
end
return {'OK', room.epoch}
