-- Whether a string stands before another of the same length, byte by byte. Lua's own `<` compares strings by the locale
-- that the server was started in: in en_US.UTF-8 it takes nearly every second fetch time for the wrong one.
local precedes
do
  local byte = string.byte

  function precedes(a, b)
    for at = 1, #a do
      local mine, other = byte(a, at), byte(b, at)
      if mine ~= other then return mine < other end
    end
    return false
  end
end
