-- SPDX-License-Identifier: BSD-2-Clause
--
-- The numbers of epochs begin with the time of day, one for each 512 s since 2026, as those of a journal do: so that the numbers of
-- a room that nobody remembers are not given again.

local EPOCH_SECONDS, EPOCH_ZERO = 512, 1767225600

local function epoch_of(sec)
    return sec <= EPOCH_ZERO and 1 or floor((sec - EPOCH_ZERO) / EPOCH_SECONDS) + 1
end

-- When the time of day alone gives a higher epoch.
local function epoch_ends_sec(epoch)
    return EPOCH_ZERO + epoch * EPOCH_SECONDS
end

-- One after this, 0 if none is known. Others may have been begun since, and lost with a server, perhaps a moment ago: so it is a
-- number that they hardly took.
local EPOCHS_SKIPPED = 1024

local function epoch_after(epoch)
    local time = call('TIME')
    return math.max(epoch_of(tonumber(time[1])), epoch) + 1 + tonumber(time[2]) % EPOCHS_SKIPPED
end
