-- SPDX-License-Identifier: BSD-2-Clause

figures_add('returns_until_ms')

local function room_is_empty()
    return room_standing() + room.away + room_slots_used() == 0
end

-- Nobody is in the room, its pace has nothing to regain and no key waits to be given up: it need not be ticked.
local function room_is_at_rest()
    return room_is_empty()
        and room_frozen_ms() == 0 and room.clock_ms >= room.returns_until_ms
        and call('LLEN', REQUEST_ORDER) == 0
        and pace_is_full()
end
