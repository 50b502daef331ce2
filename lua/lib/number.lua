-- SPDX-License-Identifier: BSD-2-Clause
--
-- Whole numbers. Lua's are doubles: exact below 2^53, and so is floor(a / b) for a below that. Everything here comes to
-- what the C code comes to in 64 and 128 bits.

local floor = math.floor
local EXACT = 9007199254740992
local UINT32_MAX = 4294967295

local function div(a, b)
    return floor(a / b)
end

-- floor(a * b / c), also where a * b is 2^53 or more. c is below 2^51.
local function muldiv(a, b, c)
    if a * b < EXACT then
        return floor(a * b / c)
    end
    local quotient, rest = a * floor(b / c), 0
    local part, bits, highest = b % c, 0, 1
    while highest * 2 <= a do
        highest = highest * 2
    end
    -- a, bit by bit from the highest, as in writing.
    while highest >= 1 do
        rest, bits = rest * 2, bits * 2
        if a >= highest then
            a, rest = a - highest, rest + part
        end
        bits, rest = bits + floor(rest / c), rest % c
        highest = highest / 2
    end
    return quotient + bits
end

-- The square root, rounded down.
local function root(square)
    return floor(math.sqrt(square))
end

local function clamp(value, lowest, highest)
    return value < lowest and lowest or value > highest and highest or value
end

local function at_least(value, least)
    return value < least and least or value
end

-- A number with up to three decimals, in thousandths.
local function as_milli(text)
    return floor(tonumber(text) * 1000 + 0.5)
end

local function as_flag(is_so)
    return is_so and 1 or 0
end
