-- How far the log was read: BASE:q, hash: partition → offset.

-- Move partitions on: partition, what the caller knows of it ('' for nothing), offset, in threes from `first` to `last`.
-- None is moved, and false returned, where one holds something else: it is another reader's by now, which has gone on
-- while the caller stood still, or the store was set back. What holds the offset already was moved by a call whose reply
-- was lost.
local function move_on(ARGV, first, last)
  for at = first, last, 3 do
    local held = call('HGET', BASE .. ':q', ARGV[at]) or ''
    if held ~= ARGV[at + 1] and held ~= ARGV[at + 2] then return false end
  end
  for at = first, last, 3 do call('HSET', BASE .. ':q', ARGV[at], ARGV[at + 2]) end
  return true
end
