-- SPDX-License-Identifier: BSD-2-Clause
--
-- The room and all its tickets are gone.
--
-- ARGV     run id
-- returns  {'OK'} · {'ROOM_NOT_FOUND'}
-- keeps    a room that is made anew under this name gets a higher epoch: EPOCH says so until the time of day does

-- include number
-- include room
-- include epoch

local refusal = room_load()
if refusal then
    return refusal
end
call('UNLINK', ROOM, SETTINGS, LINE, TICKETS, DUE, REQUESTS, REQUEST_ORDER, MEASURED, HEALED)
call('SET', EPOCH, room.epoch, 'EXAT', epoch_ends_sec(room.epoch))
return {'OK'}
