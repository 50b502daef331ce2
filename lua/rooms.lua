-- SPDX-License-Identifier: BSD-2-Clause
--
-- Which rooms there are.
--
-- KEYS     the registry (register.lua)
-- ARGV     run id; how many to pass over; how many at most
-- returns  {'OK', {names in their order}}
-- keeps    everything: writes nothing

return {'OK', redis.call('ZRANGEBYSCORE', KEYS[1], 0, 0, 'LIMIT', ARGV[2], ARGV[3])}
