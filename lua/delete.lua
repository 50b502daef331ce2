-- SPDX-License-Identifier: BSD-2-Clause
--
-- The room and all its tickets are gone.
--
-- ARGV     run id
-- returns  {'OK'} · {'ROOM_NOT_FOUND'}
-- keeps    a room that is made anew under this name gets a higher epoch: EPOCH says so until the time of day does. And for a day
--          no node brings its people back

-- include number
-- include room
-- include epoch

local DAY_SEC = 86400

local refusal = room_load()
if refusal then
    return refusal
end
call('UNLINK', ROOM, SETTINGS, LINE, TICKETS, DUE, REQUESTS, REQUEST_ORDER, MEASURED, HEALED, SHOP)
call('SET', EPOCH, room.epoch, 'EXAT', math.max(epoch_ends_sec(room.epoch), floor(wall_ms() / 1000) + DAY_SEC))
return {'OK'}
