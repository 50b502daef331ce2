-- SPDX-License-Identifier: BSD-2-Clause
--
-- The room and all its tickets are gone.
--
-- returns  {'OK'} · {'ROOM_NOT_FOUND'}
-- keeps    a room that is made anew under this name gets a higher epoch: EPOCH says so until the time of day does

-- include number
-- include room
-- include epoch

if not room_load() then
    return {'ROOM_NOT_FOUND'}
end
call('UNLINK', ROOM, SETTINGS, LINE, TICKETS, DUE, REQUESTS, REQUEST_ORDER, MEASURED, HEALED)
call('SET', EPOCH, room.epoch, 'EXAT', epoch_ends_sec(room.epoch))
return {'OK'}
