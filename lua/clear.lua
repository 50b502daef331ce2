-- SPDX-License-Identifier: BSD-2-Clause
--
-- Everybody in line and inside is gone, as if they had never been.
--
-- ARGV     run id
-- returns  {'OK', people cleared} · {'ROOM_NOT_FOUND'}
-- keeps    numbering goes on; nobody comes back, not even if the server then forgets the room

-- include number
-- include room
-- include pace
-- include ticket
-- include places

figures_add('last', 'cleared')

local refusal = room_load()
if refusal then
    return refusal
end
local cleared = call('HLEN', TICKETS)
call('UNLINK', LINE, TICKETS, DUE, HEALED)
for _, epoch in ipairs(epochs_former()) do
    epoch.lost_from = 0
end
epochs_keep()
room.former_sec, room.cleared = 0, room.last
room.away, room.called, room.entered, room.active, room.advance = 0, 0, 0, 0, 0
lapse_if_empty()
room_save()
return {'OK', cleared}
