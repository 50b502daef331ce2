-- SPDX-License-Identifier: BSD-2-Clause

-- The same for each of the tickets that ARGV names, one after the other.
local function each_ticket(act)
    if not room_load() then
        return {'TOKEN_NOT_FOUND'}
    end
    local answers = {'OK'}
    for i = 1, #ARGV, 3 do
        local ticket = ticket_find(ARGV[i], ARGV[i + 1], ARGV[i + 2])
        answers[#answers + 1] = ticket and standing_list(act(ticket)) or {}
    end
    room_save()
    return answers
end

-- For the one ticket that ARGV begins with; the act says what is wrong, or nil.
local function one_ticket(act)
    local ticket = room_load() and ticket_find(ARGV[1], ARGV[2], ARGV[3])
    if not ticket then
        return {'TOKEN_NOT_FOUND'}
    end
    local why = act(ticket)
    room_save()
    return {why or 'OK'}
end
