-- SPDX-License-Identifier: BSD-2-Clause
--
-- What is going on in the room.
--
-- ARGV     run id; whether the texts are wanted (0 or 1)
-- returns  {'OK', {figures in the order of redis/answer.c}, {name, value, … of each number among the settings}, what is known of the shop,
--          lines of texts (redis-cli HGET queue:room:{…} texts), nothing if they are not wanted} · {'ROOM_NOT_FOUND'}
-- keeps    everything: writes nothing

-- include number
-- include room
-- include pace
-- include eta
-- include rest

figures_add('issued', 'calls', 'refunds', 'last_called', 'keys_dropped', 'joined_milli', 'called_milli', 'eta_checked',
    'eta_kept', 'settings_version', 'is_settings_from_api')

local refusal = room_load()
if refusal then
    return refusal
end
-- At rest nothing is measured, and nothing happens.
local moving = room_is_at_rest() and 0 or 1
return {'OK', {
    room.epoch, room.clock_ms, room_standing(), room.away, room.called, room.entered, room.active, room.issued,
    room.calls, room.refunds, room.keys_dropped, at_least(room.last_called - room.base, 0), room.joined_milli * moving,
    room.called_milli * moving, (eta_at(room_standing() + 1, 0)), room.eta_checked, room.eta_kept, pace_milli(settings),
    room.settings_version, room.is_settings_from_api, at_least(room.shop_until_ms - room.clock_ms, 0),
}, call('HGETALL', SETTINGS), call('HGET', ROOM, 'follow') or '', ARGV[2] == '1' and call('HGET', ROOM, 'texts') or ''}
