-- SPDX-License-Identifier: BSD-2-Clause
--
-- After a loss: a new epoch begins far enough from the places that may have been given. And what nodes keep in mind of a room,
-- should its server forget all of it: they get it with each tick, and bring it when they make the room anew.

figures_add('last', 'cleared')

local EPOCHS_MOST = 63 -- former ones that are remembered
local EPOCH_DISTANCE = 2 ^ 22 -- more tickets than a server could lose at once
local PAGE_COUNT = 126 -- of a room of plain C, where the first count begins a page

local RECALL_LAYOUT = 1
local RECALL_FORMAT, RECALL_BYTES = '<I4I4', 8

-- The present epoch ends: its counts from here on were lost if nobody knows them. Nobody is called for arrive_ttl of `set`.
local function epoch_begin(lost_from, set)
    local epochs, base = epochs_former(), room.last + EPOCH_DISTANCE
    local ending = {epoch = room.epoch, base = room.base, lost_from = lost_from}
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
    room.calls_from_ms = room.clock_ms + set.arrive_ttl_sec * 1000
end

-- The epochs, in the form of `former` of the room. Of the present one the last entry: in the place of what was lost, the last place.
local function recall_pack()
    return struct.pack(RECALL_FORMAT, RECALL_LAYOUT, room.cleared) .. (call('HGET', ROOM, 'former') or '')
        .. struct.pack(EPOCH_FORMAT, room.epoch, room.base, room.last)
end

local function recall_is_readable(packed)
    local epochs = (#packed - RECALL_BYTES) / EPOCH_BYTES
    return epochs == floor(epochs) and epochs >= 1 and epochs <= EPOCHS_MOST + 1
        and (struct.unpack(RECALL_FORMAT, packed)) == RECALL_LAYOUT
end

-- A room that was made just now takes its epochs from there, unless they end with one of a room that was deleted. Everything was
-- lost, but for what was cleared.
local function recall(packed, deleted, set)
    if not recall_is_readable(packed) or struct.unpack('<I4', packed, #packed - EPOCH_BYTES + 1) <= deleted then
        return false
    end
    local _, cleared = struct.unpack(RECALL_FORMAT, packed)
    local epochs = epochs_unpack(string.sub(packed, RECALL_BYTES + 1))
    local present = table.remove(epochs)
    local function lost_from(epoch)
        return at_least(cleared - epoch.base, 0) + 1
    end
    former_epochs = epochs
    for _, epoch in ipairs(epochs) do
        epoch.lost_from = epoch.lost_from ~= 0 and lost_from(epoch) or 0
    end
    room.epoch, room.base, room.last, room.cleared = present.epoch, present.base, present.lost_from, cleared
    epoch_begin(lost_from(present), set)
    return true
end
