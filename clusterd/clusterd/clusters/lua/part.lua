-- part(BASE; token, task, move, rest) → 1 done; -1: the lease is lost, or the task does not wait any more
--
-- KEYS[1] BASE   the home shard (settling.lua)
-- ARGV    token of the lease; the task that was searched; the part that is to move (BASE:mv), or '' where all have moved;
--         then rest: a content of the side that stayed
--
-- What a search found is only written by who still holds the lease: another settler may have dismissed more since. The
-- other searches of this cluster begin from the rest besides: two sides that stayed where they were, each in a search of
-- its own, lie apart where a side between them has moved.
define('part', function(ARGV)
  if not held(ARGV[1]) then return -1 end
  if ARGV[3] ~= '' then
    if not call('LPOS', BASE .. ':tasks', ARGV[2]) then return -1 end
    call('SET', BASE .. ':mv', ARGV[3])
    return 1
  end
  if call('LREM', BASE .. ':tasks', 1, ARGV[2]) == 0 then return -1 end
  for place, task in ipairs(call('LRANGE', BASE .. ':tasks', 0, -1)) do
    if sub(task, 1, 5) == sub(ARGV[2], 1, 5) then call('LSET', BASE .. ':tasks', place - 1, task .. ARGV[4]) end
  end
  return 1
end)
