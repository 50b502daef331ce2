-- SPDX-License-Identifier: BSD-2-Clause
--
-- The settings. They are what they are, whoever keeps the room: that another process does is found out by all other scripts.
--
-- ARGV     run id
-- returns  {'OK', {name, value, … of each setting}} · {'ROOM_NOT_FOUND'}
-- keeps    everything: writes nothing

-- include number
-- include room

if call('EXISTS', ROOM) == 0 then
    return {'ROOM_NOT_FOUND'}
end
return {'OK', call('HGETALL', SETTINGS)}
