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
-- include loss

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
    epoch_begin(room.last - room.base + 1, settings)
    room_save()
end
return {'OK'}
