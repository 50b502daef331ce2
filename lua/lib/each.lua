-- SPDX-License-Identifier: BSD-2-Clause
--
-- What people ask of one room at the same time is asked with one script: it does the same for each of them, one after the other, as
-- if they had come one by one. Loading the room costs as much as asking it four times.

-- `act` is given the arguments of one, so many each, and returns its answer: a list that begins with OK or what is wrong.
local function each(width, act)
    local refusal = room_load()
    if refusal then
        return refusal
    end
    local answers = {'OK'}
    for i = 2, #ARGV, width do
        answers[#answers + 1] = act(unpack(ARGV, i, i + width - 1))
    end
    room_save()
    return answers
end

-- What somebody names who comes with a ticket or a pass: the five arguments that such a call begins with. `issue` and `grant` are
-- what the token says beside the place, or empty.
local function named(holder, epoch, count, issue, grant)
    return {holder = holder, epoch = tonumber(epoch), count = tonumber(count), issue = issue, grant = grant}
end

-- `find` is given what they name and returns the ticket; `act` is given the ticket. It returns an answer, or nil if all is well and
-- there is nothing to say.
local function each_ticket(find, act)
    return each(5, function(...)
        local ticket = find(named(...))
        if not ticket then
            return {'TOKEN_NOT_FOUND'}
        end
        return act(ticket) or {'OK'}
    end)
end
