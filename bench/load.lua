-- SPDX-License-Identifier: BSD-2-Clause
-- wrk script: sends the requests of a file, separated by the byte 1, in turn. They are whole HTTP requests, made before
-- the run, so that the generator costs as little as can be and the same for both sides of a comparison.
-- With a second argument it also appends every `waiting_token` it is given to that file, one a line.
-- PAUSE_MS in the environment: each connection waits so long before it asks again. What is left of a core then is not the load's.

local requests, at, tokens = {}, 0, nil
local threads = 0

function setup(thread)
    thread:set("number", threads)
    threads = threads + 1
end

function init(args)
    local file = assert(io.open(args[1], "rb"))
    for request in file:read("*a"):gmatch("[^\1]+") do
        requests[#requests + 1] = request
    end
    file:close()
    local pause_ms = tonumber(os.getenv("PAUSE_MS"))
    if pause_ms then
        delay = function() return pause_ms end -- wrk looks for it after init
    end
    at = math.floor(number * #requests / 7) -- threads walk the same file, but not in step
    if args[2] then
        tokens = assert(io.open(args[2] .. "." .. number, "ab"))
        response = keep_token -- wrk looks for it after init, and collects answers only if it is there
    end
end

function request()
    at = at % #requests + 1
    return requests[at]
end

function keep_token(status, headers, body)
    tokens:write(body:match('"waiting_token":"([^"]+)"'), "\n")
end
