-- SPDX-License-Identifier: BSD-2-Clause
--
-- What a place is called, and who stands there, as in src/room/places.c. Visitors know a place as epoch and count; in the line it is
-- one number. Former epochs, oldest first, are one string of the room, which is read only for whoever names one.

figures_add('former_sec')

local EPOCH_FORMAT, EPOCH_BYTES = '<I4I4I4', 12

local former_epochs

local function epochs_unpack(packed)
    local epochs = {}
    for at = 1, #packed, EPOCH_BYTES do
        local epoch, base, lost_from = struct.unpack(EPOCH_FORMAT, packed, at)
        epochs[#epochs + 1] = {epoch = epoch, base = base, lost_from = lost_from}
    end
    return epochs
end

local function epochs_former()
    former_epochs = former_epochs or epochs_unpack(call('HGET', ROOM, 'former') or '')
    return former_epochs
end

local function epochs_keep()
    local packed = {}
    for i, epoch in ipairs(epochs_former()) do
        packed[i] = struct.pack(EPOCH_FORMAT, epoch.epoch, epoch.base, epoch.lost_from)
    end
    call('HSET', ROOM, 'former', table.concat(packed))
end

-- The epoch whose counts stand at this place, its base and the first count that it lost. Of the present one nothing is lost.
local function epoch_at(place)
    if place > room.base then
        return room.epoch, room.base, 0
    end
    local epochs = epochs_former()
    local i = #epochs
    while i > 1 and epochs[i].base >= place do
        i = i - 1
    end
    return epochs[i].epoch, epochs[i].base, epochs[i].lost_from
end

-- Where epoch and count lie in the line; nil if they never were of this room.
local function place_of(epoch, count)
    local base, most = room.base, UINT32_MAX - 1
    if epoch ~= room.epoch then
        local epochs, i = epochs_former(), 1
        while epochs[i] and epochs[i].epoch ~= epoch do
            i = i + 1
        end
        if not epochs[i] then
            return nil
        end
        base, most = epochs[i].base, epochs[i + 1] and epochs[i + 1].base or room.base
    end
    return count >= 1 and count <= most - base and base + count or nil
end

-- Whether a place that nobody knows was lost there.
local function is_lost_place(place)
    local _, base, lost_from = epoch_at(place)
    return lost_from ~= 0 and place - base >= lost_from
end

-- Whether a pass is from before the room was made: of a room of this name that is gone.
local function is_former(named)
    local sec = string.match(named.grant, '^%d+:%d+:(%d+)$')
    return sec ~= nil and tonumber(sec) < room.former_sec
end

-- The living ticket that somebody means who names this place; nil if there is none. It is another than named if that was lost and
-- its holder has come back to an older place. Whoever names epoch 0 means the one that they have.
local function ticket_find(named)
    local ticket = ticket_held_by(named.holder)
    if named.epoch == 0 then
        return ticket
    end
    local place = ticket and place_of(named.epoch, named.count)
    if place == nil then
        return ticket and ticket.has_alias and is_former(named) and ticket or nil
    end
    if ticket.place == place then
        return ticket
    end
    -- Another name for it has who was lost, or came again later; not a ticket that was over before.
    local is_alias = ticket.has_alias and (place > ticket.place or is_lost_place(place) or is_former(named))
    return is_alias and ticket or nil
end
