-- SPDX-License-Identifier: BSD-2-Clause
--
-- Sessions that were lost, as in src/room/returns.c: whoever has a pass was inside, and goes on where they were as long as a slot is
-- free. That a pass of a former room came back is remembered among the idempotency keys, by its holder.

figures_add('returns_until_ms', 'slot_gone', 'slot_joins')

local function may_come_back(named)
    return is_former(named) and room.clock_ms < room.returns_until_ms and room.keys_dropped == 0
        and call('LLEN', REQUEST_ORDER) < REQUESTS_MOST and not request_find(named.holder)
end

local function remember_return(named)
    local nowhere = {holder = named.holder, place = 0}
    request_keep(named.holder, string.rep('\0', 8), nowhere, {next_poll_sec = 0})
end
