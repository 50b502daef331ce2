-- SPDX-License-Identifier: BSD-2-Clause
--
-- What people are told, as in src/room/standing.c. Telling is an event too: who asks is there, and who was told that it is their
-- turn has been promised that an enter succeeds.

local POLL_MIN_SEC, POLL_INSIDE_SEC = 1, 30
local PASS_LIFE_SEC = 12 * 60 * 60

-- What the clients of halls and lobbies know, by how many stand ahead; nil in other rooms.
local function poll_by_ahead(preset, ahead)
    if preset == 'hall' then
        return ahead <= 999 and 1 or ahead <= 4999 and 5 or ahead <= 9999 and 10 or ahead <= 99999 and 30 or 60
    elseif preset == 'lobby' then
        return ahead <= 500 and 2 or ahead <= 2000 and 5 or ahead <= 10000 and 10 or 15
    end
end

-- The nearer the turn the more often. Up to a quarter is taken off by place, so that a crowd that joined together does not ask
-- together: count * 2654435761 in 32 bits, of which the upper 16.
local function poll_by_eta(eta_sec, place)
    local poll_sec = clamp(floor(eta_sec / 5), POLL_MIN_SEC, POLL_MAX_SEC)
    local low, high = place % 65536, floor(place / 65536)
    local product = (low * 2654435761 + high * 2654435761 % 65536 * 65536) % 4294967296
    return poll_sec - floor(product / 65536) % (floor(poll_sec / 4) + 1)
end

local function seconds_since(moment)
    return floor((room_now() - moment) / 10)
end

-- Someone away would, on coming back, stand behind those who stand at lower places.
local function rank_of(ticket)
    if ticket.state == WAITING then
        return ticket.rank or call('ZRANK', LINE, ticket.holder) + 1
    end
    return call('ZCOUNT', LINE, '-inf', ticket.place) + 1
end

local function look_waiting(ticket, standing)
    local rank = rank_of(ticket)
    standing.position = (ticket.shown == 0 or rank < ticket.shown) and rank or ticket.shown
    standing.waited_sec = seconds_since(ticket.joined)
    standing.eta_sec, standing.eta_low_sec, standing.eta_high_sec = eta_at(standing.position, standing.waited_sec)
    standing.next_poll_sec = poll_by_ahead(settings.preset, standing.position - 1)
        or poll_by_eta(standing.eta_sec, ticket.place)
end

local function look_called(ticket, standing)
    standing.is_ready = true
    standing.position = 1
    standing.waited_sec = seconds_since(ticket.joined)
    standing.next_poll_sec = POLL_MIN_SEC
end

local function look_inside(ticket, standing)
    standing.is_ready = true
    standing.tier = ticket.tier
    standing.waited_sec = at_least(ticket.iat_sec - ticket.issued_sec, 0)
    standing.next_poll_sec = POLL_INSIDE_SEC
    standing.iat_sec, standing.pass_key_id = ticket.iat_sec, ticket.pass_key_id
    standing.pass_life_sec = ticket.session_max_sec == 0 and PASS_LIFE_SEC or ticket.session_max_sec
end

local function standing_look(ticket)
    local standing = {
        holder = ticket.holder, place = ticket.place, state = ticket.state, is_trusted = ticket.is_trusted, key_id = ticket.key_id,
        tier = settings.tier, issued_sec = ticket.issued_sec, position = 0, waited_sec = 0, eta_sec = 0, eta_low_sec = 0,
        eta_high_sec = 0, next_poll_sec = 0,
    }
    if ticket.state == WAITING or ticket.state == AWAY then
        look_waiting(ticket, standing)
    elseif ticket.state == CALLED then
        look_called(ticket, standing)
    else
        look_inside(ticket, standing)
    end
    return standing
end

-- They wait, were seen, and were told to ask again in `poll_sec`.
local function standing_expect(ticket, poll_sec)
    ticket.poll_sec = poll_sec
    ticket_set_deadline(ticket, room_later(math.max(settings.seen_ttl_sec, 3 * poll_sec)))
end

-- While a called ticket is leaving, `shown` holds the deadline it had: a goodbye must not buy time.
local function note_called(ticket)
    if ticket.is_leaving then
        ticket_set_deadline(ticket, ticket.shown)
        ticket.shown = 1
        ticket.is_leaving = false
    end
end

-- Notes that the holder was seen. The callers of this and of the next keep the ticket.
local function standing_see(ticket)
    if ticket.state == AWAY then
        ticket_return(ticket)
    end
    local standing = standing_look(ticket)
    if ticket.state == WAITING then
        ticket.shown = standing.position
        ticket.is_leaving = false
        standing_expect(ticket, standing.next_poll_sec)
    elseif ticket.state == CALLED then
        note_called(ticket)
    end
    return standing
end

-- For an answer that says whether it is their turn: with the first that does, the time to claim begins.
local function standing_tell(ticket)
    local standing = standing_see(ticket)
    if ticket.state == CALLED and not ticket.is_told then
        ticket.is_told = true
        ticket_set_deadline(ticket, room_later(settings.claim_ttl_sec))
    end
    return standing
end

-- As it is returned: one string, for a list of twenty costs the server twice as much, and the nodes twenty objects.
local STANDING_FORMAT = '<c16I4I4BBBBBBBI4I4I4I4I4I4I4I4I4I4'

local function standing_pack(standing)
    local epoch, base = epoch_at(standing.place)
    return struct.pack(STANDING_FORMAT, standing.holder, epoch, standing.place - base, standing.state,
        as_flag(standing.is_trusted), as_flag(standing.is_ready), as_flag(standing.is_repeat), standing.key_id, standing.tier,
        standing.pass_key_id or 0, standing.issued_sec, standing.position, standing.waited_sec, standing.eta_sec,
        standing.eta_low_sec, standing.eta_high_sec, standing.next_poll_sec, standing.iat_sec or 0, standing.pass_life_sec or 0,
        settings.arrive_ttl_sec)
end
