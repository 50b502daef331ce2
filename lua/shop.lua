-- SPDX-License-Identifier: BSD-2-Clause
--
-- What a node saw of the shop is added to what others saw. A room whose pace is fixed does not care, and one that follows its hall
-- only for how long nobody should be called.
--
-- ARGV     run id; for how long the shop, or the hall, is left alone, in milliseconds; then what and how often: `failures`,
--          `ages_sec`, or the number of a time of struct shop_report
-- returns  {'OK'} · {'ROOM_NOT_FOUND'}
-- keeps    a shop that is left alone for longer stays so

-- include number
-- include room

local refusal = room_load()
if refusal then
    return refusal
end
if settings.pace == 'auto' then
    for i = 3, #ARGV, 2 do
        call('HINCRBY', SHOP, ARGV[i], ARGV[i + 1])
    end
end
if settings.pace ~= 'fixed' then
    room.shop_until_ms = at_least(room.shop_until_ms, room.clock_ms + tonumber(ARGV[2]))
    room_save()
end
return {'OK'}
